"""The numbers of a call that a rule may use: sizes, options, entries of lists, and relations of two of these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from posref.scaling import Scaling
from posref.spec import REGISTRY

from ..calls import positions_of
from ..model import Call
from ..vocabulary.axes import alternative, value_of
from .records import GRID, Features, is_number, letters_in, part, sizes_in, tokens_of, word_of


def quantities(op: str, record: Features, call: Call) -> dict[str, float]:
    """Return the numbers of a call that a rule may speak of: its sizes and options, and what follows from several of them."""
    axes = set[str]().union(*map(letters_in, tokens_of(op, record["way"])))
    sizes = {name: n for name, n in sizes_in(op, record).items() if name in axes}
    options = {name: value for name, value in part(record, "option ").items() if is_number(value)}
    numbers: dict[str, float] = {word_of(op, name): n for name, n in sizes.items() if name != "D"}
    numbers |= options | ({"query heads": sizes["G"] * sizes["g"]} if {"G", "g"} <= sizes.keys() else {})
    first = next((x for name, x in call.inputs.items() if REGISTRY[op].arrays[name].kind == "real" and x.ndim), None)
    if first is not None:
        numbers |= {"head size": sizes["D"] if "D" in sizes else first.shape[-1], "rows": first.size // max(first.shape[-1], 1)}
        if "rotary_dim" in part(record, "option "):
            rotated = record["option rotary_dim"] or first.shape[-1]
            numbers |= {"pairs": rotated // 2, "channels that do not rotate": first.shape[-1] - rotated}
            if record["option rotary_dim"] is not None:
                numbers["rotated share of the head"] = rotated / max(first.shape[-1], 1)
    has_rows = any(axis.startswith("*") for axes in tokens_of(op, record["way"]) for axis in axes)
    leading: tuple[int, ...] = (record.get("leading axes", ()) or ()) if has_rows else ()
    numbers |= {"leading axes": len(leading), "batch rows": math.prod(leading), "size of the first axis": (*leading, 1)[0]}
    if len(leading) > 1:
        numbers["size of the last leading axis"] = leading[-1]
    for name, value in part(record, "option ").items():
        if isinstance(value, Scaling):
            numbers |= {f"{one} of {name}": n for one, n in vars(value).items() if is_number(n)}
        if isinstance(value, tuple) and value:
            numbers |= {f"number of {name}": len(value), f"largest of {name}": max(value), f"smallest of {name}": min(value)}
            numbers |= {f"spread of {name}": max(value) - min(value), **_entries(name, value)}
    places = [call.inputs[n] for n in positions_of(op) if n in call.inputs and call.inputs[n].size]
    if record.get("form") == GRID and places:
        for word, p in zip(("",) if len(places) == 1 else ("query ", "key "), places, strict=True):
            rows, columns = (np.unique(axis.reshape(-1, p.shape[-1])[0]).size for axis in p[-2:])
            ends = ("rows of the grid", "columns of the grid") if not word else (f"{word}rows", f"{word}columns")
            numbers[" minus ".join(ends)] = rows - columns
    if places:
        numbers["largest position"] = float(max(np.abs(p).max() for p in places))
        numbers["smallest position"] = float(min(p.min() for p in places))
    if len(places) == 2:
        numbers["largest distance"] = float(max(abs(places[0].max() - places[1].min()), abs(places[1].max() - places[0].min())))
        numbers |= dict(zip(OF_QUERIES, (float(places[0].max()), float(places[0].min())), strict=True))
    apart = [name for name in ("largest position", "largest distance") if name in numbers]
    numbers |= {f"{name} over {word}": numbers[name] - n for name in apart for word, n in options.items()}
    lists = {f"sum of {name}": sum(value) for name, value in part(record, "option ").items() if isinstance(value, tuple)}
    known = {**options, **sizes}
    numbers |= {
        word: value_of(axis, known) for axis, word in SHARED.items() if any(axis in one for one in tokens_of(op, record["way"]))
    }
    heads = _last_axes(op, record["way"], call) | ({"query heads": numbers["query heads"]} if "query heads" in numbers else {})
    words: dict[str, float] = {word_of(op, n): size for n, size in sizes.items()}
    return numbers | _related(words | heads | lists | options, options)


def _last_axes(op: str, way: int, call: Call) -> dict[str, float]:
    """Return the size of the last axis of the first array of which it is no letter, "head size" of the first array."""
    reals = [name for name, axes in REGISTRY[op].arrays.items() if axes.kind == "real" and name in call.inputs]
    axes = {name: _last_axis(op, name, way) for name in reals}
    name = next((name for name, axis in axes.items() if axis and not axis.isidentifier()), None)
    if name is None or not call.inputs[name].ndim:
        return {}
    return {"head size" if name == next(iter(axes)) else f"last axis of {name}": call.inputs[name].shape[-1]}


def _last_axis(op: str, name: str, way: int) -> str:
    """Return the last axis of an array in one alternative, if it has a size of its own."""
    axis = (alternative(op, REGISTRY[op].arrays[name].shape, way) or [""])[-1]
    return "" if axis.startswith(("*", "=", "~", "[")) else axis


def _entries(name: str, values: Sequence[int]) -> dict[str, float]:
    """Return the first, the second and the last entry of a list, what they differ by, and the sum and divisor of all."""
    places = {0: values[0], -1: values[-1]} | ({1: values[1], -2: values[-2]} if len(values) > 1 else {})
    numbers: dict[str, float] = {f"{name}[{k}]": n for k, n in places.items()}
    for a, b in combinations(sorted(places, key=abs), 2):
        numbers[f"{name}[{a}] over {name}[{b}]"] = places[a] - places[b]
        numbers |= {f"{name}[{x}] per {name}[{y}]": places[x] / places[y] for x, y in ((a, b), (b, a)) if places[y] > 0}
    return numbers | {f"sum of {name}": sum(values), f"common divisor of {name}": math.gcd(*values)}


OF_QUERIES = ("largest query position", "smallest query position")
SHARED = {"d//groups": "channels of a group"}  # axes that are no letter, with their words
MINUS = (("queries", "keys"), ("rows of the grid", "columns of the grid"), ("M", "N"), ("d", "e"), ("queries", "N"))  # counts
ALIKE = {"head size", "rotary_dim", "pairs"}  # a share of the head has a name


def _related(numbers: Mapping[str, float], options: Mapping[str, float]) -> dict[str, float]:
    """Return remainders of whole numbers by others, and what two numbers differ by, or how many times one is the other."""
    whole = {name: int(n) for name, n in numbers.items() if float(n).is_integer()}
    steps = {name: n for name, n in whole.items() if n > 1}
    related = {f"{a} mod {b}": float(whole[a] % n) for a in whole for b, n in steps.items() if a != b}
    for a, b in combinations(whole, 2):
        if {a, b} <= ALIKE:
            continue
        ends = [pair for pair in MINUS if {*pair} == {a, b}]
        related[f"{ends[0][0]} minus {ends[0][1]}" if ends else f"{a} over {b}"] = (
            float(whole[ends[0][0]] - whole[ends[0][1]]) if ends else float(whole[a] - whole[b])
        )
        for one, other in ((a, b), (b, a)):
            if whole[other] > 0:
                related[f"{one} per {other}"] = whole[one] / whole[other]
            if {a, b} <= options.keys():
                related[f"{one} over half of {other}"] = float(whole[one] - whole[other] // 2)
    return related
