/*
 * Read the golden vectors in C11, without posref, and check the function at the top with the float32 cases of an operation.
 *
 *     cc -std=c11 -O2 -o read_vectors examples/vectors/read_vectors.c -lm && ./read_vectors conformance/vectors
 *
 * Copy this file. Put your own function in place of `sinusoidal`, and its options in place of those in `ask`.
 * conformance/vectors/README.md explains the files. Their numbers are little-endian, and the machine must be too. Hashes are
 * not checked here: run `sha256sum -c SHA256SUMS` in the folder. Exit code 0: all values are within tolerance; 1: some are not;
 * 2: a file cannot be read.
 */

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is judged: float32 throughout, angles included, which is the class angle32 ---- */

static const char OP[] = "sinusoidal", CLASS[] = "angle32";
typedef enum { INTERLEAVED, SIN_COS, COS_SIN } layout;

typedef enum { ZEROS, TRUNCATED, EXTRA_SINE } rule; /* of an odd width */

/* Sines and cosines of `count` positions, `dim` numbers each. */
static void sinusoidal(float *out, const float *positions, size_t count, size_t dim, layout order, rule odd, bool endpoint,
                       float base, float scale) {
    size_t sines = odd == ZEROS ? dim / 2 : (dim + 1) / 2, cosines = odd == EXTRA_SINE ? dim / 2 : sines;
    size_t first = order == COS_SIN ? cosines : sines;
    float steps = endpoint ? (float)sines - 1 : (float)(sines + cosines) / 2;
    for (size_t row = 0; row < count; row++)
        for (size_t column = 0; column < dim; column++, out++) {
            size_t second = order == INTERLEAVED ? column % 2 : column >= first;
            size_t i = order == INTERLEAVED ? column / 2 : column - second * first;
            float angle = positions[row] * powf(base, -(float)i / steps);
            *out = column < sines + cosines ? scale * (second == (order == COS_SIN) ? sinf(angle) : cosf(angle)) : 0;
        }
}

static _Noreturn void stop(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    exit(2);
}

static void *allocate(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    if (!p) stop("no memory for %zu values", count);
    return p;
}

/* ---- JSON: a value is a pointer to its first character; these files are ASCII, and their strings have no escapes ---- */

static const char *blank(const char *p) { return p + strspn(p, " \t\r\n"); }

/* The punctuation that ends the value or name at p; never beyond the end of the text. */
static const char *after(const char *p) {
    for (int depth = 0; *p && (depth > 0 || !strchr(",:]}", *p)); p++) {
        depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
        if (*p == '"')
            while (p[1] && *++p != '"') p += *p == '\\' && p[1];
    }
    return p;
}

/* An element of a list or a name of an object; NULL at its end. Stop if the text ends before: the file is broken. */
static const char *element(const char *p) {
    if (!*p || *p == ',' || *p == ':') stop("a JSON file is cut off or altered");
    return *p == ']' || *p == '}' ? NULL : p;
}

static const char *first(const char *p) { return p && (*p == '[' || *p == '{') ? element(blank(p + 1)) : NULL; }

static const char *next(const char *p) {
    p = after(p);
    return element(*p == ',' ? blank(p + 1) : p);
}

static bool is(const char *p, const char *word) {
    size_t n = strlen(word);
    return p && *p == '"' && !strncmp(p + 1, word, n) && p[1 + n] == '"';
}

/* The value of a member of an object; NULL if it is absent. */
static const char *member(const char *object, const char *name) {
    for (const char *p = object && *object == '{' ? first(object) : NULL; p; p = next(p)) {
        bool found = is(p, name);
        p = after(p);
        p = blank(*p == ':' ? p + 1 : p);
        if (found) return p;
    }
    return NULL;
}

static bool contains(const char *list, const char *word) {
    for (const char *p = first(list); p; p = next(p))
        if (is(p, word)) return true;
    return false;
}

/* A string, with what stands before it; the caller frees it. */
static char *text(const char *before, const char *p) {
    if (!p || *p != '"') stop("not a string where one must be: %.40s", p ? p : "nothing");
    size_t start = strlen(before), length = strcspn(p + 1, "\"");
    char *copy = allocate(start + length + 1, 1);
    memcpy(copy, before, start);
    memcpy(copy + start, p + 1, length);
    return copy;
}

/* ---- Files ---- */

typedef struct { char *bytes; size_t size; } file;
typedef struct { const char *dtype; size_t count; const char *bytes; } tensor;

/* The bytes of a file, followed by a zero. `recorded` is what SUITE.json says of the files of a group; NULL for itself. */
static file load(const char *folder, const char *name, const char *recorded) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) stop("%s: the path is too long", folder);
    FILE *stream = fopen(path, "rb");
    if (!stream || fseek(stream, 0, SEEK_END)) stop("%s: cannot be read", path);
    long size = ftell(stream);
    rewind(stream);
    if (size < 0) stop("%s: cannot be read", path);
    file f = {allocate((size_t)size + 1, 1), (size_t)size};
    if (fread(f.bytes, 1, f.size, stream) != f.size) stop("%s: cannot be read", path);
    fclose(stream);
    const char *bytes = member(member(recorded, name), "bytes");
    if (recorded && (!bytes || strtoull(bytes, NULL, 10) != f.size)) stop("%s: not of the size in SUITE.json", path);
    return f;
}

/* A tensor of a safetensors file: eight bytes with the length of a JSON header, the header, the numbers. */
static tensor find(file f, const char *name) {
    uint64_t header = 0, count = 1;
    if (f.size >= 8) memcpy(&header, f.bytes, 8);
    if (f.size < 8 || header > f.size - 8) stop("not a safetensors file");
    const char *entry = member(blank(f.bytes + 8), name);
    const char *offsets = member(entry, "data_offsets"), *dtype = member(entry, "dtype");
    if (!first(offsets) || !next(first(offsets)) || !dtype) stop("no tensor %s in the file", name);
    for (const char *p = first(member(entry, "shape")); p; p = next(p)) {
        uint64_t n = strtoull(p, NULL, 10);
        if (n && count > f.size / n) stop("%s: the shape has more numbers than the file", name);
        count *= n;
    }
    uint64_t begin = strtoull(first(offsets), NULL, 10), end = strtoull(next(first(offsets)), NULL, 10);
    if (begin > end || end > f.size - 8 - header || end - begin != count * (is(dtype, "F32") ? 4 : 8))
        stop("%s: the shape and the offsets do not fit", name);
    return (tensor){dtype, count, f.bytes + 8 + header + begin};
}

/* One number; integers up to 2^53 are exact. */
static double at(tensor t, size_t i) {
    double real;
    float narrow;
    int64_t whole;
    if (is(t.dtype, "F64")) return memcpy(&real, t.bytes + 8 * i, 8), real;
    if (is(t.dtype, "F32")) return memcpy(&narrow, t.bytes + 4 * i, 4), narrow;
    if (is(t.dtype, "I64")) return memcpy(&whole, t.bytes + 8 * i, 8), (double)whole;
    stop("a tensor of %.6s cannot be read here", t.dtype);
}

/* ---- The judgement ---- */

static size_t cases, values, outside;
static double worst;

static const char *params_of(const char *call, const char *name) { return member(member(call, "params"), name); }

/* Call the function, with its options; absent ones have the defaults of the README's table. */
static void ask(const char *call, const float *positions, size_t count, float *out) {
    const char *order = params_of(call, "layout"), *base = params_of(call, "base"), *endpoint = params_of(call, "endpoint");
    const char *odd = params_of(call, "odd"), *scale = params_of(call, "scale");
    size_t dim = (size_t)strtoull(params_of(call, "dim"), NULL, 10);
    sinusoidal(out, positions, count, dim, is(order, "sin_cos") ? SIN_COS : is(order, "cos_sin") ? COS_SIN : INTERLEAVED,
               is(odd, "truncated") ? TRUNCATED : is(odd, "extra_sine") ? EXTRA_SINE : ZEROS,
               endpoint && *endpoint == 't', base ? strtof(base, NULL) : 10000, scale ? strtof(scale, NULL) : 1);
}

static void judge(const char *id, const char *call, file data, file widths) {
    char *input = text("", member(member(call, "inputs"), "positions"));
    char *output = text("", member(member(call, "expected"), "out"));
    tensor positions = find(data, input), want = find(data, output);
    size_t name = strcspn(output, "/"); /* of "far/out/out", or in a sequence "far@2/out/out": see "angle32/far@2/out" */
    char *width = allocate(strlen(CLASS) + name + sizeof "//out", 1);
    sprintf(width, "%s/%.*s/out", CLASS, (int)name, output);
    tensor allowed = find(widths, width);
    float *given = allocate(positions.count, sizeof *given), *y = allocate(want.count, sizeof *y);
    float *again = allocate(want.count, sizeof *again);
    if (!params_of(call, "dim") || allowed.count != want.count) stop("%s: not as the README says", id);
    if (strtoull(params_of(call, "dim"), NULL, 10) * positions.count != want.count) stop("%s: not of the expected size", id);
    for (size_t i = 0; i < positions.count; i++) given[i] = (float)at(positions, i);
    ask(call, given, positions.count, y);
    ask(call, given, positions.count, again);
    bool same = !memcmp(y, again, want.count * sizeof *y);
    size_t missed = same ? 0 : 1;
    if (!same) printf("%s: the second call gave other bits\n", id);
    for (size_t i = 0; i < want.count; i++) {
        double error = fabs(y[i] - at(want, i)), t = at(allowed, i);
        if (t > 0) worst = fmax(worst, error / t);
        if (error <= t) continue; /* not "error > t", which would pass NaN */
        if (!missed++) printf("%s: element %zu is %.9g; must be %.17g, give or take %.2g\n", id, i, y[i], at(want, i), t);
    }
    values += want.count;
    outside += missed;
    free(input), free(output), free(width), free(given), free(y), free(again);
}

static void judge_group(const char *folder, const char *recorded) {
    file group = load(folder, "group.json", recorded), data = load(folder, "data.safetensors", recorded);
    file widths = load(folder, "tolerance.safetensors", recorded);
    for (const char *c = first(member(blank(group.bytes), "cases")); c; c = next(c)) {
        if (!contains(member(c, "dtypes"), "float32")) continue; /* a case that must be rejected has no dtypes */
        if (is(member(c, "kind"), "vjp")) continue; /* gradients */
        char *id = text("", member(c, "id"));
        const char *steps = member(c, "steps"); /* of a sequence: make these calls in this order, on one instance */
        if (!steps) judge(id, c, data, widths);
        for (const char *step = first(steps); step; step = next(step)) judge(id, step, data, widths);
        cases++;
        free(id);
    }
    free(group.bytes), free(data.bytes), free(widths.bytes);
}

int main(int count, char **words) {
    const char *folder = count > 1 ? words[1] : "conformance/vectors";
    file suite = load(folder, "SUITE.json", NULL);
    char *before = allocate(strlen(folder) + 2, 1);
    sprintf(before, "%s/", folder);
    for (const char *g = first(member(blank(suite.bytes), "groups")); g; g = next(g)) {
        if (!is(member(g, "op"), OP)) continue;
        char *path = text(before, member(g, "id"));
        judge_group(path, member(g, "files"));
        free(path);
    }
    free(before), free(suite.bytes);
    printf("%s in float32, class %s: %zu cases, %zu values, the worst at %.2f of its tolerance; %zu outside\n",
           OP, CLASS, cases, values, worst, outside);
    return values && !outside ? 0 : 1;
}
