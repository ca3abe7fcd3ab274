// The box on the page of symptoms: shows the entries that have all of the words, or, if none has, those that have most of them.
// Without this script all entries are shown.
(() => {
  const box = document.getElementById("symptom-words");
  const sections = (heading) => [...document.querySelectorAll("article section")].filter((e) => e.querySelector(`:scope > ${heading}`));
  const entries = sections("h3");
  const texts = entries.map((entry) => entry.textContent.toLowerCase());
  const narrow = () => {
    const bare = (word) => word.replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, ""); // quotes and colons are not part of a word
    const words = [...new Set(box.value.toLowerCase().split(/\s+/).map(bare).filter(Boolean))];
    const found = texts.map((text) => words.filter((word) => text.includes(word)).length);
    const most = words.length ? Math.max(1, ...found) : 0;
    entries.forEach((entry, i) => { entry.hidden = found[i] < most; });
    sections("h2").forEach((group) => {
      group.hidden = words.length > 0 && ![...group.querySelectorAll("section")].some((entry) => !entry.hidden);
    });
    const shown = entries.filter((entry) => !entry.hidden).length;
    const said = most < words.length && shown ? `, with ${most} of your ${words.length} words` : "";
    document.getElementById("symptom-count").textContent = words.length ? `${shown} of ${entries.length}${said}` : "";
  };
  box.closest("form").hidden = false;
  box.closest("form").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", narrow);
  narrow();
})();
