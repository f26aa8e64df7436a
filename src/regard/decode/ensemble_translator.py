"""Translating with several models at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.decode.ensemble import Ensemble
from regard.decode.translator import Translator
from regard.errors import FolderError, TraceError
from regard.interpret.recording import Watched
from regard.interpret.trace import Facts
from regard.text.arguments import text_of


class Together(Translator):
    """Translators of one tokenizer, whose probabilities are averaged. Settings and shortlist are the first one's."""

    def __init__(self, translators: Sequence[Translator], folders: Sequence[Path]) -> None:
        """`folders` are the names that messages give the models."""
        first = translators[0]
        for other, folder in zip(translators[1:], folders[1:], strict=True):
            if other.tokenizer.as_bytes() != first.tokenizer.as_bytes():
                raise FolderError(
                    f"The words of {folder} are not those of {folders[0]}, so their probabilities cannot be averaged. "
                    f"Train one of them anew, with --words-of {folders[0]}."
                )
        model = Ensemble([translator.model for translator in translators])
        names = " + ".join(translator.facts.folder for translator in translators)
        facts = Facts("ensemble", sum(translator.facts.parameters for translator in translators), names)
        super().__init__(model, first.tokenizer, first.config, first.device, facts, folders[0])

    def watched(self, source: str, target: str | None = None, **settings: Any) -> Watched:
        """Not for several at once."""
        _ = text_of(source, "source"), target if target is None else text_of(target, "target"), self._with(settings)
        raise TraceError("Each of several models looks for itself. Look at one of them: regard see DIR TEXT")
