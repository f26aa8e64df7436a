"""`regard.load`: a model folder opened with the engine of one's choice. Torch is imported only if it is the one."""

from pathlib import Path
from typing import Any

from regard.decode.translation import TextTranslator
from regard.engine.opening import open_translator


def load(path: str | Path, *, engine: str = "torch", device: str = "auto", threads: int = 0) -> Any:
    """The model in a folder, ready for what it learned.

    A Translator (pairs), an Author (running text), a Filler (hidden words) or a Labeller (labels). With `engine`
    "ctranslate2" or "auto", a translator that starts and translates faster, and does nothing else; "auto" takes torch for
    what CTranslate2 cannot do.
    """

    def with_torch() -> Any:
        from regard import api

        return api.load(path, device=device, threads=threads)

    return open_translator(Path(path), with_torch, engine=engine, device=device, threads=threads)


def load_translator(path: Path, *, engine: str, device: str, threads: int, settings: dict[str, Any]) -> TextTranslator:
    """The same for translating alone, with these settings."""

    def with_torch() -> TextTranslator:
        from regard import api
        from regard.decode.translator import Translator

        return api.load_as(Translator, path, device=device, threads=threads)

    return open_translator(path, with_torch, engine=engine, device=device, threads=threads, settings=settings)
