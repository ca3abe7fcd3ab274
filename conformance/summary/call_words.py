"""A call in words: the options that it does not leave at their defaults, and its arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from posref.scaling import Scaling
from posref.spec import REGISTRY

from ..calls import positions_of
from ..model import Call, LoadedCase
from ..vocabulary.traits import defaults

SHOWN = 4  # numbers of a list


def call_in_words(case: LoadedCase) -> str:
    """Return the calls of a case in words, each with the options and arrays that it has."""
    calls = [", ".join((*_options(case.op, call), *_arrays(case.op, call))) for call in case.calls]
    return calls[0] if len(calls) == 1 else "; ".join(f"call {k}: {text}" for k, text in enumerate(calls, 1))


def _options(op: str, call: Call) -> list[str]:
    """Return the options of a call that it does not leave at their defaults."""
    values = [(name, call.params[name]) for name in REGISTRY[op].domains if name in call.params]
    return [f"{name}={_value(value)}" for name, value in values if name not in defaults(op) or value != defaults(op)[name]]


def _value(value: Any) -> str:
    if isinstance(value, Scaling):
        parts = [
            f"{part.name}={_value(getattr(value, part.name))}"
            for part in dataclasses.fields(value)
            if part.default is dataclasses.MISSING or getattr(value, part.name) != part.default
        ]
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, list | tuple) and len(value) > SHOWN:
        return f"({', '.join(map(_value, value[:SHOWN]))}, ... {len(value)} in all)"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _arrays(op: str, call: Call) -> list[str]:
    arrays = [(name, call.inputs[name]) for name in REGISTRY[op].arrays if name in call.inputs]
    return [f"{name} {x.shape}" + (_span(x) if name in positions_of(op) else "") for name, x in arrays]


def _span(positions: np.ndarray[Any, Any]) -> str:
    """Return from where to where positions go."""
    if not positions.size:
        return ""
    low, high = positions.min(), positions.max()
    return f" at {low:.8g}" if low == high else f" from {low:.8g} to {high:.8g}"
