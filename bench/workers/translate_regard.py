"""Regard translating a list of sentences, as `regard translate FILE` does once it has started."""

import time
from typing import Any

import regard
from bench import worker


def prepare(settings: dict[str, Any]) -> Any:
    """The model of a folder, with one of Regard's engines."""
    translator = regard.load(settings["folder"], device="cpu", **settings.get("load", {}))
    texts = worker.texts(settings)
    how = {"beam": settings["beam"], **settings.get("decode", {})}
    translator.translate(texts[0], **how)  # settings that cannot be used are refused before anyone waits

    def go(order: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        written = translator.translate(texts, **how)
        return {"amount": len(texts), "seconds": time.perf_counter() - began, "written": written}

    return go


if __name__ == "__main__":
    worker.serve(prepare)
