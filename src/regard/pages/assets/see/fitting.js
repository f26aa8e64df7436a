// A state that can be shown, out of one that was asked for: a link may be old, and words move when pieces become words.
import { mapOf, noRollout, queryRow, rowLabels } from "./shown.js";

const COMBINATIONS = ["heads", "mean", "max", "rollout"];

export function fitting({ items }, views) {
  return (wanted, before) => {
    const item = items[(wanted.item = within(wanted.item, items.length) ?? 0)], map = mapOf(item, wanted.kind);
    wanted.kind = map.kind;
    wanted.layer = within(wanted.layer, map.layers.length) ?? map.layers.length - 1;
    wanted.heads = [...Array(map.heads).keys()].filter((head) => Array.isArray(wanted.heads) && wanted.heads.includes(head));
    if (!wanted.heads.length) wanted.heads = [0];
    if (!COMBINATIONS.includes(wanted.combine)) wanted.combine = "heads";
    if (wanted.combine === "rollout" && noRollout(item, map, wanted.layer)) wanted.combine = "mean";
    if (!views.some((view) => view.id === wanted.view)) wanted.view = views[0].id;
    if (wanted.side !== "keys") wanted.side = "queries";
    wanted.other = within(wanted.other, items.length);
    wanted.token = movedWord(items, wanted, before);
    wanted.pinned = Boolean(wanted.pinned) && wanted.token !== null;
    return wanted;
  };
}

function within(n, size) {
  return Number.isInteger(n) && n >= 0 && n < size ? n : null;
}

function wordsOf(items, state) {
  const item = items[state.item], map = mapOf(item, state.kind);
  return { row: map[state.side], labels: rowLabels(item, state.side === "keys" ? map.keys : queryRow(item, map, state), state) };
}

// The chosen word stays chosen where it is still to be seen.
function movedWord(items, wanted, before) {
  const { row, labels } = wordsOf(items, wanted), { token } = wanted;
  if (before?.item !== wanted.item || token !== before.token || wanted.side !== before.side) return within(token, labels.length);
  const old = wordsOf(items, before), first = old.labels[token]?.tokens[0];
  return within(old.row === row ? labels.findIndex((label) => label.tokens.includes(first)) : null, labels.length);
}
