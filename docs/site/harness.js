"use strict";
/*
 * Lets `posref check` ask the numbers of the page to play with:
 *
 *     posref check --command "node docs/site/harness.js"
 */
const { numbers } = require("./_static/numbers.js");

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const READ = { F64: "readDoubleLE", F32: "readFloatLE", I64: "readBigInt64LE" };

function input(message, name) {
  const { dtype, shape, data } = message.inputs[name];
  const bytes = Buffer.from(data, "base64");
  const size = dtype === "F32" ? 4 : 8;
  return { shape, values: Array.from({ length: bytes.length / size }, (_, i) => Number(bytes[READ[dtype]](i * size))) };
}

function tensor(shape, values) {
  const bytes = Buffer.alloc(8 * values.length);
  values.forEach((value, i) => bytes.writeDoubleLE(value, 8 * i));
  return { dtype: "F64", shape, data: bytes.toString("base64") };
}

function only(holds, message) {
  if (!holds) throw new Refusal("unsupported", message);
}

function valid(holds, message) {
  if (!holds) throw new Refusal("rejected", message);
}

const operations = {
  rope_frequencies(_, { dim, base, scaling }) {
    valid(Number.isSafeInteger(dim) && dim >= 2 && dim % 2 === 0, `dim must be even and at least 2; got ${dim}`);
    valid(Number.isFinite(base) && base > 0, `base must be above 0; got ${base}`);
    const record = scaling ?? { type: "None" };
    only(Object.hasOwn(numbers.SCALINGS, record.type), `scaling ${record.type}`);
    only(record.type !== "YaRN" || [record.attention_factor, record.mscale, record.mscale_all_dim].every((x) => x === null), "gain");
    const found = numbers.frequencies(base, dim, record);
    return { inv_freq: tensor([dim / 2], found), attention_factor: tensor([], [numbers.gain(record)]) };
  },
  sinusoidal(message, { dim, layout, base, endpoint, odd, scale }) {
    only(layout === "interleaved" && !endpoint && scale === 1 && dim % 2 === 0 && odd === "refused", "the page has one form");
    const { shape, values } = input(message, "positions");
    const rows = numbers.sinusoids(values, numbers.frequencies(base, dim, { type: "None" }));
    return { out: tensor([...shape, dim], rows.flat()) };
  },
  alibi_slopes(_, { heads, max_bias: most, first = 0, count = null }) {
    only(most === 8, "max_bias");
    only(first === 0 && count === null, "shards of heads");
    valid(Number.isSafeInteger(heads) && heads >= 1, `heads must be at least 1; got ${heads}`);
    return { out: tensor([heads], numbers.slopes(heads)) };
  },
};

const start = {
  protocol: 1,
  implementation: { name: "posref-page", version: "1", language: "JavaScript" },
  operations: Object.keys(operations),
  dtypes: ["float64"],
  claims: { float64: "float64" },
  versions: { node: process.versions.node },
};

function answer(line) {
  const message = JSON.parse(line);
  if (message.cmd === "stop") process.exit(0);
  let reply = start;
  if (message.cmd !== "start") {
    const { seq, op, params, dtype } = message;
    try {
      only(Object.hasOwn(operations, op) && dtype === "float64", `${op} in ${dtype}`);
      reply = { seq, status: "ok", outputs: operations[op](message, params) };
    } catch (error) {
      reply = { seq, status: error.status ?? "error", message: String(error.message) };
    }
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}

let pending = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  pending = Buffer.concat([pending, chunk]);
  for (let end = pending.indexOf(10); end >= 0; end = pending.indexOf(10)) {
    answer(pending.subarray(0, end).toString("utf8"));
    pending = pending.subarray(end + 1);
  }
});
