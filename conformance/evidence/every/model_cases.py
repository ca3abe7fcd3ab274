"""
The calls that a model makes of its rotary encoding, at its own sizes (`for_model` reads these).

The calls are prompts, single tokens at several places, a batch padded on the left, tokens about the original length, and the
last ones of the longest context. They are made from a seed and judged live, as those of the kernel tier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ...accuracy import BASE
from ...model import Call, Case, LoadedCase
from .for_model import Model
from .kernel_cases import Arrays, reals

GROUP = "model"
PROMPT, BESIDE, PADDED = 257, 64, (0, 3, 40)  # tokens of a prompt, and on each side of a border; padding of three rows


@dataclass(frozen=True)
class Placement:
    """Where the tokens of one call stand: positions for x of a shape (rows, heads, tokens), in a sequence of a length."""

    name: str
    rows: int
    keys: bool  # asked of the heads of keys, not of queries
    positions: npt.NDArray[np.int64]  # of (tokens,), or (rows, 1, tokens)
    length: int


def places(model: Model) -> Iterator[Placement]:
    """Yield where the tokens of a model's calls stand."""
    short, original, longest = min(PROMPT, model.longest), model.original, model.longest
    yield Placement("prompt", 2, False, np.arange(short), short)
    yield Placement("prompt-keys", 2, True, np.arange(short), short)
    single = sorted({0, 1, original - 1, min(original, longest - 1), longest - 1})
    yield Placement("decode", len(single), False, np.asarray(single)[:, None, None], longest)
    count = min(65, model.longest)
    padded = np.maximum(np.arange(count) - np.asarray(PADDED)[:, None, None], 0)
    yield Placement("left-padding", len(PADDED), False, padded, count)
    beside = min(BESIDE, original)
    if original < longest:
        yield Placement("up-to-original", 1, True, np.arange(original - beside, original), original)
        beyond = min(longest, original + beside)
        yield Placement("beyond-original", 1, True, np.arange(original - beside, beyond), beyond)
    yield Placement("longest", 1, True, np.arange(longest - min(BESIDE, longest), longest), longest)


def cases(model: Model, op: str) -> Iterator[Case]:
    """Yield the calls of an operation, or of a stage, that a model makes."""
    if op not in model.operations:
        return
    for place in places(model):
        name = f"{op}/{GROUP}/{place.name}"
        if not REGISTRY[op].arrays and place.rows > 1:
            continue  # constants depend on the length alone
        rng = np.random.default_rng(crc32(f"{model.name} {name}".encode()))
        yield Case(
            name, model.arguments(op, place.length), _arrays(model, op, place, rng), tier=GROUP, state="still" * model.is_still
        )


def still(model: Model) -> Iterator[LoadedCase]:
    """Yield the calls of a layer that does not rotate. Their result is x, in every bit."""
    for case in cases(model, model.op):
        inputs = {name: np.asarray(value) for name, value in case.inputs.items()}
        exact = {name: {"out": np.zeros(inputs["x"].shape)} for name in BASE}
        call = Call(case.params, inputs, {"out": inputs["x"]}, widths=exact)
        why = f"layer {model.layer} of {model.name} does not rotate: the result must be x"
        yield LoadedCase(case.id, case.op, case.kind, GROUP, why, ("float64", "float32"), (call,), state=case.state)


def _arrays(model: Model, op: str, place: Placement, rng: np.random.Generator) -> Arrays:
    """Return the arrays of one call."""
    heads = model.sizes.key_heads if place.keys else model.sizes.heads
    x = (place.rows, heads, place.positions.shape[-1], model.sizes.head_size)
    inv_freq = model.frequencies(place.length)[0]
    angles = place.positions[..., None] * inv_freq
    made: dict[str, Any] = {
        "x": lambda: reals(rng, *x),
        "positions": lambda: _by_axis(op, place.positions, model, rng),
        "inv_freq": lambda: inv_freq,
        "cos": lambda: np.round(64 * np.cos(angles)) / 64,  # few bits, as x has
        "sin": lambda: np.round(64 * np.sin(angles)) / 64,
    }
    return {name: make() for name, make in made.items() if name in REGISTRY[op].arrays}


def is_of_model(case: str) -> bool:
    """Return whether an id is that of a model's call."""
    return f"/{GROUP}/" in case


def _by_axis(op: str, positions: npt.NDArray[np.int64], model: Model, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return positions on every axis, as text has them but for an image of rows and columns in the midst."""
    if "sections" not in REGISTRY[op].domains:
        return positions
    count = len(model.options["sections"])
    found = np.stack([positions] * count)
    tokens = positions.shape[-1]
    first_token, size = tokens // 4, tokens // 2
    for axis in range(1, count):
        found[axis, ..., first_token : first_token + size] += rng.integers(0, 24, size)
    return np.minimum(found, model.longest - 1)
