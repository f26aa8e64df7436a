// Which head links these two words? Every layer and head of this kind of attention, ranked by the weight between them.
import { button, el, table } from "./ui.js";
import { allHeads, exact, number, shown } from "./shown.js";

const RANKED = 20; // listed; the table behind has all

export const findView = { id: "find", title: "Find head", key: "f", available: () => null, mount: mountFind };

// The word that looks is the chosen word of the page. The word looked at is kept as a token, which outlives a change from
// words to pieces.
function mountFind(root, app) {
  const choose = () => app.go({ side: "queries", token: Number(from.value), pinned: true, findKey: found.keys[to.value].tokens[0] });
  const from = el("select", { onchange: choose }), to = el("select", { onchange: choose });
  const said = el("p", { class: "said", role: "status" }), list = el("ol", { class: "ranked" });
  root.append(el("div", { class: "line" }, el("label", { class: "legend" }, "which head looks from ", from), el("label", { class: "legend" }, "to ", to)), said, list);
  let found = null, drawn = "";

  async function update() {
    found = await rankHeads(app);
    offer(from, found.queries, found.q);
    offer(to, found.keys, found.k);
    if (drawn === found.drawing) return; // the head that has the focus keeps it
    drawn = found.drawing;
    said.textContent = found.said;
    list.replaceChildren(...found.ranked.slice(0, RANKED).map((one) => rankedHead(app, one, found.q)));
  }
  return { update, tableFor: async () => table(found.said, ["head", "weight"], found.ranked.map((one) => [one.name, exact(one.w, one.approximate)])) };
}

function offer(select, labels, chosen) {
  select.replaceChildren(...labels.map((label, n) => el("option", { value: n, selected: n === chosen }, label.text)));
}

async function rankHeads(app) {
  const map = app.map(), state = app.state.get();
  const [now, ...layers] = await Promise.all([shown(app), ...map.layers.map((_, layer) => allHeads(app, { layer }))]);
  const { queries, keys } = now, [q, k] = pairOf(state, map, now);
  const ranked = layers.flatMap(({ heads, layerLabel, approximate, problem }, layer) => (problem ? [] : heads).map(({ head, w }) =>
    ({ layer, head, approximate, w: w[q * keys.length + k], name: `${layerLabel}, head ${head + 1}` })));
  const problem = layers.find((one) => one.problem)?.problem ?? "";
  const said = `${ranked.length} heads of ${map.title}, by the weight that “${queries[q].title}” gives to “${keys[k].title}”. ${problem}`;
  return { queries, keys, q, k, said, ranked: ranked.sort((a, b) => b.w - a.w), drawing: JSON.stringify([q, said, ranked]) };
}

// The two words asked about. The one looked at, if none is chosen, is that with the largest weight; that a word looks at itself
// or at a special token says little, and comes last.
function pairOf({ side, token, findKey }, map, { keys, w }) {
  const q = (side === "queries" && token) || 0;
  const chosen = keys.findIndex((label, k) => (side === "keys" ? k === token : label.tokens.includes(findKey)));
  const worth = keys.map((label, k) => w[q * keys.length + k] - Number(label.special || (map.queries === map.keys && q === k)));
  return [q, chosen < 0 ? worth.indexOf(Math.max(...worth)) : chosen];
}

// "animal 0.61, street 0.12"
export function fewLargest(labels, weights, count, approximate) {
  const order = labels.map(({ text }, n) => [weights[n], text]).sort((a, b) => b[0] - a[0]).slice(0, count);
  return order.map(([weight, text]) => `${text} ${number(weight, approximate)}`).join(", ");
}

// A share as a bar.
export function track(share) {
  const fill = el("i");
  fill.style.width = `${100 * share}%`;
  return el("span", { class: "track" }, fill);
}

function rankedHead(app, { layer, head, w, approximate, name }, q) {
  const go = () => app.go({ view: "heads", layer, heads: [head], combine: "heads", side: "queries", token: q, pinned: true });
  return el("li", {}, button([el("span", {}, name), track(w), el("b", {}, number(w, approximate))], go));
}
