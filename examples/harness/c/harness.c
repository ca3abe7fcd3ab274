/*
 * A harness in C11. It lets `posref check` call rope, sinusoidal, alibi and t5_buckets in a C program.
 *
 *     cc -std=c11 -O2 -o harness examples/harness/c/harness.c -lm && posref check --command ./harness
 *
 * Copy this file. Put your own code in place of "The operations", and list what it offers in START and in run(). If it lacks
 * an option, call refuse("unsupported", ...). The protocol is JSON lines: each message on stdin gets one reply on stdout.
 * Print anything else to stderr. Arrays are little-endian, and the machine must be too.
 */
#define _POSIX_C_SOURCE 200809L /* getline */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A call: its memory, and how to give it up ---- */
enum { MAX_AXES = 16, MAX_KEPT = 8 };
static long long sequence; /* its number */
static jmp_buf refused;
static void *kept[MAX_KEPT]; /* what it allocated: freed after the reply, whatever the reply is */
static int kept_count;

/* Reply with a status other than ok, and give up the call. */
static _Noreturn void refuse(const char *status, const char *what, const char *why) {
    printf("{\"seq\":%lld,\"status\":\"%s\",\"message\":\"%s %s\"}\n", sequence, status, what, why);
    longjmp(refused, 1);
}

static void *allocate(size_t count, size_t size) {
    void *p = kept_count < MAX_KEPT ? calloc(count ? count : 1, size) : NULL;
    if (!p) refuse("error", "the call", "needs more memory than there is");
    return kept[kept_count++] = p;
}

/* ---- JSON: a value is a pointer to its first character; strings are compared as they are written ---- */
static const char *blank(const char *p) { return p + strspn(p, " \t\r\n"); }

/* The punctuation that ends the value or name at p; never beyond the end of the text, whatever the text is. */
static const char *after(const char *p) {
    for (int depth = 0; *p && (depth > 0 || !strchr(",:]}", *p)); p++) {
        depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
        if (*p == '"')
            while (p[1] && *++p != '"') p += *p == '\\' && p[1];
    }
    return p;
}

static bool is(const char *p, const char *word) {
    size_t n = strlen(word);
    return p && *p == '"' && !strncmp(p + 1, word, n) && p[1 + n] == '"';
}

/* The value of a member of an object; NULL if it is absent or null. */
static const char *member(const char *object, const char *name) {
    const char *p = object && *object == '{' ? blank(object + 1) : "", *value;
    for (; *p == '"'; p = blank(*p == ',' ? p + 1 : p)) {
        value = after(p);
        value = blank(*value == ':' ? value + 1 : value);
        if (is(p, name)) return strncmp(value, "null", 4) ? value : NULL;
        p = after(value);
    }
    return NULL;
}

static bool flag(const char *object, const char *name) { return member(object, name) && *member(object, name) == 't'; }

/* A number; NAN if there is none. */
static double number(const char *object, const char *name) {
    const char *p = member(object, name);
    return p && (*p == '-' || isdigit((unsigned char)*p)) ? strtod(p, NULL) : NAN;
}

static double positive(const char *object, const char *name) {
    double value = number(object, name);
    if (!(value > 0 && isfinite(value))) refuse("rejected", name, "must be a finite number above 0");
    return value;
}

static size_t integer(const char *object, const char *name, size_t least) {
    double value = number(object, name);
    if (value >= (double)least && value < 0x1p53 && value == floor(value)) return (size_t)value;
    refuse("rejected", name, "must be an integer, and not too small");
}

/* ---- Arrays ---- */
typedef enum { F64, F32, I64, FORMATS } format;
static const struct { const char *code; size_t bytes; } FORMAT[FORMATS] = {{"F64", 8}, {"F32", 4}, {"I64", 8}};
typedef struct { format format; int axes; size_t shape[MAX_AXES + 2], size; void *data; } array;

static array create(format f, int axes, const size_t *shape) {
    array t = {.format = f, .axes = axes, .size = 1};
    for (int a = 0; a < axes; a++) {
        if (t.size && shape[a] > SIZE_MAX / 8 / t.size) refuse("error", "an array", "has more bytes than there are");
        t.size *= t.shape[a] = shape[a];
    }
    t.data = allocate(t.size, FORMAT[f].bytes);
    return t;
}

/* Values are read as doubles, exactly (integers up to 2^53). A result is rounded only once, in put(). */
static double get(const array *t, size_t i) {
    if (t->format == I64) return (double)((int64_t *)t->data)[i];
    return t->format == F64 ? ((double *)t->data)[i] : ((float *)t->data)[i];
}

static void put(const array *t, size_t i, double value) {
    if (t->format == I64) ((int64_t *)t->data)[i] = (int64_t)value;
    else if (t->format == F64) ((double *)t->data)[i] = value;
    else ((float *)t->data)[i] = (float)value;
}

/* Where the element `flat` of `shape` is in the first `axes` axes of `t`: aligned at the right, a size of 1 repeats. */
static size_t broadcast(const array *t, int axes, const size_t *shape, int shape_axes, size_t flat) {
    size_t place = 0, stride = 1;
    for (int a = axes - 1, b = shape_axes - 1; a >= 0 && b >= 0; flat /= shape[b], a--, b--) {
        if (t->shape[a] != 1) place += flat % shape[b] * stride;
        stride *= t->shape[a];
    }
    return place;
}

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/* Decode base64 into `room` bytes; return how many there were. */
static size_t decode(const char *text, unsigned char *bytes, size_t room) {
    uint32_t bits = 0, held = 0;
    size_t count = 0;
    for (const char *d; count < room && *text && (d = strchr(DIGITS, *text)) != NULL; text++) {
        bits = bits << 6 | (uint32_t)(d - DIGITS);
        if ((held += 6) >= 8) bytes[count++] = (unsigned char)(bits >> (held -= 8));
    }
    return count;
}

static void encode(const unsigned char *bytes, size_t count) {
    for (size_t k = 0; k < count; k += 3) {
        size_t left = count - k;
        uint32_t three = (uint32_t)bytes[k] << 16 | (left > 1 ? bytes[k + 1] << 8 : 0) | (left > 2 ? bytes[k + 2] : 0);
        for (size_t d = 0; d < 4; d++) putchar(d <= left ? DIGITS[three >> (18 - 6 * d) & 63] : '=');
    }
}

static array input(const char *message, const char *name) {
    const char *entry = member(member(message, "inputs"), name), *data = member(entry, "data"), *p = member(entry, "shape");
    size_t shape[MAX_AXES];
    int axes = 0, f = 0;
    while (f < FORMATS && !is(member(entry, "dtype"), FORMAT[f].code)) f++;
    if (f == FORMATS || !data || !p) refuse("rejected", name, "must be an array of F64, F32 or I64");
    for (p = blank(p + 1); isdigit((unsigned char)*p); p = after(p), p = blank(*p == ',' ? p + 1 : p)) {
        if (axes == MAX_AXES) refuse("unsupported", name, "has too many axes");
        shape[axes++] = (size_t)strtoull(p, NULL, 10);
    }
    array t = create((format)f, axes, shape);
    size_t bytes = t.size * FORMAT[f].bytes;
    if (decode(data + 1, t.data, bytes) != bytes) refuse("error", name, "has less data than its shape");
    return t;
}

/* Reply with the result, which all the operations here call "out". */
static void reply(const array *t) {
    printf("{\"seq\":%lld,\"status\":\"ok\",\"outputs\":{\"out\":{\"dtype\":\"%s\",", sequence, FORMAT[t->format].code);
    printf("\"shape\":[");
    for (int a = 0; a < t->axes; a++) printf(a ? ",%zu" : "%zu", t->shape[a]);
    printf("],\"data\":\"");
    encode(t->data, t->size * FORMAT[t->format].bytes);
    puts("\"}}}");
}

/* ---- The operations: options and arrays of a message in, one array out. Computed in double, rounded once by put() ---- */
static const double TAU = 6.28318530717958647693;
static double clip(double value) { return fmin(fmax(value, 0), 1); }

/* The factor of YaRN on cos and sin. In a field null means not given, and 0 means 0. */
static double gain(const char *yarn, double factor) {
    double given = number(yarn, "attention_factor"), some = number(yarn, "mscale"), all = number(yarn, "mscale_all_dim");
    double per = factor > 1 ? log(factor) / 10 : 0;
    return !isnan(given) ? given : isnan(some) || isnan(all) ? per + 1 : (some * per + 1) / (all * per + 1);
}

/* Write the angle per token of every pair of `dim` channels; return the factor on cos and sin. */
static double frequencies(const char *params, size_t dim, double *theta) {
    const char *scaling = member(params, "scaling"), *type = member(scaling, "type");
    bool linear = is(type, "Linear"), ntk = is(type, "NTKAware"), dynamic = is(type, "DynamicNTK");
    bool llama = is(type, "Llama3"), yarn = is(type, "YaRN"), truncate = flag(scaling, "truncate");
    if (scaling && !(linear || ntk || dynamic || llama || yarn)) refuse("unsupported", "scaling", "of this type");
    double base = positive(params, "base"), factor = scaling ? positive(scaling, "factor") : 1, low = 0, high = 0, width = 0;
    double d = (double)dim, original = dynamic || llama || yarn ? (double)integer(scaling, "original_length", 1) : 0;
    if (dynamic) factor = factor * fmax((double)integer(params, "length", 0), original) / original - (factor - 1);
    if (ntk || dynamic) {
        if (dim < 4) refuse("rejected", "rotary_dim", "must be at least 4 with NTK scaling");
        base *= pow(factor, d / (d - 2));
    } else if (llama) { /* a ramp between two numbers of turns in the original length; a step where they are equal */
        low = positive(scaling, "low_freq_factor"), high = positive(scaling, "high_freq_factor");
        if (low > high) refuse("rejected", "high_freq_factor", "must be at least low_freq_factor");
    } else if (yarn) { /* a ramp between the two pairs that make this many turns; never of width 0 */
        double fast = positive(scaling, "beta_fast"), slow = positive(scaling, "beta_slow");
        if (fast < slow) refuse("rejected", "beta_fast", "must be at least beta_slow");
        low = d * log(original / (fast * TAU)) / (2 * log(base)), high = d * log(original / (slow * TAU)) / (2 * log(base));
        low = fmax(truncate ? floor(low) : low, 0), high = fmin(truncate ? ceil(high) : high, d - 1);
        width = low == high ? 1e-3 : high - low;
    }
    for (size_t i = 0; i < dim / 2; i++) {
        theta[i] = pow(base, -2 * (double)i / d);
        double turns = theta[i] * original / TAU, slowed = linear ? 1 : 0; /* how much of the factor the pair gets */
        if (llama) slowed = low == high ? turns < low : 1 - clip((turns - low) / (high - low));
        if (yarn) slowed = clip(((double)i - low) / width);
        theta[i] = theta[i] / factor * slowed + theta[i] * (1 - slowed);
    }
    return yarn ? gain(scaling, factor) : 1;
}

/* The channel (lane) of the first (0) or second (1) element of pair i: neighbours, or half the channels apart. */
static size_t lane(bool half, size_t pairs, size_t i, size_t second) { return half ? i + second * pairs : 2 * i + second; }

static array rope(const char *message, const char *params, format dtype) {
    array x = input(message, "x"), p = input(message, "positions"), out = create(dtype, x.axes, x.shape);
    const char *layout = member(params, "layout"), *lanes = member(params, "lanes");
    bool read = is(layout, "half"), write = read || is(layout, "interleaved_to_half"), inverse = flag(params, "inverse");
    if (!write && !is(layout, "interleaved")) refuse("rejected", "layout", "must be half, interleaved or interleaved_to_half");
    if (lanes && !is(lanes, "leading") && !is(lanes, "trailing")) refuse("rejected", "lanes", "must be leading or trailing");
    int rows = x.axes - 1;
    size_t width = rows < 0 ? 0 : x.shape[rows], dim = member(params, "rotary_dim") ? integer(params, "rotary_dim", 2) : width;
    if (dim < 2 || dim % 2 || dim > width) refuse("rejected", "rotary_dim", "must be even, and at most the last axis of x");
    /* Two axes or more must be all of them, or (B, T) would pass for (H, T) where B is H; (T, 1) against (B, T, H) is clear. */
    bool fits = p.axes <= rows && (p.axes < 2 || p.axes == rows || (p.shape[p.axes - 1] == 1 && x.shape[rows - 1] != 1));
    for (int a = 1; fits && a <= p.axes; a++) fits = p.shape[p.axes - a] == 1 || p.shape[p.axes - a] == x.shape[rows - a];
    if (!fits) refuse("rejected", "positions", "must broadcast to the leading axes of x, without enlarging them");
    double *theta = allocate(dim / 2, sizeof *theta), factor = frequencies(params, dim, theta);
    for (size_t i = 0; i < x.size; i++) put(&out, i, get(&x, i)); /* channels that do not rotate are unchanged */
    for (size_t n = 0, pairs = dim / 2; n < x.size / width * pairs; n++) {
        size_t row = n / pairs, i = n % pairs, start = row * width + (is(lanes, "trailing") ? width - dim : 0);
        double angle = get(&p, broadcast(&p, p.axes, x.shape, rows, row)) * theta[i];
        double c = factor * cos(angle), s = factor * sin(inverse ? -angle : angle); /* the transpose keeps the factor */
        bool from = inverse ? write : read, to = inverse ? read : write;
        double a = get(&x, start + lane(from, pairs, i, 0)), b = get(&x, start + lane(from, pairs, i, 1));
        put(&out, start + lane(to, pairs, i, 0), a * c - b * s), put(&out, start + lane(to, pairs, i, 1), b * c + a * s);
    }
    return out;
}

static array sinusoidal(const char *message, const char *params, format dtype) {
    array p = input(message, "positions");
    const char *layout = member(params, "layout"), *odd = member(params, "odd");
    bool halves = !is(layout, "interleaved"), cos_first = is(layout, "cos_sin"), endpoint = flag(params, "endpoint");
    size_t dim = integer(params, "dim", endpoint ? 4 : 2), sines = is(odd, "zeros") ? dim / 2 : (dim + 1) / 2;
    size_t cosines = is(odd, "extra_sine") ? dim / 2 : sines, first = cos_first ? cosines : sines, all = sines + cosines;
    double base = positive(params, "base"), scale = positive(params, "scale"), steps = endpoint ? sines - 1.0 : all / 2.0;
    if (halves && !cos_first && !is(layout, "sin_cos")) refuse("rejected", "layout", "must be interleaved, sin_cos or cos_sin");
    if (!is(odd, "zeros") && !is(odd, "truncated") && !is(odd, "extra_sine") && (dim % 2 || !is(odd, "refused")))
        refuse("rejected", "odd", "must say what an odd dim means");
    p.shape[p.axes] = dim;
    array out = create(dtype, p.axes + 1, p.shape);
    for (size_t n = 0; n < p.size * dim; n++) {
        size_t column = n % dim, second = halves ? column >= first : column % 2;
        double i = (double)(halves ? column - second * first : column / 2), angle = get(&p, n / dim) * pow(base, -i / steps);
        put(&out, n, column < all ? scale * (second == cos_first ? sin(angle) : cos(angle)) : 0);
    }
    return out;
}

/* Slopes of the power of two at or below `heads`, then every other slope of the power above. */
static double slope(size_t head, size_t heads, double max_bias) {
    size_t below = 1;
    while (below <= heads / 2) below *= 2;
    double step = head < below ? 2 * (double)(head + 1) : 2 * (double)(head - below) + 1;
    return exp2(-max_bias * step / (2 * (double)below));
}

/* (*B, count, Q, K) for queries (*B, Q) and keys (*B, K): the heads of one shard, all of them without `count`. */
static array alibi(const char *message, const char *params, format dtype) {
    array q = input(message, "q_positions"), k = input(message, "k_positions");
    const char *form = member(params, "form");
    bool key = is(form, "key"), distance = is(form, "distance"), root = flag(params, "root");
    double max_bias = positive(params, "max_bias");
    size_t heads = integer(params, "heads", 1), first = integer(params, "first", 0), shape[MAX_AXES + 2];
    if (first >= heads) refuse("rejected", "first", "must be a head of the model");
    size_t count = member(params, "count") ? integer(params, "count", 1) : heads - first;
    if (count > heads - first) refuse("rejected", "count", "must not be more heads than the model has");
    if (!key && !distance && !is(form, "causal")) refuse("rejected", "form", "must be distance, causal or key");
    if (root && (key || distance)) refuse("rejected", "root", "must be false, or form causal");
    if (q.axes < 1 || k.axes < 1) refuse("rejected", "positions", "must have at least one axis");
    if (key) q = create(F64, 1, (size_t[]){1}); /* whatever the queries are: one at 0, from which key j is -j away */
    int batch = (q.axes > k.axes ? q.axes : k.axes) - 1;
    for (int a = 1; a <= batch; a++) { /* aligned at the right */
        size_t of_q = a < q.axes ? q.shape[q.axes - 1 - a] : 1, of_k = a < k.axes ? k.shape[k.axes - 1 - a] : 1;
        if (of_q != of_k && of_q != 1 && of_k != 1) refuse("rejected", "q_positions", "must broadcast with k_positions");
        shape[batch - a] = of_q == 1 ? of_k : of_q;
    }
    size_t queries = q.shape[q.axes - 1], keys = k.shape[k.axes - 1];
    shape[batch] = count, shape[batch + 1] = queries, shape[batch + 2] = keys;
    array out = create(dtype, batch + 3, shape);
    for (size_t n = 0; n < out.size; n++) {
        size_t j = n % keys, i = n / keys % queries, head = n / keys / queries % count + first, b = n / keys / queries / count;
        double apart = get(&q, broadcast(&q, q.axes - 1, shape, batch, b) * queries + i)
                     - get(&k, broadcast(&k, k.axes - 1, shape, batch, b) * keys + j);
        if (root) apart = sqrt(fmax(apart, 0));
        put(&out, n, -slope(head, heads, max_bias) * (distance ? fabs(apart) : apart));
    }
    return out;
}

/* Where n/e is a root of far/e the quotient is an integer, which rounding may miss from below: hence the 1e-9. */
static array t5_buckets(const char *message, const char *params) {
    array r = input(message, "relative_positions"), out = create(I64, r.axes, r.shape);
    bool both = flag(params, "bidirectional");
    size_t all = integer(params, "num_buckets", both ? 4 : 2), sided = both ? all / 2 : all;
    double e = (double)(sided / 2), last = (double)sided - 1, far = (double)integer(params, "max_distance", sided / 2 + 1);
    if (both && all % 2) refuse("rejected", "num_buckets", "must be even when bidirectional");
    if (r.format != I64) refuse("rejected", "relative_positions", "must be integers");
    for (size_t i = 0; i < r.size; i++) {
        double at = get(&r, i), n = both ? fabs(at) : fmax(-at, 0);
        double bucket = n < e ? n : e + floor((last + 1 - e) * log(n / e) / log(far / e) + 1e-9);
        put(&out, i, fmin(bucket, last) + (both && at > 0 ? (double)sided : 0));
    }
    return out;
}

/* ---- The protocol ---- */
static const char START[] =
    "{\"protocol\":1,\"implementation\":{\"name\":\"posref-example\",\"language\":\"C\"},\"dtypes\":[\"float64\",\"float32\"],"
    "\"claims\":{\"float64\":\"float64\",\"float32\":\"angle64\"},"
    "\"operations\":[\"rope\",\"sinusoidal\",\"alibi\",\"t5_buckets\"]}";

static void run(const char *message) {
    sequence = (long long)number(message, "seq");
    const char *op = member(message, "op"), *params = member(message, "params"), *named = member(message, "dtype");
    format dtype = is(named, "float64") ? F64 : F32;
    array out;
    if (setjmp(refused)) return; /* refuse() comes back here after it has replied */
    if (dtype == F32 && !is(named, "float32")) refuse("unsupported", "dtype", "must be float64 or float32");
    if (is(op, "rope")) out = rope(message, params, dtype);
    else if (is(op, "sinusoidal")) out = sinusoidal(message, params, dtype);
    else if (is(op, "alibi")) out = alibi(message, params, dtype);
    else if (is(op, "t5_buckets")) out = t5_buckets(message, params);
    else refuse("unsupported", "op", "is not one of this program's");
    reply(&out);
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        const char *message = blank(line), *command = member(message, "cmd");
        if (is(command, "stop")) break;
        if (is(command, "start")) puts(START);
        else if (is(command, "run") && fabs(number(message, "seq")) < 0x1p53) run(message);
        else fprintf(stderr, "not a message: %.60s\n", message);
        fflush(stdout); /* otherwise a pipe holds the reply back */
        while (kept_count) free(kept[--kept_count]);
    }
    free(line);
    return 0;
}
