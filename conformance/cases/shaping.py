"""Calls of any operation, made from the axes that the registry states: for cases that every operation is asked alike."""

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY, Axes

from ..suite.axes import alternatives, in_order, value_of
from .forms import AXIAL, BUCKETS, EXTENSIONS, LINEAR, ROLE, ROTARY, SECTIONS, SINES, TURNING, WINDOW
from .numbers import floats

Places = Callable[[int], npt.NDArray[Any]]  # positions of a number of tokens

MASKS: dict[str, dict[str, Any]] = {
    "sliding_window": {"window": 5, "counting": "with_query", "sides": "causal"},
    "chunked_window": {"chunk": 6, "sides": "causal"},
    "lambda_window": {"sinks": 2, "window": 5, "counting": "with_query"},
}
USUAL: dict[str, dict[str, Any]] = {  # options of an operation where nothing else is said
    "sinusoidal": SINES,
    "fourier": {"unit": "half_turns", "order": "wave coordinate band", "include": "first"},
    "random_fourier": {"layout": "sin_cos"},
    "sinusoidal_nd": {"widths": [4, 6], "layout": "sin_cos", "phases": "axis"},
    "sinusoidal_shift": {"dim": 4, "layout": "sin_cos"},
    "timestep": {"dim": 7, "flip": True, "shift": 0, "scale": 2.5},
    "learned": {"offset": 2},
    "axial_learned": {"combine": "concat"},
    "layout_2d": {"combine": "concat", "clip_sizes": False},
    "hierarchical_learned": {"alpha": 0.375},
    "conv_positions": {"groups": 2},
    "weight_norm": {"axis": 2},
    "peg": {"residual": True},
    "rope_table": {"attention_factor": 1.25},
    "rope_cos_sin": {"dim": 6, "base": 500.0},
    "apply_rope": {"layout": "half"},
    "rotation_matrix": {"dim": 6, **ROTARY},
    "rope": ROTARY,
    "xpos": {**ROTARY, **ROLE},
    "xpos_scales": {"dim": 6, **ROLE},
    "pope": {"layout": "interleaved", "base": 10000.0},
    "fope": {"base": 500.0},
    "positions_from_mask": {"padding": 0},
    "positions_from_tokens": {"padding_idx": 1},
    "packed_documents": {},
    "visible_windows": {"rate": 4},
    "zigzag_shard": {"length": 12, "rank": 1, "ranks": 3},
    "striped_shard": {"length": 11, "rank": 1, "ranks": 3},
    "alibi": LINEAR,
    "t5_buckets": BUCKETS,
    "t5_bias": BUCKETS,
    "shaw_scores": WINDOW,
    "shaw_values": WINDOW,
    "attention_logits": {},
    "attention": {},
    "axial_table": SECTIONS,
    "mrope": TURNING,
    "axial_rope": AXIAL,
    "mixed_table": {},
    "mixed_rope": {"layout": "interleaved"},
    "liere_rotations": {},
    "liere": {},
    "cayley_string": {"form": "conjugate"},
    "circulant_string": {},
    "rotated_values": ROTARY,
    "mla_logits": ROTARY,
    "rotary_linear_attention": {**ROTARY, "causal": False},
    "learned_logn_scale": {},
    "logn_scale": {"length": 16, "offset": 1, "at_least_one": True},
    "attention_temperature": {"form": "steps", "beta": 0.75, "length": 8, "offset": 0},
    **MASKS,
    **{f"{op}_distances": params for op, params in EXTENSIONS.items()},
    **{op: {**params, **ROTARY} for op, params in EXTENSIONS.items()},
}
# Sizes by letter. Some differ by operation: lanes that a block fills, buckets of a table, keys of a window.
SIZES: dict[str, Any] = {
    "A": 2, "B": 2, "D": 6, "E": 5, "G": 1, "H": 3, "K": 5, "N": 3, "Q": 4, "R": (), "T": 5, "d": 4, "g": 2, "k": 3, "m": 2,
    "n": 3, "tail": 0,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "axial_rope": {"E": 2},
    "circulant_string": {"E": 1},
    "cayley_string": {"D": 4, "N": 2},
    "liere": {"E": 1, "n": 2},
    "liere_rotations": {"n": 2},
    "mixed_rope": {"E": 1},
    "mrope": {"E": 1},
    "learned": {"N": 13},
    "axial_learned": {"M": 17, "N": 13, "e": 6},
    "hierarchical_learned": {"N": 13},
    "peg": {"I": 3, "J": 5},
    "weight_norm": {"o": 4, "c": 2},
    "layout_2d": {"L": 17, "M": 13, "U": 14, "V": 19, "e": 3},
    "t5_bias": {"N": 16},
    "rotary_linear_attention": {"H": 2},
    "rotation_matrix": {"P": ()},
    "fourier": {"c": 3, "K": 2},
    "random_fourier": {"c": 2, "m": 5},
}
WAYS = {"fope": 2, "pope": 1, "circulant_string": 1, "liere": 1, "mixed_rope": 1, "cayley_string": 1}  # of arrays with tokens
FREQUENCIES = (1.0, 0.3984375, 0.1171875, 0.03125, 0.013671875, 0.00390625)
SCALE = {"skew": 8, "generators": 8, "coefficients": 8, "frequencies": 4, "weights": 4, "q": 4, "cos": 4, "sin": 4}


def spread(count: int) -> npt.NDArray[Any]:
    """Return positions in no order, with a repeat and a gap, below 3 more than twice as many."""
    p = (np.arange(count) * 7 + 3) % max(2 * count + 1, 3)
    if count > 3:
        p[2] = p[1]
    return p


def shifted(start: int) -> Places:
    """Return what gives consecutive positions from `start` on."""
    return lambda count: np.arange(start, start + count)


def call(
    op: str, name: str, params: Mapping[str, Any] | None = None, *, places: Places = spread, way: int | None = None,
    rows: bool = False, alike: bool = False, without: tuple[str, ...] = (), far: bool = False, bits: int = 8, **sizes: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """
    Return options and arrays of a call, its numbers being the case's own.

    `way` is the alternative of the registry's axes, by default the first one with tokens. With `rows` positions have the
    leading axes too; with `alike` nothing changes along the first of the axes ``*R``. Optional arrays are left out if they are
    named in `without`. The axes' sizes go by their letters.
    """
    options = USUAL[op] if params is None else dict(params)
    known = {**SIZES, **OWN.get(op, {}), **options, **sizes}
    known.setdefault("P", (*known["R"], known["T"]))
    which = WAYS.get(op, 1 if "R" in _letters(op) or "rope" in op else 0) if way is None else way
    arrays: dict[str, Any] = {}
    for argument, axes in REGISTRY[op].arrays.items():
        if axes.optional and argument in without:
            continue
        same = axes.shape.startswith("=")
        like = REGISTRY[op].arrays[axes.shape[1:]] if same else axes  # its axes are another argument's
        if same:
            arrays[argument] = _numbers(op, name, argument, arrays[axes.shape[1:]].shape, bits)
        else:
            arrays[argument] = _array(op, name, argument, axes, which, known, places, rows, bits)
        if alike and known["R"]:
            arrays[argument] = _alike(arrays[argument], like, which, known)
    return options, arrays


def reads_rows(op: str) -> bool:
    """Return whether positions are rows of a table that an operation is given: none may lie outside."""
    return any(axes.high is not None for axes in REGISTRY[op].arrays.values())


def _letters(op: str) -> str:
    """Return the letters of an operation's axes whose first alternative has no leading axes."""
    return " ".join("R" for axes in REGISTRY[op].arrays.values() if "*R" in axes.shape and "|" in axes.shape)


def _array(
    op: str, name: str, argument: str, axes: Axes, which: int, known: Mapping[str, Any], places: Places, rows: bool, bits: int
) -> npt.NDArray[Any]:
    """Return one array of a call."""
    ways = alternatives(axes.shape)
    tokens = ways[min(which, len(ways) - 1)]
    if axes.kind in ("position", "integer"):
        return _positions(op, argument, tokens, known, places, rows)
    shape = _shape(tokens, known, rows=True)
    if axes.kind == "mask":
        return np.asarray(np.indices(shape).sum(axis=0) % 3 != 1)
    return _numbers(op, name, argument, shape, bits)


def _shape(tokens: list[str], known: Mapping[str, Any], *, rows: bool) -> tuple[int, ...]:
    """Return the shape that axes have; leading ones that may be missing are left out without `rows`."""
    found: list[int] = []
    for token in tokens:
        axis = token.lstrip("~")
        if axis.startswith("*"):
            found += known.get(axis[1:], ()) if rows or not token.startswith("~") else ()
        else:
            found.append(int(value_of(axis, known)))
    return tuple(found)


def _positions(
    op: str, argument: str, tokens: list[str], known: Mapping[str, Any], places: Places, rows: bool
) -> npt.NDArray[Any]:
    """Return positions: those of queries after those of keys, of every axis and row others."""
    shape = _shape(tokens, {**known, "B": known["R"] if "*B" in " ".join(tokens) else known["B"]}, rows=rows)
    if not shape:
        return np.asarray(places(1)[0])
    coordinates = tokens[0] in ("A", "2", "len(dims)", "len(sections)", "len(widths)")
    p = places(shape[-1])
    found = np.empty(shape, dtype=p.dtype)
    for number, index in enumerate(np.ndindex(shape[:-1])):
        found[index] = np.roll(p, index[0]) + number if coordinates and index else p + 3 * number
    if argument == "q_positions":
        found = found + found.dtype.type(2)
    if argument == "relative_positions":
        found = found * (1 - 2 * (np.arange(found.shape[-1]) % 2))
    axes = REGISTRY[op].arrays[argument]
    if axes.high is not None:
        found = found % value_of(axes.high, known)
    return in_order(found) if axes.ordered else found


def _numbers(op: str, name: str, argument: str, shape: tuple[int, ...], bits: int) -> npt.NDArray[Any]:
    """Return reals of a call."""
    if argument == "inv_freq":
        return np.asarray((FREQUENCIES * (1 + shape[-1] // 6))[: shape[-1]])
    found = floats(*shape, seed=crc32(f"{op}/{name}/{argument}".encode()), bits=bits) / SCALE.get(argument, 2)
    return np.abs(found) if argument == "weights" and op == "rotated_values" else found


def _alike(array: npt.NDArray[Any], axes: Axes, which: int, known: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Return an array that does not change along the first of the leading axes."""
    ways = alternatives(axes.shape)
    tokens = [token.lstrip("~") for token in ways[min(which, len(ways) - 1)]]
    star = next((k for k, token in enumerate(tokens) if token in ("*R", "*B", "*P", "G")), None)
    if star is None or array.ndim <= star or array.shape[star] not in (known["R"][0], known["G"]):
        return array
    return np.broadcast_to(np.take(array, [0], axis=star), array.shape).copy()
