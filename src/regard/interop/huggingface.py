"""A BERT published in Hugging Face's format -> a model folder.

Nothing in it is executed: settings and vocabulary are JSON and text, weights are safetensors. The vocabulary is put in
Regard's order, the special ids and the mask first, and so are the rows of the tensors that go by it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard import folder, storage
from regard.checkpoint import load_tensors
from regard.config import BertConfig, ClassifierConfig, Config, TextConfig
from regard.errors import FolderError
from regard.models import build
from regard.text.wordpiece import CONTINUES, WordPiece
from regard.weights import load_weights, save_weights, weights_of

Table = dict[str, Any]
Tensors = dict[str, Tensor]

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
LABELLED = "BertForSequenceClassification"
# Regard's first five ids, and what they are called in a published vocabulary unless it says otherwise.
SPECIAL_NAMES = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
CONVERT = "python -c \"from transformers import AutoModelForPreTraining as M; M.from_pretrained('{0}').save_pretrained('{0}')\""


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
    folder.refuse_used(to)
    table = _checked(_json(source / "config.json"), source)
    tensors = _tensors(source)
    vocabulary = read_vocabulary(source, int(table["vocab_size"]))
    labels = _labels(table)
    config = _config(table, vocabulary, tensors, labeller=bool(labels))
    model = build(config.model, len(vocabulary.words), len(labels))
    own = weights_of(model)
    given = _renamed(tensors, config, vocabulary.order(), source)
    # What was not published keeps its new weights, for training to form; `heads` tells which it is.
    load_weights(model, {**own, **given}, source / "model.safetensors")
    heads = [name for name, part in (("words", "guesser.bias"), ("next", "follower.bias")) if part in given]
    parameters = sum(tensor.numel() for tensor in own.values())
    name = str(table.get("_name_or_path") or source.name)
    about: Table = {"job": "labelling" if labels else "masking", "imported": name, "parameters": parameters}
    about |= {"labels": labels} if labels else {"heads": heads}
    with storage.explained(to):
        to.mkdir(parents=True, exist_ok=True)
    tokenizer = vocabulary.tokenizer()
    storage.write_file(to / tokenizer.file_name, tokenizer.as_bytes())
    save_weights(to, own)
    folder.save_config(to, config, about)
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
    if missing := [name for name in needed if not isinstance(table.get(name), int)]:
        raise FolderError(f"{source}/config.json does not tell {missing[0]}. Download the folder again.")
    return table


def _config(table: Table, vocabulary: Vocabulary, tensors: Tensors, *, labeller: bool) -> Config:
    longest = int(table.get("max_position_embeddings", 512))
    body: dict[str, Any] = {
        "width": table["hidden_size"],
        "heads": table["num_attention_heads"],
        "depth": table["num_hidden_layers"],
        "inner": table["intermediate_size"],
        "dropout": float(table.get("hidden_dropout_prob", 0.1)),
        "activation": ACTIVATIONS[table.get("hidden_act") or "gelu"],
        "longest": longest,
        "epsilon": float(table.get("layer_norm_eps", 1e-12)),
    }
    text = TextConfig(
        tokenizer="wordpiece",
        vocabulary=len(vocabulary.words),
        lowercase=vocabulary.lowercase,
        longest=min(256, longest),
    )
    if labeller:
        return Config(text=text, model=ClassifierConfig(**body))
    return Config(text=text, model=BertConfig(**body, next_sentence="cls.seq_relationship.weight" in tensors))


def _labels(table: Table) -> list[str]:
    """Names of the labels, if it is a model for whole texts."""
    if LABELLED not in (table.get("architectures") or []):
        return []
    names = table.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    return [str(names[number]) for number in sorted(names, key=int)]


# ------------------------------------------------------------------------------------------------------------- weights


def _tensors(source: Path) -> Tensors:
    """All tensors, under the names that newer versions of Hugging Face's library give them."""
    path = source / "model.safetensors"
    if not path.exists():
        if (source / "pytorch_model.bin").exists():
            raise FolderError(
                f"{source} has only pytorch_model.bin, a pickle, which can execute what it likes when it is read. If you "
                f"trust it, convert it first: {CONVERT.format(source)}"
            )
        raise FolderError(f"{source} has no {path.name}. Name a folder as saved by save_pretrained, in one file.")
    tensors = {}
    for name, tensor in load_tensors(path).items():
        name = name.removeprefix("bert.").replace("LayerNorm.gamma", "LayerNorm.weight")
        tensors[name.replace("LayerNorm.beta", "LayerNorm.bias")] = tensor
    tensors.pop("embeddings.position_ids", None)  # just 0, 1, 2, ...
    return tensors


def _renamed(tensors: Tensors, config: Config, order: list[int], source: Path) -> Tensors:
    """The tensors under Regard's names; every one must find its place."""
    left = dict(tensors)
    _check_tied(left, source)
    found = {
        own: torch.cat([_take(left, name, source) for name in theirs]) for own, theirs in _names(config, left).items()
    }
    if left:
        raise FolderError(f"{source} holds {min(left)}, for which Regard's BERT has no place. Import its BertModel.")
    return _in_order(found, order)


def _names(config: Config, there: Tensors) -> dict[str, list[str]]:
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
    if "cls.seq_relationship.weight" in there:
        names |= _both("follower", "cls.seq_relationship")
    return names


def _both(own: str, *theirs: str) -> dict[str, list[str]]:
    return {f"{own}.{kind}": [f"{name}.{kind}" for name in theirs] for kind in ("weight", "bias")}


def _take(left: Tensors, name: str, source: Path) -> Tensor:
    if name not in left:
        raise FolderError(f"{source}/model.safetensors lacks {name}. Download the folder again.")
    return left.pop(name).float()


def _check_tied(left: Tensors, source: Path) -> None:
    """Take out what is there twice: words are guessed by the vectors they are read by."""
    for name, same in (
        ("cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ):
        copy = left.pop(name, None)
        if copy is not None and not torch.equal(copy, left.setdefault(same, copy)):
            raise FolderError(
                f"{source} guesses words by other vectors than it reads them by, which Regard's BERT cannot."
            )


def _in_order(found: Tensors, order: list[int]) -> Tensors:
    """Rows that go by the vocabulary, in Regard's order; and the answers to whether a text follows: no, yes."""
    index = torch.tensor(order)
    for name in ("body.embedding.words.weight", "guesser.bias"):
        if name in found:
            found[name] = found[name][index]
    for name in ("follower.weight", "follower.bias"):
        if name in found:
            found[name] = found[name].flip(0)
    return found


# ---------------------------------------------------------------------------------------------------------- vocabulary


def read_vocabulary(source: Path, size: int) -> Vocabulary:
    """The words of a published folder, filled up to `size`, and its settings for cleaning text."""
    whole = _json(source / "tokenizer.json") if (source / "tokenizer.json").exists() else {}
    settings = _json(source / "tokenizer_config.json") if (source / "tokenizer_config.json").exists() else {}
    words = _words(source, whole)
    if len(words) > size:
        raise FolderError(f"{source} has {len(words):,} words but vectors for {size:,}. Download the folder again.")
    # Some vocabularies were filled up to a round number; those vectors belong to no word.
    words += [f"[no word {number}]" for number in range(len(words), size)]
    places = {word: i for i, word in enumerate(words)}
    specials = [_name_of(settings, role, usual) for role, usual in SPECIAL_NAMES.items()]
    if missing := [name for name in specials if name not in places]:
        raise FolderError(
            f"{source} has no {missing[0]} in its vocabulary, so it is not BERT's. It cannot be imported."
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


def _words(source: Path, whole: Table) -> list[str]:
    """The vocabulary, from tokenizer.json or from vocab.txt."""
    if whole:
        model = whole.get("model") or {}
        kinds = [model.get("type"), *((whole.get(part) or {}).get("type") for part in ("normalizer", "pre_tokenizer"))]
        if kinds != ["WordPiece", "BertNormalizer", "BertPreTokenizer"] or model.get(
            "continuing_subword_prefix"
        ) not in (
            CONTINUES,
            None,
        ):
            raise FolderError(f"{source}/tokenizer.json is not BERT's tokenizer ({kinds}). It cannot be imported.")
        places: dict[str, int] = model["vocab"]
        added = [str(token["content"]) for token in whole.get("added_tokens") or []]
        if strangers := [word for word in added if word not in places]:
            raise FolderError(f"{source}/tokenizer.json adds {strangers[0]!r}, which BERT's does not. Remove it there.")
        words = sorted(places, key=lambda word: places[word])
        if [places[word] for word in words] != list(range(len(words))):
            raise FolderError(f"{source}/tokenizer.json leaves ids out. Download the folder again.")
        return words
    try:
        return (source / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FolderError(
            f"{source} has neither tokenizer.json nor a readable vocab.txt ({error}). Download the folder again."
        ) from None


def _name_of(settings: Table, role: str, usual: str) -> str:
    name = settings.get(role) or usual
    return str(name["content"] if isinstance(name, dict) else name)


def _json(path: Path) -> Table:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FolderError(f"{path} cannot be read ({error}). Name a folder as saved by save_pretrained.") from None
    if not isinstance(table, dict):
        raise FolderError(f"{path} is not a table of settings. Download the folder again.")
    return table
