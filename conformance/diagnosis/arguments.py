"""
Arguments that arrive as others: positions in a narrow integer type or in another order, an array negated, left out or narrowed.

They are enumerated from the registry, so they are tried for operations whose own list of known mistakes lacks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import add
from typing import Any

import numpy as np

from posref.core.composition import reaches
from posref.spec import REGISTRY

from ..calls import parameters_of, positions_of
from ..evidence.shared.angle_tables import along_tokens, positions_of_tables
from ..evidence.tools.deviation import Deviation, Wrap, after, before, narrowed

WIDTHS = {"int8": (8, True), "uint8": (8, False), "int16": (16, True), "uint16": (16, False), "int32": (32, True),
          "uint32": (32, False)}  # fmt: skip
SHIFTS = (*range(2, 21), 32, 64, 128)  # of the positions of queries or of keys alone; 1 is one of `ORDERS`
NARROW = ("bfloat16", "float16")
Array = Any
Change = Callable[[Array], Array]


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
        told = [changes[n](a) if n in changes and a is not None else a for n, a in zip(names, args, strict=False)]
        named = {n: changes[n](a) if n in changes and a is not None else a for n, a in options.items()}
        return tuple(told), named

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
    "0, 1, 2, ... is used in place of the positions": _count,
    "positions count on from the first one": _of_rows(lambda p: p[..., :1] + _count(p)),
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
    for text in ("positions are one too large", "positions are one too small", "positions are negated"):
        words = text.replace("positions", "the positions of queries and keys")
        yield Deviation("", words, _changed(op, dict.fromkeys(places, ORDERS[text])))
    yield Deviation("", "queries and keys are at 0, 1, 2, ...", _changed(op, dict.fromkeys(places, _count)))
    for name in places:
        word = {"q": "queries", "k": "keys"}.get(name.partition("_")[0], name)
        for text, change in ORDERS.items():
            yield Deviation("", f"for {word}, {text}", _changed(op, {name: change}))
        for shift in (signed for size in SHIFTS for signed in (size, -size)):
            yield Deviation("", f"for {word}, positions are offset by {shift}", _changed(op, {name: partial(add, shift)}))
    if len(places) == 2:

        def last(*args: Any, **options: Any) -> Any:
            q, k = (list(REGISTRY[op].arrays).index(name) for name in places)
            return tuple(_last_of_keys(args[q], args[k]) if n == q else a for n, a in enumerate(args)), options

        yield Deviation("", "queries are the last of the keys, whatever their positions", {op: before(last)})


# ---- other arrays, and the result -------------------------------------------------------------------------------------------


def _of_arrays(op: str) -> Iterator[Deviation]:
    """Yield mistakes in arrays that are no positions."""
    places = _places(op)
    for name, axes in REGISTRY[op].arrays.items():
        if name in places:
            continue
        if axes.kind == "mask":
            yield Deviation("", f"{name} is inverted", _changed(op, {name: np.logical_not}))
            yield Deviation("", f"{name} is ignored", _changed(op, {name: np.ones_like}))
        elif axes.kind in ("real", "wide"):
            yield Deviation("", f"{name} is negated", _changed(op, {name: np.negative}))
            yield Deviation("", f"{name} is taken for 0", _changed(op, {name: np.zeros_like}))
            yield Deviation("", f"{name} is squared", _changed(op, {name: np.square}))
            yield from (
                Deviation("", f"{name} is held in {dtype}", _changed(op, {name: narrowed(dtype)})) for dtype in NARROW
            )  # fmt: skip


def _of_results(op: str) -> Iterator[Deviation]:
    """Yield mistakes in the result."""
    record = REGISTRY[op]
    if len(record.outputs) > 1:
        return
    if record.returns == "real":
        yield from (
            Deviation("", f"the result is rounded to {dtype}", {op: after(lambda out, *a, d=dtype, **o: narrowed(d)(out))})
            for dtype in NARROW
        )
    elif record.returns == "integer":
        for name, (bits, signed) in WIDTHS.items():

            def held(out: Array, *args: Any, bits: int = bits, signed: bool = signed, **options: Any) -> Array:
                return as_integers(np.asarray(out), bits, signed=signed)

            yield Deviation("", f"the result is held in {name}", {op: after(held)})
