"""
Finds the functions that an operation calls, from its code, and copies it with other functions in their place.

A *known* function is a registered operation or a named part (`posref.spec.part`). A *helper* is any other function of this
package. To find the known functions that a definition calls, this module reads the global names in its code, in nested
functions and in the helpers that it calls. A copy has its own globals, in which known functions are replaced.

A function is found only if it is called by a global name. It is not found through an attribute (``ntk.raised``), a table of
functions, a closure, a decorator that wraps it, a method, or a global that is set at run time. No definition calls a known
function in these ways: the tests run every operation and compare the calls with what is found here.
"""

import dis
from collections.abc import Callable, Iterator, Set
from functools import cache, lru_cache
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any

from posref.spec import PARTS, REGISTRY

Function = Callable[..., Any]
Known = Callable[[str, Function], Function]
ANGLES = "posref.core.angles"
KEPT = 2048  # functions of which the names are kept


def stages(op: str) -> tuple[str, ...]:
    """Return the operations that an operation or the function in its `equals` calls directly, in the order of use."""
    record = REGISTRY[op]
    both = called(record.function) + (called(record.equals) if record.equals else ())
    return tuple(name for name in dict.fromkeys(both) if name in REGISTRY)


def parts_of(operation: str) -> tuple[str, ...]:
    """Return the stages of an operation, and the tables that some of these make of positions and its options alone."""
    if operation not in REGISTRY:
        return ()
    parts, known = stages(operation), {*REGISTRY[operation].domains, "dim"}
    tables = [
        name for name, record in REGISTRY.items() if tuple(record.arrays) == ("positions",) and known.issuperset(record.domains)
    ]
    return (*parts, *(name for name in tables if stages(name) and {*parts}.issuperset(stages(name))))


@cache
def reaches(name: str) -> frozenset[str]:
    """
    Return the known functions that a known function calls, directly or through others.

    A mistake in one of them acts on the caller. Parts and operations that are registered as closed count as calling nothing.
    """
    if name in PARTS or REGISTRY[name].closed:
        return frozenset()
    direct = called(formula(name))
    return frozenset(direct).union(*(reaches(other) for other in direct))


def formula(name: str) -> Function:
    """Return the function in `equals` of a known function, which calls other known functions, or else the function itself."""
    if name in PARTS:
        return PARTS[name].function
    return REGISTRY[name].equals or REGISTRY[name].function


@cache
def called(function: Function) -> tuple[str, ...]:
    """Return the names of the known functions that a function calls, directly or through helpers, in the order of use."""
    names: dict[str, None] = {}
    seen: set[Function] = set()

    def walk(helper: Function) -> None:
        seen.add(helper)
        for _, other in _functions(helper):
            if other in seen:
                continue
            if is_known(other):
                names[other.__name__] = None
            else:
                walk(other)

    walk(function)
    return tuple(names)


def helpers(function: Function) -> tuple[Function, ...]:
    """Return the helpers that a function calls directly."""
    return tuple(dict.fromkeys(other for _, other in _functions(function) if not is_known(other)))


@cache
def has_frequencies(op: str) -> bool:
    """Return whether an operation makes frequencies, or angles from positions and frequencies (`posref.core.angles`)."""
    seen: set[Function] = set()

    def walk(function: Function) -> bool:
        if function in seen:
            return False
        seen.add(function)
        return any(other.__module__ == ANGLES or walk(other) for _, other in _functions(function))

    return makes_frequencies(op) or walk(REGISTRY[op].function)


def makes_frequencies(op: str) -> bool:
    """Return whether the result of an operation is frequencies: powers of a base, from options alone."""
    record = REGISTRY[op]
    return "base" in record.domains and not record.arrays


def is_known(function: Function) -> bool:
    """Return whether a function has the name of an operation or a part. A transcription has the name of its original."""
    return function.__name__ in REGISTRY or function.__name__ in PARTS


def rebound(function: Function, names: Set[str], known: Known) -> Function:
    """
    Return a copy of a function that calls `known(name)` in place of each known function of `names`.

    `known` takes the name and the function that would be called. Helpers that call these functions are copied too, once each.
    Everything else stays the same.
    """
    copies: dict[Function, Function] = {}

    def copied(original: Function) -> Function:
        if original not in copies:
            plain = unwrap(original)  # a copy is evaluated at once: its blocks would call what it replaces
            scope = dict(plain.__globals__)
            copy = FunctionType(plain.__code__, scope, plain.__name__, plain.__defaults__, plain.__closure__)
            copy.__kwdefaults__ = plain.__kwdefaults__
            copies[original] = copy
            for name, other in _functions(original):
                if is_known(other):
                    if other.__name__ in names:
                        scope[name] = known(other.__name__, other)
                elif not names.isdisjoint(called(other)):
                    scope[name] = copied(other)
        return copies[original]

    return copied(function)


class Observed:
    """A copy of a function that records the results of the functions in `names`. Those in `ends` do not run and return None."""

    def __init__(self, function: Function, names: Set[str], ends: Set[str] = frozenset()) -> None:
        self._results: dict[str, list[Any]] = {}
        self._ends = ends
        self.function = rebound(function, names | ends, self._kept)

    def _kept(self, name: str, function: Function) -> Function:
        if name in self._ends:
            return lambda *args, **options: None
        results = self._results.setdefault(name, [])

        def keeping(*args: Any, **options: Any) -> Any:
            result = function(*args, **options)
            results.append(_Outputs(result) if isinstance(result, tuple) else result)
            return results[-1]

        return keeping

    def outputs(self) -> dict[str, Any]:
        """
        Return the results of the functions that were called exactly once.

        The key of a single result is the function's noun; a result without a noun is left out. If a function returns several
        outputs, only those that the caller used are included, and the keys are their names.
        """
        by_name: dict[str, Any] = {}
        for name, (result, *more) in ((name, results) for name, results in self._results.items() if results):
            if more:
                continue
            if isinstance(result, _Outputs) and name in REGISTRY:
                by_name |= {REGISTRY[name].outputs[i]: tuple.__getitem__(result, i) for i in sorted(result.taken)}
            elif noun(name):
                by_name[noun(name)] = result
        return by_name


def noun(name: str) -> str:
    """Return the name of a known function's result as a stage of others, or "" if it is no stage."""
    return PARTS[name].noun if name in PARTS else REGISTRY[name].noun


class _Outputs(tuple[Any, ...]):
    """A tuple of outputs that records which of them were used."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.taken: set[int] = set()

    def __getitem__(self, index: Any) -> Any:
        taken = range(len(self))[index]
        self.taken.update(taken if isinstance(index, slice) else [taken])
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Any]:
        self.taken.update(range(len(self)))
        return super().__iter__()


@cache
def _names(code: CodeType) -> tuple[str, ...]:
    """Return the global names in a function's code and in its nested functions, in the order of the code."""
    names: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.append(instruction.argval)
        elif isinstance(instruction.argval, CodeType):
            names += _names(instruction.argval)
    return tuple(dict.fromkeys(names))


def _functions(function: Function) -> Iterator[tuple[str, Function]]:
    """Yield the global names in a function's code that are functions of this package, each with its function."""
    if isinstance(function, FunctionType):
        plain = unwrap(function)
        yield from ((name, plain.__globals__[name]) for name in _names_of_functions(plain))


@lru_cache(maxsize=KEPT)
def _names_of_functions(plain: FunctionType) -> tuple[str, ...]:
    """Return the global names in a function's code that are functions of this package."""
    root, scope = __name__.partition(".")[0], plain.__globals__
    named = ((name, scope.get(name)) for name in _names(plain.__code__))
    return tuple(n for n, one in named if isinstance(one, FunctionType) and one.__module__.partition(".")[0] == root)
