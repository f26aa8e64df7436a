// The one place where stored weights become what is seen: words out of pieces, special tokens hidden, heads combined.
import { remembered, unpack } from "./data.js";

const LONGEST = 24; // characters of a label; the whole word is in its title
const KEPT = 32; // results remembered
const labelled = new WeakMap();
const weighed = new WeakMap();
const rollouts = new WeakMap();
const results = new WeakMap();

export function headHue(head) {
  return head < 0 ? "--ink" : `--hue-${(head % 8) + 1}`;
}

export function number(x, approximate = false) {
  return (approximate ? "≈" : "") + x.toFixed(2);
}

// As many decimals as the encoding vouches for.
export function exact(x, approximate) {
  return approximate ? number(x, true) : x.toFixed(4);
}

export function mapOf(item, kind) {
  return item.maps.find((map) => map.kind === kind) ?? item.maps[0];
}

// The row whose words stand for the queries: what each position reads, or what it writes. Unless it is chosen, words that
// look at another text are named by what they write.
export function queryRow(item, map, { label }) {
  const written = label === "auto" ? map.kind === "cross" : label === "predicted";
  return written && map.queries === "target" && item.rows.predicted ? "predicted" : map.queries;
}

// The layers of self-attention that rollout goes through, up to `layer` of its own kind.
function layersBelow(item, map, layer) {
  const self = item.maps.find((one) => one.queries === map.keys && one.keys === map.keys);
  return self === map ? map.layers.slice(0, layer + 1) : self?.layers ?? [];
}

// Why rollout cannot be computed for this layer; null if it can.
export function noRollout(item, map, layer) {
  const below = layersBelow(item, map, layer);
  return below.length && below.every((one, n) => one.number === n) ? null : "Rollout needs layers that all look at the same words; here there are none.";
}

export function rowLabels(item, name, { pieces, special }) {
  const row = item.rows[name], known = remembered(labelled, row, () => new Map());
  return remembered(known, `${pieces}${special}`, () => groupsOf(row, pieces, special).map((tokens) => labelOf(row, tokens)));
}

function groupsOf({ tokens }, pieces, special) {
  const groups = [];
  tokens.forEach((token, n) => {
    if (!special && token[4] & 1) return;
    if (!pieces && groups.length && tokens[n - 1][3] === token[3]) groups.at(-1).push(n);
    else groups.push([n]);
  });
  return groups;
}

// A word as it stands in the text; a piece as the tokenizer has it. Offsets count characters, not UTF-16 units.
function labelOf({ text, tokens: all }, tokens) {
  const [first, last] = [all[tokens[0]], all[tokens.at(-1)]];
  const word = tokens.length > 1 && Array.from(text).slice(first[1], last[2]).join("").trim();
  const title = visible(word || tokens.map((n) => all[n][0]).join("")), letters = Array.from(title);
  return { text: letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : title, title, tokens, special: Boolean(first[4] & 1) };
}

function visible(text) {
  return text.replace(/[\n\r\u2028\u2029]/g, "⏎").replace(/\t/g, "⇥").replace(/^\s+$/, (blanks) => "␠".repeat(blanks.length)) || "∅";
}

// Every head of the layer that the present state, with `over` laid over it, shows.
export function allHeads(app, over = {}) {
  const { item, kind } = { ...app.state.get(), ...over };
  return shown(app, { ...over, heads: [...Array(mapOf(app.data.items[item], kind).heads).keys()], combine: "heads" });
}

// What the present state, with `over` laid over it, shows.
export function shown(app, over = {}) {
  const state = { ...app.state.get(), ...over }, item = app.data.items[state.item], map = mapOf(item, state.kind);
  const key = JSON.stringify([map.kind, state.layer, state.heads, state.combine, state.pieces, state.special, state.value, queryRow(item, map, state)]);
  const known = remembered(results, item, () => new Map());
  if (known.size > KEPT) known.delete(known.keys().next().value);
  return remembered(known, key, () => compute(item, map, state));
}

async function compute(item, map, state) {
  const { heads: chosen, combine } = state, layer = map.layers[state.layer];
  const queries = rowLabels(item, queryRow(item, map, state), state), keys = rowLabels(item, map.keys, state);
  const below = combine === "rollout" && !noRollout(item, map, state.layer) ? layersBelow(item, map, state.layer) : null;
  const { w, Q, K } = await weightsOf(layer), norms = state.value && layer.norms && !below ? await unpack(layer.norms) : null;
  const words = (all, own) => merge(all, own, queries, keys, K);
  const merged = chosen.map((head) => ({ head, ...words(w.subarray(head * Q * K), norms?.subarray(head * K)) }));
  const whole = below ? words(await rolled(below, layer), null) : combined(merged, combine);
  const heads = merged.map((one) => ({ head: one.head, w: one.w })), headName = namedHeads(chosen, combine, map.heads);
  return {
    headName, name: `${map.title}, ${layer.label}, ${headName}`,
    kind: map.kind, layer: layer.number, layerLabel: layer.label, causal: map.causal, approximate: layer.weights.e === "u8s", queries, keys, heads, ...whole,
    drawn: combine === "heads" ? heads : [{ head: -1, w: whole.w }], problem: await problemOf(item, map, below ? [...below, layer] : [layer], below ? null : chosen),
  };
}

// "head 3", "mean of heads 1, 2"
function namedHeads(heads, combine, count) {
  const numbers = heads.length === 1 ? `head ${heads[0] + 1}` : heads.length === count ? "all heads" : `heads ${heads.map((head) => head + 1).join(", ")}`;
  return { heads: numbers, rollout: "rollout" }[combine] ?? `${combine} of ${numbers}`;
}

// Weights of one layer, with the sum of every row as it was stored; the coarse encoding is set right by these sums.
function weightsOf({ weights }) {
  return remembered(weighed, weights, async () => {
    const [H, Q, K] = weights.s, coarse = weights.e === "u8s", w = (await unpack(weights)).slice(), sums = new Float64Array(H * Q);
    w.forEach((x, n) => (sums[Math.floor(n / K)] += x));
    if (coarse) w.forEach((x, n) => (w[n] = x / (sums[Math.floor(n / K)] || 1)));
    return { w, sums, H, Q, K, allowed: 0.01 + (coarse ? Math.sqrt(K) / 255 : 0) };
  });
}

// `heads` is null for all of them.
async function problemOf(item, map, layers, heads) {
  for (const layer of layers) {
    const { sums, Q, allowed } = await weightsOf(layer);
    const row = sums.findIndex((sum, n) => Math.abs(sum - 1) > allowed && (heads?.includes(Math.floor(n / Q)) ?? true));
    if (row < 0) continue;
    const word = item.rows[layer === layers.at(-1) ? map.queries : map.keys].tokens[row % Q][0];
    return `The weights of “${word}” in head ${Math.floor(row / Q) + 1} of ${layer.label} sum to ${sums[row].toFixed(2)}, not to 1. They are not drawn; trace the text again.`;
  }
  return null;
}

// Words out of pieces: what goes to a word is the sum over its pieces, what comes from it their mean. With `norms`, each
// weight counts as much as the length of the value it brings, and every row is a share of its own total.
function merge(w, norms, queries, keys, K) {
  const size = keys.length, out = new Float32Array(queries.length * size), hidden = new Float32Array(queries.length);
  const place = new Int32Array(K).fill(-1);
  keys.forEach((label, n) => label.tokens.forEach((token) => (place[token] = n)));
  queries.forEach(({ tokens }, q) => {
    for (const token of tokens) {
      const row = w.subarray(token * K, (token + 1) * K), parts = norms ? row.map((x, k) => x * norms[k]) : row;
      const total = tokens.length * ((norms && parts.reduce((sum, x) => sum + x, 0)) || 1);
      for (let k = 0; k < K; k++) {
        if (place[k] < 0) hidden[q] += parts[k] / total;
        else out[q * size + place[k]] += parts[k] / total;
      }
    }
  });
  return { w: out, hidden };
}

function combined(merged, how) {
  const join = how === "max" ? Math.max : (a, b) => a + b / merged.length;
  const over = (name) => merged.reduce((sofar, one) => sofar.map((a, n) => join(a, one[name][n])), new Float32Array(merged[0][name].length));
  return { w: over("w"), hidden: over("hidden") };
}

// How much of each input word is in a position after this layer, if attention and the residual connection share equally
// (Abnar and Zuidema 2020): the product over layers of half the mean head and half the identity.
async function rolled(below, layer) {
  const last = below.at(-1);
  if (layer !== last) return passedOn(await weightsOf(layer), await rolled(below, last));
  return remembered(rollouts, layer, async () => {
    const stored = await weightsOf(layer), size = stored.K;
    const under = below.length > 1 ? await rolled(below.slice(0, -1), below.at(-2)) : Float32Array.from({ length: size * size }, (_, n) => Number(n % (size + 1) === 0));
    const brought = passedOn(stored, under);
    return under.map((kept, n) => (kept + brought[n]) / 2);
  });
}

// The mean head, times what lies below.
function passedOn({ w, H, Q, K }, below) {
  const mean = new Float32Array(Q * K), out = new Float32Array(Q * K);
  w.forEach((x, n) => (mean[n % (Q * K)] += x / H));
  mean.forEach((x, n) => {
    const from = (n % K) * K, to = n - (n % K);
    if (x) for (let k = 0; k < K; k++) out[to + k] += x * below[from + k];
  });
  return out;
}
