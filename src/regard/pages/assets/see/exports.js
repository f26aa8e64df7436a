// What is shown, to keep: as a picture, as numbers, as a link.
import { shown } from "./shown.js";
import { button, byId, download, el } from "./ui.js";
import { commands } from "./keys.js";
import { svgAddress } from "./svg.js";

const SHARPER = 2; // pixels of a saved PNG for each of the figure

export function makeExports(app, mounted) {
  const save = (name, type, make) => button(name.toUpperCase(), async () => download(`attention.${name}`, await make(), type));
  const figure = () => mounted().figure();
  const pictures = [save("svg", "image/svg+xml", figure), save("png", "image/png", async () => asPng(await figure()))];
  const numbers = button("table", () => commands(app).t(), { "aria-keyshortcuts": "t" });
  const copy = button("", copyLink, { hidden: location.protocol === "about:" });
  byId("exports").append(el("span", { class: "legend" }, "Keep"), ...pictures, save("csv", "text/csv", async () => asCsv(app, await shown(app))), copy, numbers);

  async function copyLink() {
    const address = `${location.href.split("#")[0]}#${app.state.fragment()}`;
    try {
      await navigator.clipboard.writeText(address);
      app.say((copy.textContent = "copied"));
    } catch {
      prompt("Copy this link:", address);
    }
  }
  return () => {
    for (const picture of pictures) picture.disabled = !mounted().figure;
    numbers.setAttribute("aria-pressed", app.state.get().table);
    numbers.hidden = !mounted().tableFor;
    copy.textContent = "copy link";
  };
}

async function asPng(svg) {
  const picture = new Image();
  picture.src = svgAddress(svg);
  await picture.decode();
  const canvas = el("canvas", { width: picture.width * SHARPER, height: picture.height * SHARPER });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

// Columns as in the files that Python writes; everything is counted from 1.
function asCsv(app, { kind, layer, queries, keys, drawn }) {
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = drawn.flatMap(({ head, w }) => Array.from(w, (x, n) => {
    const q = Math.floor(n / keys.length), k = n % keys.length;
    return [kind, layer + 1, head < 0 ? app.state.get().combine : head + 1, q + 1, quoted(queries[q].title), k + 1, quoted(keys[k].title), Number(x.toPrecision(6))];
  }));
  return ["kind,layer,head,query_number,query,key_number,key,weight", ...lines, ""].join("\n");
}
