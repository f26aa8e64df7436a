"""A BERT published in Hugging Face's format -> a model folder.

Nothing in it is executed: settings and vocabulary are JSON and text, weights are safetensors. The vocabulary is put in
Regard's order, the special ids and the mask first, and so are the rows of the tensors that go by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.config import BertConfig, ClassifierConfig, Config, TextConfig
from regard.errors import ConfigError, FolderError
from regard.folder import layout
from regard.folder.weights import save_weights, shapes_of, weights_of
from regard.interop.published import Published, open_published
from regard.models import build
from regard.system import files, storage
from regard.text.tokenizers.wordpiece import CONTINUES, WordPiece

Table = dict[str, Any]

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
LABELLED = "BertForSequenceClassification"
_FOLLOWS = "cls.seq_relationship.weight"
# What is there twice: words are guessed by the vectors they are read by.
_TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Regard's first five ids, and what they are called in a published vocabulary unless it says otherwise.
SPECIAL_NAMES = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
MOST_WORDS, MOST_WITHOUT = 1_000_000, 100_000
"""Words of a vocabulary, and vectors beyond them that belong to no word."""
# Types of settings that may be left out, and what then holds; null is the same as left out.
DEFAULTS: Table = {
    "max_position_embeddings": 512, "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "architectures": [],
}  # fmt: skip
# The rows of these go by the vocabulary; and these are answers to whether a text follows, which stand the other way round.
BY_WORD = {"body.embedding.words.weight", "guesser.bias"}
TURNED = {"follower.weight", "follower.bias"}


class Imported(NamedTuple):
    """What came in."""

    config: Config
    heads: list[str]
    """Which of "words" (to guess hidden ones) and "next" (whether a text follows) came with it."""
    labels: list[str]
    """Of a classifier; else none."""
    parameters: int


def import_bert(source: Path, to: Path) -> Imported:
    """Write the BERT in the folder `source` to the new folder `to`."""
    layout.refuse_used(to)
    table = _checked(_json(source / "config.json"), source)
    with open_published(source) as published:
        words = (table["vocab_size"], table["hidden_size"])
        published.check({"embeddings.word_embeddings.weight": words})
        vocabulary = read_vocabulary(source, table["vocab_size"])
        labels = _labels(table, source)
        config = _config(table, vocabulary, source, labeller=bool(labels), follows=_FOLLOWS in published.shapes)
        names = _names(config, published.shapes)
        published.check_tied(_TIED)
        published.check_parts(names, shapes_of(config.model, len(vocabulary.words), len(labels)))
        model = build(config.model, len(vocabulary.words), len(labels))
        own = weights_of(model)
        _fill(own, names, published, vocabulary.order())
    # What was not published keeps its new weights, for training to form; `heads` tells which it is.
    heads = [name for name, part in (("words", "guesser.bias"), ("next", "follower.bias")) if part in names]
    parameters = sum(tensor.numel() for tensor in own.values())
    name = str(table.get("_name_or_path") or source.name)[:200]
    about: Table = {"job": "labelling" if labels else "masking", "imported": name, "parameters": parameters}
    about |= {"labels": labels} if labels else {"heads": heads}
    with storage.explained(to):
        to.mkdir(parents=True, exist_ok=True)
    tokenizer = vocabulary.tokenizer()
    storage.write_file(to / tokenizer.file_name, tokenizer.as_bytes())
    save_weights(to, own)
    layout.save_config(to, config, about)
    return Imported(config, heads, labels, parameters)


@dataclass(frozen=True)
class Vocabulary:
    """The words in their published order, and how text was cleaned for them."""

    words: list[str]
    specials: list[int]
    """Where Regard's first five ids stand."""
    lowercase: bool
    strip_accents: bool
    split_chinese: bool

    def order(self) -> list[int]:
        """The published id of each of Regard's ids."""
        special = set(self.specials)
        return self.specials + [i for i in range(len(self.words)) if i not in special]

    def tokenizer(self) -> WordPiece:
        """The same vocabulary in Regard's order."""
        words = [self.words[i] for i in self.order()[len(self.specials) :]]
        return WordPiece(
            words, lowercase=self.lowercase, strip_accents=self.strip_accents, split_chinese=self.split_chinese
        )


def _checked(table: Table, source: Path) -> Table:
    """The settings, if a Regard model can have them."""
    if table.get("model_type") != "bert":
        raise FolderError(f"{source} holds a model of type {table.get('model_type')!r}. Only bert can be imported.")
    only: dict[str, tuple[Any, ...]] = {
        "position_embedding_type": ("absolute", None),
        "is_decoder": (False, None),
        "type_vocab_size": (2, None),
        "hidden_act": (*ACTIVATIONS, None),
        "problem_type": ("single_label_classification", None),
    }
    for name, possible in only.items():
        if table.get(name) not in possible:
            known = ", ".join(str(value) for value in possible if value is not None)
            raise FolderError(f"{source}/config.json has {name} {table[name]!r}; Regard's BERT can have only {known}.")
    needed = ("vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
    if missing := [name for name in needed if type(table.get(name)) is not int or table[name] < 1]:
        raise FolderError(f"{source}/config.json does not tell {missing[0]}. Download the folder again.")
    if table["vocab_size"] > MOST_WORDS:
        raise FolderError(f"{source} has {table['vocab_size']:,} words; at most {MOST_WORDS:,} can be imported.")
    for name, default in DEFAULTS.items():
        if table.get(name) is None:
            table[name] = default
        kind = (int, float) if isinstance(default, float) else type(default)
        if not isinstance(table[name], kind) or isinstance(table[name], bool):
            raise FolderError(f"{source}/config.json has {name} {table[name]!r:.100}. Download the folder again.")
    return table


def _config(table: Table, vocabulary: Vocabulary, source: Path, *, labeller: bool, follows: bool) -> Config:
    longest = table["max_position_embeddings"]
    body: dict[str, Any] = {
        "width": table["hidden_size"],
        "heads": table["num_attention_heads"],
        "depth": table["num_hidden_layers"],
        "inner": table["intermediate_size"],
        "dropout": table["hidden_dropout_prob"],
        "activation": ACTIVATIONS[table["hidden_act"]],
        "longest": longest,
        "epsilon": table["layer_norm_eps"],
    }
    try:
        text = TextConfig(
            tokenizer="wordpiece",
            vocabulary=max(8, len(vocabulary.words)),
            lowercase=vocabulary.lowercase,
            longest=min(256, longest),
        )
        if labeller:
            return Config(text=text, model=ClassifierConfig(**body))
        return Config(text=text, model=BertConfig(**body, next_sentence=follows))
    except ConfigError as error:
        raise FolderError(f"{source}/config.json tells of no model that Regard can have: {error}") from None


def _labels(table: Table, source: Path) -> list[str]:
    """Names of the labels, if it is a model for whole texts."""
    if LABELLED not in table["architectures"]:
        return []
    names = table["id2label"]
    numbers = [str(number) for number in range(len(names))]
    if not names or set(names) != set(numbers) or not all(isinstance(name, str) for name in names.values()):
        raise FolderError(f"{source}/config.json names labels by {names!r:.100}. Number them from 0 in id2label.")
    return [names[number] for number in numbers]


# ------------------------------------------------------------------------------------------------------------- weights


def _names(config: Config, there: Mapping[str, Any]) -> dict[str, list[str]]:
    """Regard's name of each tensor, and the names of the published tensors it is made of."""
    names = {
        "body.embedding.words.weight": ["embeddings.word_embeddings.weight"],
        "body.embedding.positions.table.weight": ["embeddings.position_embeddings.weight"],
        "body.embedding.segments.weight": ["embeddings.token_type_embeddings.weight"],
        **_both("body.embedding.norm", "embeddings.LayerNorm"),
    }
    for n in range(config.model.depth):
        own, theirs = f"body.layers.{n}", f"encoder.layer.{n}"
        attention = [f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")]
        names |= _both(f"{own}.attention.project", *attention)
        names |= _both(f"{own}.attention.join", f"{theirs}.attention.output.dense")
        names |= _both(f"{own}.around_attention.norm", f"{theirs}.attention.output.LayerNorm")
        names |= _both(f"{own}.feed_forward.widen", f"{theirs}.intermediate.dense")
        names |= _both(f"{own}.feed_forward.narrow", f"{theirs}.output.dense")
        names |= _both(f"{own}.around_feed_forward.norm", f"{theirs}.output.LayerNorm")
    if "pooler.dense.weight" in there:
        names |= _both("body.pooler", "pooler.dense")
    if isinstance(config.model, ClassifierConfig):
        return names | _both("labels", "classifier")
    if "cls.predictions.bias" in there:
        names |= _both("guesser.dense", "cls.predictions.transform.dense")
        names |= _both("guesser.norm", "cls.predictions.transform.LayerNorm")
        names |= {"guesser.bias": ["cls.predictions.bias"]}
    if _FOLLOWS in there:
        names |= _both("follower", "cls.seq_relationship")
    return names


def _both(own: str, *theirs: str) -> dict[str, list[str]]:
    return {f"{own}.{kind}": [f"{name}.{kind}" for name in theirs] for kind in ("weight", "bias")}


def _fill(own: Mapping[str, torch.Tensor], names: dict[str, list[str]], published: Published, order: list[int]) -> None:
    """Copy what was published, one weight after the other, so that there is never more than one copy of all."""
    index = torch.tensor(order)
    for name, theirs in names.items():
        weight = torch.cat([published.get(part).float() for part in theirs])
        if name in BY_WORD:
            weight = weight[index]
        elif name in TURNED:
            weight = weight.flip(0)
        own[name].data.copy_(weight)


# ---------------------------------------------------------------------------------------------------------- vocabulary


def read_vocabulary(source: Path, size: int) -> Vocabulary:
    """The words of a published folder, filled up to `size`, and its settings for cleaning text."""
    whole, settings = (
        _json(path) if (path := source / name).exists() else {} for name in ("tokenizer.json", "tokenizer_config.json")
    )
    words = _words(source, whole, size)
    if len(words) > size:
        raise FolderError(f"{source} has {len(words):,} words but vectors for {size:,}. Download the folder again.")
    if size - len(words) > MOST_WITHOUT:
        raise FolderError(f"{source} has {len(words):,} words but vectors for {size:,}. Download the folder again.")
    # Some vocabularies were filled up to a round number; those vectors belong to no word.
    words += [f"[no word {number}]" for number in range(len(words), size)]
    places = {word: i for i, word in enumerate(words)}
    specials = [_name_of(settings, role, usual, source) for role, usual in SPECIAL_NAMES.items()]
    if missing := [name for name in specials if name not in places]:
        raise FolderError(
            f"{source} has no {missing[0]} in its vocabulary, so it is not BERT's. It cannot be imported."
        )
    if len(set(specials)) < len(specials):
        raise FolderError(
            f"{source} uses one token for several roles, which Regard's BERT cannot. It cannot be imported."
        )
    cleaning = whole.get("normalizer") or {}
    lowercase = bool(settings.get("do_lower_case", cleaning.get("lowercase", True)))
    accents = settings.get("strip_accents", cleaning.get("strip_accents"))
    return Vocabulary(
        words,
        [places[name] for name in specials],
        lowercase,
        strip_accents=lowercase if accents is None else bool(accents),
        split_chinese=bool(settings.get("tokenize_chinese_chars", cleaning.get("handle_chinese_chars", True))),
    )


def _words(source: Path, whole: Table, size: int) -> list[str]:
    """The vocabulary, from tokenizer.json or from vocab.txt."""
    if whole:
        return _words_of(whole, source / "tokenizer.json")
    path = source / "vocab.txt"
    try:
        written = files.content(path)
        if written.count(b"\n") > size + 1:
            raise ValueError(f"it has {written.count(10):,} lines, and there are vectors for {size:,}")
        return written.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise FolderError(
            f"{source} has neither tokenizer.json nor a readable vocab.txt ({error}). Download the folder again."
        ) from None


def _words_of(whole: Table, path: Path) -> list[str]:
    parts = [whole.get(part) or {} for part in ("model", "normalizer", "pre_tokenizer")]
    kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
    if kinds != ["WordPiece", "BertNormalizer", "BertPreTokenizer"] or parts[0].get(
        "continuing_subword_prefix"
    ) not in (
        CONTINUES,
        None,
    ):
        raise FolderError(f"{path} is not BERT's tokenizer ({kinds!r:.100}). It cannot be imported.")
    places, added = parts[0].get("vocab"), whole.get("added_tokens") or []
    if not isinstance(places, dict) or not all(type(place) is int for place in places.values()):
        raise FolderError(f"{path} has no vocabulary. Download the folder again.")
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise FolderError(f"{path} has added_tokens that are none. Download the folder again.")
    if strangers := [token.get("content") for token in added if str(token.get("content")) not in places]:
        raise FolderError(f"{path} adds {strangers[0]!r:.100}, which BERT's does not. Remove it there.")
    words = sorted(places, key=lambda word: places[word])
    if [places[word] for word in words] != list(range(len(words))):
        raise FolderError(f"{path} leaves ids out. Download the folder again.")
    return words


def _name_of(settings: Table, role: str, usual: str, source: Path) -> str:
    name = settings.get(role) or usual
    name = name.get("content") if isinstance(name, dict) else name
    if not isinstance(name, str):
        raise FolderError(f"{source}/tokenizer_config.json has {role} {name!r:.100}. Download the folder again.")
    return name


def _json(path: Path) -> Table:
    try:
        return files.table(path)
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read ({error}). Name a folder as saved by save_pretrained.") from None
