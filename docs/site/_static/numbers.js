"use strict";
/* The numbers of the page to play with. `posref check --command "node docs/site/harness.js"` checks them. */
(function (root) {
  const clip = (value) => Math.min(Math.max(value, 0), 1);

  /** Frequencies base^(-2i/dim) of `dim` channels. */
  const powers = (base, dim) => Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));

  const SCALINGS = {
    None: (base, dim) => powers(base, dim),
    Linear: (base, dim, { factor }) => powers(base, dim).map((theta) => theta / factor),
    NTKAware: (base, dim, { factor }) => powers(base * factor ** (dim / (dim - 2)), dim),
    Llama3: (base, dim, { factor, original_length: original, low_freq_factor: low, high_freq_factor: high }) =>
      powers(base, dim).map((theta) => {
        const turns = (theta * original) / (2 * Math.PI);
        const kept = low === high ? Number(turns >= low) : clip((turns - low) / (high - low));
        return (theta / factor) * (1 - kept) + theta * kept;
      }),
    YaRN: (base, dim, { factor, original_length: original, beta_fast: fast, beta_slow: slow, truncate }) => {
      const pair = (turns) => (dim * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(base));
      const low = Math.max(truncate ? Math.floor(pair(fast)) : pair(fast), 0);
      const high = Math.min(truncate ? Math.ceil(pair(slow)) : pair(slow), dim - 1);
      const width = low === high ? 1 / 1000 : high - low;
      return powers(base, dim).map((theta, i) => {
        const slowed = clip((i - low) / width);
        return (theta / factor) * slowed + theta * (1 - slowed);
      });
    },
  };
  const DEFAULTS = { low_freq_factor: 1, high_freq_factor: 4, beta_fast: 32, beta_slow: 1, truncate: true };

  /** Frequencies after a scaling, in radians per token. */
  const frequencies = (base, dim, scaling) => SCALINGS[scaling.type](base, dim, { ...DEFAULTS, ...scaling });

  /** The factor of a rotated vector: YaRN's attention factor. */
  const gain = ({ type, factor }) => (type === "YaRN" && factor > 1 ? 0.1 * Math.log(factor) + 1 : 1);

  /** A row for each position: the sine and the cosine of every pair, side by side. */
  const sinusoids = (positions, thetas) =>
    positions.map((p) => thetas.flatMap((theta) => [Math.sin(p * theta), Math.cos(p * theta)]));

  /** A vector of ones, rotated by every position; pairs are neighbouring channels. */
  const rotated = (positions, thetas) =>
    positions.map((p) =>
      thetas.flatMap((theta) => {
        const [cos, sin] = [Math.cos(p * theta), Math.sin(p * theta)];
        return [cos - sin, cos + sin];
      }),
    );

  /** ALiBi's slopes: those of the power of two at or below `heads`, then every other slope of the power above. */
  function slopes(heads) {
    const below = 2 ** (31 - Math.clz32(heads));
    const step = (head) => (head < below ? 2 * (head + 1) : 2 * (head - below) + 1);
    return Array.from({ length: heads }, (_, head) => 2 ** ((-8 * step(head)) / (2 * below)));
  }

  const product = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const distance = (a, b) => Math.sqrt(a.reduce((sum, value, i) => sum + (value - b[i]) ** 2, 0));
  const between = (rows, measure) => rows.map((a) => rows.map((b) => measure(a, b)));

  /** All numbers of the page: of the table, of the matrix beside it, of the curve, and of the frequencies. */
  function all({ kind, base, width, offset, length, scaling }) {
    const positions = Array.from({ length }, (_, i) => offset + i);
    if (kind === "alibi") {
      const found = slopes(width);
      const bias = (slope, apart) => -slope * Math.abs(apart);
      const middle = found[width >> 1];
      return {
        table: positions.map((_, n) => found.map((slope) => bias(slope, n))),
        matrix: positions.map((p) => positions.map((other) => bias(middle, p - other))),
        curve: positions.map((_, n) => bias(middle, n)),
        frequencies: found,
      };
    }
    const thetas = frequencies(base, width, scaling);
    const rows = (kind === "rope" ? rotated : sinusoids)(positions, thetas);
    const table = rows.map((row) => row.map((value) => value * gain(scaling)));
    const curve = table.map((row) => product(table[0], row));
    return { table, matrix: between(table, distance), curve, frequencies: thetas };
  }

  root.numbers = { SCALINGS, all, frequencies, gain, rotated, sinusoids, slopes };
})(typeof module === "undefined" ? globalThis : module.exports);
