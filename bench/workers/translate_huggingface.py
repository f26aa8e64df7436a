"""MarianMTModel.generate with the weights of a Regard model, sentences sorted by length, in batches of the size asked for."""

import copy
import time
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from bench import marian, worker
from bench.sizes import BEGIN, END, PAD

ROOM = 50
"""Words that a translation may have more than its source."""


def prepare(settings: dict[str, Any]) -> Any:
    """The model and its tokenizer."""
    folder = Path(settings["folder"])
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    exact = marian.of_folder(folder, settings["model"], tokenizer.vocab_size()).eval()
    models = {"float32": exact, "bfloat16": copy.deepcopy(exact).to(torch.bfloat16)}
    all_texts = worker.texts(settings)

    @torch.inference_mode()
    def go(order: dict[str, Any]) -> dict[str, Any]:
        texts = all_texts[:: order.get("every", 1)]
        model = models[order["precision"]]
        model.set_attn_implementation(order["attention"])
        began = time.perf_counter()
        ids = [[*row, END] for row in tokenizer.encode(texts)]
        written = [""] * len(texts)
        numbers = sorted(range(len(texts)), key=lambda number: -len(ids[number]))
        for first in range(0, len(numbers), order["batch"]):
            chosen = numbers[first : first + order["batch"]]
            longest = len(ids[chosen[0]])
            source = torch.tensor([ids[n] + [PAD] * (longest - len(ids[n])) for n in chosen])
            found = model.generate(
                input_ids=source,
                attention_mask=(source != PAD).long(),
                num_beams=settings["beam"],
                length_penalty=settings["length_penalty"],
                early_stopping=True,
                max_new_tokens=longest + ROOM,
                do_sample=False,
            )
            for number, row in zip(chosen, found.tolist(), strict=True):
                written[number] = tokenizer.decode([word for word in row if word not in (PAD, BEGIN, END)])
        return {"amount": len(texts), "seconds": time.perf_counter() - began, "written": written}

    return go


if __name__ == "__main__":
    worker.serve(prepare)
