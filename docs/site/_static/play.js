"use strict";
/* The page to play with: reads the controls, asks numbers.js, and draws four pictures. No other file, no network. */
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("player");
  if (!form) return;
  const control = (name) => form.elements[name];
  const CIVIDIS = ["#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#fee838"].map((hex) =>
    [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)),
  );

  function settings() {
    const kind = control("kind").value;
    return {
      kind,
      base: Math.round(10 ** Number(control("base").value)),
      width: kind === "alibi" ? Number(control("heads").value) : Number(control("width").value),
      offset: Number(control("offset").value),
      length: Number(control("tokens").value),
      scaling: {
        type: kind === "rope" ? control("scaling").value : "None",
        factor: Number(control("factor").value),
        original_length: 4096,
      },
    };
  }

  /** Set the controls as the address says: #kind=rope&base=4. */
  function read() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      const field = form.elements.namedItem(name);
      if (field && [...(field.options ?? [{ value }])].some((option) => option.value === value)) field.value = value;
    }
    draw();
  }

  function colour(share) {
    const at = Math.min(Math.max(share, 0), 1) * (CIVIDIS.length - 1);
    const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
    return CIVIDIS[low].map((c, i) => c + (CIVIDIS[low + 1][i] - c) * (at - low));
  }

  /** Return a brush for an empty canvas of sharp pixels, and its size. */
  function fresh(canvas) {
    const [width, height] = [Math.max(canvas.clientWidth, 240), Math.max(canvas.clientHeight, 160)];
    const sharp = window.devicePixelRatio || 1;
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    const brush = canvas.getContext("2d");
    brush.scale(sharp, sharp);
    brush.font = "12px sans-serif";
    brush.strokeStyle = brush.fillStyle = getComputedStyle(canvas).color;
    return [brush, width, height];
  }

  /** A cell for each number, with the numbers of rows and columns; the first of each is `top` and 0 or `side`. */
  function heat(canvas, rows, top, side) {
    const flat = rows.flat();
    const [low, high] = [flat.reduce((a, b) => Math.min(a, b)), flat.reduce((a, b) => Math.max(a, b))];
    const plain = document.createElement("canvas"); // one pixel for each number
    plain.width = rows[0].length;
    plain.height = rows.length;
    const image = plain.getContext("2d").createImageData(plain.width, plain.height);
    flat.forEach((value, i) => image.data.set([...colour(high > low ? (value - low) / (high - low) : 0.5), 255], 4 * i));
    plain.getContext("2d").putImageData(image, 0, 0);
    const [brush, width, height] = fresh(canvas);
    const whole = (first, count) => ticks(first, first + count - 1, 5).filter(Number.isInteger);
    const found = { x: whole(side, plain.width), y: whole(top, plain.height) };
    const left = 14 + Math.max(...found.y.map((value) => brush.measureText(String(value)).width));
    const box = [left, 8, width - left - 20, height - 32];
    brush.imageSmoothingEnabled = false;
    brush.drawImage(plain, ...box);
    brush.textBaseline = "middle";
    brush.textAlign = "right";
    found.y.forEach((value) => {
      const y = box[1] + ((value - top + 0.5) / plain.height) * box[3];
      brush.fillRect(left - 5, y, 5, 1);
      brush.fillText(String(value), left - 8, y);
    });
    brush.textBaseline = "top";
    brush.textAlign = "center";
    found.x.forEach((value) => {
      const x = box[0] + ((value - side + 0.5) / plain.width) * box[2];
      brush.fillRect(x, height - 24, 1, 5);
      brush.fillText(String(value), x, height - 16);
    });
    canvas.ticks = found;
    return `${low.toPrecision(3)} (dark) to ${high.toPrecision(3)} (bright)`;
  }

  /** Round numbers from low to high, about `count` of them. */
  function ticks(low, high, count) {
    const rough = (high - low) / count || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) found.push(n * step);
    return found.length ? found : [low];
  }

  /** Powers of ten between the logarithms low and high, or round numbers if there are fewer than two of them. */
  function logarithms(low, high) {
    const powers = ticks(low, high, 4).filter(Number.isInteger);
    if (powers.length > 1) return powers;
    return ticks(10 ** low, 10 ** high, 4).filter((value) => value > 0).map(Math.log10);
  }

  const short = (value) => String(Number(value.toPrecision(3)));

  function line(canvas, values, logarithmic, first) {
    const shown = logarithmic ? values.map(Math.log10) : values;
    const [low, high] = [Math.min(...shown, logarithmic ? Infinity : 0), Math.max(...shown, logarithmic ? -Infinity : 0)];
    const [brush, width, height] = fresh(canvas);
    const rows = logarithmic ? logarithms(low, high) : ticks(low, high, 5);
    const names = rows.map((value) => short(logarithmic ? 10 ** value : value));
    const left = 12 + Math.max(...names.map((name) => brush.measureText(name).width));
    const x = (i) => left + 6 + (i / Math.max(values.length - 1, 1)) * (width - left - 20);
    const y = (value) => height - 30 - ((value - low) / (high - low || 1)) * (height - 44);
    brush.textBaseline = "middle";
    brush.textAlign = "right";
    rows.forEach((value, n) => {
      brush.globalAlpha = 0.2;
      brush.fillRect(left, y(value), width - left, 1);
      brush.globalAlpha = 1;
      brush.fillText(names[n], left - 6, y(value));
    });
    brush.textBaseline = "top";
    brush.textAlign = "center";
    const columns = ticks(first, first + values.length - 1, 5).filter(Number.isInteger);
    columns.forEach((value) => {
      brush.fillRect(x(value - first), height - 24, 1, 5);
      brush.fillText(String(value), x(value - first), height - 16);
    });
    brush.fillRect(left, height - 24, width - left, 1);
    brush.fillRect(left, 8, 1, height - 32);
    brush.lineWidth = 2;
    brush.beginPath();
    shown.forEach((value, i) => (i ? brush.lineTo(x(i), y(value)) : brush.moveTo(x(i), y(value))));
    brush.stroke();
    shown.forEach((value, i) => values.length <= 64 && brush.fillRect(x(i) - 2, y(value) - 2, 4, 4));
    canvas.ticks = { x: columns, y: rows.map((value) => (logarithmic ? 10 ** value : value)) };
    return `${Math.min(...values).toPrecision(3)} to ${Math.max(...values).toPrecision(3)}`;
  }

  const WORDS = {
    sinusoid: {
      table: "Table: a row for each position, a column for each channel",
      matrix: "Distance between every two rows",
      curve: "Inner product of the first row with each row, by position",
      frequencies: "Frequency by pair, radians per token (logarithmic)",
    },
    rope: {
      table: "A vector of ones, rotated by each position",
      matrix: "Distance between every two rotated vectors",
      curve: "Inner product of the first with each, by distance",
      frequencies: "Frequency by pair after scaling (logarithmic)",
    },
    alibi: {
      table: "Bias: a row for each distance, a column for each head",
      matrix: "Bias of the middle head for every two positions",
      curve: "Bias of the middle head by distance",
      frequencies: "Slope by head (logarithmic)",
    },
  };

  function draw() {
    const begun = performance.now();
    const chosen = settings();
    const found = numbers.all(chosen);
    for (const label of form.querySelectorAll("[data-only]")) {
      label.hidden = !label.dataset.only.split(" ").includes(chosen.kind);
    }
    const texts = {
      base: chosen.base, width: chosen.width, heads: chosen.width, offset: chosen.offset, length: chosen.length,
      factor: chosen.scaling.factor,
    };
    for (const [name, text] of Object.entries(texts)) form.querySelector(`output[for="play-${name}"]`).textContent = text;
    for (const [name, rows] of Object.entries(found)) {
      const figure = form.querySelector(`figure[data-part="${name}"]`);
      const canvas = figure.querySelector("canvas");
      const first = name === "curve" && chosen.kind === "sinusoid" ? chosen.offset : 0;
      const begin = name === "table" && chosen.kind === "alibi" ? 0 : chosen.offset;
      const map = Array.isArray(rows[0]);
      const range = map
        ? heat(canvas, rows, begin, name === "matrix" ? begin : 0)
        : line(canvas, rows, name === "frequencies", first);
      const words = WORDS[chosen.kind][name];
      figure.querySelector("figcaption").textContent = `${words}: ${range}.`;
      canvas.setAttribute("aria-label", words);
    }
    form.drawn = { settings: chosen, numbers: found, milliseconds: performance.now() - begun };
  }

  form.addEventListener("input", draw);
  form.addEventListener("change", () => history.replaceState(null, "", `#${new URLSearchParams(new FormData(form))}`));
  window.addEventListener("hashchange", read);
  form.addEventListener("submit", (event) => event.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("resize", draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
  read();
});
