"""What a picture is: the property that it must show, the test of the property, and the function that draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from posref.conformance.calls import bind
from posref.plots.calls import Asked
from posref.plots.charts import Chart, Lines, Map, Numbers

OWN = "picture"  # the kind of a picture whose inputs were chosen for it
Maker = Callable[[Asked], Chart]
Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Picture:
    """The picture of an operation: its kind, its property in one line, and the test of the property."""

    kind: str
    says: str
    holds: Callable[[Any], bool]


PICTURES: dict[str, Picture] = {}
MAKERS: dict[str, Maker] = {}  # of those whose inputs were chosen for them


def picture(holds: Callable[[Any], Any]) -> Callable[[Maker], Maker]:
    """Register a function as the maker of the picture of the operation of its name. Its docstring is the property."""

    def register(make: Maker) -> Maker:
        MAKERS[make.__name__] = make
        PICTURES[make.__name__] = Picture(OWN, _property(make), lambda chart: bool(holds(chart)))
        return make

    return register


def of_kind(kind: str) -> Callable[[Test], Test]:
    """Register a function as the test of a picture that is a chart of a kind. Its docstring is the property."""

    def register(holds: Test) -> Test:
        PICTURES[holds.__name__] = Picture(kind, _property(holds), holds)
        return holds

    return register


def _property(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or "").split())


def call(asked: Asked, options: Mapping[str, Any], /, **arrays: Any) -> list[Numbers]:
    """Return the results of the operation on chosen arrays. The caller's options replace the chosen ones."""
    positional, keywords = bind(asked.op, arrays, {**options, **asked.options})
    results = asked.record.function(*positional, **keywords)
    return [np.asarray(array, dtype=np.float64) for array in (results if isinstance(results, tuple) else (results,))]


def says(asked: Asked) -> str:
    """Return the property shown by the operation's picture."""
    return PICTURES[asked.op].says


def lines(asked: Asked, x_label: str, y_label: str, series: Mapping[str, tuple[Any, Any]], **how: Any) -> Lines:
    """Return curves with the property as their caption."""
    numbers = {name: (np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)) for name, (x, y) in series.items()}
    return Lines(asked.title, x_label, y_label, says(asked), numbers, **how)


def heat(asked: Asked, x_label: str, y_label: str, values: Numbers, unit: str, **how: Any) -> Map:
    """Return a heat map with the property as its caption."""
    return Map(asked.title, x_label, y_label, says(asked), np.asarray(values, dtype=np.float64), unit, **how)


def beside(*parts: Numbers) -> Numbers:
    """Return matrices side by side, with a blank column between them, centred over the highest."""
    high = max(len(part) for part in parts)
    padded = []
    for part in parts:
        above = (high - len(part)) // 2
        whole = np.full((high, part.shape[1] + 1), np.nan)
        whole[above : above + len(part), :-1] = part
        padded.append(whole)
    return np.concatenate(padded, axis=1)[:, :-1]


def sines(positions: Any, width: int, base: float = 10000.0) -> Numbers:
    """Return sinusoids of positions, sine beside cosine: vectors whose product falls with the distance."""
    angles = np.asarray(positions, dtype=np.float64)[..., None] * base ** -(np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(*angles.shape[:-1], width)


def same(a: Any, b: Any, terms: int = 1) -> bool:
    """Return whether numbers are equal up to the roundings of sums of `terms` numbers near 1."""
    return np.allclose(a, b, rtol=0, atol=64 * terms * 2**-52)


def toeplitz(values: Numbers, terms: int = 64) -> bool:
    """Return whether a matrix depends on the offset alone; blank cells are left out."""
    off = [np.diagonal(values, k) for k in range(1 - len(values), values.shape[1])]
    kept = [line[~np.isnan(line)] for line in off]
    return all(same(line, line[:1], terms) for line in kept if len(line))
