"""A model run once, watched: its attention as a Trace.

What is traced of any decoding is one pass over the finished text, each word given those before it, in evaluation mode and
on the path that keeps the weights. The same pass on the fused path must give the same states, or the trace is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.errors import DataError, TraceError
from regard.interpret.tokens import row_of
from regard.interpret.trace import Around, Detail, Facts, Guess, Map, Row, Token, Trace
from regard.layers import recorder
from regard.layers.attention import MultiHead
from regard.layers.blocks import Residual
from regard.models.base import LanguageModel, Model, Output, Source, Writer
from regard.models.bert import Bert, Classifier
from regard.models.memory import Compressed
from regard.models.universal import Universal
from regard.text.tokenizers.tokenizer import BEGIN, END, Tokenizer

LONGEST = 512
"""Tokens of a row that is traced: beyond, nothing in a picture can be told apart."""
GUESSES = 5
# How far the two paths may be apart, for states of about one; rounding makes 1e-6 of it.
_DIFFERENCE = 1e-3
_KIND = {"self": "decoder", "source": "cross", "local": "local", "compressed": "compressed"}


class Watched(NamedTuple):
    """A trace, and where in the model each of its maps was made: by kind and layer."""

    trace: Trace
    modules: dict[tuple[str, int], nn.Module]


def trace_pair(
    model: Writer, tokenizer: Tokenizer, facts: Facts, source: Sequence[int], target: Sequence[int], text: str
) -> Watched:
    """Reading `source` and writing `target`, ids without begin and end; `text` is the source as it was typed."""
    reads, writes = [*source, END], [BEGIN, *target]
    device = next(model.parameters()).device
    read = Source(torch.tensor([reads], device=device), torch.tensor([len(reads)], device=device))
    write = torch.tensor([writes], device=device)
    if isinstance(model, LanguageModel):
        joined = row_of(tokenizer, [*reads, *writes], f"{text} {tokenizer.decode(target)}")
        after = row_of(tokenizer, [*reads[1:], *writes, END], joined.text)
        rows = {"text": joined, "predicted": after}
        return _trace(model, tokenizer, facts, rows, lambda see: model(read, write, attention=see), len(reads))
    rows = {
        "source": row_of(tokenizer, reads, text),
        "target": row_of(tokenizer, writes),
        "predicted": row_of(tokenizer, [*target, END]),
    }
    watched = _trace(model, tokenizer, facts, rows, lambda see: model(read, write, attention=see))
    if isinstance(model, Universal) and model.halting:
        names = ("source", "target")
        steps = {name: took[0].tolist() for name, took in zip(names, model.steps(read, write), strict=True)}
        return watched._replace(trace=replace(watched.trace, halted=steps))
    return watched


def trace_text(model: LanguageModel, tokenizer: Tokenizer, facts: Facts, ids: Sequence[int], text: str) -> Watched:
    """Reading on from word to word, with nothing before the text."""
    device = next(model.parameters()).device
    nothing = Source(
        torch.zeros(1, 0, dtype=torch.long, device=device), torch.zeros(1, dtype=torch.long, device=device)
    )
    write = torch.tensor([[BEGIN, *ids]], device=device)
    with torch.inference_mode():
        following = int(model.words(model(nothing, write).hidden_BTW[0, -1]).argmax())
    whole = text + tokenizer.decode([*ids, following]).removeprefix(tokenizer.decode(ids))
    rows = {
        "text": row_of(tokenizer, [BEGIN, *ids], text),
        "predicted": row_of(tokenizer, [*ids, following], whole),
    }
    return _trace(model, tokenizer, facts, rows, lambda see: model(nothing, write, attention=see))


def trace_reading(
    model: Bert | Classifier, tokenizer: Tokenizer, facts: Facts, ids: Sequence[int], text: str
) -> Watched:
    """Reading in both directions."""
    reads = [BEGIN, *ids, END]
    device = next(model.parameters()).device
    read, lengths = torch.tensor([reads], device=device), torch.tensor([len(reads)], device=device)
    rows = {"text": row_of(tokenizer, reads, text)}
    return _trace(model, tokenizer, facts, rows, lambda see: model(read, lengths, attention=see))


@torch.inference_mode()
def _trace(
    model: Model,
    tokenizer: Tokenizer,
    facts: Facts,
    rows: dict[str, Row],
    run: Callable[[bool], Output],
    before: int = 0,
) -> Watched:
    """`before` is how many tokens of the row stand before the first that predicts one."""
    longest = max(len(row.tokens) for row in rows.values())
    if longest > LONGEST:
        raise DataError(
            f"A text of {longest} tokens is too long to be drawn; {LONGEST} are the most. Take a part of it."
        )
    assert not model.training, "dropout would make rows that do not sum to one"
    with recorder.watching() as events:
        output = run(True)
    difference = _compare(output, run(False))
    seen = list(zip(output.attention, _looks(output, events), strict=True))
    modules = {_name(name): look.of for name, (look, _) in seen}
    rows = rows | _slots(rows, [look for _, (look, _) in seen])
    maps = tuple(_map(name, output.attention[name], look, rows) for name, (look, _) in seen)
    details = (_detail(name, *found, events) for name, found in seen if _is_plain(output.attention[name], found[0]))
    predictions = _guesses(model, tokenizer, output, before) if isinstance(model, Writer) else ()
    trace = Trace(facts, rows, maps, difference, predictions, details=tuple(details))
    return Watched(trace, modules)


def _compare(shown: Output, fused: Output) -> float:
    difference = float((shown.hidden_BTW - fused.hidden_BTW).abs().max())
    if not difference <= _DIFFERENCE * max(1.0, float(fused.hidden_BTW.abs().max())):
        raise TraceError(
            f"The states computed with weights shown and those of the fused kernel differ by {difference:.2g}: what a "
            "picture would show is not what the model does. Please report this."
        )
    return difference


def _name(name: str) -> tuple[str, int]:
    """ "encoder.2.self" -> ("encoder", 2); "decoder.source", of a model with one attention only -> ("cross", 0)."""
    side, *number, sees = name.split(".")
    return side if side == "encoder" else _KIND[sees], int(number[0]) if number else 0


def _looks(output: Output, events: list[recorder.Event]) -> Iterator[tuple[recorder.Look, int]]:
    """For each map of the output the look that made it, and its number among the events.

    Some models write word by word and look once for each; these looks are one map.
    """
    looks = [(number, event) for number, event in enumerate(events) if isinstance(event, recorder.Look)]
    for weights_BHQK in output.attention.values():
        number, look = looks.pop(0)
        queries = weights_BHQK.shape[2]
        if look.weights_BHQK.shape[2] == 1 < queries and len(look.weights_BHQK) == 1:
            others = [looks.pop(0)[1] for _ in range(queries - 1)]
            look = look._replace(
                query_BHQD=torch.cat([look.query_BHQD, *(other.query_BHQD for other in others)], 2),
                weights_BHQK=torch.cat([look.weights_BHQK, *(other.weights_BHQK for other in others)], 2),
                context_BHQD=torch.cat([look.context_BHQD, *(other.context_BHQD for other in others)], 2),
            )
        yield look, number
    assert not looks, "a look that belongs to no map"


def _map(name: str, weights_BHQK: Tensor, look: recorder.Look, rows: dict[str, Row]) -> Map:
    kind, layer = _name(name)
    own = "text" if "text" in rows else "source" if kind == "encoder" else "target"
    keys = {"cross": "source", "compressed": f"slots of {_kernel(look)}"}.get(kind, own)
    norms = look.value_BHKD[0].norm(dim=-1) if _is_plain(weights_BHQK, look) else None
    length = len(rows[own].tokens)
    return Map(
        kind, layer, own, keys, _array(weights_BHQK[0, :, :length]), _array(norms) if norms is not None else None
    )


def _is_plain(weights_BHQK: Tensor, look: recorder.Look) -> bool:
    """Whether the look was at words as they stand, not rearranged in blocks."""
    return look.weights_BHQK.shape == weights_BHQK.shape


def _kernel(look: recorder.Look) -> int:
    return look.of.kernel if isinstance(look.of, Compressed) else 0


def _slots(rows: dict[str, Row], looks: list[recorder.Look]) -> dict[str, Row]:
    """For compressed attention: rows in which several words are one key."""
    found = {}
    for kernel in {_kernel(look) for look in looks} - {0}:
        text, tokens = rows["text"]
        groups = [tokens[:1], *(tokens[n : n + kernel] for n in range(0, len(tokens) - kernel + 1, kernel))]
        slots = tuple(
            Token(" ".join(t.text for t in group), group[0].first, group[-1].last, number)
            for number, group in enumerate(groups)
        )
        found[f"slots of {kernel}"] = Row(text, slots)
    return found


def _detail(name: str, look: recorder.Look, number: int, events: list[recorder.Event]) -> Detail:
    kind, layer = _name(name)
    if look.fit_D is not None:
        sums = (look.query_BHQD[:, :, :, None] + look.key_BHKD[:, :, None]).tanh()
        scores_BHQK = (sums * look.fit_D).sum(-1)
    else:
        scores_BHQK = look.query_BHQD @ look.key_BHKD.mT
    if look.bias_BHQK is not None:
        scores_BHQK = scores_BHQK + look.bias_BHQK
    seen = torch.ones(scores_BHQK.shape[2:], dtype=torch.bool, device=scores_BHQK.device)
    if look.may_look is not None:
        seen = look.may_look.expand(scores_BHQK.shape)[0, 0] if look.may_look.dim() == 4 else look.may_look
    return Detail(
        kind,
        layer,
        _array(look.query_BHQD[0]),
        _array(look.key_BHKD[0]),
        _array(look.value_BHKD[0]),
        _array(scores_BHQK[0] * look.scale),
        _array(look.context_BHQD[0]),
        seen.cpu().numpy(),
        look.scale,
        _array(look.bias_BHQK[0]) if look.bias_BHQK is not None else None,
        _array(look.fit_D) if look.fit_D is not None else None,
        _embedding(events, look.query_BHQD.shape[2], kind),
        _around(look, events[number + 1 :]),
    )


def _embedding(
    events: list[recorder.Event], queries: int, kind: str
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32] | None, npt.NDArray[np.float32]] | None:
    """The vectors of the words that look: the first text embedded is the source's, the last the target's."""
    told = [event for event in events if isinstance(event, recorder.Embedded)]
    if not told:
        return None
    word, place, total = told[0] if kind == "encoder" else told[-1]
    if word.shape[1] != queries:
        return None
    position = place.expand_as(word)[0] if place is not None else None
    return _array(word[0]), _array(position) if position is not None else None, _array(total[0])


def _around(look: recorder.Look, after: list[recorder.Event]) -> Around | None:
    """What the residual connection that comes next made of the heads' contexts."""
    joined = next((event for event in after if isinstance(event, recorder.Joined)), None)
    if joined is None or not isinstance(look.of, MultiHead) or not isinstance(joined.of, Residual):
        return None
    norm, join = joined.of.norm, look.of.join
    return Around(
        _array(joined.input_BTW[0]),
        _array(join.weight),
        _array(join.bias),
        _array(joined.answer_BTW[0]),
        _array(joined.output_BTW[0]),
        joined.of.norm_first,
        _array(norm.weight),
        _array(norm.bias),
        norm.eps,
    )


def _guesses(model: Writer, tokenizer: Tokenizer, output: Output, before: int) -> tuple[tuple[Guess, ...], ...]:
    chances_TV = model.words(output.hidden_BTW[0]).float().softmax(-1)
    top = chances_TV.topk(min(GUESSES, chances_TV.shape[1]))
    pieces = [row_of(tokenizer, [i], None).tokens[0].text for i in top.indices.flatten().tolist()]
    chances = top.values.flatten().tolist()
    width = top.values.shape[1]
    pairs = list(zip(pieces, chances, strict=True))
    return ((),) * before + tuple(tuple(pairs[n : n + width]) for n in range(0, len(pairs), width))


def _array(tensor: Tensor) -> npt.NDArray[np.float32]:
    return tensor.detach().float().cpu().numpy()
