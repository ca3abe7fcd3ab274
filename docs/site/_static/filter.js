// The box above the table of encodings: shows the rows that have all of the words. Without this script all rows are shown.
(() => {
  const box = document.getElementById("filter-words");
  const rows = [...document.querySelectorAll(".facts tbody tr")];
  const narrow = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row) => { row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word)); });
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("filter-count").textContent = words.length ? `${shown} of ${rows.length}` : "";
  };
  box.closest("form").hidden = false;
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", narrow);
  narrow();
})();
