// The words of one text and what they look at, as a board.
import { shown } from "./shown.js";
import { lineWidth } from "./geometry.js";
import { makeBoard, SIDES } from "./board.js";
import { figureSvg } from "./svg.js";
import { weightsTable } from "./inspector.js";
import { el } from "./ui.js";

const FULL = 128, AROUND = 64, MOST_WORDS = 512;
const SAMPLES = [0.1, 0.25, 0.5, 1];

export const headsView = { id: "heads", title: "Heads", key: "h", available: () => null, mount: mountHeads };

function mountHeads(root, app) {
  let part = null, now = null, centre = 0;
  const board = makeBoard(app, () => now, "", (side, n) => n + part.from[side]), notice = el("p", { class: "small quiet notice" });
  const samples = SAMPLES.map(() => el("i")), key = el("p", { class: "key" }, "weight", SAMPLES.map((w, n) => [samples[n], w]));
  root.append(notice, board.root, key);

  // A window moves only to a word kept, or outside of it: not away from under the pointer.
  function look({ side, token, pinned }) {
    if (token !== null && (pinned || !part?.[side].includes(now[side][token]))) centre = token;
    if (part?.now !== now || part.centre !== centre) part = { now, centre, ...partOf(now, centre) };
    part.selected = token === null ? null : { side, index: token - part.from[side] };
  }
  async function update() {
    const state = app.state.get();
    now = await shown(app);
    look(state);
    notice.textContent = part.notice;
    board.root.hidden = key.hidden = part.refused;
    if (part.refused) return;
    board.draw(part);
    SAMPLES.forEach((w, n) => (samples[n].style.height = `${lineWidth(w, state.root)}px`));
  }
  function figure() {
    const { side, token, root } = app.state.get();
    return figureSvg(part, root, now.name + (token === null ? "" : `, “${now[side][token].text}”`), app.item().model.name);
  }
  return { update, edges: board.edges, tableFor: () => weightsTable(app, now), figure, keys: board.keys };
}

// At most so many words that lines can be followed; `from` says where they begin.
function partOf(now, centre) {
  const long = Math.max(now.queries.length, now.keys.length), refused = long > MOST_WORDS;
  const whole = { ...now, from: { queries: 0, keys: 0 }, refused, notice: refused ? `${long} words are too many for lines: choose Matrix, or trace a shorter text (up to ${MOST_WORDS}).` : "" };
  if (refused || long <= FULL) return whole;
  const begin = ({ length }) => Math.max(0, Math.min(centre - AROUND, length - 2 * AROUND - 1)), from = { queries: begin(now.queries), keys: begin(now.keys) };
  const [queries, keys] = SIDES.map((side) => now[side].slice(from[side], from[side] + 2 * AROUND + 1)), size = keys.length;
  const place = (n) => (Math.floor(n / size) + from.queries) * now.keys.length + (n % size) + from.keys;
  const drawn = now.drawn.map(({ head, w }) => ({ head, w: Float32Array.from({ length: queries.length * size }, (_, n) => w[place(n)]) }));
  return { ...whole, from, queries, keys, drawn, notice: `Of ${long} words, ${AROUND} to either side of the chosen one are shown; Matrix shows all.` };
}
