// Two texts, checkpoints or models side by side: the same head of both, and where they differ.
import { blank, colour } from "./paint.js";
import { number, shown } from "./shown.js";
import { el, table } from "./ui.js";
import { makeBoard, SIDES } from "./board.js";
import { cellUnder, matrixLayout } from "./matrix.js";
import { bothWords, differingWords, makePair, onlyOne, paired, secondLayer, signed } from "./pairs.js";

const SPOKEN = 5; // differences told in words

// Second minus first for every two words that both have, the largest first.
function differences([a, b], { queries, keys }) {
  const cells = [...queries].flatMap(([q, r]) => [...keys].map(([k, l]) => {
    const [first, second] = [a.w[q * a.keys.length + k], b.w[r * b.keys.length + l]];
    return { q, k, query: bothWords(a.queries[q], b.queries[r]), key: bothWords(a.keys[k], b.keys[l]), by: second - first, first: number(first, a.approximate), second: number(second, b.approximate) };
  }));
  return cells.sort((one, other) => Math.abs(other.by) - Math.abs(one.by));
}

const spoken = ({ query, key, first, second, by }) => `${query} → ${key}: ${first} in the first, ${second} in the second (${signed(by)})`;

// Blue where the first has more, orange where the second has; the more, the stronger. Gives where the cells stand.
function paintDifference(canvas, cells, most, room) {
  const queries = [], keys = [], blue = colour("--hue-5"), orange = colour("--hue-1");
  for (const { q, k, query, key } of cells) [queries[q], keys[k]] = [{ text: query }, { text: key }];
  const layout = matrixLayout({ queries, keys }, room), { left, top, cell, wide, high } = layout, pen = blank(canvas, left + wide + 2, top + high + 2);
  Object.assign(pen, { globalAlpha: 1, strokeStyle: colour("--line"), fillStyle: colour("--ink"), font: `${Math.min(13, cell)}px ${colour("--sans")}`, textBaseline: "middle", textAlign: "right" });
  pen.strokeRect(left + 0.5, top + 0.5, wide, high);
  queries.forEach(({ text }, q) => pen.fillText(text, left - 7, top + (q + 0.5) * cell, left - 8));
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "left";
  keys.forEach(({ text }, k) => pen.fillText(text, 7 - top, left + (k + 0.5) * cell, top - 8));
  pen.rotate(Math.PI / 2);
  for (const { q, k, by } of cells) {
    Object.assign(pen, { globalAlpha: Math.abs(by) / most, fillStyle: by < 0 ? blue : orange });
    pen.fillRect(left + k * cell, top + q * cell, cell, cell);
  }
  return layout;
}

function makeDifference() {
  const canvas = el("canvas", { role: "img", "aria-label": "Matrix of differences; the table has the numbers", onpointermove: point }), matrix = el("div", { class: "wide" }, canvas),
    title = el("h3"), list = el("ol", { class: "small" });
  let cells, layout;
  function point(event) {
    const { q, k } = cellUnder(event, layout);
    canvas.title = cells.filter((cell) => cell.q === q && cell.k === k).map(spoken).join();
  }
  function update(found, both) {
    const [one, other] = both.map((now) => `${now.queries.length} × ${now.keys.length}`), most = Math.max(0.1, Math.abs(found[0]?.by));
    cells = found;
    list.replaceChildren(...cells.slice(0, SPOKEN).map((cell) => el("li", {}, spoken(cell))));
    matrix.hidden = one !== other;
    title.textContent = matrix.hidden ? `No matrix: the two have different numbers of words (${one} and ${other}).` : `Second minus first: orange to +${most.toFixed(2)}, blue to −${most.toFixed(2)}`;
    if (!matrix.hidden) layout = paintDifference(canvas, cells, most, matrix.clientWidth);
  }
  return { root: el("div", { class: "pair difference" }, el("div", {}, title, matrix), el("div", {}, el("h3", {}, "The largest differences"), list)), update };
}

export const compareView = {
  id: "compare", title: "Compare", key: "c", available: onlyOne,
  mount(root, app) {
    let both, pairs, cells = [];
    const inFirst = (side, n) => [...pairs[side]].find((pair) => pair[1] === n)?.[0];
    const panels = [makeBoard(app, () => both[0], "first, "), makeBoard(app, () => both[0], "second, ", inFirst)];
    const texts = makePair(app), why = el("p", { class: "warning" }), difference = makeDifference();
    const board = el("div", {}, el("div", { class: "pair" }, panels.map((panel) => el("div", { class: "half" }, panel.root))), difference.root);
    root.append(texts.root, why, board);
    // `index` is undefined where this text has no such word.
    function draw(panel, now, only, side, index) {
      panel.draw({ ...now, drawn: index === undefined ? [] : now.drawn, selected: index === null ? null : { side, index } });
      panel.columns.forEach((column, n) => [...column.root.children].forEach((word, place) => word.classList.toggle("differs", only[n][place])));
    }
    async function update() {
      const { side, token, kind, ...state } = app.state.get(), layer = app.map().layers[state.layer];
      const second = secondLayer(app, kind, layer.number), heads = state.heads.filter((head) => head < second?.heads);
      texts.update();
      board.hidden = !heads.length;
      why.hidden = !board.hidden;
      why.textContent = `The second has no ${second ? "such head" : layer.label}.`;
      [both, cells] = [[await shown(app)], []];
      if (board.hidden) return;
      both.push(await shown(app, { ...second.over, heads }));
      if (both[1].problem) throw new Error(both[1].problem);
      const named = SIDES.map((name) => both.map((now) => now[name]));
      pairs = { queries: paired(...named[0]), keys: paired(...named[1]) };
      const only = named.map((two) => differingWords(...two));
      const partner = token === null ? null : pairs[side].get(token);
      [token, partner].forEach((index, n) => draw(panels[n], both[n], only.map((two) => two[n]), side, index));
      cells = differences(both, pairs);
      difference.update(cells, both);
    }
    const tableFor = () => table("Attention in both, largest differences first", ["from", "to", "first", "second", "difference"],
      cells.filter((cell) => Math.abs(cell.by) >= 0.005).map((cell) => [cell.query, cell.key, cell.first, cell.second, signed(cell.by)]));
    return { update, tableFor, edges: () => panels.flatMap((panel) => panel.edges()), keys: panels[0].keys };
  },
};
