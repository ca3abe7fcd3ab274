"""The call behind a chart: options and arrays of an operation's first case, with sizes large enough to see a pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import Parameter
from typing import TYPE_CHECKING, Any

import numpy as np

from posref.conformance.calls import array_names, bind, parameters_of, positions_of
from posref.conformance.suite.reader import INSTALLED, load_groups, smoke_cases
from posref.spec import REGISTRY, Encoding

from .charts import Numbers

if TYPE_CHECKING:
    from posref.conformance.model import Call

CHANNELS, TOKENS = 64, 128  # the defaults
SIZES = {  # options large enough to see a pattern
    "dim": CHANNELS, "heads": 8, "rotary_dim": None, "sections": (16, 24, 24), "dims": (32, 32),
    "window": 16, "num_sinks": 4, "chunk_size": 24, "ranks": 4,
}  # fmt: skip
LONGEST = 44  # characters of a title
FREE = ("D", "d")  # letters of axes that may have any number of channels


@dataclass(frozen=True)
class Asked:
    """An operation with the caller's options, and the number of tokens in the chart."""

    op: str
    options: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = TOKENS
    name: str = ""

    @property
    def record(self) -> Encoding:
        """The operation's record in the registry."""
        return REGISTRY[self.op]

    @property
    def title(self) -> str:
        """The name, with the caller's options if they are short."""
        if self.name:
            return self.name
        options = ", ".join(f"{name}={_brief(value)}" for name, value in self.options.items())
        whole = f"{self.op}, {options}"
        return whole if options and len(whole) <= LONGEST else self.op

    @property
    def settings(self) -> dict[str, Any]:
        """The options of the call: those of the operation's first case, then larger sizes, then the caller's."""
        smoke = [
            axes.shape for axes in self.record.arrays.values() if not _has_tokens(axes.shape) and axes.kind in ("real", "wide")
        ]
        tied = set(re.findall(r"[a-z_]+", " ".join(smoke)))  # options that give the size of an array of the first case
        sizes = {n: value for n, value in SIZES.items() if n in self.record.domains and n not in tied}
        defaults = {n: p.default for n, p in parameters_of(self.record.function).items() if n in self.record.domains}
        known = {n: value for n, value in defaults.items() if value is not Parameter.empty}
        return known | dict(first_case(self.op).params) | sizes | dict(self.options)

    def result(self, **arrays: Any) -> list[Numbers]:
        """Return the results of the call as float64, with `arrays` instead of the first case's arrays."""
        return self._called(dict(first_case(self.op).inputs) | arrays, self.settings)

    def example(self) -> list[Numbers]:
        """Return the results of the first case, with its own options where the caller gave none."""
        return self._called(first_case(self.op).inputs, {**first_case(self.op).params, **self.options})

    def _called(self, inputs: Mapping[str, Any], options: Mapping[str, Any]) -> list[Numbers]:
        positional, keywords = bind(self.op, {n: value for n, value in inputs.items() if value is not None}, options)
        results = self.record.function(*positional, **keywords)
        return [np.asarray(array, dtype=np.float64) for array in (results if isinstance(results, tuple) else (results,))]

    def encoded(self, positions: Numbers) -> Numbers:
        """
        Return the encoding of every position, shape ``(T, d)``.

        If the operation changes vectors, it is called with vectors of ones.
        """
        name = self.positions_name
        values = positions / self.tokens if self.coordinates else self.in_kind(name, positions)
        places = np.stack([values] * self.axes) if self.axes else values
        if self.coordinates:
            places = np.stack([values] * self.coordinates, axis=-1)
        arrays = {name: places}
        vectors = self.vectors_name
        if vectors is not None:
            arrays[vectors] = np.ones((len(positions), self.channels))
        outputs = self.result(**arrays)
        return np.concatenate([out.reshape(len(positions), -1) for out in outputs], axis=-1)

    def in_kind(self, name: str, positions: Numbers) -> Any:
        """Return positions in the kind of dtype that an argument takes."""
        return positions.astype(np.int64) if self.record.arrays[name].kind == "integer" else positions

    @property
    def positions_name(self) -> str:
        """The argument that holds positions. An operation without one has no chart of a table."""
        return positions_of(self.op)[0]

    @property
    def vectors_name(self) -> str | None:
        """The argument that holds vectors of tokens, if there is one."""
        return next((name for name in array_names(self.op) if _has_tokens(self.record.arrays[name].shape)), None)

    @property
    def axes(self) -> int:
        """The number of coordinates in the first axis of positions, 0 if a position is one number."""
        first = self.record.arrays[self.positions_name].shape.split("|")[0].split()
        counts = bool(first) and (first[0] == "A" or first[0].startswith("len("))
        return first_case(self.op).inputs[self.positions_name].shape[0] if counts else 0

    @property
    def places(self) -> str:
        """The label of the table's rows, with the unit."""
        return f"position (1/{self.tokens} of the range)" if self.coordinates else "position (tokens)"

    @property
    def coordinates(self) -> int:
        """The number of coordinates in the last axis of positions, 0 if a position is one number."""
        first = self.record.arrays[self.positions_name].shape.split("|")[0].split()
        return first_case(self.op).inputs[self.positions_name].shape[-1] if first[-1:] == ["c"] else 0

    @property
    def channels(self) -> int:
        """The number of channels of the vectors: the default if any number fits, else that of the first case."""
        name = self.vectors_name
        if name is None:
            return 0
        if "sections" in self.record.domains:
            return int(2 * sum(self.settings["sections"]))
        if "dims" in self.record.domains:
            return int(sum(self.settings["dims"]))
        last = self.record.arrays[name].shape.split("|")[0].split()[-1]
        tied = sum(last in axes.shape.replace("|", " ").split() for axes in self.record.arrays.values()) > 1
        rotated = self.options.get("rotary_dim")
        size = int(first_case(self.op).inputs[name].shape[-1])
        return int(rotated or CHANNELS) if last in FREE and not tied else size


def _brief(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else type(value).__name__ if hasattr(value, "requires") else str(value)


def _has_tokens(shape: str) -> bool:
    return "T" in shape.replace("|", " ").split() and "A" not in shape.split()


@cache
def first_case(op: str) -> Call:
    """Return the call of an operation's smoke case, which has valid options and arrays of fitting sizes."""
    (case_id,) = (name for name in smoke_cases(INSTALLED) if name.split("/", maxsplit=1)[0] == op)
    group = case_id.rsplit("/", maxsplit=1)[0]
    cases = (case for loaded in load_groups(INSTALLED, group=group) for case in loaded.cases if case.id == case_id)
    return next(cases).calls[0]


def beside(asked: Asked, tokens: int) -> dict[str, Any]:
    """Return the first case's arrays beside positions, repeated to so many queries and keys. Masks hide nothing."""
    arrays = dict(first_case(asked.op).inputs)
    for name, axes in asked.record.arrays.items():
        for place, letter in enumerate(reversed(axes.shape.split("|")[0].split())):
            if letter.lstrip("~") in ("Q", "K") and arrays.get(name) is not None and arrays[name].ndim > place:
                array = np.ones_like(arrays[name]) if axes.kind == "mask" else arrays[name]
                arrays[name] = np.take(array, np.arange(tokens) % array.shape[-1 - place], axis=-1 - place)
    return {name: array for name, array in arrays.items() if name not in ("q_positions", "k_positions")}
