// Beam search as a tree: what was tried at each step, what was kept, and how the finished are compared.
import { add } from "../dom.js";
import { button, el, held, table } from "./ui.js";
import { signed } from "./pairs.js";

const WIDTH = 138, HEIGHT = 48, ACROSS = 176, DOWN = 56; // of a card, and from one to the next
const LARGEST = 11; // half the size of the shape of a token that is certain
const SIGNS = "p, the area of the sign: the token’s own probability. Σ: the sum of log p so far.";
const PENALTY = "Σ log p falls with every word. So that long texts do not lose by it, it is divided by ((5 + length) / 6)^α.";

const minus = (x, digits) => signed(x, digits).replace("+", "");

// "−1.23 / ((5 + 9) / 6)^0.6 = −1.23 / 1.66 = −0.74", worked out here and held against what the search says.
function arithmetic({ total, length, score, coverage }, alpha) {
  const penalty = ((5 + length) / 6) ** alpha;
  const found = `${minus(total)} / ((5 + ${length}) / 6)^${alpha} = ${minus(total)} / ${penalty.toFixed(2)} = ${minus(total / penalty)}`;
  if (Math.abs(total / penalty - score) < 0.005) return found;
  return found + (coverage ? `; with ${minus(coverage)} for coverage ` : "; but the search says ") + minus(score);
}

// Children in the order of their parents, so that no two lines cross; among brothers the likelier first.
function beamPlaces(nodes, last) {
  const row = [];
  for (let step = 0; step <= last; step++) {
    const column = [...nodes.keys()].filter((n) => nodes[n].step === step);
    column.sort((a, b) => row[nodes[a].parent] - row[nodes[b].parent] || nodes[b].total - nodes[a].total);
    column.forEach((n, place) => (row[n] = place));
  }
  return nodes.map((node, n) => [4 + node.step * ACROSS, 4 + row[n] * DOWN]);
}

function lineage(nodes, n) {
  return n < 0 ? [] : [...lineage(nodes, nodes[n].parent), n];
}

const writtenUpTo = (nodes, n) => lineage(nodes, n).map((one) => nodes[one].text).join(" ");

// Kept is a disc, dropped a cross, finished a square; its area is the probability.
function stateShape(card, state, p) {
  const r = Math.max(2, LARGEST * Math.sqrt(p)), x = 17 - r, y = HEIGHT / 2 - r, side = 2 * r;
  if (state === "dropped") add(card, "path", { class: "shape", d: `M${x} ${y}l${side} ${side}m0 ${-side}l${-side} ${side}` });
  else if (state === "finished") add(card, "rect", { class: "shape", x, y, width: side, height: side });
  else add(card, "circle", { class: "shape", cx: 17, cy: HEIGHT / 2, r });
}

function drawTree(svg, nodes, last, step, chosen) {
  const at = beamPlaces(nodes, last), path = lineage(nodes, chosen), visible = [...nodes.keys()].filter((n) => nodes[n].step <= step);
  const look = (n) => nodes[n].state + (path.includes(n) ? " path" : "");
  svg.replaceChildren();
  svg.setAttribute("width", (last + 1) * ACROSS);
  svg.setAttribute("height", Math.max(...at.map((place) => place[1])) + DOWN);
  for (const n of visible.slice(1)) {
    const [[x, y], [tx, ty]] = [at[nodes[n].parent], at[n]].map(([left, top]) => [left, top + HEIGHT / 2]), bend = (tx - x - WIDTH) / 2;
    add(svg, "path", { class: `branch ${look(n)}`, d: `M${x + WIDTH} ${y}C${tx - bend} ${y} ${tx - bend} ${ty} ${tx} ${ty}` });
  }
  for (const n of visible) {
    const { state, p, text, total, score } = nodes[n], card = add(svg, "g", { class: `node ${look(n)}`, transform: `translate(${at[n].join()})` });
    const lines = [text.length > 13 ? `${text.slice(0, 12)}…` : text, `p ${p.toFixed(2)} · Σ ${minus(total)}`, score === null ? state : `${state} ${minus(score)}`];
    add(card, "title", {}, writtenUpTo(nodes, n));
    add(card, "rect", { class: "card", width: WIDTH, height: HEIGHT, rx: 6 });
    stateShape(card, state, p);
    lines.forEach((line, place) => add(card, "text", { class: place ? "" : "token", x: 34, y: 15 + 13.5 * place }, line));
  }
}

export const beamView = {
  id: "beam", title: "Beam", key: "b",
  available: (app) => (app.item().beam?.nodes.length ? null : "No beam search was recorded for this text."),
  mount(root, app) {
    const { nodes, results, size, alpha } = app.item().beam, last = Math.max(...nodes.map((node) => node.step));
    const go = (step) => app.go({ beamStep: held(step, last + 1) });
    const slider = el("input", { type: "range", max: last, "aria-keyshortcuts": ", .", title: "keys , and .", oninput: () => go(Number(slider.value)) });
    const says = el("output", { class: "small" }), box = el("div", { class: "wide tree", tabindex: 0, role: "region", "aria-label": "Tree of the search" }), svg = add(box, "svg");
    const rows = results.map((result, n) => el("li", {}, button(result.text, () => app.go({ beamResult: n }), { class: "name", dir: "auto", title: "Show its way through the tree" }),
      el("span", { class: "amounts" }, arithmetic(result, alpha)), el("span", { class: "move" }, result.chosen ? "chosen" : null)));
    root.append(el("div", { class: "line" }, el("label", { class: "line" }, "Step", slider), says), el("p", { class: "small quiet" }, SIGNS), box,
      el("h3", {}, "The finished texts, best first"), el("p", { class: "quiet small" }, PENALTY), el("ol", { class: "ranks results" }, rows));
    return {
      update() {
        const { beamStep, beamResult = 0 } = app.state.get(), step = beamStep ?? last;
        slider.value = step;
        says.textContent = `${step} of ${last}`;
        drawTree(svg, nodes, last, step, results[beamResult]?.node ?? -1);
        if (beamStep !== undefined) box.scrollLeft = (step + 1) * ACROSS - box.clientWidth;
        rows.forEach((row, n) => row.classList.toggle("chosen", n === beamResult));
      },
      keys: { ",": () => go(slider.value - 1), ".": () => go(Number(slider.value) + 1) },
      tableFor: () => table(`Beam search, ${size} wide: every beginning that was tried`, ["step", "text so far", "p", "Σ log p", "score", "state"],
        nodes.map(({ step, p, total, score, state }, n) => [step, writtenUpTo(nodes, n), p.toFixed(4), minus(total, 4), score === null ? "" : minus(score, 4), state])),
    };
  },
};
