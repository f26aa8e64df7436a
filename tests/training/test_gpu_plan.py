"""The plan on paper, against real models, real steps, and numbers worked out by hand."""

import json
from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from conftest import SMALL, small
from regard.cli.main import main
from regard.config import Config, parse_set, read
from regard.models import build
from regard.models.base import Writer
from regard.text.batching.batch import Pairs, make_pairs
from regard.training.estimate import count
from regard.training.gpu_plan import USABLE, Counts, Layer, Plan, activations, kept, layers_of
from regard.training.losses.cross_entropy import pairs_loss

BLOCKED = ["transformer", "universal", "lm", "memory", "bert", "classifier"]
VOCABULARY, LENGTH = 1000, 31


def settings(**chosen: Any) -> Config:
    return read(parse_set(f"{name.replace('__', '.')}={value}" for name, value in chosen.items()))


def plan(gpus: int = 8, **chosen: Any) -> Plan:
    """A billion parameters in ten blocks of 90 million, and 100 million besides; 10^12 operations a second."""
    config = settings(model__name="lm", model__depth=10, **chosen)
    return Plan(config, Counts(10**9, (9 * 10**7,) * 10), gpus, length=0, speed=1e12)


def batch(rows: int) -> Pairs:
    ids = torch.randint(4, VOCABULARY, (rows, 2 * LENGTH)).tolist()
    return make_pairs([row[:LENGTH] for row in ids], [row[LENGTH:] for row in ids], list(range(rows)))


def bytes_kept(model: Writer, rows: int, precision: torch.dtype) -> int:
    """What a real step holds for its way back, weights left out."""
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    held: dict[int, int] = {}

    def hold(tensor: torch.Tensor) -> torch.Tensor:
        held[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(hold, lambda tensor: tensor), torch.autocast("cpu", precision, precision != torch.float32):
        _loss = pairs_loss(model, batch(rows), 0.1)
    return sum(size for place, size in held.items() if place not in own)


@pytest.mark.parametrize("name", BLOCKED)
def test_parameters_are_counted_without_making_them(name: str) -> None:
    model = build(small(name).model, VOCABULARY)
    whole, blocks = count(small(name).model, VOCABULARY)
    assert whole == sum(p.numel() for p in model.parameters())
    assert len(blocks) == len(model.blocks()) == len(layers_of(small(name).model))


def test_the_smallest_gpt_2_has_the_parameters_that_its_authors_published() -> None:
    assert count(settings(model__name="lm", model__size="base").model, 50_257).all == 124_439_808


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("name", "size"),
    [("transformer", "tiny"), ("transformer", "base"), ("lm", "tiny"), ("memory", "tiny"), ("universal", "tiny")],
)
def test_a_real_step_keeps_what_the_plan_says_within_a_tenth(name: str, size: str, precision: torch.dtype) -> None:
    config = settings(model__name=name, model__size=size).model
    model = build(config, VOCABULARY).train()
    assert isinstance(model, Writer)
    few, more = (bytes_kept(model, rows, precision) for rows in (4, 8))
    # A language model reads source and target in one row.
    sides = 1 if name in ("transformer", "universal") else 2
    tokens, keys = 4 * sides * (LENGTH + 1), sides * (LENGTH + 1)
    # On a processor, attention keeps a number for each two words, which a GPU's kernel does not.
    attentions = sum(layer.attentions * layer.repeated for layer in layers_of(config))
    promised = attentions * config.heads * keys * precision.itemsize  # type: ignore[union-attr]
    promised += activations(config, VOCABULARY, precision.itemsize, recompute=False).token  # type: ignore[arg-type]
    assert promised == pytest.approx((more - few) / tokens, rel=0.1)


@pytest.mark.parametrize("name", ["transformer", "universal"])
def test_a_real_step_computes_as_much_as_the_plan_says_within_a_tenth(name: str) -> None:
    config = settings(model__name=name, text__vocabulary=VOCABULARY, train__batch_tokens=8 * (LENGTH + 1))
    model = build(config.model, VOCABULARY).train()
    with FlopCounterMode(display=False) as counter:
        pairs_loss(model, batch(8), 0.1).total.backward()  # type: ignore[arg-type, no-untyped-call]
    step = Plan(config, count(config.model, VOCABULARY), 1, LENGTH, speed=1.0).step("DDP")
    assert step.computing == pytest.approx(counter.get_total_flops(), rel=0.1)


def test_a_block_keeps_what_can_be_counted_by_hand() -> None:
    config = settings(model__width=2, model__heads=1, model__inner=4, model__dropout=0.0).model
    # 6 vectors of attention, 1 of the feed-forward layer, its 4 inner numbers, 2 sums: 22 numbers of 4 bytes.
    assert kept(Layer(1), config, compute=4) == 88  # type: ignore[arg-type]
    # 7 more vectors for the source, 1 more sum.
    assert kept(Layer(2), config, compute=4) == 88 + 7 * 8 + 8  # type: ignore[arg-type]


def test_ddp_holds_everything_and_fsdp2_a_share_and_the_blocks_at_work() -> None:
    all_of_it, share = plan().memory("DDP"), plan().memory("FSDP2")
    assert (all_of_it.weights, all_of_it.gradients, all_of_it.moments) == (4e9, 4e9, 8e9)
    assert (share.weights, share.gradients, share.moments) == (0.5e9, 0.5e9, 1e9)
    # The weights of two blocks and the gradients of one; both of what belongs to no block.
    assert share.gathered == 4 * (3 * 9e7 + 2 * 1e8)
    assert all_of_it.copies == share.copies == 2e9
    assert plan(train__precision="float32").memory("DDP").copies == 0
    assert plan(train__ema=0.999).memory("FSDP2").average == 0.5e9


def test_each_gpu_sends_the_gradients_twice_or_the_weights_twice_and_the_gradients_once() -> None:
    assert plan().step("DDP").sent == 2 * 7 / 8 * 4e9
    assert plan().step("FSDP2").sent == 3 * 7 / 8 * 4e9
    assert plan(gpus=1).step("DDP").sent == plan(gpus=1).step("FSDP2").sent == 0


def test_time_is_spent_computing_or_waiting() -> None:
    # 8,000 tokens on 8 GPUs, 0.9 billion parameters at 2 operations and the words' 128 x 8000: 1.8 s, then 3.6 s.
    step = plan(train__batch_tokens=8000).step("DDP")
    assert step.forward == pytest.approx(2 * 1000 * (9e8 + 128 * 8000) / 1e12)
    assert step.backward == pytest.approx(2 * step.forward)
    # 7 GB at 1 GB/s: longer than the way back, which takes 3.6 s.
    assert step.efficiency(1e9) == pytest.approx(step.computing / (step.forward + 7))
    assert step.efficiency(1e9, overlapped=False) == pytest.approx(step.computing / (step.computing + 7))
    assert step.efficiency(7e9) == 1.0


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("way", ["DDP", "FSDP2"])
def test_the_largest_batch_fits_and_one_token_more_does_not(way: str, recompute: bool) -> None:
    tokens = plan().largest(way, 80, recompute=recompute)
    one_more = (plan(train__batch_tokens=8 * n).memory(way, recompute=recompute).all for n in (tokens, tokens + 1))
    assert [memory <= USABLE * 80e9 for memory in one_more] == [True, False]
    assert plan().largest(way, 1, recompute=recompute) == 0


def test_the_plan_needs_no_data_and_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    billion = {"width": 2048, "heads": 16, "depth": 18, "inner": 8192}
    shape = [part for key, value in billion.items() for part in ("--set", f"model.{key}={value}")]
    command = ["check", "--gpus", "64", "--memory", "40", "--model", "lm", *shape, "--set", "text.vocabulary=32000"]
    assert main([*command, "--json", "--link", "50"]) == 0
    table = json.loads(capsys.readouterr().out)["plan"]
    assert table["parameters"] == pytest.approx(1e9, rel=0.05)
    assert list(table["FSDP2"]["recomputing"]["efficiency"]) == ["50"]
    assert main([*command, "--set", "train.batch_tokens=1000000"]) == 0
    printed = capsys.readouterr().out
    assert "too much" in printed and "NVLink" in printed


def test_text_tells_how_long_its_sentences_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "builtin:en-fr/valid", "--no-estimate", "--gpus", "2", "--json"]) == 0
    assert {"pairs", "plan"} <= set(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Give DATA, or --gpus"),
        (["--gpus", "0"], "--gpus: '0' is too small"),
        (["--gpus", "8", "--link", "0"], "--link: '0' is too small"),
        (["--gpus", "8", "--model", "luong"], "no plan on paper for a luong"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_every_model_of_blocks_has_a_plan() -> None:
    with_blocks = {name for name in SMALL if build(small(name).model, VOCABULARY).blocks()}
    assert with_blocks - {"conv"} == set(BLOCKED)
