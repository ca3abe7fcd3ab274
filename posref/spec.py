"""The record that every definition carries, and the registry that the command line, the vectors and the tests read."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

FAMILIES = ("absolute", "rotary", "bias", "relative", "attention", "extension", "positions")
RESULTS = ("real", "integer", "mask")


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        """Return the words with bars between them."""
        return " | ".join(self.words)


@dataclass(frozen=True)
class Integer:
    """An int from `low` to `high` inclusive, a multiple of `step`, or None if `optional`; in practice seldom above `usual`."""

    low: int
    high: int | None = None
    step: int = 1
    optional: bool = False
    usual: int = 32

    def __str__(self) -> str:
        """Return the range in words."""
        even = "even " if self.step == 2 else ""
        top = "" if self.high is None else f" to {self.high}"
        return f"{even}int, {self.low}{top or ' or more'}" + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Real:
    """A finite float above `low`, or None if `optional`; in practice within `usual`."""

    low: float
    optional: bool = False
    usual: tuple[float, float] = (0.25, 64.0)

    def __str__(self) -> str:
        """Return the range in words."""
        return f"float above {self.low}" + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def __str__(self) -> str:
        """Return the two values."""
        return "True | False"


@dataclass(frozen=True)
class Record:
    """A record of `posref.scaling`, or None. `dim` is the number of rotated channels, an expression of options and axes."""

    dim: str = "dim"

    def __str__(self) -> str:
        """Return what it is in words."""
        return "a record of posref.scaling, or None"


@dataclass(frozen=True)
class Integers:
    """A sequence of ints, each at least `low` and a multiple of `step`."""

    low: int
    step: int = 1

    def __str__(self) -> str:
        """Return what it holds, in words."""
        return f"{'even ' if self.step == 2 else ''}ints, each {self.low} or more"


Domain = OneOf | Integer | Integers | Real | Flag | Record


@dataclass(frozen=True)
class Axes:
    """
    An array argument: its axes and the kind of its numbers.

    `shape` names the axes, separated by spaces. A letter is a size, the same wherever it occurs. ``*R`` is any number of axes.
    Anything else is an expression of letters and options, such as ``left+right+1`` or ``sum(sections)``. After ``~`` the size
    may also be 1, and the axis may be missing if it comes first; ``~*R`` has all axes of R, or none. ``|`` separates
    alternatives: all arguments of a call take the same one. ``=cos`` is the shape of the argument cos.

    `kind` is "real" (in the dtype of the call), "position" (integer or at least float32), "integer" or "mask". `low` and `high`
    are expressions for the least and the largest value. `ordered` says that the last axis holds the lower ends of intervals,
    then their upper ends.
    """

    shape: str
    kind: str = "real"
    low: str | None = None
    high: str | None = None
    optional: bool = False
    ordered: bool = False

    def __str__(self) -> str:
        """Return kind, range and shape in words."""
        shapes = " or ".join(f"({', '.join(shape.split())})" for shape in self.shape.split("|"))
        limits = f", {self.low} to {self.high}" if self.high is not None else ""
        return f"{self.kind}{limits}, {shapes}" + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Encoding:
    """One definition: the function, its source, and what its arguments and results may be."""

    name: str
    family: str
    function: Callable[..., Any]
    source: str
    models: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("out",)
    domains: Mapping[str, Domain] = field(default_factory=dict)
    invariants: tuple[str, ...] = ()
    arrays: Mapping[str, Axes] = field(default_factory=dict)
    result: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    returns: str = "real"
    noun: str = ""
    equals: Callable[..., Any] | None = None
    closed: bool = False
    sums: bool = False
    rounded: tuple[str, ...] | None = None
    rows: str = ""


@dataclass(frozen=True)
class Part:
    """A named part of a definition."""

    name: str
    function: Callable[..., Any]
    noun: str = ""


REGISTRY: dict[str, Encoding] = {}
PARTS: dict[str, Part] = {}


def encoding(
    *,
    family: str,
    source: str,
    models: tuple[str, ...] = (),
    outputs: tuple[str, ...] = ("out",),
    domains: Mapping[str, Domain] | None = None,
    invariants: tuple[str, ...] = (),
    arrays: Mapping[str, Axes] | None = None,
    result: str | tuple[str, ...] | None = None,
    requires: tuple[str, ...] = (),
    returns: str = "real",
    noun: str = "",
    equals: Callable[..., Any] | None = None,
    closed: bool = False,
    sums: bool = False,
    rounded: tuple[str, ...] | None = None,
    rows: str = "",
    name: str = "",
) -> Callable[[F], F]:
    """
    Register a definition and return it unchanged.

    `outputs` names the results, `domains` the values that options take, and `invariants` the properties that the tests check.
    `arrays` describes the array arguments. `result` has the axes of each output in the same letters, "=x" where they are those
    of the argument x; reports read off it at which position a value stands. `requires` lists what else must be true of options
    and axes, as expressions; one that uses an absent name does not apply. These are enough to draw calls at random. `returns`
    says what the results are: "real", "integer", or "mask", true where a query may attend to a key. `rows` lists the letters of
    axes along which every index stands for itself: cut out of the arguments that have it, it is cut out of every result. `name`
    is by default the function's.

    The rest is about operations that call each other (`posref.composition`):

    - `noun` is the name of the result where it is a stage of another operation.
    - `equals` is a function with the same arguments and results that calls other operations, where the definition gets there
      another way. A deviation of what it calls acts in it, and a test compares the two.
    - `closed` operations have deviations of their own: deviations of what they call do not act in them.
    - `sums` is true if a result is a sum of products that may cancel: its error can equal the error of the largest in its row.
    - `rounded` says where to put a small relative error that stands for all honest roundings: array arguments by name, or
      "result". By default it is the result, if that is real and made of no real array and no other operation.
    """
    if family not in FAMILIES:
        msg = f"encoding: family must be one of {FAMILIES}; got {family!r}."
        raise ValueError(msg)
    if returns not in RESULTS:
        msg = f"encoding: returns must be one of {RESULTS}; got {returns!r}."
        raise ValueError(msg)

    def register(function: F) -> F:
        op = name or function.__name__
        results = (result,) * len(outputs) if isinstance(result, str) else result
        _require(function, results, outputs, {**(arrays or {}), **(domains or {})})
        if op in REGISTRY and REGISTRY[op].function.__module__ != function.__module__:
            msg = f"encoding: names must be unique; {op!r} is already defined in {REGISTRY[op].function.__module__}."
            raise ValueError(msg)
        REGISTRY[op] = Encoding(
            op, family, function, source, models, outputs, domains or {}, invariants, arrays or {},
            results or (), requires, returns, noun, equals, closed, sums, rounded,
            rows,
        )  # fmt: skip
        return function

    return register


def _require(
    function: Callable[..., Any], results: tuple[str, ...] | None, outputs: tuple[str, ...], described: Mapping[str, Any]
) -> None:
    """Raise `ValueError`, with the file and the line to add, unless the registry is told all that it needs of a definition."""
    where = f"{function.__code__.co_filename}, line {function.__code__.co_firstlineno}: @encoding of {function.__name__}"
    if results is None or len(results) != len(outputs):
        msg = (
            f'{where} must say the axes of {", ".join(outputs)} in the letters of arrays: add result="*R T D", or "=x" if as x.'
        )
        raise ValueError(msg)
    known = {*described, "dtype", "xp", "device"}
    for name in inspect.signature(function).parameters:
        if name not in known:
            msg = f"{where} must describe {name}: add it to arrays, as Axes(...), or to domains, as an option."
            raise ValueError(msg)


def part(*, noun: str = "") -> Callable[[F], F]:
    """
    Register a function as a named part of the definitions that call it, and return it unchanged.

    A deviation may change it by its name. `noun` is what its result is called where it is a stage.
    """

    def register(function: F) -> F:
        name = function.__name__
        if name in PARTS and PARTS[name].function.__module__ != function.__module__:
            msg = f"part: names must be unique; {name!r} is already defined in {PARTS[name].function.__module__}."
            raise ValueError(msg)
        PARTS[name] = Part(name, function, noun)
        return function

    return register
