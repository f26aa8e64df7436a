"""The words a translation may need, known from its source: a few hundred, where the vocabulary has ten thousand.

For a small model the scores over the vocabulary are most of the work of translating. Only these are scored: the
likeliest translations of every source token (IBM Model 1, learned from the training text), the source tokens themselves
(names and numbers are copied), the target language's most frequent tokens, which any sentence may need, and the special
tokens, which no sentence may do without or which the rules of writing forbid.

Shape letters: V vocabulary · N likeliest translations · F frequent tokens · C candidates.
"""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from regard.config import LONGEST_SHORTLIST
from regard.errors import FolderError, StorageError
from regard.system import files, storage
from regard.text.alignment import Ids, Lexicon, learn_lexicon
from regard.text.batching.bucketing import shuffled
from regard.text.shards.pair_shards import Shards
from regard.text.tokenizers.tokenizer import PAD, SPECIALS, Tokenizer

FILE = "shortlist.safetensors"
TOKENS = Path("cache", "tokens", "train")
MOST = LONGEST_SHORTLIST
"""Translations of a token that are stored; a search asks for as many of them as it likes."""
FREQUENT = 100
"""Target tokens that are always candidates."""


class Shortlist:
    """Which target tokens are candidates, given a source."""

    def __init__(self, likeliest_VN: npt.NDArray[np.int32], frequent_F: npt.NDArray[np.int32]) -> None:
        """`likeliest_VN`: each token's translations, the likeliest first and padding where there are no more."""
        self.likeliest_VN = likeliest_VN
        self.frequent_F = frequent_F

    def candidates(self, ids: Iterable[int], most: int, prefix: Iterable[int] = ()) -> npt.NDArray[np.int64]:
        """What a translation of these source tokens may consist of, in the vocabulary's order.

        That is the special tokens, the frequent ones, and for each source token itself and its `most` likeliest
        translations; and the prefix, if there is one, as it must be written.
        """
        source = np.fromiter(ids, np.int64)
        listed = self.likeliest_VN[source, :most].ravel()
        wanted = (np.arange(len(SPECIALS)), source, listed, self.frequent_F, np.fromiter(prefix, np.int64))
        return np.unique(np.concatenate(wanted, dtype=np.int64))

    def vocabulary_map(self, names: Sequence[str], most: int) -> str:
        """The same as the text of CTranslate2's vmap.txt: source TAB candidates, and no source for those of any."""
        always = "\t" + " ".join(names[token] for token in self.candidates([], most))
        rows = (
            f"{name}\t{' '.join(names[other] for other in (token, *row[row != PAD]))}"
            for token, (name, row) in enumerate(zip(names, self.likeliest_VN[:, :most], strict=True))
        )
        return "\n".join((always, *rows)) + "\n"

    def as_bytes(self, tokenizer: Tokenizer) -> bytes:
        """What the model folder stores."""
        tensors = {"likeliest": self.likeliest_VN, "frequent": self.frequent_F}
        return safetensors.numpy.save(tensors, metadata={"tokenizer": _digest(tokenizer)})


def open_shortlist(folder: Path, tokenizer: Tokenizer) -> Shortlist:
    """The shortlist of a model folder; the first time it is learned from the folder's training tokens, and kept."""
    if stored := _load(folder / FILE, tokenizer):
        return stored
    if not (folder / TOKENS).is_dir():
        raise FolderError(
            f"{folder} has no {FILE} that fits its tokenizer, and its training tokens, {folder / TOKENS}, from which "
            "one is learned, are gone. Translate without --shortlist, or copy the file or the tokens from where the "
            "model was trained."
        )
    log = logging.getLogger(__name__)
    log.warning(
        "Learning once which words translate which, for %s; this takes seconds, at most a minute.", folder / FILE
    )
    shortlist = learn_shortlist(Shards(folder / TOKENS), tokenizer.size)
    try:
        storage.write_file(folder / FILE, shortlist.as_bytes(tokenizer))
    except StorageError as error:
        log.warning("The shortlist is used, but not kept. %s", error)
    return shortlist


def learn_shortlist(shards: Shards, vocabulary: int) -> Shortlist:
    """A shortlist from training pairs; of a text too large for the lexicon, from pairs drawn evenly."""
    order = shuffled(len(shards), np.random.default_rng(1))
    count_V = np.zeros(vocabulary, np.int64)

    def pairs() -> Iterable[tuple[Ids, Ids]]:
        for number in order:
            source, target = shards.ids(int(number))
            np.add.at(count_V, target, 1)
            yield source, target

    lexicon = learn_lexicon(pairs())
    frequent = np.argsort(-count_V, kind="stable")[:FREQUENT]
    return Shortlist(_likeliest(lexicon, vocabulary), frequent[count_V[frequent] > 0].astype(np.int32))


def _likeliest(lexicon: Lexicon, vocabulary: int) -> npt.NDArray[np.int32]:
    """Each source word's likeliest translations, at most MOST of them, in a row of its own."""
    order_K = np.lexsort((-lexicon.probability_K, lexicon.source_K))
    source_K = lexicon.source_K[order_K]
    rank_K = np.arange(len(source_K)) - np.searchsorted(source_K, source_K)
    kept = rank_K < MOST
    likeliest_VN = np.full((vocabulary, MOST), PAD, np.int32)
    likeliest_VN[source_K[kept], rank_K[kept]] = lexicon.target_K[order_K][kept]
    # What came from no word is not a translation of padding.
    likeliest_VN[PAD] = PAD
    return likeliest_VN


def _load(path: Path, tokenizer: Tokenizer) -> Shortlist | None:
    """What is stored, if it is of this tokenizer; a folder trained again may have another."""
    if not path.exists():
        return None
    try:
        with safetensors.safe_open(files.tensors(path), framework="numpy") as file:
            if file.metadata()["tokenizer"] != _digest(tokenizer):
                return None
            for name, dimensions in (("likeliest", 2), ("frequent", 1)):
                kind, shape = file.get_slice(name).get_dtype(), file.get_slice(name).get_shape()
                if kind != "I32" or len(shape) != dimensions or max(shape) > max(MOST, tokenizer.size):
                    raise ValueError(f"{name} is {kind} {shape}")
            likeliest_VN, frequent_F = file.get_tensor("likeliest"), file.get_tensor("frequent")
        for ids in (likeliest_VN, frequent_F):
            if ids.size and not 0 <= ids.min() <= ids.max() < tokenizer.size:
                raise ValueError("it names tokens that there are not")
        if len(likeliest_VN) != tokenizer.size:
            raise ValueError(f"it is of {len(likeliest_VN)} tokens, not {tokenizer.size}")
        return Shortlist(likeliest_VN, frequent_F)
    except (OSError, ValueError, safetensors.SafetensorError, TypeError, KeyError) as error:
        raise FolderError(f"{path} is damaged ({error}). Delete it; it is learned again from the tokens.") from None


def _digest(tokenizer: Tokenizer) -> str:
    return hashlib.blake2b(tokenizer.as_bytes(), digest_size=16).hexdigest()
