// The order of search results: guides first, then encodings. Long lists of names come last.
var Scorer = {
  score: ([page, , , , score]) => {
    const [folder] = page.split("/");
    const lists = ["deviations", "diagnosis", "findings", "guides/operations", "scoreboard"];
    const added = { guides: 12, encodings: 10, choose: 8, symptoms: 11, models: 6, api: 4 };
    return score + (lists.includes(folder) || lists.includes(page) ? -40 : (added[folder] ?? 0));
  },
  // what follows is Sphinx's own
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
