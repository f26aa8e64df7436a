"""Reading with CTranslate2: it gives the last layer of a BERT, of which vectors, labels and guesses are made."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import ctranslate2
import numpy as np

from regard.encode.classify import TextLabeller
from regard.encode.embed import Ids, Pool, TextReader
from regard.encode.fill import Likeliest, TextFiller
from regard.fast.converted_cache import ConvertedModel, Files
from regard.fast.heads import Array, LabelHead, WordHead
from regard.fast.loaded_models import Loaded
from regard.system.threads import cores
from regard.text.tokenizers.tokenizer import BEGIN, END, MASK, PAD, Tokenizer

T = TypeVar("T")
# Tokens in a batch: few enough for every thread to have one.
_TOKENS = 2048


class FastReader(TextReader):
    """A model folder's BERT, run by CTranslate2. `precision` is float32 or int8, and may be changed at any time."""

    def __init__(
        self,
        model: ConvertedModel,
        tokenizer: Tokenizer,
        *,
        width: int,
        longest: int,
        threads: int,
        precision: str,
    ) -> None:
        """One copy of the model is loaded for each precision, on first use, and shared by all threads."""
        super().__init__(tokenizer, width=width, longest=longest, batch_tokens=_TOKENS)
        self.threads = threads or cores()
        self.precision = precision
        self._model = model
        self._engines: Loaded[ctranslate2.Encoder] = Loaded()

    def _vectors(self, rows: Sequence[Ids], pool: Pool) -> Array:
        hidden_BTW = self._hidden(rows)
        if pool == "first":
            return hidden_BTW[:, 0]
        lengths_B = np.array([len(row) + 2 for row in rows], np.float32)
        real_BT = np.arange(hidden_BTW.shape[1]) < lengths_B[:, None]
        mean_BW: Array = np.where(real_BT[..., None], hidden_BTW, 0).sum(1) / lengths_B[:, None]
        return mean_BW

    def _mapped(
        self, read: Callable[[Sequence[Ids]], Sequence[T]], batches: Sequence[Sequence[Ids]]
    ) -> Iterator[Sequence[T]]:
        """As many batches at a time as there are threads."""
        if not batches:
            return
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(read, batches)

    def _hidden(self, rows: Sequence[Ids]) -> Array:
        """The last layer, hidden_BTW. Behind the end of a text stands anything."""
        lengths = [len(row) + 2 for row in rows]
        ids_BT = np.full((len(rows), max(lengths)), PAD, np.int32)
        for n, row in enumerate(rows):
            ids_BT[n, : lengths[n]] = [BEGIN, *row, END]
        view = ctranslate2.StorageView.from_array
        output = self._engine().forward_batch(view(ids_BT), view(np.array(lengths, np.int32)))
        return np.array(output.last_hidden_state, np.float32)

    def _engine(self) -> "ctranslate2.Encoder":
        precision = self.precision

        def load(files: Path | Files) -> "ctranslate2.Encoder":
            return ctranslate2.Encoder(
                str(files) if isinstance(files, Path) else "model",
                files=files if isinstance(files, dict) else None,
                compute_type=precision,
                inter_threads=self.threads,
                intra_threads=1,
                max_queued_batches=-1,
            )

        return self._engines.get(precision, lambda: self._model.load(precision, load))


class FastLabeller(FastReader, TextLabeller):
    """A classifier."""

    def __init__(self, *given: Any, head: Callable[[], LabelHead], labels: Sequence[str], **settings: Any) -> None:
        """`labels` in the order in which the `head` scores them, which is opened when needed; the rest as for a FastReader."""
        super().__init__(*given, **settings)
        self.labels = list(labels)
        self._open_head = head
        self._heads: Loaded[LabelHead] = Loaded()

    @property
    def _head(self) -> LabelHead:
        return self._heads.get("head", self._open_head)

    def _chances(self, rows: Sequence[Ids]) -> list[list[float]]:
        chances: list[list[float]] = self._head.chances(self._hidden(rows)[:, 0]).tolist()
        return chances


class FastFiller(FastReader, TextFiller):
    """A model that guesses hidden words."""

    def __init__(self, *given: Any, head: Callable[[], WordHead], guesses: bool, **settings: Any) -> None:
        """`head` is opened when needed, if the model `guesses` at all; the rest as for a FastReader."""
        super().__init__(*given, **settings)
        self.guesses = guesses and self.tokenizer.mask is not None
        self._open_head = head
        self._heads: Loaded[WordHead] = Loaded()

    @property
    def _head(self) -> WordHead:
        return self._heads.get("head", self._open_head)

    def _likeliest(self, rows: Sequence[Ids], top: int) -> list[list[Likeliest]]:
        found: list[list[Likeliest]] = [[] for _ in rows]
        places = [(n, place) for n, row in enumerate(rows) for place, word in enumerate(row, 1) if word == MASK]
        if not places:
            return found
        row_N, place_N = np.array(places).T
        chance_NV = self._head.chances(self._hidden(rows)[row_N, place_N])
        chance_NV[:, : MASK + 1] = 0  # what is no word is no answer
        top = min(top, chance_NV.shape[1] - MASK - 1)
        best_NK = np.argsort(-chance_NV, axis=1, kind="stable")[:, :top]
        for (n, _), best, chances in zip(places, best_NK, chance_NV, strict=True):
            found[n].append([(int(word), float(chances[word])) for word in best])
        return found
