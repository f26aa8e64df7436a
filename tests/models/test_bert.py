"""BERT: what is its own, besides the laws of every model that reads; and its equations, in NumPy, as the truth."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from conftest import VARIANTS, VOCABULARY, small
from regard.errors import ConfigError, DataError
from regard.models import build
from regard.models.bert import Bert, Classifier

CASES = [(name, variant) for name in ("bert", "classifier") for variant in VARIANTS[name]]


@pytest.fixture(params=CASES, ids=str)
def model(request: pytest.FixtureRequest) -> Bert | Classifier:
    name, variant = request.param
    return made(name, **variant)


def made(name: str, **settings: Any) -> Any:
    """A model whose every parameter matters: new ones have biases of zero and norms of one."""
    model = build(small(name, **settings).model, VOCABULARY).eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape)
    return model


def rows(lengths: list[int], size: int | None = None) -> tuple[Tensor, Tensor]:
    size = size or max(lengths)
    ids = torch.randint(5, VOCABULARY, (len(lengths), size), generator=torch.Generator().manual_seed(1))
    lengths_B = torch.tensor(lengths)
    return ids.masked_fill(torch.arange(size) >= lengths_B[:, None], 0), lengths_B


# ----------------------------------------------------------------------------------------------------------- its parts


def test_each_layers_attention_is_told_and_padding_is_not_looked_at(model: Bert) -> None:
    seen = model(*rows([6, 3]), attention=True).attention
    assert sorted(seen) == ["encoder.0.self", "encoder.1.self"]
    for weights in seen.values():
        assert weights.shape == (2, 2, 6, 6)
        assert weights[1, :, :, 3:].abs().max() == 0


def test_no_segments_are_the_first_segment_and_the_second_differs(model: Bert) -> None:
    read = rows([5, 5])
    plain = model(*read).hidden_BTW
    assert_close(model(*read, torch.zeros(2, 5, dtype=torch.long)).hidden_BTW, plain)
    assert (model(*read, torch.ones(2, 5, dtype=torch.long)).hidden_BTW - plain).abs().max() > 0.01


def test_a_classifier_takes_over_a_berts_body_by_name() -> None:
    bert, classifier = made("bert"), build(small("classifier").model, VOCABULARY, 3).eval()
    body = {name: tensor for name, tensor in bert.state_dict().items() if name.startswith("body.")}
    own = {name for name, _ in classifier.named_parameters()}
    assert own - set(body) == {"labels.weight", "labels.bias"}
    classifier.load_state_dict({**classifier.state_dict(), **body})
    assert_close(classifier(*rows([5, 3])).hidden_BTW, bert(*rows([5, 3])).hidden_BTW)


def test_hidden_words_and_what_follows_can_be_memorised() -> None:
    model = build(small("bert").model, VOCABULARY)
    ids, lengths = rows([6, 5, 4])
    places, words = torch.tensor([1, 8, 14]), torch.tensor([7, 11, 19])
    ids.view(-1)[places] = 4
    follows = torch.tensor([1, 0, 1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        hidden = model(ids, lengths).hidden_BTW
        loss = F.cross_entropy(model.guess(hidden.flatten(0, 1)[places]), words)
        loss = loss + F.cross_entropy(model.follows(hidden), follows)
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
    hidden = model(ids, lengths).hidden_BTW
    assert model.guess(hidden.flatten(0, 1)[places]).argmax(-1).equal(words)
    assert model.follows(hidden).argmax(-1).equal(follows)


def test_labels_can_be_memorised() -> None:
    model = build(small("classifier").model, VOCABULARY, 3)
    read, labels = rows([6, 5, 4, 3]), torch.tensor([2, 0, 1, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        loss = F.cross_entropy(model.label(model(*read).hidden_BTW), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model.label(model(*read).hidden_BTW).argmax(-1).equal(labels)


def test_a_text_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(DataError, match="33 tokens"):
        made("bert")(*rows([33]))


def test_a_share_of_words_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="hidden_words"):
        small("bert", hidden_words=0.0)


# ------------------------------------------------------------------------------------------------------- the equations


def norm(x: np.ndarray, part: dict[str, np.ndarray], name: str) -> np.ndarray:
    spread = np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return (x - x.mean(-1, keepdims=True)) / spread * part[f"{name}.weight"] + part[f"{name}.bias"]


def linear(x: np.ndarray, part: dict[str, np.ndarray], name: str) -> np.ndarray:
    return x @ part[f"{name}.weight"].T + part[f"{name}.bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    from math import erf, sqrt

    return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))


def block(x: np.ndarray, p: dict[str, np.ndarray], name: str, heads: int) -> np.ndarray:
    query, key, value = np.split(linear(x, p, f"{name}.attention.project"), 3, axis=1)
    context = []
    for q, k, v in zip(*(np.split(part, heads, axis=1) for part in (query, key, value)), strict=True):
        weights = np.exp(q @ k.T / np.sqrt(q.shape[1]))
        context.append(weights / weights.sum(1, keepdims=True) @ v)
    x = norm(x + linear(np.concatenate(context, 1), p, f"{name}.attention.join"), p, f"{name}.around_attention.norm")
    inner = linear(gelu(linear(x, p, f"{name}.feed_forward.widen")), p, f"{name}.feed_forward.narrow")
    return norm(x + inner, p, f"{name}.around_feed_forward.norm")


def test_the_model_is_the_papers_equations() -> None:
    model = made("bert")
    p = {name: tensor.detach().double().numpy() for name, tensor in model.named_parameters()}
    ids, segments = [2, 9, 4, 3, 12, 3], [0, 0, 0, 0, 1, 1]
    words = p["body.embedding.words.weight"]
    x = words[ids] + p["body.embedding.positions.table.weight"][:6] + p["body.embedding.segments.weight"][segments]
    x = norm(x, p, "body.embedding.norm")
    for layer in range(2):
        x = block(x, p, f"body.layers.{layer}", heads=2)
    guessed = norm(gelu(linear(x, p, "guesser.dense")), p, "guesser.norm") @ words.T + p["guesser.bias"]
    follows = linear(np.tanh(linear(x[0], p, "body.pooler")), p, "follower")

    output = model(torch.tensor([ids]), torch.tensor([6]), torch.tensor([segments]))
    assert_close(output.hidden_BTW[0].double(), torch.from_numpy(x), atol=1e-5, rtol=1e-4)
    assert_close(model.guess(output.hidden_BTW[0]).double(), torch.from_numpy(guessed), atol=1e-4, rtol=1e-4)
    assert_close(model.follows(output.hidden_BTW)[0].double(), torch.from_numpy(follows), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("width", "spread"), [(48, 0.08), (768, 0.02)])
def test_new_weights_are_small_and_biases_zero(width: int, spread: float) -> None:
    model = build(small("bert", width=width, inner=64, longest=100).model, 500)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" not in name:
            assert parameter.detach().std().item() == pytest.approx(spread, rel=0.2), name
