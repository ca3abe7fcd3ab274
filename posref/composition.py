"""
What operations are made of, told by the bodies of their definitions alone, and copies of them that call something else.

A *known* function is a registered operation or a named part (`posref.spec.part`). Which ones a definition calls is read from
its code: from the global names that it mentions, nested functions included, and on through helpers, which are the functions of
this package that are not known. A copy has globals of its own, in which known functions are replaced.

So a function is found if it is reached by a global name. It is not found by way of an attribute (``ntk.raised``), a table of
functions, a closure, a decorator that wraps it, a method, or a global that is set at run time. No definition calls a known
function so: the tests run every operation and compare what is called with what is found here.
"""

import dis
from collections.abc import Callable, Iterator, Set
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from posref.spec import PARTS, REGISTRY

Function = Callable[..., Any]
Known = Callable[[str, Function], Function]
ANGLES = "posref.angles"
FREQUENCIES = ("rope_frequencies", "axial_frequencies")  # operations that return frequencies


def stages(op: str) -> tuple[str, ...]:
    """Return the operations that an operation calls directly, or that what it `equals` does, in the order of their use."""
    record = REGISTRY[op]
    both = called(record.function) + (called(record.equals) if record.equals else ())
    return tuple(name for name in dict.fromkeys(both) if name in REGISTRY)


@cache
def reaches(name: str) -> frozenset[str]:
    """
    Return the known functions in which a deviation acts on an operation: those that it calls, directly or through others.

    Parts are not looked into, nor are operations that are registered as closed.
    """
    if name in PARTS or REGISTRY[name].closed:
        return frozenset()
    direct = called(formula(name))
    return frozenset(direct).union(*(reaches(other) for other in direct))


def formula(name: str) -> Function:
    """Return a known function, or what it equals by calls to others."""
    if name in PARTS:
        return PARTS[name].function
    return REGISTRY[name].equals or REGISTRY[name].function


@cache
def called(function: Function) -> tuple[str, ...]:
    """Return the names of the known functions that a function calls, directly or through helpers, in the order of their use."""
    found: dict[str, None] = {}
    seen: set[Function] = set()

    def walk(helper: Function) -> None:
        seen.add(helper)
        for _, other in _functions(helper):
            if other in seen:
                continue
            if is_known(other):
                found[other.__name__] = None
            else:
                walk(other)

    walk(function)
    return tuple(found)


@cache
def has_frequencies(op: str) -> bool:
    """Return whether an operation makes frequencies, or forms angles of positions and frequencies (`posref.angles`)."""
    seen: set[Function] = set()

    def walk(function: Function) -> bool:
        if function in seen:
            return False
        seen.add(function)
        return any(other.__module__ == ANGLES or walk(other) for _, other in _functions(function))

    return op in FREQUENCIES or walk(REGISTRY[op].function)


def is_known(function: Function) -> bool:
    """Return whether a function is an operation or a part, by its name: a transcription has the name of what it transcribes."""
    return function.__name__ in REGISTRY or function.__name__ in PARTS


def rebound(function: Function, names: Set[str], known: Known) -> Function:
    """
    Return a copy of a function that calls others: for every known function of `names`, what `known` returns of it.

    `known` takes the name and the function that would be called. Helpers on the way are copied too, once each; all else is as
    it was.
    """
    copies: dict[Function, Function] = {}

    def copied(original: Function) -> Function:
        if original not in copies:
            scope = dict(original.__globals__)
            copy = FunctionType(original.__code__, scope, original.__name__, original.__defaults__, original.__closure__)
            copy.__kwdefaults__ = original.__kwdefaults__
            copies[original] = copy
            for name, other in _functions(original):
                if is_known(other):
                    scope[name] = known(other.__name__, other) if other.__name__ in names else other
                elif not names.isdisjoint(called(other)):
                    scope[name] = copied(other)
        return copies[original]

    return copied(function)


class Observed:
    """A copy of a function that keeps what the known functions that it calls return; `ends` are not run, and return None."""

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
        Return the results of functions that were called once, by the names of outputs, or by the noun of the only one.

        Of several outputs those count that the caller took. What has no noun is no stage.
        """
        found: dict[str, Any] = {}
        for name, (result, *more) in ((name, results) for name, results in self._results.items() if results):
            if more:
                continue
            if isinstance(result, _Outputs):
                found |= {REGISTRY[name].outputs[i]: tuple.__getitem__(result, i) for i in sorted(result.taken)}
            elif noun(name):
                found[noun(name)] = result
        return found


def noun(name: str) -> str:
    """Return what the result of a known function is called where it is a stage; nothing where it is none."""
    return PARTS[name].noun if name in PARTS else REGISTRY[name].noun


class _Outputs(tuple[Any, ...]):
    """Several outputs, with a record of which were taken."""

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
    """Return the global names that a function's code mentions, those of nested functions where these are made."""
    found: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.append(instruction.argval)
        elif isinstance(instruction.argval, CodeType):
            found += _names(instruction.argval)
    return tuple(dict.fromkeys(found))


def _functions(function: Function) -> Iterator[tuple[str, Function]]:
    """Yield the functions of this package that a function mentions by a global name, by that name."""
    if not isinstance(function, FunctionType):
        return
    root = __name__.partition(".")[0]
    for name in _names(function.__code__):
        other = function.__globals__.get(name)
        if isinstance(other, FunctionType) and other.__module__.partition(".")[0] == root:
            yield name, other
