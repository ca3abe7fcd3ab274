"""
The reference under its other options: sibling operations, and options or arguments that are exchanged.

All of them are enumerated from the registry. A sibling takes arrays of the same names and returns numbers of the same kind; an
option of it that the call lacks, and that has no default, takes each word that it may be, or each number that the call has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, islice, permutations, product
from operator import itemgetter
from typing import Any

import numpy as np

from posref.spec import REGISTRY, Flag, OneOf

from ..calls import parameters_of, takes_dtype
from ..evidence.tools.deviation import Deviation, after, argument, before, where_allowed
from ..vocabulary.axes import alternatives, result_axes
from ..vocabulary.traits import has_coordinates

WAYS = 24  # ways to call one sibling that are tried
NUMBERS = (int, float)
ValueOf = Callable[[Mapping[str, Any]], Any]  # what an option is, of the options of a call


def candidates(op: str, options: Mapping[str, Any]) -> Iterator[Deviation]:
    """Yield the other things that an operation may have computed; `options` are those of one call."""
    yield from exchanged_options(op)
    yield from exchanged_outputs(op)
    yield from _exchanged_arrays(op)
    yield from _exchanged_coordinates(op)
    for other in REGISTRY:
        if other != op and _alike(op, other):
            yield from islice(_sibling(op, other, options), WAYS)


def _alike(op: str, other: str) -> bool:
    """Return whether two operations take the same arrays, at least two or of the same shapes, and return the same kind."""
    one, two = REGISTRY[op], REGISTRY[other]
    if list(one.arrays) != list(two.arrays) or not one.arrays or len(one.outputs) != len(two.outputs):
        return False
    same = [axes.shape for axes in one.arrays.values()] == [axes.shape for axes in two.arrays.values()]
    return (one.returns == "mask") == (two.returns == "mask") and (same or len(one.arrays) > 1)


def _sibling(op: str, other: str, options: Mapping[str, Any]) -> Iterator[Deviation]:
    """Yield the ways to compute a sibling with the options of a call."""
    required = parameters_of(REGISTRY[other].function)
    numbers = [n for n, v in options.items() if isinstance(v, NUMBERS) and not isinstance(v, bool)]
    choices: dict[str, list[tuple[str, ValueOf]]] = {}
    for word, domain in REGISTRY[other].domains.items():
        if word in parameters_of(REGISTRY[op].function) or required[word].default is not inspect.Parameter.empty:
            continue
        if isinstance(domain, OneOf):
            choices[word] = [(f"{word}={value!r}", partial(_value, value)) for value in domain.words]
        else:
            choices[word] = [(f"{word} is the {n}", itemgetter(n)) for n in numbers]
    for chosen in product(*choices.values()):
        values = {word: value for word, (_, value) in zip(choices, chosen, strict=True)}
        words = ", ".join(text for text, _ in chosen)
        yield Deviation("", f"{other} is computed in its place{words and f' ({words})'}", {op: _calls(other, values)})


def _value(value: Any, options: Mapping[str, Any]) -> Any:
    """Return a value whatever the options of a call are."""
    return value


def _calls(other: str, values: Mapping[str, ValueOf]) -> Any:
    """Return a wrap that calls another operation, with those of the call's options that it has, and more."""
    function, parameters = REGISTRY[other].function, parameters_of(REGISTRY[other].function)

    def deviating(*args: Any, **options: Any) -> Any:
        more = {word: value(options) for word, value in values.items()}
        kept = {
            word: value for word, value in options.items() if word in parameters and (word != "dtype" or takes_dtype(other))
        }
        return function(*args, **(kept | more))

    return lambda _: deviating


def exchanged_options(op: str) -> Iterator[Deviation]:
    """Yield mistakes in which two numbers are exchanged, or one word of an option is taken for another, or conversely too."""
    parameters = parameters_of(REGISTRY[op].function)
    domains = {word: domain for word, domain in REGISTRY[op].domains.items() if word in parameters}
    required = [
        w for w, d in domains.items() if not isinstance(d, OneOf | Flag) and parameters[w].default is inspect.Parameter.empty
    ]
    for one, two in combinations(required, 2):

        def swapped(*args: Any, one: str = one, two: str = two, **options: Any) -> Any:
            return args, options | {one: options[two], two: options[one]}

        yield Deviation("", f"{one} and {two} are exchanged", {op: before(swapped)})
    for word, domain in domains.items():
        words: Sequence[Any] = domain.words if isinstance(domain, OneOf) else (False, True) if isinstance(domain, Flag) else ()
        ways = [({a: b}, f"{word} {a!r} is taken for {b!r}") for a, b in permutations(words, 2)]
        ways += [({a: b, b: a}, f"{word} {a!r} and {b!r} are exchanged") for a, b in combinations(words, 2)]
        for taken, text in ways:

            def other(*args: Any, word: str = word, taken: Mapping[Any, Any] = taken, **options: Any) -> Any:
                value = options.get(word, parameters[word].default)
                return args, options | {word: taken.get(value, value)}

            yield Deviation("", text, {op: where_allowed(other)})


def exchanged_outputs(op: str) -> Iterator[Deviation]:
    """Yield deviations in which two outputs of the same axes, such as cosines and sines, are exchanged, or one is negated."""
    names = REGISTRY[op].outputs
    if len(names) != 2 or result_axes(op, names[0], 0) != result_axes(op, names[1], 0):
        return
    ways: dict[str, Callable[[Any, Any], Any]] = {
        f"{names[0]} and {names[1]} are exchanged": lambda a, b: (b, a), f"{names[0]} is negated": lambda a, b: (-a, b),
        f"{names[1]} is negated": lambda a, b: (a, -b),
    }  # fmt: skip
    yield from (Deviation("", text, {op: after(lambda out, *a, way=way, **o: way(*out))}) for text, way in ways.items())


def _exchanged_arrays(op: str) -> Iterator[Deviation]:
    """Yield mistakes in which two arrays of one kind are exchanged, or one of them is used in both places."""
    arrays = REGISTRY[op].arrays
    names = [n for n, axes in arrays.items() if axes.kind in ("real", "wide") and not any("*" in way for way in axes.shape)]
    for one, two in combinations(names, 2):
        if len(alternatives(arrays[one].shape)[0]) != len(alternatives(arrays[two].shape)[0]):
            continue
        at, other = list(arrays).index(one), list(arrays).index(two)
        ways = {
            f"{one} and {two} are exchanged": {at: other, other: at},
            f"{one} is used instead of {two} too": {other: at},
            f"{two} is used instead of {one} too": {at: other},
        }
        for text, moved in ways.items():

            def change(*args: Any, moved: Mapping[int, int] = moved, **options: Any) -> Any:
                return tuple(args[moved.get(k, k)] for k in range(len(args))), options

            yield Deviation("", text, {op: before(change)})


def _exchanged_coordinates(op: str) -> Iterator[Deviation]:
    """Yield mistakes with two coordinates of positions exchanged, if their first axis holds coordinates."""
    if "positions" not in REGISTRY[op].arrays or not has_coordinates(op):
        return
    at = list(REGISTRY[op].arrays).index("positions")
    for one, two in combinations(range(3), 2):

        def exchanged(rows: Any, one: int = one, two: int = two) -> Any:
            swapped = np.array(rows)
            swapped[[one, two]] = swapped[[two, one]]
            return swapped

        yield Deviation("", f"coordinates {one} and {two} are exchanged", {op: argument(at, exchanged)})
    for kept, words in enumerate(("coordinates are in reverse order", "coordinates after the first are in reverse order")):

        def reversed_from(rows: Any, kept: int = kept) -> Any:
            return np.concatenate([rows[:kept], rows[kept:][::-1]])

        yield Deviation("", words, {op: argument(at, reversed_from)})
