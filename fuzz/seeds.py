"""Whole files to begin with, and small model folders, of which a target replaces one file."""

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch

from regard.config import MODEL_CONFIGS, TextConfig, read
from regard.decode.lexical_shortlist import MOST, Shortlist
from regard.folder import checkpoints as checkpoint
from regard.folder import layout
from regard.folder.weights import save_weights, weights_of
from regard.models import build
from regard.text.shards.pair_shards import ShardWriter, Tokenised, gathered
from regard.text.shards.token_stream import StreamWriter
from regard.text.tokenizers.tokenizer import Listed, Tokenizer, learn_tokenizer
from regard.text.tokenizers.wordpiece import WordPiece
from regard.training.log import Log

LETTERS = "abcdefghijklmno"
SHAPE = {"width": 8, "heads": 2, "depth": 1, "inner": 8, "dropout": 0.0}
JOBS = {"classifier": "labelling", "bert": "masking"}
PAIRS = [("un chat", "a cat"), ("deux chiens.", "two dogs."), ("Où « est » l'âne?", 'Where "is" the donkey?')]
TEXTS = ["one line\nand another\n\na third, after a gap\n", "\n".join(["the", "cat", "sat", "on", "the", "mat"])]
SAMPLES: list[dict[str, object]] = [
    {"step": 1, "epoch": 0, "loss": 2.5, "rate": 0.1, "gradient": 1.0, "tokens": 9, "padding": 0.0, "seconds": 1.0},
    {"step": 2, "valid_loss": 2.0, "valid_bleu": 1.5, "best": True, "tokens_per_second": 9.0, "seconds": 2.0},
    {"step": 3, "averaged": [1, 2], "valid_loss": 1.0, "seconds": 3.0},
]
SEEN: list[dict[str, object]] = [
    {
        "step": 2,
        "samples": [{"source": "a", "reference": "b", "hypothesis": "c"}],
        "rows": {"source": {"text": "a b", "tokens": [["a", 0, 1, 0, 0], ["b", 2, 3, 1, 0]]}},
        "maps": [
            {"kind": "encoder", "queries": "source", "keys": "source", "heads": 1, "layers": [{"weights": "AAAA"}]}
        ],
    },
    {"step": 3, "samples": [], "problem": "too long"},
]


def words() -> Listed:
    """A tokenizer of words of one letter."""
    return Listed("words", ["<mask>", *(f"\u2581{letter}" for letter in LETTERS)])


def tokenizers() -> list[tuple[TextConfig, Tokenizer]]:
    """One of each kind, with the settings under which it is loaded."""
    learned = [
        TextConfig(tokenizer="words", vocabulary=50),
        TextConfig(tokenizer="characters", vocabulary=50),
        TextConfig(tokenizer="bpe", vocabulary=60, normalize="none"),
        TextConfig(tokenizer="unigram", vocabulary=40, normalize="none"),
    ]
    text = [side for pair in PAIRS for side in pair]
    published = WordPiece(["the", "cat", "##s", "."], lowercase=True, strip_accents=True, split_chinese=True)
    kinds: list[tuple[TextConfig, Tokenizer]] = [
        (config, learn_tokenizer(text, config, mask=True)) for config in learned
    ]
    return [*kinds, (TextConfig(tokenizer="wordpiece", lowercase=True), published)]


def model_folder(to: Path, name: str) -> Path:
    """A small model with random weights, all that training leaves beside it, and one checkpoint."""
    known = {field.name for field in fields(MODEL_CONFIGS[name])}
    shape = {key: value for key, value in SHAPE.items() if key in known}
    config = read({"model": {"name": name, **shape}, "text": {"tokenizer": "words"}})
    torch.manual_seed(1)
    labels = ["good", "bad"] if name == "classifier" else []
    model = build(config.model, words().size, len(labels))
    about = {
        "job": JOBS.get(name, "pairs"),
        "labels": labels,
        "data": "a.tsv",
        "valid": "held out",
        "parameters": 9,
        "finished": "done",
    }
    to.mkdir(parents=True)
    layout.save_config(to, config, about)
    (to / words().file_name).write_bytes(words().as_bytes())
    save_weights(to, weights_of(model))
    for file, lines in ((layout.LOG, SAMPLES), ("probe.jsonl", SEEN)):
        with Log(to / file, 0) as log:
            for line in lines:
                log.write(**line)
    (to / "shortlist.safetensors").write_bytes(shortlist().as_bytes(words()))
    return to


def shortlist() -> Shortlist:
    """Each word's translation is the word after it."""
    likeliest_VN = np.zeros((words().size, MOST), np.int32)
    likeliest_VN[:-1, 0] = np.arange(1, words().size)
    return Shortlist(likeliest_VN, np.arange(4, 8, dtype=np.int32))


def tokenised(to: Path) -> Path:
    """Pairs and running text, as training keeps them in the cache."""
    pairs = ShardWriter(to / "pairs", words().size)
    pairs.add(gathered([Tokenised(number, [4, 5], [6], None) for number in range(3)]))
    pairs.close()
    text = StreamWriter(to / "text", words().size)
    text.add([4, 5, 6], size=9, closes=True)
    text.close()
    return to


def published(to: Path) -> Path:
    """A small BERT as Hugging Face's library saves it, with random weights."""
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
    config = {
        "model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": len(entries),
        "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8,
        "max_position_embeddings": 8, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
        "type_vocab_size": 2, "id2label": {"0": "bad", "1": "good"}, "is_decoder": False,
    }  # fmt: skip
    whole = {
        "model": {"type": "WordPiece", "vocab": {entry: number for number, entry in enumerate(entries)}},
        "normalizer": {
            "type": "BertNormalizer",
            "lowercase": True,
            "strip_accents": None,
            "handle_chinese_chars": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "added_tokens": [{"id": 0, "content": "[PAD]"}],
    }
    settings = {"do_lower_case": True, "strip_accents": None, "mask_token": {"content": "[MASK]"}}
    to.mkdir(parents=True)
    for name, table in (("config", config), ("tokenizer", whole), ("tokenizer_config", settings)):
        (to / f"{name}.json").write_text(json.dumps(table))
    (to / "vocab.txt").write_text("\n".join(entries) + "\n")
    layer = "bert.encoder.layer.0"
    linear = ["pooler.dense", *(f"{layer[5:]}.attention.self.{part}" for part in ("query", "key", "value"))]
    linear += [f"{layer[5:]}.{part}.dense" for part in ("attention.output", "intermediate", "output")]
    norms = [
        f"bert.{part}.LayerNorm" for part in ("embeddings", f"{layer[5:]}.attention.output", f"{layer[5:]}.output")
    ]
    shapes = {f"bert.{name}.weight": (8, 8) for name in linear} | {f"bert.{name}.bias": (8,) for name in linear}
    shapes |= {f"{name}.{part}": (8,) for name in norms for part in ("weight", "bias")}
    tables = {"word": len(entries), "position": 8, "token_type": 2}
    shapes |= {f"bert.embeddings.{name}_embeddings.weight": (rows, 8) for name, rows in tables.items()}
    shapes |= {"classifier.weight": (2, 8), "classifier.bias": (2,)}
    random = np.random.default_rng(1)
    tensors = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    safetensors.numpy.save_file(tensors, to / "model.safetensors")
    return to


def checkpoints(to: Path) -> Path:
    """The checkpoint of one step, whose state says where training stood."""
    state = {"step": 2, "epoch": 0, "batch": 1, "tokens": 9, "seconds": 1.5, "best": 2.0, "window": {"loss": 1.0}}
    tensors = {"a": torch.zeros(2, 2), "b": torch.ones(3)}
    checkpoint.save(to, 2, tensors, tensors, state)
    return to
