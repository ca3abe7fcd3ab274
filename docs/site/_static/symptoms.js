// The box on the page of symptoms: shows the entries that have all of the words. Without this script all entries are shown.
(() => {
  const box = document.getElementById("symptom-words");
  const entries = [...document.querySelectorAll("article section section")].filter((e) => e.querySelector("h3"));
  const groups = [...document.querySelectorAll("article section")].filter((e) => e.querySelector(":scope > h2") && e.querySelector("h3"));
  const texts = entries.map((entry) => entry.textContent.toLowerCase());
  const narrow = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    entries.forEach((entry, i) => { entry.hidden = !words.every((word) => texts[i].includes(word)); });
    groups.forEach((group) => { group.hidden = entries.every((entry) => entry.hidden || !group.contains(entry)); });
    const shown = entries.filter((entry) => !entry.hidden).length;
    document.getElementById("symptom-count").textContent = words.length ? `${shown} of ${entries.length}` : "";
  };
  box.closest("form").hidden = false;
  box.addEventListener("input", narrow);
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  narrow();
})();
