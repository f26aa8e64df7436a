"""WordPiece, the tokenizer of published BERTs: text is cleaned and cut at spaces and punctuation, words into pieces.

The work is done by the `tokenizers` library, so that an imported model reads exactly what it was trained to read. The
ids are Regard's: the special ones first, then the mask, then the others in the order they were published in.
"""

import json
from collections.abc import Sequence

from tokenizers import AddedToken, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine

from regard.system import files
from regard.text.tokenizers.tokenizer import MASKED, SPACE, SPECIALS, UNKNOWN, Tokenizer, texts_of

CONTINUES = "##"
LONGEST_WORD = 100  # characters; a longer one is unknown


class WordPiece(Tokenizer):
    """Pieces of a published vocabulary. Spaces and, in some, capitals and accents are lost: it is for reading only."""

    file_name = "wordpiece.json"

    def __init__(self, words: Sequence[str], *, lowercase: bool, strip_accents: bool, split_chinese: bool) -> None:
        """`words` come after the special ids and the mask; one that begins with ## continues the piece before it."""
        self._words = [*SPECIALS, MASKED, *words]
        self._options = {"strip_accents": strip_accents, "split_chinese": split_chinese}
        ids = {word: i for i, word in enumerate(self._words)}
        # The special ids keep their names, even if the vocabulary has such words too.
        ids |= {name: i for i, name in enumerate((*SPECIALS, MASKED))}
        self._engine = Engine(
            models.WordPiece(
                vocab=ids,
                unk_token=SPECIALS[UNKNOWN],
                continuing_subword_prefix=CONTINUES,
                max_input_chars_per_word=LONGEST_WORD,
            )
        )
        # The base class would lower-case in Python's way; here it is done in BERT's.
        self._engine.normalizer = normalizers.BertNormalizer(
            clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
        )
        self._engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._engine.add_special_tokens([AddedToken(MASKED, normalized=False)])

    @classmethod
    def from_bytes(cls, content: bytes, *, lowercase: bool) -> "WordPiece":
        """What `as_bytes` gave."""
        table = files.parsed(content)
        return cls(
            texts_of(table["words"]),
            lowercase=lowercase,
            strip_accents=bool(table["strip_accents"]),
            split_chinese=bool(table["split_chinese"]),
        )

    @property
    def size(self) -> int:
        return len(self._words)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        first = len(SPECIALS) + 1
        return [self._words[int(i)] if int(i) < first else _marked(self._words[int(i)]) for i in ids]

    def as_bytes(self) -> bytes:
        content = {**self._options, "words": self._words[len(SPECIALS) + 1 :]}
        return json.dumps(content, ensure_ascii=False, indent=0).encode()

    def _encode(self, texts: list[str], threads: int) -> list[list[int]]:
        # One by one: the engine's batches would start threads of their own beside those of training.
        return [list(self._engine.encode(text, add_special_tokens=False).ids) for text in texts]

    def _decode(self, ids: list[int]) -> str:
        text = "".join(" \u2047" if i == UNKNOWN else piece for i, piece in zip(ids, self.pieces(ids), strict=True))
        return text.replace(SPACE, " ").strip(" ")


def _marked(word: str) -> str:
    """A piece in Regard's way of writing: the mark of a space where a word begins, nothing where one goes on."""
    return word.removeprefix(CONTINUES) if word.startswith(CONTINUES) and word != CONTINUES else SPACE + word
