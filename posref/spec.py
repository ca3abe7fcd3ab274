"""The registry of all operations, with a description of each one's arguments and results, read by the CLI and the tests."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from threading import RLock
from typing import Any, TypeVar

from posref.surroundings import undisturbed

F = TypeVar("F", bound=Callable[..., Any])
Of = TypeVar("Of")

FAMILIES = ("absolute", "rotary", "bias", "relative", "attention", "extension", "positions")
RESULTS = ("real", "integer", "mask")


@dataclass(frozen=True)
class OneOf:
    """An option that is one of a few words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        """Return the words with bars between them."""
        return " | ".join(self.words)


@dataclass(frozen=True)
class Integer:
    """An int from `low` to `high` inclusive, a multiple of `step`, or None if `optional`. Random calls end at `usual`."""

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
    """A finite float above `low`, or None if `optional`. Random calls stay within `usual`, which is above 0."""

    low: float
    _: KW_ONLY
    optional: bool = False
    usual: tuple[float, float] = (0.25, 64.0)

    def __post_init__(self) -> None:
        """Raise `ValueError` if random calls cannot be drawn: their logarithms are spread evenly."""
        least, most = self.usual
        if not max(self.low, 0) < least <= most:
            msg = f"Real: usual must be above 0 and above low, {self.low}; got {self.usual}. Let a magnitude be the option."
            raise ValueError(msg)

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
    """A record of `posref.scaling`, or None. `dim` is an expression of options and axes: the number of rotated channels."""

    dim: str = "dim"

    def __str__(self) -> str:
        """Return a description in words."""
        return "a record of posref.scaling, or None"


@dataclass(frozen=True)
class Integers:
    """A sequence of ints, each at least `low` and a multiple of `step`."""

    low: int
    step: int = 1

    def __str__(self) -> str:
        """Return a description in words."""
        return f"{'even ' if self.step == 2 else ''}ints, each {self.low} or more"


class Missing:
    """The type of `MISSING`, which stands for an option that was not given."""

    def __repr__(self) -> str:
        """Return what a reader should see."""
        return "nothing"


MISSING = Missing()
Domain = OneOf | Integer | Integers | Real | Flag | Record


@dataclass(frozen=True)
class Axes:
    """
    An array argument: its axes and the kind of its dtype.

    `shape` names the axes, separated by spaces. A letter is a size; the same letter means the same size in all arguments.
    ``*R`` is any number of axes; R is no size. Anything else is an expression of letters and options, such as ``left+right+1``
    or ``sum(sections)``. After ``~`` the size may also be 1, and the axis may be missing if it comes first. ``~*R`` stands for
    all axes of R, or none. ``|`` separates alternatives; all arguments of a call use the same alternative. ``=cos`` is the
    shape of the argument cos.

    `kind` is "real" (in the dtype of the call), "wide" (at least float32), "position" (integer or at least float32), "integer"
    or "mask" (boolean).

    The domain of the values: `low` and `high` are expressions for the smallest and the largest value, of integers and of reals.
    `positive` values are above 0. Random calls and generated cases stay within the domain. `index` means that the values are
    rows of a table, so that none may lie outside. `distinct` means that no integer of at least 0 occurs twice. `earlier` means
    that each integer is below its index along the last axis, as the parents in a tree are. `ordered` means that the last axis
    holds the lower ends of intervals, then the upper ends. `usual` is where most reals are; generated cases stay within it
    too.
    """

    shape: str
    kind: str = "real"
    low: str | None = None
    high: str | None = None
    optional: bool = False
    ordered: bool = False
    distinct: bool = False
    earlier: bool = False
    positive: bool = False
    index: bool = False
    usual: tuple[float, float] = (-2.0, 2.0)

    def __post_init__(self) -> None:
        """Raise `ValueError` for a letter with another meaning, or a domain that says nothing, or two things."""
        if re.search(r"(?<![*~\w])R\b", self.shape):
            msg = f"Axes: R must stand for any number of axes, as *R; got {self.shape!r}. Call a size N."
            raise ValueError(msg)
        if self.index and (self.kind != "integer" or self.low is None or self.high is None):
            msg = f"Axes: an index must be an integer with low and high; got kind={self.kind!r}, {self.low} to {self.high}."
            raise ValueError(msg)
        if self.positive and (self.kind not in ("real", "wide") or self.low is not None):
            msg = f"Axes: positive is of reals, and says what low says; got kind={self.kind!r}, low={self.low!r}."
            raise ValueError(msg)
        if self.kind == "mask" and (self.low, self.high) != (None, None):
            msg = f"Axes: a mask has no low and no high; got {self.low} to {self.high}."
            raise ValueError(msg)

    @property
    def limits(self) -> str:
        """The domain of the values in words, "" where every number may be given."""
        if self.low is not None:
            return f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"
        ends = ("above 0" if self.positive else "", "" if self.high is None else f"at most {self.high}")
        return " and ".join(end for end in ends if end)

    def __str__(self) -> str:
        """Return kind, range and shape in words."""
        shapes = " or ".join(f"({', '.join(shape.split())})" for shape in self.shape.split("|"))
        limits = f", {self.limits}" if self.limits else ""
        return f"{self.kind}{limits}, {shapes}" + (", or None" if self.optional else "")


@dataclass(frozen=True)
class Encoding:
    """One operation: its function, its source, and a description of its arguments and results (see `encoding`)."""

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
    title: str = ""
    idea: str = ""
    longer: str = ""
    tool: bool = False
    read: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Part:
    """A named step of one or more definitions (see `part`)."""

    name: str
    function: Callable[..., Any]
    noun: str = ""


class Definitions(MutableMapping[str, Of]):
    """What definitions register, by name. When it is first read, all of them are imported."""

    def __init__(self) -> None:
        self.registered: dict[str, Of] = {}

    def __getitem__(self, name: str) -> Of:
        if not _DONE:
            _import_all()
        return self.registered[name]

    def __contains__(self, name: object) -> bool:
        if not _DONE:
            _import_all()
        return name in self.registered

    def __setitem__(self, name: str, of: Of) -> None:
        self.registered[name] = of

    def __delitem__(self, name: str) -> None:
        del self.registered[name]

    def __iter__(self) -> Iterator[str]:
        _import_all()
        return iter(self.registered)

    def __len__(self) -> int:
        _import_all()
        return len(self.registered)


REGISTRY: Definitions[Encoding] = Definitions()
PARTS: Definitions[Part] = Definitions()
_IMPORTING = RLock()
_BEGUN: list[None] = []  # not empty once the definitions are being imported
_DONE: list[None] = []  # not empty once they are: read without the lock, which torch.compile does not know


def _import_all() -> None:
    """Import the definitions of all families, once. Then the registry is in the order of families and names."""
    if _DONE:
        return
    with _IMPORTING:
        if _BEGUN:
            return
        _BEGUN.append(None)
        try:
            for family in FAMILIES:
                folder = import_module(f"posref.{family}")
                for module in iter_modules(folder.__path__, f"posref.{family}."):
                    import_module(module.name)
        except BaseException:
            _BEGUN.clear()
            raise
        ordered = sorted(REGISTRY.registered.items(), key=lambda item: (FAMILIES.index(item[1].family), item[0]))
        REGISTRY.registered = dict(ordered)
        _DONE.append(None)


def encoding(
    *,
    title: str = "",
    idea: str = "",
    longer: str = "",
    tool: bool = False,
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
    read: Mapping[str, str] | None = None,
    name: str = "",
) -> Callable[[F], F]:
    """
    Register a definition and return it. Called without a required word, it raises an error that says the words.

    `title` is the field's own name of the encoding, and `idea` explains it in at most 60 words. `longer` is what the authors
    report about texts longer than in training. A `tool` is not an encoding in itself: the site does not offer it as a choice.
    The docstring says what the words of an option mean (see `posref.about`), and who uses them. `read` says where this was read
    in a user's code, by the user's name: a version or a commit, the file, and the lines. A user without an entry is shown as
    not verified.

    `outputs` names the results, `domains` describes the options, and `invariants` names the properties that the tests check.
    `arrays` describes the array arguments. `result` gives the axes of each output in the same letters, or "=x" for the axes of
    the argument x. Reports use it to find the position of a value. `requires` lists further conditions on options and axes, as
    expressions; an expression with an absent name is skipped. Together these are enough to draw random calls. `returns` is
    "real", "integer", or "mask" (True where a query may attend to a key). `rows` lists the letters of axes whose indices are
    independent: selecting some of them in the arguments selects the same ones in every result. `name` defaults to the
    function's name.

    The other arguments are for operations that call each other (`posref.core.composition`). A mistake is a known mistake,
    which replaces an operation or a part of it.

    - `noun` names the result where it is a stage of another operation.
    - `equals` is a second way to the same results: a function with the same arguments that calls other operations. Mistakes
      of these operations take effect in it, and a test compares it with the definition.
    - `closed` operations have their own mistakes. Mistakes of the operations that they call have no effect in them.
    - `sums` is true if a result is a sum over an axis, as of products in a logit, whose terms may cancel. Its error can be as
      large as the error of the largest value in its row.
    - `rounded` says where to add a small relative error that stands for all correct roundings: names of array arguments, or
      "result". By default it is the result, if that is real and depends on no real array and no other operation.
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
        signature = inspect.signature(function)
        _require(function, signature, results, outputs, {**(arrays or {}), **(domains or {})})
        _expect_words(function, signature, domains or {})
        function = undisturbed(function, tuple(arrays or ()))
        known = REGISTRY.registered.get(op)
        if known is not None and known.function.__module__ != function.__module__:
            msg = f"encoding: names must be unique; {op!r} is already defined in {known.function.__module__}."
            raise ValueError(msg)
        REGISTRY[op] = Encoding(
            op, family, function, source, models, outputs, domains or {}, invariants, arrays or {},
            results or (), requires, returns, noun, equals, closed, sums, rounded,
            rows,
            title=title, idea=idea, longer=longer, tool=tool, read=read or {},
        )  # fmt: skip
        return function

    return register


def _expect_words(function: Callable[..., Any], signature: inspect.Signature, domains: Mapping[str, Domain]) -> None:
    """
    Let a function be called without an option that must be one of a few words: `check_word` then says the words.

    Python's own error names the option alone. The signature does not change: the option has no default.
    """
    words = [n for n, p in signature.parameters.items() if p.default is p.empty and isinstance(domains.get(n), OneOf)]
    if words:
        code: Any = inspect.unwrap(function)  # below what evaluates it in blocks
        code.__signature__ = signature
        code.__kwdefaults__ = {**(code.__kwdefaults__ or {}), **dict.fromkeys(words, MISSING)}


def _require(
    function: Callable[..., Any],
    signature: inspect.Signature,
    results: tuple[str, ...] | None,
    outputs: tuple[str, ...],
    described: Mapping[str, Any],
) -> None:
    """Raise `ValueError`, with the file and the line to add, if the registry lacks something about a definition."""
    code = inspect.unwrap(function).__code__
    where = f"{code.co_filename}, line {code.co_firstlineno}: @encoding of {function.__name__}"
    if results is None or len(results) != len(outputs):
        msg = (
            f'{where} must say the axes of {", ".join(outputs)} in the letters of arrays: add result="*R T D", or "=x" if as x.'
        )
        raise ValueError(msg)
    known = {*described, "dtype", "xp", "device"}
    for name in signature.parameters:
        if name not in known:
            msg = f"{where} must describe {name}: add it to arrays, as Axes(...), or to domains, as an option."
            raise ValueError(msg)


def part(*, noun: str = "") -> Callable[[F], F]:
    """
    Register a function as a named part of the definitions that call it, and return it unchanged.

    A mistake can replace it by its name. `noun` names its result where it is a stage of an operation.
    """

    def register(function: F) -> F:
        name = function.__name__
        known = PARTS.registered.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            msg = f"part: names must be unique; {name!r} is already defined in {known.function.__module__}."
            raise ValueError(msg)
        PARTS[name] = Part(name, function, noun)
        return function

    return register
