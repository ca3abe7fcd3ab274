"""A mistake, and the reference's operations by name, in which what a mistake changes is changed wherever it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from posref.backends.rounding import round_to
from posref.core.composition import called, formula, noun, reaches, rebound
from posref.spec import PARTS, REGISTRY

Function = Callable[..., Any]
Wrap = Callable[[Function], Function]
Real = Any  # a NumPy array of reals
RESULT = "result"
JOINT = " + "  # between the names of several mistakes at once


@dataclass(frozen=True, eq=False)
class Deviation:
    """A named way to be wrong: what it does to which operations, what to look at, and where one was seen."""

    name: str
    text: str
    wraps: Mapping[str, Wrap]
    hint: str = ""
    seen_in: str = ""
    stateful: bool = False  # what it gives depends on the calls before
    exact: bool = False  # only the place of roundings differs: values in half precision must be equal bit for bit
    one_of: str = ""  # what it is about: mistakes of one such word contradict each other, so at most one of them is true

    def operations(self, jitter: float = 0.0) -> Operations:
        """Return operations that deviate in this way, also where others call them; state begins anew."""
        return Operations(self.wraps, jitter)

    def touches(self, op: str) -> bool:
        """Return whether an operation may deviate, itself or through what it calls."""
        return op in self.wraps or not reaches(op).isdisjoint(self.wraps)


def deviations_of(name: str) -> Callable[..., Deviation]:
    """Return what makes mistakes of one operation or part, which is named once: with its wrap in place of `wraps`."""

    def deviation(called: str, text: str, wrap: Wrap, *rest: Any, **more: Any) -> Deviation:
        return Deviation(called, text, {name: wrap}, *rest, **more)

    return deviation


class Operations(Mapping[str, Function]):
    """
    Operations and parts by name, some of them wrapped; each is made once, at first use.

    With `jitter`, angles and what is made of them are larger by that fraction, as an honest rounding might have made them: it
    shows how far a hypothesis may be from an implementation in lower precision, and which narrow roundings are near a tie.
    Logits move apart, since a softmax forgives what they have in common.
    """

    def __init__(self, wraps: Mapping[str, Wrap], jitter: float = 0.0) -> None:
        self._wraps, self._jitter = wraps, jitter
        self._changed = set(wraps) | (_rounded() if jitter else set())
        self._made: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*REGISTRY, *PARTS))

    def __len__(self) -> int:
        return len(REGISTRY) + len(PARTS)

    def _make(self, name: str) -> Function:
        function = formula(name)
        if not reaches(name).isdisjoint(self._changed):
            inside = {n for n in called(function) if n in self._changed or not reaches(n).isdisjoint(self._changed)}
            function = rebound(function, inside, lambda other, _: self[other])
        if self._jitter:
            function = _jittered(name, function, self._jitter)
        return self._wraps[name](function) if name in self._wraps else function


def together(*deviations: Deviation) -> Deviation:
    """
    Return several mistakes at once, under their names joined by `JOINT`.

    Where two change the same operation, the one named later is outside: it changes the arguments first and the result last.
    """

    def nested(inner: Wrap, outer: Wrap) -> Wrap:
        return lambda function: outer(inner(function))

    wraps: dict[str, Wrap] = {}
    for deviation in deviations:
        for op, wrap in deviation.wraps.items():
            wraps[op] = nested(wraps[op], wrap) if op in wraps else wrap
    name, text = (joint.join(getattr(d, field) for d in deviations) for joint, field in ((JOINT, "name"), (", and ", "text")))
    return Deviation(name, text, wraps, stateful=any(d.stateful for d in deviations))


def only_where(deviation: Deviation, op: str, holds: Callable[[Mapping[str, Any]], bool]) -> Deviation:
    """Return a mistake of an operation that it has where something holds of its options, and nowhere else."""
    right, wrong = REGISTRY[op].function, deviation.operations()[op]

    def deviating(*args: Any, **options: Any) -> Any:
        return (wrong if holds(options) else right)(*args, **options)

    return Deviation(deviation.name, deviation.text, {op: lambda _: deviating})


def contradict(deviations: Iterable[Deviation]) -> bool:
    """Return whether two of mistakes contradict each other: an implementation that shows both has neither."""
    about = [d.one_of for d in {d.name: d for d in deviations}.values() if d.one_of]
    return len(set(about)) < len(about)


@cache
def _places(name: str) -> tuple[str, ...]:
    """Return where the roundings of a known function are put: its arguments by name, or its result."""
    if name in PARTS:
        return (RESULT,) if noun(name) == "logits" else ()
    record = REGISTRY[name]
    if record.rounded is not None:
        return record.rounded
    plain = record.returns == "real" and not any(axes.kind in ("real", "wide") for axes in record.arrays.values())
    return (RESULT,) if plain and not reaches(name) else ()


@cache
def _rounded() -> set[str]:
    """Return the known functions that have roundings of their own."""
    return {name for name in (*REGISTRY, *PARTS) if _places(name)}


def _jittered(name: str, function: Function, jitter: float) -> Function:
    """Return a function whose roundings move it by a fraction."""

    def larger(x: Any) -> Any:
        return tuple(larger(one) for one in x) if isinstance(x, tuple) else np.asarray(x, dtype=np.float64) * (1 + jitter)

    def apart(logits: Real) -> Real:
        n = np.arange(logits.shape[-1])
        spread = (-1.0) ** n * (0.5 + 0.5 * (n * 0.618034 % 1))  # of alternating sign, no two alike, between 1/2 and 1 in size
        return logits * (1 + jitter * spread)

    for place in _places(name):
        if place == RESULT:
            move = apart if noun(name) == "logits" else larger
            function = after(lambda result, *args, move=move, **options: move(result))(function)
        else:
            function = argument(list(REGISTRY[name].arrays).index(place), larger)(function)
    return function


def spread_heads(v: Real, logits: Real) -> Real:
    """Return values with every head repeated in a block, so that there are as many as of `logits`."""
    return np.repeat(v, logits.shape[-3] // v.shape[-3], axis=-3) if v.ndim > 2 and v.shape[-3] else v


# ---- ways to wrap an operation --------------------------------------------------------------------------------------------
def around(change: Callable[..., Any]) -> Wrap:
    """Return a wrap that calls `change` instead, with the operation before the call's arguments."""
    return lambda function: partial(change, function)


def around_with(change: Callable[..., Any]) -> Callable[..., Wrap]:
    """Return what makes such a wrap of the first arguments of `change`, which stand before the operation."""
    return lambda *given: around(partial(change, *given))


def before(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> Wrap:
    """Return a wrap that changes the arguments."""

    def deviating(function: Function, *args: Any, **options: Any) -> Any:
        args, options = change(*args, **options)
        return function(*args, **options)

    return around(deviating)


def where_allowed(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> Wrap:
    """Return a wrap that changes the arguments of the calls that the operation does not refuse then."""

    def wrap(function: Function) -> Function:
        def deviating(*args: Any, **options: Any) -> Any:
            changed, others = change(*args, **options)
            try:
                return function(*changed, **others)
            except ValueError:
                return function(*args, **options)

        return deviating

    return wrap


def after(change: Callable[..., Any]) -> Wrap:
    """Return a wrap that changes the result: `change` takes it and the call's arguments."""
    return around(lambda function, *args, **options: change(function(*args, **options), *args, **options))


def argument(index: int, change: Callable[[Any], Any]) -> Wrap:
    """Return a wrap that changes one positional argument."""
    return before(lambda *args, **options: ((*args[:index], change(args[index]), *args[index + 1 :]), options))


def option(**changes: Callable[[Any], Any]) -> Wrap:
    """Return a wrap that changes options that are given, each by a function of its value."""
    return before(lambda *args, **options: (args, options | {n: c(options[n]) for n, c in changes.items() if n in options}))


def narrowed(dtype: str) -> Callable[[Any], Any]:
    """Return a function that sends numbers through a narrower dtype."""
    return lambda x: round_to(np.asarray(x, dtype=np.float64), dtype)


def held(dtype: str, *places: int) -> Wrap:
    """Return a wrap that holds some positional arguments in a narrower dtype; the result, where no place is named."""
    narrow = narrowed(dtype)
    if not places:
        return after(lambda out, *args, **options: narrow(out))
    return before(lambda *args, **options: (tuple(narrow(x) if n in places else x for n, x in enumerate(args)), options))


def tf32(x: Any) -> Any:
    """Return numbers in TensorFloat-32, as tensor cores read float32: rounded to the nearest with 11 significant bits."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
    return np.ldexp(np.rint(mantissa * 2.0**11), exponent - 11)


def always(value: Any) -> Callable[[Any], Any]:
    """Return a function of one constant value."""
    return lambda _: value
