"""What hypothesis draws: damaged files, texts, settings. Always the same ones, so that a build never fails by chance."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from fuzz.edits import edited
from regard.config import MODEL_CONFIGS, DecodeConfig, TextConfig, TrainConfig

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

# A text as a user may have it: any character but those that are no text, NUL and halves of others.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
whole_lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r"), max_size=20)


def bounded(examples: int) -> settings:
    """So many examples, whatever the clock says."""
    return settings(derandomize=True, deadline=None, database=None, max_examples=examples, suppress_health_check=SLOW)


@st.composite
def damaged(draw: st.DrawFn, whole: Sequence[bytes]) -> bytes:
    """One of these files with some damage; or no such file at all."""
    content = draw(st.one_of(*[st.sampled_from(whole)] * 4, st.binary(max_size=40)))
    for _ in range(draw(st.integers(1, 3))):
        kind, place, piece = draw(st.tuples(st.integers(0, 8), st.integers(0, 1 << 20), st.integers(0, 99)))
        content = edited(content, kind, place, piece)
    return content


@st.composite
def setting_tables(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Some settings of each section, each of the right type; they need not fit together."""
    name, kind = draw(st.sampled_from(sorted(MODEL_CONFIGS.items())))
    kinds: dict[str, type] = {"text": TextConfig, "model": kind, "train": TrainConfig, "decode": DecodeConfig}
    table = {section: draw(_settings(of)) for section, of in kinds.items()}
    return table | {"model": {"name": name, **table["model"]}}


def _settings(kind: type) -> st.SearchStrategy[dict[str, Any]]:
    hints, defaults = get_type_hints(kind), {field.name: field.default for field in fields(kind)}
    values = {name: _values(hints[name], default) for name, default in defaults.items()}
    return st.lists(st.sampled_from(sorted(values)), unique=True, max_size=3).flatmap(
        lambda chosen: st.fixed_dictionaries({name: values[name] for name in chosen})
    )


def _values(hint: Any, default: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.sampled_from([default, default + 1, 2 * default, 2**62 + 1]) | st.integers(0, 1000)
    if hint is float:
        return st.just(default) | st.floats(0, 1) | st.floats(allow_nan=False, allow_infinity=False)
    return st.just(default) | whole_lines.map(str.strip)
