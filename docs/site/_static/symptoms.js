// The box on the page of symptoms: shows the entries that have all of the words, or, if none has, those that have most of them.
// A word counts where a word of the entry begins with it. Without this script all entries are shown.
(() => {
  const box = document.getElementById("symptom-words");
  const sections = (heading) => [...document.querySelectorAll("article section")].filter((e) => e.querySelector(`:scope > ${heading}`));
  const entries = sections("h3");
  const texts = entries.map((entry) => entry.textContent.toLowerCase());
  const beginning = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${word}`, "u"); // after an underscore too: freq is in inv_freq
  const narrow = () => {
    const words = [...new Set(box.value.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean))]; // K-shift is two words
    const found = texts.map((text) => words.filter((word) => beginning(word).test(text)).length);
    const most = words.length ? Math.max(1, ...found) : 0;
    entries.forEach((entry, i) => { entry.hidden = found[i] < most; });
    sections("h2").forEach((group) => {
      group.hidden = words.length > 0 && ![...group.querySelectorAll("section")].some((entry) => !entry.hidden);
    });
    const shown = entries.filter((entry) => !entry.hidden).length;
    const said = most < words.length ? `, with ${most} of your ${words.length} words` : "";
    const none = "No entry has one of these words. Try others, or the search of this site.";
    document.getElementById("symptom-count").textContent = !words.length ? "" : shown ? `${shown} of ${entries.length}${said}` : none;
  };
  box.closest("form").hidden = false;
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", narrow);
  narrow();
})();
