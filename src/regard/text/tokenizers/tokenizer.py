"""Text <-> ids. One contract for subwords (SentencePiece), words and characters; each is stored in the model folder.

The first four ids are the same everywhere: padding, unknown, begin and end of a sentence.
"""

import io
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from random import Random

import sentencepiece

from regard.config import TextConfig
from regard.errors import ConfigError, DataError, FolderError
from regard.system import files
from regard.text.arguments import mended
from regard.text.tokenizers.subword_sampling import BpeDropout, UnigramSampling

PAD, UNKNOWN, BEGIN, END = range(4)
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
# Where a word is hidden, for models that guess it: the first id after these, if the tokenizer has it at all.
MASK, MASKED = len(SPECIALS), "<mask>"

# Subword models mark a space by this character inside a piece; words and characters borrow the mark.
SPACE = "\u2581"
# A line break inside a text, which subword models would otherwise read as a space.
BREAK = "\u2424"
_WORD = re.compile(r"\s?(?:\w+'|\w+|[^\w\s])")
# Stands for MASKED while words and characters are cut, as one character that is a word by itself.
_ONE = "\ue000"


class Tokenizer(ABC):
    """Text -> ids and back, with a vocabulary shared by both languages."""

    file_name: str
    lowercase: bool = False

    @property
    @abstractmethod
    def size(self) -> int:
        """How many ids there are, the four special ones included."""

    @property
    def cuts_words_alone(self) -> bool:
        """Whether a text's ids are those of its words, one after the other, if single spaces part them."""
        return False

    @property
    def mask(self) -> int | None:
        """The id of a hidden word, which a text writes as <mask>; None if the tokenizer was learned without it.

        It takes the space before it along, as the word would that it hides.
        """
        return MASK if self.size > MASK and self.pieces([MASK]) == [MASKED] else None

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each id as the text it stands for, a leading space written as the mark above."""

    @abstractmethod
    def as_bytes(self) -> bytes:
        """What the model folder stores."""

    @abstractmethod
    def _encode(self, texts: list[str], threads: int) -> list[list[int]]: ...

    @abstractmethod
    def _decode(self, ids: list[int]) -> str: ...

    def encode(self, texts: Sequence[str], *, threads: int = 1) -> list[list[int]]:
        """Ids of each text, without begin and end; the same ones however many threads find them."""
        whole = [mended(text) for text in texts]  # whoever gives them: SentencePiece refuses lone surrogates
        return self._encode([text.lower() for text in whole] if self.lowercase else whole, threads)

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
        known = self._processor
        if [known.pad_id(), known.unk_id(), known.bos_id(), known.eos_id()] != [PAD, UNKNOWN, BEGIN, END]:
            raise ValueError("its special pieces are not where Regard has them")
        known.IdToPiece(list(range(self.size)))  # an error if one is no text, and that in half a millisecond
        known.Decode([UNKNOWN])
        self._kind = kind
        self._break = self._id(BREAK)
        self._space = self._id(SPACE)

    def _id(self, piece: str) -> int | None:
        found = int(self._processor.PieceToId(piece))
        return None if found == UNKNOWN else found

    # What follows is for sampled cuts alone, and takes longer than all the rest of loading.

    @cached_property
    def _ids(self) -> dict[str, int]:
        ordinary = (i for i in range(len(SPECIALS), self.size) if not self._processor.IsByte(i))
        return {str(self._processor.IdToPiece(i)): i for i in ordinary}

    @cached_property
    def _bytes(self) -> list[int]:
        return [i for i in range(len(SPECIALS), self.size) if self._processor.IsByte(i)]

    @cached_property
    def _cutter(self) -> BpeDropout | UnigramSampling:
        scores = {piece: float(self._processor.GetScore(i)) for piece, i in self._ids.items()}
        return BpeDropout(scores) if self._kind == "bpe" else UnigramSampling(scores)

    @classmethod
    def learn(cls, sentences: Iterable[str], config: TextConfig, *, mask: bool = False) -> "Subwords":
        """Learn from text. A vocabulary larger than the text can fill is made as large as it can be."""
        lines = list(sentences)
        vocabulary = config.vocabulary
        try:
            return cls(cls._learn(lines, config, vocabulary, mask), config.tokenizer, lowercase=config.lowercase)
        except RuntimeError as error:
            if possible := re.search(r"value <= (\d+)", str(error)):
                largest = cls._learn(lines, config, int(possible[1]), mask)
                return cls(largest, config.tokenizer, lowercase=config.lowercase)
            if needed := re.search(r"required_chars. \d+ vs (\d+)", str(error)):
                raise DataError(
                    f"text.vocabulary {vocabulary} is smaller than the {needed[1]} different characters of the text. "
                    f"Set text.vocabulary to {2 * int(needed[1])} or more."
                ) from None
            raise DataError(f"No tokenizer could be learned from this text: {error}") from None

    @staticmethod
    def _learn(lines: list[str], config: TextConfig, vocabulary: int, mask: bool) -> bytes:
        written = io.BytesIO()
        marks = [MASKED] * mask + [BREAK] * any("\n" in line for line in lines)
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=(line.lower() if config.lowercase else line for line in map(str.strip, lines)),
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
            user_defined_symbols=marks,
            unk_surface="\u2047",
            max_sentence_length=1 << 20,
            num_threads=4,  # fixed, so that the model does not depend on the machine
            minloglevel=2,
        )
        return written.getvalue()

    @property
    def size(self) -> int:
        return int(self._processor.GetPieceSize())

    @property
    def cuts_words_alone(self) -> bool:
        # Not so with unigram: which of two cuts is likelier may hang on how the sum of a whole text is rounded.
        return self._kind == "bpe" and self._space is not None

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [str(self._processor.IdToPiece(int(i))) for i in ids]

    def as_bytes(self) -> bytes:
        return self._model

    def _encode(self, texts: list[str], threads: int) -> list[list[int]]:
        if self._break is None or not any("\n" in text for text in texts):
            encoded: list[list[int]] = self._processor.Encode(texts, out_type=int, num_threads=threads)
        else:
            encoded = [self._encode_lines(text.split("\n"), self._break) for text in texts]
        return encoded if self.mask is None else [self._join_masks(ids) for ids in encoded]

    def _join_masks(self, ids: list[int]) -> list[int]:
        # SentencePiece leaves the space before a mark alone; the word that is hidden would have had it.
        pairs = zip(ids, [*ids[1:], END], strict=False)  # a text may have no ids at all
        return [i for i, following in pairs if not (i == self._space and following == MASK)]

    def _encode_lines(self, lines: list[str], line_break: int) -> list[int]:
        # Line by line, so that a word is cut alike at the beginning of a line and of a text.
        first, *others = self._processor.Encode(lines, out_type=int, num_threads=1)
        return [*first, *(i for ids in others for i in (line_break, *ids))]

    def _decode(self, ids: list[int]) -> str:
        lines: list[list[int]] = [[]]
        for i in ids:
            if i == self._break:
                lines.append([])
            else:
                lines[-1].append(i)
        return "\n".join(str(self._processor.Decode(line)) for line in lines)

    def sample(self, texts: Sequence[str], amount: float, seed: int) -> list[list[int]]:
        random, whole = Random(seed), map(mended, texts)
        return [self._sample(text.lower() if self.lowercase else text, amount, random) for text in whole]

    def _sample(self, text: str, amount: float, random: Random) -> list[int]:
        ids: list[int] = []
        # Pieces begin with the mark of a space or hold none, so that each word can be cut by itself.
        for word in re.findall(f"{SPACE}?[^{SPACE}]+|{SPACE}", self._processor.Normalize(text)):
            for piece in self._cutter.cut(word, amount, random):
                known = self._ids.get(piece)
                if known is not None:
                    ids.append(known)
                else:
                    ids.extend(self._spelled(piece, after_unknown=bool(ids) and ids[-1] == UNKNOWN))
        return ids

    def _spelled(self, piece: str, *, after_unknown: bool) -> list[int]:
        """What stands for a piece that the vocabulary does not hold."""
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
        if self.mask is not None:
            self._ids |= {_ONE: MASK, SPACE + _ONE: MASK}

    @classmethod
    def learn(cls, sentences: Iterable[str], config: TextConfig, *, mask: bool = False) -> "Listed":
        """Count symbols; the vocabulary keeps the most frequent."""
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(cut(config.tokenizer, sentence.lower() if config.lowercase else sentence))
        ranked = sorted(counts, key=lambda symbol: (-counts[symbol], symbol))
        symbols = [MASKED] * mask + ranked
        return cls(config.tokenizer, symbols[: config.vocabulary - len(SPECIALS)], lowercase=config.lowercase)

    @classmethod
    def from_bytes(cls, content: bytes, *, lowercase: bool = False) -> "Listed":
        """What `as_bytes` gave."""
        table = files.parsed(content)
        if table["kind"] not in ("words", "characters"):
            raise ValueError(f"its kind is {table['kind']!r:.40}")
        return cls(table["kind"], texts_of(table["symbols"]), lowercase=lowercase)

    @property
    def size(self) -> int:
        return len(self._symbols)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._symbols[int(i)] for i in ids]

    def as_bytes(self) -> bytes:
        content = {"kind": self.kind, "symbols": self._symbols[len(SPECIALS) :]}
        return json.dumps(content, ensure_ascii=False, indent=0).encode()

    def _encode(self, texts: list[str], threads: int) -> list[list[int]]:
        if self.mask is not None:
            texts = [text.replace(MASKED, _ONE) for text in texts]
        return [[self._ids.get(symbol, UNKNOWN) for symbol in cut(self.kind, text)] for text in texts]

    def _decode(self, ids: list[int]) -> str:
        text = "".join("\u2047" if i == UNKNOWN else self._symbols[i] for i in ids)
        if self.kind == "characters":
            return text.replace(SPACE, " ")
        return "\n".join(line.strip(" ") for line in text.replace(SPACE, " ").split("\n"))


def cut(kind: str, text: str) -> list[str]:
    """Cut text into symbols that join to the same text again.

    >>> cut("words", "L'animal dort.")
    ["▁L'", 'animal', '▁dort', '.']
    """
    if kind == "characters":
        return list(text.replace(" ", SPACE))
    lines = [_WORD.findall(" " + " ".join(line.split())) for line in text.split("\n")]
    symbols = [symbol for line in lines for symbol in ("\n", *line)][1:]
    return [symbol.replace(" ", SPACE) for symbol in symbols]


def texts_of(stored: object) -> list[str]:
    """A list of texts out of a file."""
    if not isinstance(stored, list) or not all(isinstance(one, str) for one in stored):
        raise ValueError("its vocabulary is not a list of texts")
    return stored


def learn_tokenizer(sentences: Iterable[str], config: TextConfig, *, mask: bool = False) -> Tokenizer:
    """The tokenizer that `text.tokenizer` names, learned from these sentences; with `mask`, it can hide words."""
    if config.tokenizer == "wordpiece":
        raise ConfigError("text.tokenizer=wordpiece is for imported models, and is not learned. Use bpe or unigram.")
    kind = Subwords if config.tokenizer in ("bpe", "unigram") else Listed
    return kind.learn(sentences, config, mask=mask)


def load_tokenizer(folder: Path, config: TextConfig) -> Tokenizer:
    """The tokenizer a model folder holds."""
    if config.tokenizer == "wordpiece":
        # Its library is of no use to other models, and would make them wait.
        from regard.text.tokenizers.wordpiece import WordPiece

        return _loaded(folder, WordPiece, lambda content: WordPiece.from_bytes(content, lowercase=config.lowercase))
    if config.tokenizer in ("bpe", "unigram"):
        kind, lowercase = config.tokenizer, config.lowercase
        return _loaded(folder, Subwords, lambda content: Subwords(content, kind, lowercase=lowercase))
    return _loaded(folder, Listed, lambda content: Listed.from_bytes(content, lowercase=config.lowercase))


def _loaded(folder: Path, kind: type[Tokenizer], made: Callable[[bytes], Tokenizer]) -> Tokenizer:
    path = folder / kind.file_name
    try:
        return made(files.content(path))
    except FileNotFoundError:
        raise FolderError(f"{path} is missing, so {folder} is not a whole model folder. Copy it again.") from None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise FolderError(f"{path} cannot be read as a tokenizer ({error}). Copy the folder again.") from None
