"""What a case is: data with a reason. Cases live in `posref.conformance.cases`, one module a family."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from posref import scaling

MODULES = (
    "absolute", "rope_stages", "rope", "rope_extended", "axes", "axial", "mixed", "lie", "xpos", "pope", "fope", "weights",
    "bias", "relative", "attention", "rotated", "scores", "distances", "forms", "gradients",
)  # fmt: skip


@dataclass(frozen=True)
class Flag:
    """A reason for a case: the defect it catches, and where one like it was seen."""

    catches: str
    seen_in: str = ""


FUZZ = {"fuzz": Flag("a failure that posref fuzz found")}  # of calls that are drawn, not of this suite


@dataclass(frozen=True)
class Step:
    """One call: options by name, arrays by name."""

    params: Mapping[str, Any]
    inputs: Mapping[str, npt.ArrayLike] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """
    One question to an implementation.

    `id` is ``op/group/case``. Kind "value" has expected values, "reject" must raise (`comment` says why), "sequence" makes
    several calls in order on one instance (`steps`; `params` and `inputs` stay empty), and "vjp" asks for the gradients of the
    inputs in `wrt` (without any: of all reals but positions), given `cotangents` of the outputs. Tier "smoke" is one case for
    each operation that says whether the setup works at all.
    """

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    comment: str = ""
    kind: str = "value"
    tier: str = "core"
    steps: tuple[Step, ...] = ()
    cotangents: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    wrt: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        """The operation asked about."""
        return self.id.split("/", maxsplit=1)[0]

    @property
    def group(self) -> str:
        """The group's id, ``op/group``."""
        return self.id.rsplit("/", maxsplit=1)[0]

    @property
    def calls(self) -> tuple[Step, ...]:
        """The calls to make: one, except in a sequence."""
        return self.steps or (Step(self.params, self.inputs),)


def floats(*shape: int, seed: int, bits: int = 8) -> npt.NDArray[np.float64]:
    """
    Return distinct-looking numbers in (-4, 4), multiples of ``2**(2-bits)``, the same everywhere and always.

    With 8 bits they are representable in bfloat16, float16 and everything wider; with 24 in float32. None is zero.
    """
    size = math.prod(shape)
    state, values = (seed + 1) * 0x9E3779B97F4A7C15, []
    for _ in range(size):  # splitmix64
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        mixed ^= mixed >> 31
        magnitude = 1 + (mixed >> 1) % (2**bits - 1)
        values.append((magnitude if mixed & 1 else -magnitude) / 2 ** (bits - 2))
    return np.asarray(values, dtype=np.float64).reshape(shape)


def all_cases() -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included), in the order of the sources."""
    for module in MODULES:
        yield from import_module(f"posref.conformance.cases.{module}").CASES


def all_flags() -> dict[str, Flag]:
    """Return every flag by name."""
    flags: dict[str, Flag] = {}
    for module in MODULES:
        flags |= import_module(f"posref.conformance.cases.{module}").FLAGS
    return flags


def groups(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return cases by the id of their group, both in order of first appearance."""
    by_group: dict[str, list[Case]] = {}
    for case in cases:
        by_group.setdefault(case.group, []).append(case)
    return by_group


def to_json(value: Any) -> Any:
    """Return an option as JSON: numbers and words as they are, a scaling as ``{"type": ...}`` with all its fields."""
    if isinstance(value, scaling.Scaling):
        given = {n: list(v) if isinstance(v, tuple) else v for n, v in asdict(value).items()}
        return {"type": type(value).__name__, **given}
    return value


def from_json(value: Any) -> Any:
    """Return an option from JSON; ValueError for an unknown scaling, and for a field that is not its own."""
    if not isinstance(value, dict):
        return value
    rest = dict(value)
    name = rest.pop("type", None)
    kinds = {kind.__name__: kind for kind in get_args(scaling.Scaling)}
    hints = get_type_hints(kinds[name]) if name in kinds else {}
    if name not in kinds or set(rest) != set(hints) or not all(_fits(rest[n], hint) for n, hint in hints.items()):
        msg = f"from_json: a scaling must have a type of {sorted(kinds)} and all of that record's fields; got {value!r}."
        raise ValueError(msg)
    return kinds[name](**{n: tuple(v) if isinstance(v, list) else v for n, v in rest.items()})


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value from JSON is of a field's type; an integer is a float as well, and a boolean is neither."""
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_fits(item, get_args(hint)[0]) for item in value)
    kinds = get_args(hint) or (hint,)
    return type(value) in kinds or (type(value) is int and float in kinds)
