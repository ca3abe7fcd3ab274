// The box on the page of symptoms: ranks the entries by the words of a reader and links the first ones.
// symptom-index.js has the weights and how a word becomes a stem. Without these scripts all entries are there all the same.
(() => {
  const SHOWN = 8;
  const box = document.getElementById("symptom-words");
  const results = document.getElementById("symptom-results");
  const entries = [...document.querySelectorAll("article section")].filter((e) => e.querySelector(":scope > h3"));
  const { joint, ending, double, same, small, weights } = symptomIndex;
  const words = (text) => text.replace(new RegExp(joint, "g"), " ").toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const stems = (text) => words(text).filter((word) => !new RegExp(small).test(word)).map((word) => {
    const end = same[word] ?? word.replace(new RegExp(ending), "").replace(new RegExp(double), "$1");
    return same[end] ?? end;
  });
  const near = (stem) => weights[stem] ? [stem] : Object.keys(weights).filter((known) => stem.length > 2 && known.startsWith(stem));
  const ranked = (text) => {
    const scores = new Map();
    for (const stem of new Set(stems(text).flatMap(near))) {
      for (const [entry, weight] of Object.entries(weights[stem])) scores.set(Number(entry), (scores.get(Number(entry)) ?? 0) + weight);
    }
    return [...scores].sort(([a, first], [b, second]) => second - first || a - b).map(([entry]) => entry);
  };
  const item = (entry) => {
    const link = document.createElement("a");
    link.href = `#${entries[entry].id}`;
    const words = [...entries[entry].querySelector("h3").childNodes].filter((node) => !node.classList?.contains("headerlink"));
    link.textContent = words.map((node) => node.textContent).join("");
    const row = document.createElement("li");
    row.append(link);
    return row;
  };
  const narrow = () => {
    const best = ranked(box.value).slice(0, SHOWN);
    results.replaceChildren(...best.map(item));
    const none = box.value.trim() && !best.length;
    document.getElementById("symptom-count").textContent = none ? "No entry has one of these words. Try others, or the search of this site." : "";
  };
  box.closest("form").hidden = false;
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", narrow);
  narrow();
})();
