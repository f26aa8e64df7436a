// Which heads look elsewhere when one word of the text is another.
import { add } from "../dom.js";
import { allHeads, number, rowLabels } from "./shown.js";
import { button, el } from "./ui.js";
import { badge, nameOfHead } from "./knockout.js";
import { bothWords, compared, makePair, onlyOne, paired, secondItem, secondLayer, signed } from "./pairs.js";

const MOVES = 20, LEAST_MOVE = 0.02; // rows listed, and from which move on
const STYLES = ["one", "other"]; // of the two words
const PROMPT = "Choose two words, such as the two things a pronoun can mean.";
const MEASURE = `Heads are ranked by how far their attention moves as the text changes: half of what the second word gains on the first. Moves below ${LEAST_MOVE} are left out.`;

// The words that can be chosen: those of what is read, the source or the text.
const rowRead = (item) => item.maps[0].keys;

// How far every row of every head moves between two key words, farthest first. +1: all that went to the one in the first
// text goes to the other in the second.
async function contrasts(app, words) {
  const item = app.item(), found = [];
  for (const { kind, layers } of item.maps.filter((map) => map.keys === rowRead(item))) {
    for (const [layer, { number: name }] of layers.entries()) {
      const second = secondLayer(app, kind, name), over = { kind, layer, label: "auto" };
      if (!second) continue;
      const a = await allHeads(app, over), b = await allHeads(app, { ...over, ...second.over }), problem = a.problem ?? b.problem;
      if (problem) throw new Error(problem);
      const keys = paired(a.keys, b.keys), queries = paired(a.queries, b.queries);
      for (const head of a.heads.keys()) {
        for (const [q, r] of b.heads[head] ? queries : []) {
          const first = words.map((k) => a.heads[head].w[q * a.keys.length + k]), then = words.map((k) => b.heads[head].w[r * b.keys.length + keys.get(k)]);
          found.push({ show: { ...over, heads: [head], token: q }, place: nameOfHead(item, kind, name, head), word: bothWords(a.queries[q], b.queries[r]), weights: [...first, ...then],
            told: [...first, ...then].map((w) => number(w, a.approximate)), move: (then[1] - then[0] - first[1] + first[0]) / 2, worth: badge(item, kind, name, head) });
        }
      }
    }
  }
  return found.sort((one, other) => Math.abs(other.move) - Math.abs(one.move));
}

function summary({ show, place, word, weights, told, move }, words) {
  const named = words.map((one) => `“${one}”`), [first, second] = [0, 2].map((text) => Number(weights[text + 1] > weights[text]));
  if (Math.abs(move) < 0.1) return `No head moves its attention far between ${named.join(" and ")}: the farthest move is ${Math.abs(move).toFixed(2)}, where 1 is all.`;
  const looks = first !== second ? `${named[first]} in the first text (${told[first]}) and at ${named[second]} in the second (${told[2 + second]})`
    : `${named[first]} in both texts (${told[first]}, then ${told[2 + first]}) rather than at ${named[1 - first]} (${told[1 - first]}, then ${told[3 - first]})`;
  return `In ${place}, the ${show.kind === "cross" ? "position that writes" : "word"} “${word}” looks at ${looks}.`;
}

// Two lines from the first text to the second: full for the one word, dashed for the other.
function slope(parent, weights) {
  const svg = add(parent, "svg", { class: "slope", width: 64, height: 34, "aria-hidden": "true" });
  STYLES.forEach((style, n) => {
    const [y1, y2] = [weights[n], weights[2 + n]].map((w) => 30 - 26 * w), line = add(svg, "g", { class: style });
    add(line, "line", { x1: 5, x2: 59, y1, y2 });
    add(line, "circle", { cx: 5, cy: y1, r: 3 });
    add(line, "circle", { cx: 59, cy: y2, r: 3 });
  });
}

function moveRow(app, { show, place, word, weights, told, move, worth }, words) {
  const go = () => app.go({ ...show, view: "compare", other: secondItem(app), combine: "heads", side: "queries", pinned: true });
  const measure = el("span", { class: "measure" });
  slope(measure, weights);
  measure.append(el("span", { class: "amounts" }, STYLES.map((style, n) => el("span", { class: style }, `${words[n]} ${told[n]} → ${told[2 + n]}`))));
  return el("li", {}, button(place, go, { class: "name", title: "Show both texts at this head" }), el("span", { class: "query", dir: "auto" }, show.kind === "cross" ? "writing " : null, el("b", {}, word)),
    measure, el("span", { class: "move" }, signed(move)), worth && el("span", { class: "quiet", title: worth.title }, `switched off: ${worth.text}`));
}

export const contrastView = {
  id: "contrast", title: "Contrast", key: "n", available: onlyOne,
  mount(root, app) {
    const pair = makePair(app), found = el("p", { class: "finding", role: "status" }), list = el("ol", { class: "ranks contrasts" });
    const picks = ["from", "to"].map((name) => el("select", { "aria-label": name, onchange: () => app.go({ contrastTokens: picks.map((select) => Number(select.value || -1)) }) }));
    root.append(pair.root, el("p", { class: "line" }, "Attention that moves from", picks[0], "to", picks[1]), found, el("p", { class: "quiet small" }, MEASURE), list);
    // Chosen by its first token, so that the choice outlives a change between words and pieces; `pick` counts words.
    const tokens = () => app.state.get().contrastTokens ?? (app.data.start.pick ?? []).map((n) => rowLabels(app.item(), rowRead(app.item()), { pieces: false, special: true })[n]?.tokens[0]);
    // Words that the second text does not have cannot be chosen. Gives the place of the one that is.
    function fill(select, token) {
      const [mine, theirs] = compared(app).map((item) => rowLabels(item, rowRead(item), app.state.get())), place = paired(mine, theirs);
      const chosen = mine.findIndex((key, n) => place.has(n) && key.tokens.includes(token));
      const option = (key, n) => el("option", { value: key.tokens[0], disabled: !place.has(n), selected: n === chosen }, bothWords(key, theirs[place.get(n)] ?? key));
      select.replaceChildren(el("option", { value: "" }, "choose a word"), ...mine.map(option));
      return chosen;
    }
    async function update() {
      pair.update();
      const chosen = picks.map((select, n) => fill(select, tokens()[n])), words = picks.map((select) => select.selectedOptions[0].textContent);
      const all = chosen.includes(-1) || chosen[0] === chosen[1] ? [] : await contrasts(app, chosen), moves = all.slice(0, MOVES).filter((one) => Math.abs(one.move) >= LEAST_MOVE);
      const said = all.length ? summary(all[0], words) : PROMPT;
      if (found.textContent !== said) found.textContent = said;
      list.replaceChildren(...moves.map((one) => moveRow(app, one, words)));
    }
    return { update };
  },
};
