"""Cosines and sines of RoPE from a model's parameters: cases and known mistakes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .rope_frequencies import cases as frequency_cases
from .shared.rotary import FAR, OFFSETS, UNSORTED
from .tools import Case, Step, cases_of

USUAL: dict[str, Any] = {"dim": 6, "base": 500.0}
WITH_OPTION = {"scaling": {"base": 10000.0}}
KERNEL: tuple[dict[str, Any], ...] = ({"dim": 64, "base": 10000.0},)

NEAR = (0, 1, 7)  # positions that every table has; it also has the last ones before the length
_case = cases_of("rope_cos_sin")


def _table(name: str, dim: int, base: float, positions: Any = UNSORTED, comment: str = "", **rest: Any) -> Case:
    return _case(name, {"dim": dim, "base": base}, {"positions": positions}, comment, **rest)


def _places(params: Any) -> dict[str, Any]:
    length = max(params.get("length") or 300, 2)
    return {"positions": (*NEAR, length // 2, length - 1)}


def _tables() -> Iterator[Case]:
    """Yield the cases of rope_frequencies, with positions."""
    for case in frequency_cases():
        steps = tuple(Step(step.params, _places(step.params)) for step in case.steps)
        inputs = {} if steps else _places(case.params)
        name = case.id.split("/", maxsplit=1)[1]
        yield Case(f"rope_cos_sin/{name}", case.params, inputs, case.comment, case.kind, steps=steps)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _table("tokens/small", 6, 500.0, (0, 1, 5, 2), tier="smoke"),
        _table("tokens/far-base", 20, 5e5, FAR),
        _table("tokens/rows-and-heads", 6, 2500.0, np.asarray(OFFSETS)[:2, None, :4].tolist(), "(B, 1, T)"),
        _table("tokens/scalar", 8, 1e6, 300, "a position without axes"),
        _table("tokens/fractional", 14, 10000.0, (0.5, 1.75, 0.25, 999.5, 2.0)),
        *(case for case in _tables() if case.id != "rope_cos_sin/plain/small"),
    )
