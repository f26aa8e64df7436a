"""`regard.load`: a model folder opened with the engine of one's choice. Torch is imported only if it is the one."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from regard.decode.translation import TextTranslator
from regard.errors import ConfigError
from regard.fast.selection import chosen, open_translator
from regard.folder.layout import load_config
from regard.system.threads import cores
from regard.text.arguments import paths_of, threads_of

if TYPE_CHECKING:
    from regard.encode.embed import TextReader

# Numpy comes with it, which a translator does not need.
T = TypeVar("T", bound="TextReader")


def load(
    path: str | Path | Iterable[str | Path], *, engine: str = "torch", device: str = "auto", threads: int = 0
) -> Any:
    """The model in a folder, ready for what it learned; or a Translator that averages those in several.

    A Translator (pairs), an Author (running text), a Filler (hidden words) or a Labeller (labels). With `engine`
    "ctranslate2" or "auto", one that starts and works faster, and cannot show its attention; "auto" takes torch for what
    CTranslate2 cannot do.
    """
    threads_of(threads)
    if not isinstance(path, str | Path):
        paths = [Path(one) for one in paths_of(path, "path")]
        return _load_together(paths, engine=engine, device=device, threads=threads)
    path = Path(path)
    with_torch = partial(_with_torch, path, device=device, threads=threads)
    if load_config(path)[1].get("job") in ("masking", "labelling"):
        from regard.encode.embed import TextReader
        from regard.fast.encoder_selection import open_reader

        return open_reader(TextReader, path, with_torch, engine=engine, device=device, threads=threads)
    return open_translator(path, with_torch, engine=engine, device=device, threads=threads)


def _with_torch(path: Path, *, device: str, threads: int) -> Any:
    from regard.inference import torch_models

    return torch_models.load(path, device=device, threads=threads)


def _translator_with_torch(path: Path, *, device: str, threads: int) -> TextTranslator:
    from regard.decode.translator import Translator
    from regard.inference import torch_models

    return torch_models.load_as(Translator, path, device=device, threads=threads)


def _load_together(paths: list[Path], *, engine: str, device: str, threads: int) -> TextTranslator:
    if not paths:
        raise ConfigError("No model folder was given. Name at least one.")
    chosen(engine, device, "several models together" if len(paths) > 1 else None)
    from regard.inference import torch_models

    return torch_models.load_together(paths, device=device, threads=threads)


def load_translator(
    path: Path, *, others: Sequence[Path] = (), engine: str, device: str, threads: int, settings: Mapping[str, Any]
) -> TextTranslator:
    """The same for translating alone, with these settings; averaged with the `others`."""
    if others:
        return _load_together([path, *others], engine=engine, device=device, threads=threads)

    with_torch = partial(_translator_with_torch, path, device=device, threads=threads)
    return open_translator(path, with_torch, engine=engine, device=device, threads=threads, settings=settings)


def rescored(
    translator: TextTranslator,
    judges: str | Path | Iterable[str | Path],
    weight: float = 1.0,
    *,
    device: str = "auto",
    threads: int = 0,
) -> TextTranslator:
    """The translator, whose n-best lists the models in these folders sort anew: translators, or language models."""
    paths = paths_of(judges, "judges")
    if not isinstance(weight, int | float) or not math.isfinite(weight):
        raise ConfigError(f"weight must be a number, not {weight!r}. Give how much each judge counts, such as 1.")
    if not paths:
        return translator
    from regard.decode.reranking import Rescored
    from regard.inference import torch_models

    return Rescored(
        translator, [torch_models.load_judge(path, device=device, threads=threads) for path in paths], weight
    )


@dataclass(frozen=True)
class Opening:
    """`load_translator`, as it can be told to other processes."""

    path: Path
    engine: str = "auto"
    device: str = "auto"
    settings: tuple[tuple[str, Any], ...] = ()
    others: tuple[Path, ...] = ()

    def __call__(self, threads: int) -> TextTranslator:
        """The translator, with so many threads."""
        return load_translator(
            self.path,
            others=self.others,
            engine=self.engine,
            device=self.device,
            threads=threads,
            settings=dict(self.settings),
        )


@contextmanager
def translating(opening: Opening, threads: int, processes: int = 1) -> Iterator[TextTranslator]:
    """A translator; several processes that share the threads, if more than one is asked for. They end when this does."""
    if processes < 1:
        raise ConfigError(f"With {processes} processes nothing is translated. Give --processes 1 or more.")
    if processes == 1:
        yield opening(threads)
        return
    from regard.decode.process_pool import Crew

    with Crew(opening, processes, threads or cores()) as crew:
        yield crew


def load_reader(kind: type[T], path: Path, *, engine: str, device: str, threads: int, precision: str) -> T:
    """The same for one kind of reading: TextReader (vectors), TextLabeller (labels) or TextFiller (hidden words)."""
    from regard.fast.encoder_selection import open_reader

    def with_torch() -> T:
        from regard.inference import torch_models

        return torch_models.load_as(kind, path, device=device, threads=threads)

    return open_reader(kind, path, with_torch, engine=engine, device=device, threads=threads, precision=precision)
