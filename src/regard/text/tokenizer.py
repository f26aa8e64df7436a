"""Text <-> ids. One contract for subwords (SentencePiece), words and characters; each is stored in the model folder.

The first four ids are the same everywhere: padding, unknown, begin and end of a sentence.
"""

import io
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import sentencepiece

from regard.config import TextConfig
from regard.errors import DataError, FolderError
from regard.text.cuts import BpeDropout, UnigramSampling

PAD, UNKNOWN, BEGIN, END = range(4)
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")

# Subword models mark a space by this character inside a piece; words and characters borrow the mark.
SPACE = "\u2581"
_WORD = re.compile(r"\s?(?:\w+'|\w+|[^\w\s])")


class Tokenizer(ABC):
    """Text -> ids and back, with a vocabulary shared by both languages."""

    file_name: str
    lowercase: bool = False

    @property
    @abstractmethod
    def size(self) -> int:
        """How many ids there are, the four special ones included."""

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as the text it stands for, a leading space written as the mark above."""

    @abstractmethod
    def as_bytes(self) -> bytes:
        """What the model folder stores."""

    @abstractmethod
    def _encode(self, texts: list[str]) -> list[list[int]]: ...

    @abstractmethod
    def _decode(self, ids: list[int]) -> str: ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without begin and end."""
        return self._encode([text.lower() for text in texts] if self.lowercase else list(texts))

    def decode(self, ids: Sequence[int]) -> str:
        """The text; special ids but the unknown word are left out."""
        return self._decode([i for i in ids if i not in (PAD, BEGIN, END)])

    def sample(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        """Ids of each text, cut at random where the tokenizer can; a pure function of its arguments."""
        raise DataError("Only subword tokenizers can vary their cut; leave text.sampling at 0.")


class Subwords(Tokenizer):
    """SentencePiece, BPE or unigram: subwords straight from raw text, and back without loss."""

    file_name = "tokenizer.model"

    def __init__(self, model: bytes, kind: str, *, lowercase: bool = False) -> None:
        self._model = model
        self.lowercase = lowercase
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        if self.size <= len(SPECIALS):
            raise ValueError("it has no pieces")  # an empty file is a valid, if useless, protocol buffer
        ordinary = [i for i in range(len(SPECIALS), self.size) if not self._processor.IsByte(i)]
        self._ids = {str(self._processor.IdToPiece(i)): i for i in ordinary}
        self._bytes = [i for i in range(len(SPECIALS), self.size) if self._processor.IsByte(i)]
        scores = {piece: float(self._processor.GetScore(i)) for piece, i in self._ids.items()}
        self._cutter = BpeDropout(scores) if kind == "bpe" else UnigramSampling(scores)

    @classmethod
    def learn(cls, sentences: Iterable[str], config: TextConfig) -> "Subwords":
        """Learn from text. A vocabulary larger than the text can fill is made as large as it can be."""
        lines = list(sentences)
        vocabulary = config.vocabulary
        try:
            return cls(cls._learn(lines, config, vocabulary), config.tokenizer, lowercase=config.lowercase)
        except RuntimeError as error:
            if possible := re.search(r"value <= (\d+)", str(error)):
                return cls(cls._learn(lines, config, int(possible[1])), config.tokenizer, lowercase=config.lowercase)
            if needed := re.search(r"required_chars. \d+ vs (\d+)", str(error)):
                raise DataError(
                    f"text.vocabulary {vocabulary} is smaller than the {needed[1]} different characters of the text. "
                    f"Set text.vocabulary to {2 * int(needed[1])} or more."
                ) from None
            raise DataError(f"No tokenizer could be learned from this text: {error}") from None

    @staticmethod
    def _learn(lines: list[str], config: TextConfig, vocabulary: int) -> bytes:
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter([line.lower() for line in lines] if config.lowercase else lines),
            model_writer=written,
            model_type=config.tokenizer,
            vocab_size=vocabulary,
            # Rarer characters of large scripts become unknown rather than crowd out words.
            character_coverage=0.9995 if config.byte_fallback else 0.9999,
            normalization_rule_name="nmt_nfkc" if config.normalize == "nfkc" else "identity",
            remove_extra_whitespaces=config.normalize == "nfkc",
            byte_fallback=config.byte_fallback,
            pad_id=PAD,
            unk_id=UNKNOWN,
            bos_id=BEGIN,
            eos_id=END,
            pad_piece=SPECIALS[PAD],
            unk_surface="\u2047",
            max_sentence_length=1 << 20,
            num_threads=4,  # fixed, so that the model does not depend on the machine
            minloglevel=2,
        )
        return written.getvalue()

    @property
    def size(self) -> int:
        return int(self._processor.GetPieceSize())

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [str(self._processor.IdToPiece(int(i))) for i in ids]

    def as_bytes(self) -> bytes:
        return self._model

    def _encode(self, texts: list[str]) -> list[list[int]]:
        # One thread: this runs beside training, and the ids must not depend on the machine.
        encoded: list[list[int]] = self._processor.Encode(texts, out_type=int, num_threads=1)
        return encoded

    def _decode(self, ids: list[int]) -> str:
        return str(self._processor.Decode(ids))

    def sample(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        random = Random(seed)
        return [self._sample(text.lower() if self.lowercase else text, amount, random) for text in texts]

    def _sample(self, text: str, amount: float, random: Random) -> list[int]:
        ids: list[int] = []
        # Pieces begin with the mark of a space or hold none, so that each word can be cut by itself.
        for word in re.findall(f"{SPACE}?[^{SPACE}]+|{SPACE}", self._processor.Normalize(text)):
            for piece in self._cutter.cut(word, amount, random):
                ids.extend(self._piece_ids(piece, after_unknown=bool(ids) and ids[-1] == UNKNOWN))
        return ids

    def _piece_ids(self, piece: str, *, after_unknown: bool) -> list[int]:
        if piece in self._ids:
            return [self._ids[piece]]
        if self._bytes:
            return [self._bytes[byte] for byte in piece.encode()]
        return [] if after_unknown else [UNKNOWN]  # as SentencePiece does: one mark for a run of them


class Listed(Tokenizer):
    """A plain list of symbols, the most frequent first: whole words, or characters. For small tasks."""

    file_name = "tokenizer.json"

    def __init__(self, kind: str, symbols: Sequence[str], *, lowercase: bool = False) -> None:
        self.kind = kind
        self.lowercase = lowercase
        self._symbols = [*SPECIALS, *symbols]
        self._ids = {symbol: i for i, symbol in enumerate(self._symbols)}

    @classmethod
    def learn(cls, sentences: Iterable[str], config: TextConfig) -> "Listed":
        """Count symbols; the vocabulary keeps the most frequent."""
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(cut(config.tokenizer, sentence.lower() if config.lowercase else sentence))
        ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        return cls(config.tokenizer, ranked[: config.vocabulary - len(SPECIALS)], lowercase=config.lowercase)

    @property
    def size(self) -> int:
        return len(self._symbols)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._symbols[int(i)] for i in ids]

    def as_bytes(self) -> bytes:
        content = {"kind": self.kind, "symbols": self._symbols[len(SPECIALS) :]}
        return json.dumps(content, ensure_ascii=False, indent=0).encode()

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return [[self._ids.get(symbol, UNKNOWN) for symbol in cut(self.kind, text)] for text in texts]

    def _decode(self, ids: list[int]) -> str:
        text = "".join("\u2047" if i == UNKNOWN else self._symbols[i] for i in ids)
        return text.replace(SPACE, " ").strip(" ") if self.kind == "words" else text.replace(SPACE, " ")


def cut(kind: str, text: str) -> list[str]:
    """Cut text into symbols that join to the same text again.

    >>> cut("words", "L'animal dort.")
    ["▁L'", 'animal', '▁dort', '.']
    """
    if kind == "characters":
        return list(text.replace(" ", SPACE))
    return [symbol.replace(" ", SPACE) for symbol in _WORD.findall(" " + " ".join(text.split()))]


def learn_tokenizer(sentences: Iterable[str], config: TextConfig) -> Tokenizer:
    """The tokenizer that `text.tokenizer` names, learned from these sentences."""
    kind = Subwords if config.tokenizer in ("bpe", "unigram") else Listed
    return kind.learn(sentences, config)


def load_tokenizer(folder: Path, config: TextConfig) -> Tokenizer:
    """The tokenizer a model folder holds."""
    kind = Subwords if config.tokenizer in ("bpe", "unigram") else Listed
    path = folder / kind.file_name
    try:
        content = path.read_bytes()
        if kind is Subwords:
            return Subwords(content, config.tokenizer, lowercase=config.lowercase)
        table = json.loads(content)
        return Listed(str(table["kind"]), [str(symbol) for symbol in table["symbols"]], lowercase=config.lowercase)
    except FileNotFoundError:
        raise FolderError(f"{path} is missing, so {folder} is not a whole model folder. Copy it again.") from None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise FolderError(f"{path} cannot be read as a tokenizer ({error}). Copy the folder again.") from None
