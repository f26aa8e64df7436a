"""CTranslate2 by its own interface, with the settings asked for: precision, workers, threads, batches."""

import tempfile
import time
from pathlib import Path
from typing import Any

import ctranslate2
import sentencepiece

from bench import worker
from bench.ctranslate import convert

ROOM = 50


def prepare(settings: dict[str, Any]) -> Any:
    """Converts the model for each precision when that is first asked for, and loads it for each number of workers."""
    folder = Path(settings["folder"])
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    pieces = [tokenizer.id_to_piece(number) for number in range(tokenizer.vocab_size())]
    all_texts, made, loaded = worker.texts(settings), Path(tempfile.mkdtemp(prefix="bench-")), {}
    convert(folder, made, pieces, settings["model"], "float32")

    def translator(precision: str, workers: int, threads: int) -> ctranslate2.Translator:
        key = (precision, workers, threads)
        if key not in loaded:
            loaded.clear()  # the threads of another would stay
            loaded[key] = ctranslate2.Translator(
                str(made), compute_type=precision, inter_threads=workers, intra_threads=threads
            )
        return loaded[key]

    def go(order: dict[str, Any]) -> dict[str, Any]:
        texts = all_texts[:: order.get("every", 1)]
        use = translator(order["precision"], order["workers"], order["threads"])
        began = time.perf_counter()
        cut = tokenizer.encode(texts, out_type=str)
        found = use.translate_batch(
            cut,
            beam_size=settings["beam"],
            length_penalty=settings["length_penalty"],
            max_batch_size=order["batch"],
            batch_type=order["of"],
            max_decoding_length=max(map(len, cut)) + ROOM,
        )
        written = [tokenizer.decode(result.hypotheses[0]) for result in found]
        return {"amount": len(texts), "seconds": time.perf_counter() - began, "written": written}

    return go


if __name__ == "__main__":
    worker.serve(prepare)
