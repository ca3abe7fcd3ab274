"use strict";
/*
 * A harness for Node.js, without packages. It lets `posref check` call rope, sinusoidal, alibi and t5_buckets.
 *
 *     posref check --command "node examples/harness/js/harness.js"
 *
 * Copy this file. Call your own code in place of "The operations", and keep in `operations` only what it offers. If it lacks an
 * option, throw `new Refusal("unsupported", ...)`. The protocol is JSON lines: each message on stdin gets one reply on stdout.
 * Print anything else with console.error.
 */

// ---- Arrays: { shape, dtype, values }; values are Numbers, whatever the dtype ----

/** Why a call has no result: "rejected" if it is invalid, "unsupported" if this program does not offer it. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// How one element is read and written, little-endian on every machine. A Number holds integers exactly up to 2^53.
const FORMATS = {
  F64: { bytes: 8, get: (view, at) => view.getFloat64(at, true), set: (view, at, v) => view.setFloat64(at, v, true) },
  F32: { bytes: 4, get: (view, at) => view.getFloat32(at, true), set: (view, at, v) => view.setFloat32(at, v, true) },
  I64: {
    bytes: 8,
    get: (view, at) => Number(view.getBigInt64(at, true)),
    set: (view, at, v) => view.setBigInt64(at, BigInt(v), true),
  },
};
const DTYPES = { float64: "F64", float32: "F32" };

const sizeOf = (shape) => shape.reduce((size, n) => size * n, 1);

function array(dtype, shape) {
  return { dtype, shape, values: new Float64Array(sizeOf(shape)) };
}

/** An input of a message, by name. */
function input(message, name) {
  const { dtype, shape, data } = message.inputs[name] ?? {};
  const format = FORMATS[dtype];
  if (!format) throw new Refusal("rejected", `${name} must be an array of ${Object.keys(FORMATS)}; got ${dtype}`);
  const result = array(dtype, shape);
  const bytes = Buffer.from(data, "base64");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < result.values.length; i++) result.values[i] = format.get(view, i * format.bytes);
  return result;
}

/** A result as a tensor of the protocol. It is rounded to the dtype only once, here. */
function tensor({ dtype, shape, values }) {
  const { bytes, set } = FORMATS[dtype];
  const view = new DataView(new ArrayBuffer(values.length * bytes));
  values.forEach((value, i) => set(view, i * bytes, value));
  return { dtype, shape, data: Buffer.from(view.buffer).toString("base64") };
}

/** Where in an array of shape `from` the element `flat` of `shape` is: aligned at the right, a size of 1 repeats. */
function broadcast(from, shape, flat) {
  let place = 0;
  for (let a = from.length - 1, b = shape.length - 1, stride = 1; a >= 0 && b >= 0; a--, b--) {
    if (from[a] !== 1) place += (flat % shape[b]) * stride;
    stride *= from[a];
    flat = Math.floor(flat / shape[b]);
  }
  return place;
}

// ---- Options: all are in the message, null if they are not given ----

function word(params, name, words) {
  if (!words.includes(params[name])) throw new Refusal("rejected", `${name} must be one of ${words}; got ${params[name]}`);
  return params[name];
}

function integer(params, name, least) {
  const value = params[name];
  if (!Number.isSafeInteger(value) || value < least) {
    throw new Refusal("rejected", `${name} must be an integer of at least ${least}; got ${value}`);
  }
  return value;
}

function positive(params, name) {
  const value = params[name];
  if (!(Number.isFinite(value) && value > 0)) {
    throw new Refusal("rejected", `${name} must be a finite number above 0; got ${value}`);
  }
  return value;
}

// ---- The operations: (message, options, dtype of the result) to an array. Computed in double ----

const clip = (value) => Math.min(Math.max(value, 0), 1);

/** Frequencies b^(-2i/d) of `dim` channels. */
const powers = (base, dim) => Float64Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));

function ntkBase(base, factor, dim) {
  if (dim < 4) throw new Refusal("rejected", `NTK scaling needs at least 4 channels; got ${dim}`);
  return base * factor ** (dim / (dim - 2));
}

/** Context extensions by type: (base, dim, record, options of the call) to the angle per token of every pair. */
const SCALINGS = {
  Linear: (base, dim, record) => powers(base, dim).map((theta) => theta / positive(record, "factor")),
  NTKAware: (base, dim, record) => powers(ntkBase(base, positive(record, "factor"), dim), dim),

  DynamicNTK(base, dim, record, params) {
    const factor = positive(record, "factor");
    const original = integer(record, "original_length", 1);
    const length = Math.max(integer(params, "length", 0), original);
    return powers(ntkBase(base, (factor * length) / original - (factor - 1), dim), dim);
  },

  /** Pairs with few turns in the original length are slowed, those with many kept; a step where low and high are equal. */
  Llama3(base, dim, record) {
    const factor = positive(record, "factor");
    const original = integer(record, "original_length", 1);
    const low = positive(record, "low_freq_factor");
    const high = positive(record, "high_freq_factor");
    if (low > high) throw new Refusal("rejected", `high_freq_factor must be at least ${low}; got ${high}`);
    return powers(base, dim).map((theta) => {
      const turns = (theta * original) / (2 * Math.PI);
      const kept = low === high ? Number(turns >= low) : clip((turns - low) / (high - low));
      return (theta / factor) * (1 - kept) + theta * kept;
    });
  },

  /** A ramp over the pairs, between the two that make beta_fast and beta_slow turns in the original length. */
  YaRN(base, dim, record) {
    const factor = positive(record, "factor");
    const original = integer(record, "original_length", 1);
    const fast = positive(record, "beta_fast");
    const slow = positive(record, "beta_slow");
    if (fast < slow) throw new Refusal("rejected", `beta_fast must be at least beta_slow, ${slow}; got ${fast}`);
    const pair = (turns) => (dim * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(base));
    const low = Math.max(record.truncate ? Math.floor(pair(fast)) : pair(fast), 0);
    const high = Math.min(record.truncate ? Math.ceil(pair(slow)) : pair(slow), dim - 1);
    const width = low === high ? 1 / 1000 : high - low;
    return powers(base, dim).map((theta, i) => {
      const slowed = clip((i - low) / width);
      return (theta / factor) * slowed + theta * (1 - slowed);
    });
  },
};

/** The factor on cos and sin, which only YaRN has. In its fields null means "not given", and 0 means 0. */
function gain(record) {
  if (record?.type !== "YaRN") return 1;
  const { factor, attention_factor: given, mscale, mscale_all_dim: all } = record;
  const g = (m) => (factor <= 1 ? 1 : (m * Math.log(factor)) / 10 + 1);
  if (given !== null) return given;
  return mscale !== null && all !== null ? g(mscale) / g(all) : g(1);
}

function frequencies(params, dim) {
  const base = positive(params, "base");
  const scaling = params.scaling;
  if (scaling === null) return powers(base, dim);
  if (!Object.hasOwn(SCALINGS, scaling.type)) throw new Refusal("unsupported", `scaling ${scaling.type}`);
  return SCALINGS[scaling.type](base, dim, scaling, params);
}

/** The channels (lanes) of pair i: half the channels apart, or neighbours. */
const LANES = {
  half: (i, pairs) => [i, i + pairs],
  interleaved: (i) => [2 * i, 2 * i + 1],
};
const LAYOUTS = {
  half: ["half", "half"], // read, written
  interleaved: ["interleaved", "interleaved"],
  interleaved_to_half: ["interleaved", "half"],
};

/** Positions broadcast to the rows of x and never enlarge them; with two axes or more they have all, or end with a 1. */
function checkRows(shape, rows) {
  const clear = shape.length < 2 || shape.length === rows.length || (shape.at(-1) === 1 && rows.at(-1) !== 1);
  const fits = shape.every((n, a) => n === 1 || n === rows[a - shape.length + rows.length]);
  if (!clear || !fits || shape.length > rows.length) {
    throw new Refusal("rejected", `positions must broadcast to the leading axes of x, [${rows}]; got [${shape}]`);
  }
}

function rope(message, params, dtype) {
  const x = input(message, "x");
  const positions = input(message, "positions");
  const rows = x.shape.slice(0, -1);
  const width = x.shape.at(-1) ?? 0;
  let [read, write] = LAYOUTS[word(params, "layout", Object.keys(LAYOUTS))];
  if (params.inverse) [read, write] = [write, read];
  checkRows(positions.shape, rows);
  const dim = params.rotary_dim ?? width;
  if (!Number.isSafeInteger(dim) || dim % 2 || dim < 2 || dim > width) {
    throw new Refusal("rejected", `rotary_dim must be even and at most ${width}, the last axis of x; got ${dim}`);
  }
  const skipped = word({ lanes: "leading", ...params }, "lanes", ["leading", "trailing"]) === "trailing" ? width - dim : 0;
  const [thetas, factor] = [frequencies(params, dim), gain(params.scaling)];
  const sign = params.inverse ? -1 : 1; // the transpose: the factor still multiplies
  const out = array(dtype, x.shape);
  out.values.set(x.values); // channels that do not rotate are unchanged
  for (let row = 0; row < x.values.length / width; row++) {
    const position = positions.values[broadcast(positions.shape, rows, row)];
    thetas.forEach((theta, i) => {
      const cos = factor * Math.cos(position * theta);
      const sin = factor * Math.sin(position * theta) * sign;
      const [a, b] = LANES[read](i, dim / 2).map((lane) => x.values[row * width + skipped + lane]);
      const [first, second] = LANES[write](i, dim / 2);
      out.values[row * width + skipped + first] = a * cos - b * sin;
      out.values[row * width + skipped + second] = b * cos + a * sin;
    });
  }
  return out;
}

function sinusoidal(message, params, dtype) {
  const positions = input(message, "positions");
  const layout = word(params, "layout", ["interleaved", "sin_cos", "cos_sin"]);
  const dim = integer(params, "dim", params.endpoint ? 4 : 2);
  const [base, scale] = [positive(params, "base"), positive(params, "scale")];
  const odd = word(params, "odd", ["refused", "zeros", "truncated", "extra_sine"]);
  if (dim % 2 && odd === "refused") throw new Refusal("rejected", `dim must be even; got ${dim}`);
  const sines = odd === "zeros" ? dim >> 1 : (dim + 1) >> 1;
  const cosines = odd === "extra_sine" ? dim >> 1 : sines;
  const first = layout === "cos_sin" ? cosines : sines; // how many columns the first half has
  const steps = params.endpoint ? sines - 1 : (sines + cosines) / 2;
  const out = array(dtype, [...positions.shape, dim]);
  for (let n = 0; n < out.values.length; n++) {
    const column = n % dim;
    const half = layout === "interleaved" ? column % 2 : Number(column >= first);
    const i = layout === "interleaved" ? column >> 1 : column - half * first;
    const angle = positions.values[(n - column) / dim] * base ** (-i / steps);
    const wave = (half === 1) === (layout === "cos_sin") ? Math.sin : Math.cos;
    out.values[n] = column < sines + cosines ? scale * wave(angle) : 0;
  }
  return out;
}

/** Slopes of the power of two at or below `heads`, then every other slope of the power above. */
function slopes(heads, maxBias) {
  const below = 2 ** (31 - Math.clz32(heads));
  const step = (head) => (head < below ? 2 * (head + 1) : 2 * (head - below) + 1);
  return Float64Array.from({ length: heads }, (_, head) => 2 ** ((-maxBias * step(head)) / (2 * below)));
}

/** The shape that two broadcast to. */
function joint(a, b) {
  const axes = Math.max(a.length, b.length);
  return Array.from({ length: axes }, (_, i) => {
    const n = a[i - axes + a.length] ?? 1;
    const m = b[i - axes + b.length] ?? 1;
    if (n !== m && n !== 1 && m !== 1) throw new Refusal("rejected", `positions must broadcast; got batches [${a}] and [${b}]`);
    return n === 1 ? m : n;
  });
}

/** (*B, count, Q, K) for queries (*B, Q) and keys (*B, K); null counts all heads. "key" has one query: (*B, count, 1, K). */
function alibi(message, params, dtype) {
  const form = word(params, "form", ["distance", "causal", "key"]);
  const heads = integer(params, "heads", 1);
  const first = integer(params, "first", 0);
  const count = params.count === null ? heads - first : integer(params, "count", 1);
  if (first >= heads || count > heads - first) throw new Refusal("rejected", `heads ${first} + ${count} of ${heads}`);
  if (params.root && form !== "causal") throw new Refusal("rejected", `root with form ${form}`);
  const ofShard = slopes(heads, positive(params, "max_bias")).slice(first, first + count);
  const k = input(message, "k_positions");
  const q = form === "key" ? array("F64", [1]) : input(message, "q_positions"); // one query at 0, from which key j is -j away
  if (!q.shape.length || !k.shape.length) throw new Refusal("rejected", "positions must have at least one axis");
  const queries = q.shape.at(-1);
  const keys = k.shape.at(-1);
  const batch = joint(q.shape.slice(0, -1), k.shape.slice(0, -1));
  const out = array(dtype, [...batch, count, queries, keys]);
  for (let b = 0, n = 0; b < sizeOf(batch); b++) {
    const ofQ = broadcast(q.shape.slice(0, -1), batch, b) * queries;
    const ofK = broadcast(k.shape.slice(0, -1), batch, b) * keys;
    for (const slope of ofShard) {
      for (let i = 0; i < queries; i++) {
        for (let j = 0; j < keys; j++) {
          const signed = q.values[ofQ + i] - k.values[ofK + j];
          const apart = params.root ? Math.sqrt(Math.max(signed, 0)) : signed;
          out.values[n++] = -slope * (form === "distance" ? Math.abs(apart) : apart);
        }
      }
    }
  }
  return out;
}

/** The bucket of distance n on one side. The logarithm proposes, integers decide: a quotient of 2 may be 1.9999999999999998. */
function bucket(n, buckets, farthest) {
  const exact = Math.floor(buckets / 2);
  if (n < exact) return n;
  if (n >= farthest) return buckets - 1;
  const wide = buckets - exact;
  const power = (a, b) => BigInt(a) ** BigInt(b);
  const reaches = (k) => power(n, wide) * power(exact, k) >= power(farthest, k) * power(exact, wide);
  let k = Math.floor((wide * Math.log(n / exact)) / Math.log(farthest / exact));
  if (reaches(k + 1)) k += 1;
  else if (!reaches(k)) k -= 1;
  return exact + k;
}

function t5Buckets(message, params) {
  const relative = input(message, "relative_positions");
  if (relative.dtype !== "I64") throw new Refusal("rejected", `relative_positions must be integers; got ${relative.dtype}`);
  const both = params.bidirectional;
  const all = integer(params, "num_buckets", both ? 4 : 2);
  if (both && all % 2) throw new Refusal("rejected", `num_buckets must be even when bidirectional; got ${all}`);
  const sided = both ? all / 2 : all;
  const farthest = integer(params, "max_distance", Math.floor(sided / 2) + 1);
  const out = array("I64", relative.shape);
  relative.values.forEach((r, i) => {
    out.values[i] = bucket(both ? Math.abs(r) : Math.max(-r, 0), sided, farthest) + (both && r > 0 ? sided : 0);
  });
  return out;
}

// ---- The protocol ----

const operations = { rope, sinusoidal, alibi, t5_buckets: t5Buckets };

const start = {
  protocol: 1,
  implementation: { name: "posref-example", version: "1", language: "JavaScript" },
  operations: Object.keys(operations),
  dtypes: Object.keys(DTYPES),
  claims: { float64: "float64", float32: "angle64" },
  versions: { node: process.versions.node },
};

function run(message) {
  const { seq, op, params, dtype } = message;
  try {
    if (!Object.hasOwn(operations, op) || !DTYPES[dtype]) throw new Refusal("unsupported", `${op} in ${dtype}`);
    return { seq, status: "ok", outputs: { out: tensor(operations[op](message, params, DTYPES[dtype])) } };
  } catch (error) {
    return { seq, status: error.status ?? "error", message: String(error.message) };
  }
}

function answer(line) {
  const message = JSON.parse(line);
  if (message.cmd === "stop") process.exit(0);
  process.stdout.write(`${JSON.stringify(message.cmd === "start" ? start : run(message))}\n`);
}

// Lines are cut here: the module readline also cuts at U+2028, which a JSON string may hold.
let pending = [];
process.stdin.on("data", (chunk) => {
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10)) {
    answer(Buffer.concat([...pending, chunk.subarray(0, end)]).toString("utf8"));
    pending = [];
    chunk = chunk.subarray(end + 1);
  }
  pending.push(chunk);
});
