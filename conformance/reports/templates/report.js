"use strict";
// Sorting, filtering, and values under the pointer in maps. The page is complete without this script.

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column];
        return "value" in cell.dataset ? Number(cell.dataset.value.replace("inf", "Infinity")) : cell.textContent.trim();
      };
      const order = (a, b) => (typeof a === "number" ? (a === b ? 0 : a < b ? -1 : 1) : a.localeCompare(b, "en", { numeric: true }));
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
      table.tBodies[0].append(...rows.map((pair) => pair[1]));
    });
  });
}

function filterable(form) {
  const table = document.getElementById(form.dataset.for);
  const rows = [...table.tBodies[0].rows];
  const filter = () => {
    const text = form.elements.text.value.trim().toLowerCase();
    const verdict = form.elements.verdict.value;
    let shown = 0;
    for (const row of rows) {
      row.hidden = (verdict && row.querySelector(".verdict").textContent !== verdict) || !row.textContent.toLowerCase().includes(text);
      shown += row.hidden ? 0 : 1;
    }
    form.querySelector("output").textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
}

function readable(figure) {
  const cells = figure.querySelector(".cells");
  const { rows, labels, columns, ratios: text } = figure.dataset;
  const ratios = text.split(";").map((row) => row.split(","));
  const reading = figure.querySelector(".reading");
  const show = (row, column) => {
    if (ratios[row]?.[column] === undefined) return;
    const value = ratios[row][column];
    const said = value === "\u221e" ? "not finite, or not exact where it must be" : `${value} times the bound`;
    reading.textContent = `${rows} ${labels.split(";")[row]}, entry ${columns.split(";")[column]}: ${said}`;
  };
  cells.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(cells.getScreenCTM().inverse());
    show(Math.floor(at.y), Math.floor(at.x));
  });
  cells.addEventListener("pointerleave", () => { reading.textContent = ""; });
}

function reveal() {
  const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = section?.querySelector("details");
  if (details) details.open = true;
}

document.querySelectorAll("table").forEach(sortable);
document.querySelectorAll("form.tools").forEach(filterable);
document.querySelectorAll("figure.map").forEach(readable);
addEventListener("hashchange", reveal);
reveal();
