// One word's attention computed anew from queries, keys and values, as regard/interpret/steps.py does; and as a script in NumPy.
import { unpack } from "./data.js";

// An entry of the data, or nothing, with its tensors unpacked.
export async function unpackAll(entry) {
  const found = { ...entry };
  for (const [name, part] of Object.entries(found)) if (part?.b) found[name] = { size: part.s, numbers: await unpack(part) };
  return found;
}

// The row of a tensor at this place: of [heads, words, width] at a head and a word.
export function rowAt({ size, numbers }, ...place) {
  const width = size.at(-1), n = place.reduce((sofar, at, axis) => sofar * size[axis] + at, 0);
  return Array.from(numbers.subarray(n * width, (n + 1) * width));
}

function total(list) {
  return list.reduce((sum, x) => sum + x, 0);
}

// The size of the number farthest from 0.
export function mostOf(list) {
  return list.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
}

// What is hidden has a score of minus infinity.
export function softmaxOf(scores) {
  const top = Math.max(...scores), lowered = scores.map((s) => s - top), exps = lowered.map(Math.exp), sum = total(exps);
  return { lowered, exps, sum, weights: exps.map((e) => e / sum) };
}

// All that is computed for a word, in this head and from there on.
export function recomputed(layer, head, q) {
  const looks = Array.from({ length: layer.query.size[0] }, (_, h) => lookOf(layer, h, q)), own = looks[head];
  if (!layer.join) return own;
  const together = looks.flatMap((one) => one.context), came = rowAt(layer.input, q);
  const joined = rowAt(layer.join_bias).map((b, n) => b + product(rowAt(layer.join, n), together));
  const sum = joined.map((y, n) => y + came[n]);
  return { ...own, together, came, normed: normalised(came, layer.norm), joined, output: layer.norm.first ? sum : normalised(sum, layer.norm) };
}

// `raw`: scores before they are scaled; `used`: the weights, if they are hidden NaN; `other`: these with scores divided by the
// root of their length where they are not, and not divided where they are.
function lookOf(layer, head, q) {
  const seen = rowAt(layer.seen, q), query = rowAt(layer.query, head, q), fit = layer.v && rowAt(layer.v);
  const [keys, values] = [layer.key, layer.value].map((all) => seen.map((_, k) => rowAt(all, head, k)));
  const terms = keys.map((key) => key.map((x, n) => (fit ? fit[n] * Math.tanh(query[n] + x) : query[n] * x)));
  const bias = layer.bias && rowAt(layer.bias, head, q), raw = terms.map((list, k) => total(list) + (bias?.[k] ?? 0));
  const unlessHidden = (list, otherwise) => list.map((x, k) => (seen[k] ? x : otherwise));
  const scores = raw.map((s) => s * layer.scale), masked = unlessHidden(scores, -Infinity), soft = softmaxOf(masked);
  const rescale = layer.scale === 1 ? Math.sqrt(query.length) : layer.scale, other = softmaxOf(masked.map((s) => s / rescale)).weights;
  const context = values[0].map((_, n) => product(soft.weights, values.map((value) => value[n])));
  return { seen, query, fit, keys, values, terms, bias, raw, scores, masked, ...soft, used: unlessHidden(soft.weights, NaN), other: unlessHidden(other, NaN), context };
}

function product(one, other) {
  return total(one.map((x, n) => x * other[n]));
}

function normalised(x, { gain, shift, epsilon }) {
  const mean = total(x) / x.length, deviations = x.map((one) => one - mean);
  const spreadOut = Math.sqrt(product(deviations, deviations) / x.length + epsilon);
  return deviations.map((one, n) => (one / spreadOut) * gain.numbers[n] + shift.numbers[n]);
}

// How far each result is from what PyTorch computed, where that is stored: by head and word, or by word alone.
export function apartFrom({ scores, context, weights, joined, after: output }, found, head, q) {
  const stored = Object.entries({ scores, context, weights, joined, output }).filter(([, all]) => all);
  return stored.map(([name, all]) => [name, mostOf(rowAt(all, ...(all.size.length > 2 ? [head, q] : [q])).map((x, n) => x - found[name][n]))]);
}

// The script with this word's numbers in it.
export function asNumpy({ script, words, word, query, keys, values, fit, bias, seen, scale }) {
  const parts = { words, word, q: query, K: keys, V: values, v: fit, bias, seen, scale };
  const brief = (_, part) => (typeof part === "number" ? Number(part.toPrecision(7)) : part);
  return script.replace(/\{(\w+)\}/g, (_, name) => JSON.stringify(parts[name], brief));
}
