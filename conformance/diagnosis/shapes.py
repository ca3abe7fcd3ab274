"""Names the axes of a call (tokens, keys, heads), its channel pairs and the rows of its table, from what the registry says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..evidence.shared.rotary import reads_writes
from ..model import Call
from ..vocabulary.axes import alternative, alternatives, is_star, names_in, result_axes
from ..vocabulary.traits import has_coordinates, which_alternative
from .hypotheses import predicted_by

Array = npt.NDArray[Any]
WORDS = {
    "T": "token", "Q": "query", "K": "key", "H": "head", "G*g": "head", "heads": "head", "G": "key head", "B": "batch row",
    "D": "channel", "E": "channel", "d": "channel", "dim": "channel", "n": "pair", "N": "pair", "dim//2": "pair",
    "sum(sections)": "pair", "I": "row", "J": "column", "W": "column", "o": "output channel", "c": "input channel", "k": "tap",
    "queries": "query", "k_rows": "key row", "k_columns": "key column",
}  # fmt: skip
IN_COMPANY: tuple[tuple[set[str], dict[str, str]], ...] = (  # what letters are where others stand beside them
    ({"N", "B", "H", "D"}, {"N": "page", "B": "slot"}),
    ({"Q", "N"}, {"N": "column"}),
    ({"K", "N"}, {"N": "column"}),
    ({"G", "n"}, {"G": "block"}),
    ({"I", "k_rows"}, {"I": "query row", "J": "query column"}),
)
STAR = {"*P": "token", "*R": "head"}  # what the last of any number of axes is


def axes_of(op: str, call: Call, output: str) -> list[str]:
    """Return what each axis of an output is, in one word: of rotated x by the axis along which its positions vary."""
    which = which_alternative(op, call)
    axes, shape = result_axes(op, output, which), call.expected[output].shape
    words = _words(axes, len(shape), rows_are_heads="T" in axes[:-1])
    words = ["row" if k < len(words) - 1 and word == "channel" else word for k, word in enumerate(words)]
    if words == ["channel"] and len(axes) == 1 and axes[0] not in WORDS and "x" not in call.inputs:
        words = ["value"]
    if len(shape) > 1 and axes[-2:-1] == axes[-1:]:
        words[-2:] = ["query", "key"] if REGISTRY[op].family == "bias" else ["row", "column"]
    if words[-3:-1] == ["batch row", "token"]:  # frequencies of each head vary along the axis before the tokens
        kinds = REGISTRY[op].arrays
        others = (v for n, v in call.inputs.items() if kinds[n].kind == "wide" and "*R" in kinds[n].shape)
        words[-3] = "head" if any(v.ndim > 3 and v.shape[-3] == shape[-3] > 1 for v in others) else words[-3]
    if words[-2:] == ["token", "channel"] and len(shape) > 2 and ("x" in call.inputs or "cos" in call.inputs):
        words = [*_before_channels(op, call, shape), "channel"]
    elif "W" in axes:
        words = ["row" if word == "head" else word for word in words]  # H is a height beside a width
    return words if len(words) == len(shape) else [f"index of axis {k}" for k in range(len(shape))]


def _before_channels(op: str, call: Call, shape: Sequence[int]) -> list[str]:
    """Return the axes before the channels in words: tokens where positions vary last, heads beside them, rows of a batch."""
    rows, count = shape[:-1], len(shape) - 1
    if "cos" in call.inputs:
        place = call.inputs["cos"].shape[:-1]
    else:  # without the axis of coordinates
        place = np.shape(call.inputs["positions"])[has_coordinates(op) :] if "positions" in call.inputs else ()
    first = len(rows) - len(place)
    varying = [first + k for k, size in enumerate(place) if size > 1 and size == rows[first + k]]
    token = max(varying, default=count - 1)
    token = token if token >= count - 2 else count - 1
    words = ["batch row"] * count
    words[token] = "token"
    head = count - 1 if token == count - 2 else count - 2
    if head not in varying or count > 2:
        words[head] = "head"
    return words


def sizes(op: str, call: Call) -> dict[str, int]:
    """Return how many tokens, keys, heads, channels and batch rows a call has."""
    which, by_word = which_alternative(op, call), dict[str, int]()
    for name in call.expected:
        for word, size in zip(axes_of(op, call, name), call.expected[name].shape, strict=True):
            by_word.setdefault(word, size)
    for name, value in call.inputs.items():
        axes = alternative(op, REGISTRY[op].arrays[name].shape, which)
        for word, size in zip(
            reversed(_words(axes, value.ndim, rows_are_heads="T" in axes)), reversed(value.shape), strict=False
        ):
            by_word[word] = max(size, by_word.get(word, 1))
    if any("T" in way for axes in REGISTRY[op].arrays.values() for way in alternatives(axes.shape)):
        by_word.setdefault("token", 1)  # a vector is one
    return by_word


def pairs_of(op: str, call: Call, channels: int) -> Array | None:
    """Return the pair of every channel of a rotated x, -1 of one that does not rotate; None where there are no pairs."""
    x, layout = call.inputs.get("x"), call.params.get("layout")
    if x is None or x.shape[-1:] != (channels,) or layout not in ("half", "interleaved", "interleaved_to_half"):
        return None
    kept = 2 * call.inputs["cos"].shape[-1] if "cos" in call.inputs else call.params.get("rotary_dim") or channels // 2 * 2
    sections = call.params.get("sections")
    kept = 2 * sum(sections) if sections else kept
    half = reads_writes(layout, bool(call.params.get("inverse")))[1]
    pairs = np.full(channels, -1)
    start = channels - kept if call.params.get("lanes") == "trailing" else 0
    index = np.arange(kept)
    pairs[start : start + kept] = index % max(kept // 2, 1) if half else index // 2
    return pairs


def rows_of_table(op: str, call: Call, output: str) -> tuple[Array, int] | None:
    """
    Return the row of a learned table that every value is made of, and how many rows there are; None without such rows.

    The definition tells: a value moves by some amount if a vector is added to every row of the table, and by the row's number
    times that amount if the vector is added so many times. Values that do not depend on the table have row -1.
    """
    name = next((n for n in call.inputs if n.rpartition("_")[2] == "table" and call.inputs[n].ndim == 2), None)
    if name is None:
        return None
    table = np.asarray(call.inputs[name], dtype=np.float64)
    vector = 2 + np.cos(np.arange(table.shape[1]))
    tables = (table, table + vector, table + np.arange(len(table))[:, None] * vector)
    values = [predicted_by(op, replace(call, inputs={**call.inputs, name: t})).get(output, np.zeros(0)) for t in tables]
    if any(v.shape != call.expected[output].shape for v in values):
        return None
    before, added, numbered = values
    moved = added != before
    rows = np.where(moved, (numbered - before) / np.where(moved, added - before, 1), -1)
    if not np.any(moved) or np.any(np.abs(rows - np.round(rows)) > 2.0**-10):  # several rows make a value
        return None
    return np.round(rows), len(table)


def coordinates_of(op: str, call: Call, output: str) -> Array | None:
    """
    Return the coordinate of the positions that every channel of an output is made of, -1 of others; None without coordinates.

    The definition tells: a channel moves if all positions along that axis are one larger.
    """
    if not has_coordinates(op) or "positions" not in call.inputs:
        return None
    positions = np.asarray(call.inputs["positions"])
    moves = np.eye(len(positions), dtype=positions.dtype).reshape(len(positions), len(positions), *(1,) * (positions.ndim - 1))
    every = [replace(call, inputs={**call.inputs, "positions": positions + move}) for move in (0 * moves[:1, 0], *moves)]
    before, *after = [predicted_by(op, one).get(output, np.zeros(0)) for one in every]
    if not before.ndim or not before.size or any(x.shape != before.shape for x in after):
        return None
    moved = np.stack([np.any((x != before).reshape(-1, x.shape[-1]), axis=0) for x in after])
    return np.where(np.sum(moved, axis=0) == 1, np.argmax(moved, axis=0), -1)


def _words(axes: Sequence[str], ndim: int, *, rows_are_heads: bool) -> list[str]:
    """Return the axes of an array of `ndim` axes in words: those that a star stands for too."""
    star = next((k for k, a in enumerate(axes) if is_star(a)), -1)
    by_letter = {letter: word for company, words in IN_COMPANY if company <= set(axes) for letter, word in words.items()}
    by_letter |= {"N": "row"} if "N" in axes[:-1] and "N" not in by_letter else {}  # at the end N is of pairs
    by_letter |= {"K": "channel"} if set(axes) <= {"c", "K"} else {}
    of_axes = [by_letter.get(a) or _word(a.lstrip("~")) for a in axes]
    if star < 0:
        return of_axes[-ndim:] if ndim else []
    rest = of_axes[star + 1 :]
    many = ndim - len(rest)
    last = STAR.get(axes[star].lstrip("~"), "batch row")
    if last == "head" and not (rows_are_heads and many > 1):
        last = "batch row"
    return (["batch row"] * (many - 1) + [last] * (many > 0) + rest)[-ndim:] if ndim else []


def _word(axis: str) -> str:
    """Return one axis in a word: a channel where it has none of its own."""
    names = {name for name in WORDS if name.isidentifier() and "[" in axis and "*" not in axis and name in names_in(axis)}
    return WORDS.get(axis) or WORDS[min(names, default="D")]
