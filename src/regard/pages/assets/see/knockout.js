// What a head is worth: it is switched off, and the model is asked again.
import { mapOf } from "./shown.js";
import { button, el } from "./ui.js";
import { changed, signed } from "./pairs.js";

const MEANING = "Switched off: what the head hands on is set to zero, and nothing is learned anew. " +
  "Where a head looks only suggests that it matters; this proves it. Of several heads that do the same, one may be missed without harm.";

// "encoder layer 2, head 3"; `number` is null where one head serves all layers.
export function nameOfHead(item, kind, number, head) {
  const map = mapOf(item, kind), label = map.layers.find((layer) => layer.number === number)?.label ?? "in every layer";
  const place = label.match(/\(([^()]*?)(?: of \d+)?\)$/)?.[1] ?? label;
  return (place.startsWith(kind) ? place : `${map.title}, ${place}`) + `, head ${head + 1}`;
}

// What to write on a head: how much the probability of the word looked at changes without it.
export function badge({ knockouts }, kind, number, head) {
  const found = knockouts?.heads.find((one) => one.kind === kind && one.head === head && (one.layer ?? number) === number);
  return found ? { text: signed(found.probability - knockouts.probability), title: `Without this head “${knockouts.word}” ${outcome(knockouts, found)}` } : null;
}

function outcome({ word, probability: before }, { probability: after, instead, changes }) {
  const moves = signed(after - before) === "0.00" ? "stays at" : (after < before ? "falls" : "rises") + ` from ${before.toFixed(2)} to`;
  const then = instead !== word ? `, and “${instead}” is written instead.` : changes ? ", and another word of the text changes." : ".";
  return `${moves} ${after.toFixed(2)}${then}`;
}

function finding(item, worst) {
  const { word, probability, heads } = item.knockouts, count = heads.filter((one) => one.changes).length;
  const depends = probability - worst.probability < 0.005 ? `No single head matters for “${word}”: without any one of them`
    : `“${word}” depends most on ${nameOfHead(item, worst.kind, worst.layer, worst.head)}: without it`;
  return `${depends} the probability ${outcome(item.knockouts, worst)} ${count || "None"} of ${heads.length} heads, switched off alone, ${count === 1 ? "changes" : "change"} what is written.`;
}

function headRow(app, item, { kind, layer, head, probability, instead, changes, ...one }) {
  const { word, probability: before, translation } = item.knockouts;
  const filled = el("b"), place = mapOf(item, kind).layers.findIndex((entry) => entry.number === layer);
  filled.style.width = `${100 * probability}%`;
  const go = () => app.go({ view: "heads", kind, layer: Math.max(0, place), heads: [head], combine: "heads" });
  return el("li", { class: changes ? "changes" : null },
    button(nameOfHead(item, kind, layer, head), go, { class: "name", title: "Show where this head looks" }),
    el("span", { class: "measure" }, el("span", { class: "bar" }, filled), el("span", { class: "amounts" }, `${before.toFixed(2)} → ${probability.toFixed(2)}`)),
    el("span", { class: "move" }, signed(probability - before)),
    el("span", { class: "instead" }, instead === word ? "writes the same" : ["writes ", el("mark", { dir: "auto" }, instead)]),
    el("span", { class: "translation", dir: "auto" }, changes && one.translation ? changed(one.translation, translation) : null));
}

export const knockoutView = {
  id: "knockout", title: "Switch off", key: "o",
  available: (app) => (app.item().knockouts?.heads.length ? null : "No heads were switched off when this text was traced."),
  mount(root, app) {
    const item = app.item(), heads = [...item.knockouts.heads].sort((a, b) => a.probability - b.probability);
    root.append(el("p", { class: "finding" }, finding(item, heads[0])), el("p", { dir: "auto" }, `With every head on: ${item.knockouts.translation}`), el("p", { class: "quiet small" }, MEANING),
      el("ol", { class: "ranks knockouts" }, heads.map((one) => headRow(app, item, one))));
    return { update() {} };
  },
};
