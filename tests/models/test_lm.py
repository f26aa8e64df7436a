"""The decoder-only Transformer against GPT-2, a trained model that sorts, its equations, and the laws of one row."""

import base64
import gzip
import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from one_row import VOCABULARY, logits, nothing, step_by_step, text
from regard.config import DecodeConfig, LmConfig
from regard.decode.beam_search import beam_search
from regard.errors import DataError
from regard.layers.kv_cache import Past
from regard.models.base import Source
from regard.models.lm import Lm
from regard.training.losses.label_smoothing import smoothed_cross_entropy

SORTS = Path(__file__).parents[3] / "shared" / "data" / "gpt-nano-sort"
exact = {"atol": 1e-5, "rtol": 1e-5}
close = {"atol": 1e-5, "rtol": 1e-4}


@pytest.fixture(params=["learned", "sinusoidal", "relative"])
def model(request: pytest.FixtureRequest) -> Lm:
    return small(positions=request.param)


def small(**settings: Any) -> Lm:
    sizes = {"width": 16, "heads": 2, "depth": 2, "inner": 24, "dropout": 0.0, "longest": 32, "span": 3}
    return Lm(LmConfig(**{**sizes, **settings}), VOCABULARY).eval()


# Against independent truths


def fill(model: Lm, gpt: dict[str, Tensor], *, transposed: bool = False) -> None:
    """Weights named as in GPT-2. Ours multiplies word vectors by sqrt(width) on their way in, so they come in smaller."""
    names = {
        "ln_1": "around_attention.norm",
        "attn.c_attn": "attention.project",
        "attn.c_proj": "attention.join",
        "ln_2": "around_feed_forward.norm",
        "mlp.c_fc": "feed_forward.widen",
        "mlp.c_proj": "feed_forward.narrow",
    }
    vectors, tied = gpt["transformer.wte.weight"] / model.embedding.scale, "lm_head.weight" not in gpt
    weights = {
        "embedding.table.weight": vectors,
        "embedding.positions.table.weight": gpt["transformer.wpe.weight"],
        "words.weight": vectors if tied else gpt["lm_head.weight"],
    }
    for part in ("weight", "bias"):
        # Shared vectors are smaller on their way out too; the last norm makes up for it.
        weights[f"norm.{part}"] = gpt[f"transformer.ln_f.{part}"] * (model.embedding.scale if tied else 1)
        for number, (theirs, ours) in itertools.product(range(len(model.layers)), names.items()):
            weight = gpt[f"transformer.h.{number}.{theirs}.{part}"]
            weights[f"layers.{number}.{ours}.{part}"] = weight.mT if transposed and weight.dim() == 2 else weight
    parameters = dict(model.named_parameters(remove_duplicate=False))
    assert set(weights) == set(parameters)
    with torch.no_grad():
        for name, parameter in parameters.items():
            assert parameter.shape == weights[name].shape, name
            parameter.copy_(weights[name])


@pytest.mark.parametrize("tie", [True, False])
def test_its_logits_are_those_of_gpt2_with_the_same_weights(tie: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="Hugging Face transformers is not installed")
        sizes = {"vocab_size": 50, "n_positions": 16, "n_embd": 48, "n_layer": 3, "n_head": 4}
        shape = transformers.GPT2Config(**sizes, bos_token_id=2, eos_token_id=3, tie_word_embeddings=tie)
        gpt2 = transformers.GPT2LMHeadModel(shape).eval()
        for parameter in gpt2.parameters():  # its own are so small that a missing sub-layer would hardly show
            torch.nn.init.normal_(parameter, std=0.3)
        ids = torch.randint(0, 50, (5, 13))
        expected = gpt2(ids).logits
    ours = Lm(LmConfig(width=48, heads=4, depth=3, inner=192, longest=16, tie=tie), vocabulary=50).eval()
    weights = {name: p for name, p in gpt2.state_dict().items() if name != "lm_head.weight" or not tie}
    fill(ours, weights, transposed=True)
    assert_close(logits(ours, nothing(5), ids), expected, **exact)


def stored(name: str) -> dict[str, Any]:
    path = SORTS / f"gpt-nano-sort-{name}.json.gz"
    if not path.exists():
        pytest.skip(f"the trained model is not at {path}")
    with gzip.open(path) as file:
        return dict(json.load(file))


def tensors(entries: dict[str, Any]) -> dict[str, Tensor]:
    return {
        name: torch.from_numpy(np.frombuffer(base64.b64decode(entry["data"]), "<f4").copy()).view(entry["shape"])
        for name, entry in entries.items()
        if name != "config"
    }


def the_model_that_sorts() -> Lm:
    entries = stored("model")
    shape = entries["config"]
    width, heads, depth = shape["n_embd"], shape["n_head"], shape["n_layer"]
    config = LmConfig(width=width, heads=heads, depth=depth, inner=4 * width, longest=shape["block_size"], tie=False)
    model = Lm(config, shape["vocab_size"]).eval()
    fill(model, tensors(entries))
    return model


def test_a_trained_gpt_says_here_what_it_said_where_it_was_trained() -> None:
    model, said = the_model_that_sorts(), tensors(stored("t0-partials"))
    output = model(nothing(3), said["idx"].long(), attention=True)
    assert_close(model.words(output.hidden_BTW), said["lm_head"], **exact)
    assert_close(output.attention["decoder.0.self"], said["attSm"], **exact)


def test_a_trained_gpt_sorts() -> None:
    """Every row of six digits out of three: five are read at once, then one by one."""
    model = the_model_that_sorts()
    digits = torch.tensor(list(itertools.product(range(3), repeat=6)))
    state, last, written = model.start(Source(digits[:, :5], torch.full((len(digits),), 5))), digits[:, 5], []
    for _ in range(6):
        scores, state = model.step(last, state)
        last = scores.argmax(-1)
        written.append(last)
    assert torch.stack(written, 1).equal(digits.sort(1).values)


def test_it_computes_the_equations() -> None:
    """In NumPy, one text, one head at a time."""
    model = small()
    for parameter in model.parameters():  # zeros and ones would hide what is missing
        torch.nn.init.normal_(parameter, std=0.3)
    named = model.named_parameters(remove_duplicate=False)
    p = {name: parameter.detach().double().numpy() for name, parameter in named}
    ids = text(1, 7)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    x = 4 * p["embedding.table.weight"][ids[0].numpy()] + p["embedding.positions.table.weight"][:7]
    for layer in ("layers.0", "layers.1"):
        projected = linear(norm(x, f"{layer}.around_attention.norm"), f"{layer}.attention.project")
        query, key, value = (part.reshape(7, 2, 8).swapaxes(0, 1) for part in np.split(projected, 3, 1))
        scores = np.exp(query @ key.swapaxes(1, 2) / math.sqrt(8)) * np.tri(7)
        context = (scores / scores.sum(-1, keepdims=True) @ value).swapaxes(0, 1).reshape(7, 16)
        x = x + linear(context, f"{layer}.attention.join")
        wide = linear(norm(x, f"{layer}.around_feed_forward.norm"), f"{layer}.feed_forward.widen")
        bent = wide / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        x = x + linear(bent, f"{layer}.feed_forward.narrow")
    expected = norm(x, "norm") @ p["embedding.table.weight"].T
    assert_close(logits(model, nothing(1), ids)[0].double(), torch.tensor(expected), **close)


# Source and target in one row


def test_rows_that_fit_alone_fit_together() -> None:
    model = small(longest=12)
    read = Source(text(2, 8), torch.tensor([8, 2]))
    read.ids_BS[1, 2:] = 0
    target = text(2, 10)
    target[0, 4:] = 0
    together = logits(model, read, target)
    assert_close(together[0, :4], logits(model, Source(read.ids_BS[:1], torch.tensor([8])), target[:1, :4])[0], **close)
    alone = logits(model, Source(read.ids_BS[1:, :2], torch.tensor([2])), target[1:])
    assert_close(together[1], alone[0], **close)


def test_a_text_longer_than_its_positions_is_refused() -> None:
    model = small(longest=8)
    read = Source(text(2, 5), torch.tensor([5, 2]))
    assert model.longest == 8
    with pytest.raises(DataError, match="9 tokens is longer than the 8 positions"):
        model(read, text(2, 4))
    step_by_step(model, read, text(2, 3))
    with pytest.raises(DataError, match="9 tokens is longer than the 8 positions"):
        step_by_step(model, read, text(2, 4))


def test_other_positions_have_no_end() -> None:
    for positions in ("sinusoidal", "relative"):
        model = small(positions=positions, longest=8)
        assert model.longest is None
        model(nothing(1), text(1, 300))


def test_attention_is_that_of_the_joined_row_and_never_looks_ahead(model: Lm) -> None:
    read = Source(text(2, 4), torch.tensor([4, 4]))
    seen = model(read, text(2, 3), attention=True).attention
    assert list(seen) == ["decoder.0.self", "decoder.1.self"]
    for weights_BHJJ in seen.values():
        assert weights_BHJJ.shape == (2, 2, 7, 7)
        assert weights_BHJJ.triu(1).abs().max() == 0
        assert weights_BHJJ[..., 6, :4].min() > 0, "a target word cannot see the source"


def test_a_past_moved_right_ends_where_the_longest_does() -> None:
    key = torch.tensor([[1.0, 2, 3], [4, 5, 9], [6, 9, 9]])[:, None, :, None]
    moved = Past(key, -key).moved_right(torch.tensor([0, 1, 2]))
    assert moved.key[0, 0, :, 0].tolist() == [1, 2, 3]
    assert moved.key[1, 0, 1:, 0].tolist() == [4, 5]
    assert moved.key[2, 0, 2:, 0].tolist() == [6]
    assert moved.value.equal(-moved.key)


def test_word_vectors_are_shared_as_told() -> None:
    assert [model.words.weight is model.embedding.table.weight for model in (small(), small(tie=False))] == [
        True,
        False,
    ]


def test_a_step_in_bfloat16_stays_close_to_float32(model: Lm) -> None:
    read, target = Source(text(3, 5), torch.tensor([5, 3, 0])), text(3, 7)
    gradients = []
    for rounded in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
            hidden = model(read, target[:, :-1]).hidden_BTW.flatten(0, 1)
            smoothed_cross_entropy(hidden, model.words.weight, target[:, 1:].flatten(), 0.0).backward()
            stepped = step_by_step(model, nothing(3), target)
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        assert stepped.isfinite().all()
    assert torch.cosine_similarity(*gradients, dim=0) > 0.99


def test_writing_stops_where_source_and_target_fill_the_positions() -> None:
    model = Lm(LmConfig(width=16, heads=2, depth=1, inner=24, longest=20), VOCABULARY).eval()
    sources = Source(torch.full((2, 15), 5), torch.tensor([15, 6]))
    found = beam_search(model, sources, DecodeConfig(beam=2, min_length=3))
    assert all(len(hypotheses[0].ids) <= 20 - 1 - length for hypotheses, length in zip(found, (15, 6), strict=True))
