"""
The calls that the layers of a model make, at their own sizes (`for_model` reads these), and no others.

The calls are prompts, single tokens at several places, a batch padded on the left, tokens about the original length, and the
last ones of the longest context; of what has two axes, the cells of an image. They are made from a seed and judged live, as
those of the kernel tier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ...accuracy import BASE
from ...model import Call, Case, LoadedCase
from .for_model import Kind, Model
from .kernel_cases import Arrays, reals

GROUP, OF = "model", "-of-"
PROMPT, BESIDE, PADDED = 257, 64, (0, 3, 40)  # tokens of a prompt, and on each side of a border; padding of three rows
FARTHEST = 1 << 14  # keys before a query, at most


@dataclass(frozen=True)
class Placement:
    """Where the tokens of one call stand: positions for x of a shape (rows, heads, tokens), in a sequence of a length."""

    name: str
    rows: int
    keys: bool  # asked of the heads of keys, not of queries
    positions: npt.NDArray[np.int64]  # of (tokens,), or (rows, 1, tokens)
    length: int


def places(kind: Kind, op: str) -> Iterator[Placement]:
    """Yield where the tokens of a kind's calls stand."""
    short, original, longest = min(PROMPT, kind.longest), kind.original, kind.longest
    if kind.grid is not None:
        cells = kind.grid[0] * kind.grid[1]
        yield Placement("image", 2, False, np.arange(cells), cells)
        yield Placement("image-keys", 1, True, np.arange(cells), cells)
        return
    yield Placement("prompt", 2, False, np.arange(short), short)
    single = sorted({0, 1, original - 1, min(original, longest - 1), longest - 1})
    count = min(65, longest)
    padded = np.maximum(np.arange(count) - np.asarray(PADDED)[:, None, None], 0)
    if "x" in REGISTRY[op].arrays:
        yield Placement("prompt-keys", 2, True, np.arange(short), short)
        yield Placement("decode", len(single), False, np.asarray(single)[:, None, None], longest)
        yield Placement("left-padding", len(PADDED), False, padded, count)
    beside = min(BESIDE, original)
    if original < longest:
        yield Placement("up-to-original", 1, True, np.arange(original - beside, original), original)
        beyond = min(longest, original + beside)
        yield Placement("beyond-original", 1, True, np.arange(original - beside, beyond), beyond)
    yield Placement("longest", 1, True, np.arange(longest - min(BESIDE, longest), longest), longest)


def cases(model: Model, op: str) -> Iterator[Case]:
    """Yield the calls of an operation, or of a stage, that the layers of a model make."""
    for kind in model.kinds:
        for place in places(kind, op) if op in kind.operations else ():
            name = f"{op}/{GROUP}/{place.name}" + (f"{OF}{kind.label}" if kind.label else "")
            if not REGISTRY[op].arrays and place.rows > 1:
                continue  # constants depend on the length alone
            rng = np.random.default_rng(crc32(f"{model.name} {name}".encode()))
            options = kind.arguments(op, place.length)
            yield Case(name, options, _arrays(kind, op, place, rng), tier=GROUP, state="still" * model.is_still)


def small(model: Model, op: str) -> Iterator[Case]:
    """Yield one small call for each kind of layer that has an operation: one head, the first tokens and the last ones."""
    for kind in model.kinds:
        if op not in kind.operations:
            continue
        kept = min(kind.original, kind.longest) - 1
        tokens = sorted({0, 1, 2, kept, min(kept + 1, kind.longest - 1), kind.longest - 1})
        few = replace(kind, sizes=replace(kind.sizes, heads=1, key_heads=1), grid=kind.grid and (3, 4))
        place = Placement("layers", 1, False, np.arange(12) if kind.grid else np.asarray(tokens), kind.longest)
        if "q_positions" in REGISTRY[op].arrays:
            place = replace(place, positions=np.arange(max(0, kind.longest - 3), kind.longest))
        name = f"{op}/layers/{slug(kind)}"
        arrays = _arrays(few, op, place, np.random.default_rng(crc32(name.encode())))
        yield Case(name, kind.arguments(op, place.length), arrays, f"{kind.where} of {kind.text}")


def slug(kind: Kind) -> str:
    """Return a name of a kind for a case."""
    return kind.label or kind.component.replace(" ", "-")


def kind_of(model: Model, case: str) -> Kind:
    """Return the kind of layers that makes a call."""
    label = case.partition(OF)[2]
    return next(kind for kind in model.kinds if kind.label == label and case.split("/", maxsplit=1)[0] in kind.operations)


def still(model: Model) -> Iterator[LoadedCase]:
    """Yield the calls of a layer that does not rotate. Their result is x, in every bit."""
    for case in cases(model, model.kinds[0].op):
        inputs = {name: np.asarray(value) for name, value in case.inputs.items()}
        exact = {name: {"out": np.zeros(inputs["x"].shape)} for name in BASE}
        call = Call(case.params, inputs, {"out": inputs["x"]}, widths=exact)
        why = f"layer {model.layer} of {model.name} does not rotate: the result must be x"
        yield LoadedCase(case.id, case.op, case.kind, GROUP, why, ("float64", "float32"), (call,), state=case.state)


def _arrays(kind: Kind, op: str, place: Placement, rng: np.random.Generator) -> Arrays:
    """Return the arrays of one call."""
    heads = kind.sizes.key_heads if place.keys else kind.sizes.heads
    x: tuple[int, ...] = (place.rows, heads, place.positions.shape[-1], kind.sizes.head_size)
    x = (place.rows, x[2], heads * x[3]) if kind.joined else x
    inv_freq = kind.frequencies(place.length)[0] if kind.has_frequencies else np.empty(0)
    angles = place.positions[..., None] * inv_freq
    made: dict[str, Any] = {
        "x": lambda: reals(rng, *x),
        "weight": lambda: 1 + reals(rng, x[-1]) / 4 if kind.weighted else np.ones(x[-1]),
        "positions": lambda: _by_axis(op, place.positions, kind, rng),
        "q_positions": lambda: place.positions,
        "k_positions": lambda: _keys(kind, place),
        "inv_freq": lambda: inv_freq,
        "cos": lambda: np.round(64 * np.cos(angles)) / 64,  # few bits, as x has
        "sin": lambda: np.round(64 * np.sin(angles)) / 64,
    }
    return {name: make() for name, make in made.items() if name in REGISTRY[op].arrays}


def _keys(kind: Kind, place: Placement) -> npt.NDArray[np.int64]:
    """Return the positions of the keys that a cache holds: those of the tokens, and as many before them as a window reaches."""
    reach = max((value for value in kind.options.values() if type(value) is int), default=0)
    tokens = place.positions
    return np.arange(max(0, int(tokens[0]) - min(reach, FARTHEST) - BESIDE), int(tokens[-1]) + 1)


def is_of_model(case: str) -> bool:
    """Return whether an id is that of a model's call."""
    return f"/{GROUP}/" in case


def _by_axis(op: str, positions: npt.NDArray[np.int64], kind: Kind, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return positions on every axis: of the cells of an image, or as text has them but for an image in the midst."""
    if kind.grid is not None:
        return _cells(kind)
    if "sections" not in REGISTRY[op].domains:
        return positions
    count = len(kind.options["sections"])
    by_axis = np.stack([positions] * count)
    tokens = positions.shape[-1]
    first_token, size = tokens // 4, tokens // 2
    for axis in range(1, count):
        by_axis[axis, ..., first_token : first_token + size] += rng.integers(0, 24, size)
    return np.minimum(by_axis, kind.longest - 1)


def _cells(kind: Kind) -> npt.NDArray[Any]:
    """Return the coordinates of the cells of an image, row by row; their middles from -1 to 1 where angles are in turns."""
    assert kind.grid is not None
    cells = np.indices(kind.grid).reshape(2, -1)
    if kind.options.get("unit") == "turns":
        return np.asarray((2 * cells + 1) / np.asarray(kind.grid)[:, None] - 1)
    times = np.zeros((len(kind.options["dims"]) - 2, cells.shape[1]), dtype=cells.dtype)
    return np.concatenate([times, cells])
