"""
Finds arguments that arrive changed: positions in a narrow integer type or another order, an array negated or dropped.

They are enumerated from the registry, so they are tried for operations whose own list of known mistakes lacks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from operator import add
from typing import Any

import numpy as np

from posref.core.composition import reaches
from posref.spec import REGISTRY, Integer

from ..calls import TABLES, parameters_of, positions_of
from ..evidence.shared.angle_tables import along_tokens, positions_of_tables
from ..evidence.tools.deviation import Deviation, Wrap, after, before, narrowed
from ..vocabulary.axes import alternatives

WIDTHS = {"int8": (8, True), "uint8": (8, False), "int16": (16, True), "uint16": (16, False), "int32": (32, True),
          "uint32": (32, False)}  # fmt: skip
SHIFTS = (*range(2, 21), 32, 64, 128)  # of the positions of queries or of keys alone; 1 is one of `ORDERS`
NARROW = ("bfloat16", "float16")
PLACES = ("last axis", "last axis but one", "last axis but two")
Array = Any
Change = Callable[[Array], Array]
OF_ARRAYS: Mapping[str, Change] = {
    "negated": np.negative, "treated as 0": np.zeros_like, "squared": np.square, "taken without signs": np.abs,
    "limited to at least 0": lambda a: np.maximum(a, 0), "limited to at most 1": lambda a: np.minimum(a, 1),
}  # fmt: skip
OF_WEIGHTS: Mapping[str, Change] = {"doubled": lambda a: 2 * a, "halved": lambda a: a / 2}
OF_TABLES: Mapping[str, Change] = {
    "all rows have the tables of the first row": lambda t: np.broadcast_to(t[:1], np.shape(t)) if np.ndim(t) > 2 else t,
    "all tokens have the tables of the first token": lambda t: _first(t, -2),
    "the tables of the tokens are in reverse order": lambda t: _reversed(t, -2),
    "every token has the tables of the token before it": lambda t: np.roll(t, 1, -2) if np.ndim(t) > 1 else t,
    "every token has the tables of the token after it": lambda t: np.roll(t, -1, -2) if np.ndim(t) > 1 else t,
}
COUNTED = {"Q": "queries", "K": "keys", "T": "tokens", "H": "heads", "D": "channels"}  # letters of axes, where they count these
FACTORS = 4  # of the ways below: those by a size or its root
VECTORS = ("x", "q", "k", "v")  # a factor of these is one of the scale, or of the result
OF_REALS: Mapping[str, Callable[[Array, int], Array]] = {
    "divided by {}": lambda out, n: out / n, "multiplied by {}": lambda out, n: out * n,
    "divided by the square root of {}": lambda out, n: out / n**0.5,
    "multiplied by the square root of {}": lambda out, n: out * n**0.5,
    "multiplied by {}, and divided by one more": lambda out, n: out * n / (n + 1),
    "multiplied by {}, and divided by one less": lambda out, n: out * n / (n - 1) if n > 1 else out,
    "divided by {}, and multiplied by one more": lambda out, n: out * (n + 1) / n,
    "divided by {}, and multiplied by one less": lambda out, n: out * (n - 1) / n,
    "divided by half of {}": lambda out, n: out / (n / 2), "multiplied by half of {}": lambda out, n: out * (n / 2),
}  # fmt: skip
OF_INTEGERS: Mapping[str, Callable[[Array, int], Array]] = {
    "too small by {}": lambda out, n: out - n, "too small by {} less 1": lambda out, n: out - (n - 1),
    "too large by {}": lambda out, n: out + n, "too large by {} less 1": lambda out, n: out + (n - 1),
}  # fmt: skip


def candidates(op: str) -> Iterator[Deviation]:
    """Yield the mistakes in what arrives, those of positions first."""
    places = _places(op)
    for text, change in _of_widths():
        yield Deviation("", text, on_positions(op, change))
    for dtype in (*NARROW, "float32") if positions_of(op) else ():
        held = narrowed(dtype)
        changes = dict.fromkeys(positions_of(op), lambda p, held=held: held(p).astype(np.asarray(p).dtype))
        yield Deviation("", f"positions are held in {dtype}", _changed(op, changes))
    if len(places) > 1:
        yield from _of_pairs(op, places)
    elif places:
        yield from (Deviation("", text, on_positions(op, along_tokens(change))) for text, change in ORDERS.items())
        yield from (Deviation("", f"along the last axis of positions, {text}", on_positions(op, ORDERS[text])) for text in LAST)
    yield from _of_arrays(op)
    yield from _of_results(op)
    yield from _of_terms(op)


def on_positions(op: str, change: Change) -> dict[str, Wrap]:
    """Return wraps that change positions: of the tables that an operation is made with, or else of its own arguments."""
    tables = positions_of_tables(change)
    if not {op, *reaches(op)}.isdisjoint(tables):
        return tables
    return _changed(op, dict.fromkeys(positions_of(op), change))


def _places(op: str) -> tuple[str, ...]:
    return positions_of(op) if positions_of(op) else tuple(n for n in REGISTRY[op].arrays if n.endswith("positions"))


def _changed(op: str, changes: Mapping[str, Change]) -> dict[str, Wrap]:
    """Return a wrap that changes arrays by name, where they are given."""
    names = list(parameters_of(REGISTRY[op].function))

    def changed(*args: Any, **options: Any) -> Any:
        arguments = [changes[n](a) if n in changes and a is not None else a for n, a in zip(names, args, strict=False)]
        named = {n: changes[n](a) if n in changes and a is not None else a for n, a in options.items()}
        return tuple(arguments), named

    return {op: before(changed)}


# ---- positions -------------------------------------------------------------------------------------------------------------


def as_integers(values: Array, bits: int, *, signed: bool) -> Array:
    """Return integers as a type of so many bits holds them."""
    low = 2 ** (bits - 1) if signed else 0
    return (values + low) % 2**bits - low


def _of_widths() -> Iterator[tuple[str, Change]]:
    """Yield integer types of positions: whole numbers wrap, and fractions stay, or are lost."""
    for name, (bits, signed) in WIDTHS.items():
        end = 2 ** (bits - 1) if signed else 2**bits
        wraps = f"{end} is {-end}" if signed else f"they wrap at {end if bits < 32 else '2^32'}"
        wraps = "2^31 is -2^31" if signed and bits == 32 else wraps

        def held(p: Array, bits: int = bits, signed: bool = signed) -> Array:
            whole = np.asarray(p) == np.floor(p)
            return np.where(whole, as_integers(np.asarray(p), bits, signed=signed), p)

        def cut(p: Array, bits: int = bits, signed: bool = signed) -> Array:
            return as_integers(np.trunc(p), bits, signed=signed)

        yield f"positions are held in {name}: {wraps}", held
        yield f"positions are held in {name}: {wraps}, and fractions are lost", cut


def _count(p: Array) -> Array:
    return np.broadcast_to(np.arange(np.shape(p)[-1]), np.shape(p)) if np.ndim(p) else 0 * p


def _halves(p: Array) -> Array:
    n = np.shape(p)[-1]
    return np.concatenate([p[..., : n // 2], p[..., : n - n // 2]], axis=-1) if n > 1 else p


def _of_rows(change: Change) -> Change:
    """Return a change of rows of positions; what has no token is left as it is."""
    return lambda p: change(p) if np.size(p) and np.ndim(p) else p


def _all(index: int) -> Change:
    return _of_rows(lambda p: np.broadcast_to(np.take(p, [index], axis=-1), np.shape(p)))


ORDERS: dict[str, Change] = {
    "positions are one too large": lambda p: p + 1,
    "positions are one too small": lambda p: p - 1,
    "positions are negated": lambda p: -p,
    "positions lose their sign": np.abs,
    "positions are truncated to integers": np.trunc,
    "0, 1, 2, ... is used instead of the positions": _count,
    "positions count on from the first one": _of_rows(lambda p: p[..., :1] + _count(p)),
    "positions are counted from the first one, which is 0": _of_rows(lambda p: p - p[..., :1]),
    "the second half of the tokens has the positions of the first half": _of_rows(_halves),
    "every token has the position of the token before it": _of_rows(lambda p: np.roll(p, 1, axis=-1)),
    "every token has the position of the token after it": _of_rows(lambda p: np.roll(p, -1, axis=-1)),
    "every token has the first position": _all(0),
    "every token has the last position": _all(-1),
    "positions are in reverse order": _of_rows(lambda p: p[..., ::-1]),
    "all rows have the positions of the first row": lambda p: np.broadcast_to(p[:1], np.shape(p)) if np.ndim(p) > 1 else p,
}


LAST = ("the second half of the tokens has the positions of the first half", "every token has the first position")


def _last_of_keys(q: Array, k: Array) -> Array:
    """Return the positions of the last keys, one for each query, if there are as many."""
    count = np.shape(q)[-1] if np.ndim(q) and np.ndim(k) else 0
    if not count or np.shape(k)[-1] < count:
        return q
    return np.broadcast_to(k[..., np.shape(k)[-1] - count :], np.broadcast_shapes(np.shape(k[..., :count]), np.shape(q)))


def _of_pairs(op: str, places: Sequence[str]) -> Iterator[Deviation]:
    """Yield mistakes in the positions of queries and keys: in one of them, in both, or of the one by the other."""
    first = ("positions are one too large", "positions are one too small", "positions are negated")
    for text in first:
        words = text.replace("positions", "the positions of queries and keys")
        yield Deviation("", words, _changed(op, dict.fromkeys(places, ORDERS[text])))
    yield Deviation("", "queries and keys are at 0, 1, 2, ...", _changed(op, dict.fromkeys(places, _count)))
    for name in places:
        word = {"q": "queries", "k": "keys"}.get(name.partition("_")[0], name)
        for text, change in ORDERS.items():
            yield Deviation("", f"for {word}, {text}", _changed(op, {name: change}))
        for shift in (signed for size in SHIFTS for signed in (size, -size)):
            yield Deviation("", f"for {word}, positions are offset by {shift}", _changed(op, {name: partial(add, shift)}))
    for text, change in ORDERS.items():
        if text not in first and change is not _count:
            yield Deviation("", f"for queries and keys, {text}", _changed(op, dict.fromkeys(places, change)))
    if len(places) == 2:

        def last(*args: Any, **options: Any) -> Any:
            q, k = (list(REGISTRY[op].arrays).index(name) for name in places)
            return tuple(_last_of_keys(args[q], args[k]) if n == q else a for n, a in enumerate(args)), options

        yield Deviation("", "queries are the last of the keys, whatever their positions", {op: before(last)})


# ---- other arrays, and the result -------------------------------------------------------------------------------------------


def _of_arrays(op: str) -> Iterator[Deviation]:
    """Yield mistakes in arrays that are no positions, in each alone and in all of the same axes."""
    others = {name: axes for name, axes in REGISTRY[op].arrays.items() if name not in _places(op)}
    for name, axes in others.items():
        if axes.kind == "mask":
            yield Deviation("", f"{name} is inverted", _changed(op, {name: np.logical_not}))
            yield Deviation("", f"{name} is ignored", _changed(op, {name: np.ones_like}))
    shapes = {name: axes.shape for name, axes in others.items() if axes.kind in ("real", "wide")}
    reals = {name: shapes.get(shape.removeprefix("="), shape) for name, shape in shapes.items()}
    alike = [tuple(n for n, other in reals.items() if other == shape) for shape in dict.fromkeys(reals.values())]
    for names in (*((name,) for name in reals), *(several for several in alike if len(several) > 1)):
        names_in_text, shape = " and ".join(names), reals[names[0]]
        for text, change in _of_reals(names_in_text, shape, is_vector=names[0] in VECTORS, several=len(names) > 1):
            yield Deviation("", text, _changed(op, dict.fromkeys(names, change)))
    for text, change in OF_TABLES.items() if {*TABLES} <= {*reals} else ():
        yield Deviation("", text, _changed(op, dict.fromkeys(TABLES, change)))


def _of_reals(told: str, shape: str, *, is_vector: bool, several: bool) -> Iterator[tuple[str, Change]]:
    """Yield what may become of an array, or of several, of some axes."""
    verb = "are" if several else "is"
    yield from (
        (f"{told} {verb} {words}", way) for words, way in (OF_ARRAYS if is_vector else {**OF_ARRAYS, **OF_WEIGHTS}).items()
    )
    if max(map(len, alternatives(shape))) > 1:
        yield f"{told} {verb} transposed where {'their' if several else 'its'} last two axes are of one size", _transposed
    for axis, place in enumerate(PLACES[: max(map(len, alternatives(shape)))], start=1):
        yield f"{told} {verb} in reverse order along {'their' if several else 'its'} {place}", partial(_reversed, axis=-axis)
        yield f"all entries along the {place} of {told} are the first", partial(_first, axis=-axis)
        for step, side, end in ((1, "before", "the first is the last"), (-1, "after", "the last is the first")):
            text = f"every entry along the {place} of {told} is the one {side} it ({end})"
            yield text, partial(_rolled, step=step, axis=-axis)
        yield (
            f"the halves of {told} along {'their' if several else 'its'} {place} are exchanged",
            partial(_exchanged, axis=-axis),
        )
    yield from ((f"{told} {verb} held in {dtype}", narrowed(dtype)) for dtype in NARROW)


def cut(dtype: str) -> Change:
    """Return a function that leaves out the bits that a narrower dtype lacks: it rounds toward 0."""
    unit = {"bfloat16": 8, "float16": 11}[dtype]  # significant bits

    def toward_zero(x: Array) -> Array:
        mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
        return np.ldexp(np.trunc(mantissa * 2.0**unit), exponent - unit)

    return toward_zero


def _reversed(a: Array, axis: int) -> Array:
    return np.flip(a, axis) if np.ndim(a) >= -axis else a


def _transposed(a: Array) -> Array:
    return np.swapaxes(a, -1, -2) if np.ndim(a) > 1 and np.shape(a)[-1] == np.shape(a)[-2] else a


def _exchanged(a: Array, axis: int) -> Array:
    return np.roll(a, -(np.shape(a)[axis] // 2), axis) if np.ndim(a) >= -axis else a


def _rolled(a: Array, step: int, axis: int) -> Array:
    return np.roll(a, step, axis) if np.ndim(a) >= -axis else a


def _first(a: Array, axis: int) -> Array:
    return np.broadcast_to(np.take(a, [0], axis), np.shape(a)) if np.ndim(a) >= -axis and np.size(a) else a


def sizes_of(op: str) -> dict[str, Callable[..., Any]]:
    """Return the sizes of a call in words, each with the function that reads it from the arguments."""
    words = (w for w, domain in REGISTRY[op].domains.items() if isinstance(domain, Integer) and domain.low > 0)
    names = list(parameters_of(REGISTRY[op].function))
    sizes: dict[str, Callable[..., Any]] = {
        w: lambda *args, w=w, **options: dict(zip(names, args, strict=False)).get(w, options.get(w)) for w in words
    }
    return sizes | _sizes_of_axes(op)


def _sizes_of_axes(op: str) -> dict[str, Callable[..., Any]]:
    """Return the sizes of the axes of a call's arrays."""
    sizes: dict[str, Callable[..., Any]] = {}
    seen = set()
    for n, (name, axes) in enumerate(REGISTRY[op].arrays.items()):
        for axis, (letter, place) in enumerate(zip(reversed(alternatives(axes.shape)[-1]), PLACES, strict=False), start=1):
            if letter.isalpha() and letter not in seen:
                seen.add(letter)
                what = f"the number of {COUNTED[letter]}" if letter in COUNTED else f"the size of the {place} of {name}"
                sizes[what] = lambda *args, n=n, axis=axis, **options: np.shape(args[n])[-axis]
    return sizes


def _of_sizes(op: str) -> Iterator[Deviation]:
    """Yield that the result is off by a size of the call: reals by a factor or its root, integers by a term."""
    for what, size in sizes_of(op).items():
        for way, change in (OF_REALS if REGISTRY[op].returns == "real" else OF_INTEGERS).items():

            def changed(out: Array, *args: Any, size: Any = size, change: Any = change, **options: Any) -> Array:
                number = size(*args, **options)
                return change(out, number) if number else out

            yield Deviation("", f"the result is {way.format(what)}", {op: after(changed)})


def _of_terms(op: str) -> Iterator[Deviation]:
    """Yield that an array is off by a size of the call, as where a mean stands in place of a sum."""
    arrays = {n: (name, axes) for n, (name, axes) in enumerate(REGISTRY[op].arrays.items())}
    for n, (name, axes) in arrays.items():
        if axes.kind not in ("real", "wide") or name in _places(op):
            continue
        for what, size in _sizes_of_axes(op).items():
            for way, change in islice(OF_REALS.items(), FACTORS):

                def changed(*args: Any, n: int = n, size: Any = size, change: Any = change, **options: Any) -> Any:
                    number = size(*args, **options)
                    return (
                        *args[:n],
                        change(args[n], number) if number and args[n] is not None else args[n],
                        *args[n + 1 :],
                    ), options

                yield Deviation("", f"{name} is {way.format(what)}", {op: before(changed)})


def _of_results(op: str) -> Iterator[Deviation]:
    """Yield mistakes in the result."""
    record = REGISTRY[op]
    if len(record.outputs) > 1:
        return
    if record.returns in ("real", "integer"):
        yield from _of_sizes(op)
    if record.returns == "real":
        for dtype, (words, way) in product(NARROW, {"rounded": narrowed, "cut, not rounded,": cut}.items()):
            change = way(dtype)
            yield Deviation("", f"the result is {words} to {dtype}", {op: after(lambda out, *a, to=change, **o: to(out))})
    elif record.returns == "integer":
        for name, (bits, signed) in WIDTHS.items():

            def held(out: Array, *args: Any, bits: int = bits, signed: bool = signed, **options: Any) -> Array:
                return as_integers(np.asarray(out), bits, signed=signed)

            yield Deviation("", f"the result is held in {name}", {op: after(held)})
