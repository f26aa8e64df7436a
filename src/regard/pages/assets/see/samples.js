// Texts the model was given at each validation, what it made of them, and where that differs from what would have been right.
import { el, table } from "./ui.js";

// Which words of each of two texts stand in the other too, in the same order: the longest such choice.
export function common(one, other) {
  const [m, n] = [one.length, other.length];
  const best = Array.from({ length: m + 1 }, () => new Uint16Array(n + 1));
  for (let i = m - 1; i >= 0; i--) for (let j = n - 1; j >= 0; j--) best[i][j] = one[i] === other[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const same = [new Set(), new Set()];
  for (let i = 0, j = 0; i < m && j < n; ) {
    if (one[i] === other[j]) (same[0].add(i++), same[1].add(j++));
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return same;
}

const wordsOf = (text) => text.split(/\s+/).filter(Boolean);

function marked(words, same, look) {
  const runs = [];
  words.forEach((word, n) => {
    const own = same.has(n);
    if (runs.length && runs.at(-1).own === own) runs.at(-1).words.push(word);
    else runs.push({ own, words: [word] });
  });
  return runs.flatMap(({ own, words }, n) => [n ? " " : "", own ? words.join(" ") : el("mark", { class: look }, words.join(" "))]);
}

// [what was made, what is right], as children of an element, with the words that differ marked.
function compared(made, right) {
  if (!right) return [[made], []];
  const words = [wordsOf(made), wordsOf(right)], same = common(...words);
  return [marked(words[0], same[0], "other"), marked(words[1], same[1], "missed")];
}

export function makeSamples(history, app) {
  const place = document.getElementById("samples");
  const { evaluations } = history;
  if (!evaluations.some((one) => one.samples?.length)) return { update() {} };
  const list = el("div"), note = el("p", { class: "small quiet samples-note" });
  const details = el("details", { ontoggle: () => details.open && details.children.length === 1 && details.append(all(evaluations)) }, el("summary", {}, "Samples of all validations"));
  note.append("Underlined: ", el("mark", { class: "other" }, "words"), " that the right answer has not, and ", el("mark", { class: "missed" }, "words"), " of it that are missing.");
  note.hidden = !evaluations.some((one) => one.samples?.some(([, , right]) => right));
  place.append(list, note, details);
  let last = null;
  return {
    update() {
      const now = evaluations[app.state.get().item];
      if (now !== last) list.replaceChildren(...(now.samples ?? []).map(sample), ...(now.samples?.length ? [] : [el("p", { class: "quiet" }, "No samples were kept at this validation.")]));
      last = now;
    },
  };
}

function sample([read, made, right]) {
  const [own, other] = compared(made, right);
  const line = (name, look, text) => [el("dt", {}, name), el("dd", { class: look, dir: "auto" }, text)];
  return el("dl", { class: "sample" }, line("read", "read", [read]), line("made", "made", own.length && made ? own : ["(nothing)"]), ...(right ? [line("right", "right", other)] : []));
}

function all(evaluations) {
  const rows = evaluations.flatMap((one) => (one.samples ?? []).map(([read, made, right]) => [one.step.toLocaleString("en"), read, made, right]));
  const made = table("What the model made of the same texts, from validation to validation", ["step", "read", "made", "right"], rows);
  for (const cell of made.querySelectorAll("td")) (cell.className = "text"), (cell.dir = "auto");
  made.querySelectorAll("tbody tr").forEach((row, n) => row.children[2].replaceChildren(...compared(rows[n][2], rows[n][3])[0]));
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Samples of all validations" }, made);
}
