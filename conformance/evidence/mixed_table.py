"""Cosines and sines of RoPE-Mixed: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.axial import BETWEEN, FAR, FRAMES, PATCHES, exchanged, first_row, learned, mixed_forms
from .shared.rotary import TRIPLES
from .tools import Case, Real, argument, deviations_of, gradient, held, reals
from .tools.hints import ALL_AXES, EACH_HEAD, EACH_ROW, FROM_ZERO, KEEP_FLOAT32

AXES = (1,)
KERNEL: tuple[dict[str, Any], ...] = ({},)


def _case(
    name: str, positions: Any, frequencies: tuple[int, ...], comment: str = "", *, bits: int = 8,
    kind: str = "value", tier: str = "core",
) -> Case:  # fmt: skip
    inputs = {"positions": positions, "frequencies": learned(name, *frequencies, bits=bits)}
    return Case(f"mixed_table/{name}", {}, inputs, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", PATCHES, (2, 3), tier="smoke"),
        _case("plain/between", BETWEEN, (2, 4)),
        _case("plain/far", FAR, (2, 3)),
        _case("plain/one-axis", ((0, 3, 9, 300),), (1, 3), "as rope"),
        _case("heads/last", tuple(np.asarray(BETWEEN)[..., None]), (2, 2, 5), "tokens before heads"),
        _case("heads/rows", np.asarray((FRAMES[:2], FRAMES[1:]))[:, :, None], (2, 1, 2, 1, 3), "two images, two heads"),
        _case("refused/axes", PATCHES, (3, 4), "frequencies of three axes for two", kind="reject"),
        _case("refused/rows", PATCHES, (2, 3, 4), "three heads against five tokens", kind="reject"),
        *mixed_forms("mixed_table", x=False),
        gradient("mixed_table", "shared", {"positions": TRIPLES[:2], "frequencies": reals("mixed-shared", 2, 4) / 4},
                 {"cos": (3, 4), "sin": (3, 4)}),
        gradient("mixed_table", "heads",
                 {"positions": TRIPLES, "frequencies": reals("mixed-heads", 3, 2, 1, 2) / 4},
                 {"cos": (2, 3, 2), "sin": (2, 3, 2)}),
    )  # fmt: skip


SUM_OF_AXES = "A pair's angle is the sum over all axes."


def _axial_only(f: Real) -> Real:
    """Return frequencies in which each axis keeps only its block of pairs."""
    axes, pairs = f.shape[0], f.shape[-1]
    axis_of_pair = np.arange(pairs) * axes // pairs
    return f * (axis_of_pair == np.arange(axes).reshape(axes, *(1,) * (f.ndim - 1)))


_deviation = deviations_of("mixed_table")

DEVIATIONS = (
    _deviation("mixed-first-axis", "a pair rotates with the first axis alone",
               argument(1, lambda f: np.concatenate([f[:1], 0 * f[1:]])), hint=ALL_AXES),
    _deviation("mixed-by-axis", "every axis rotates its own pairs, as in axial RoPE", argument(1, _axial_only),
               hint=SUM_OF_AXES),
    _deviation("mixed-difference", "the angles of later axes are subtracted",
               argument(1, lambda f: f * np.where(np.arange(f.shape[0]) > 0, -1.0, 1.0).reshape(-1, *(1,) * (f.ndim - 1))),
               hint=SUM_OF_AXES),
    _deviation("mixed-exchanged", "the frequencies of the first and the last axis are exchanged",
               argument(1, exchanged(0, -1)), hint="RoPE-ViT and timm have the width first."),
    _deviation("mixed-first-head", "the frequencies of the first head are used for every head",
               argument(1, lambda f: np.broadcast_to(f[:, *(slice(0, 1),) * (f.ndim - 2)], f.shape) if f.ndim > 2 else f),
               hint=EACH_HEAD),
    _deviation("mixed-first-row", "the first row's positions are used for every row", argument(0, first_row), hint=EACH_ROW),
    _deviation("mixed-one-based", "cells are counted from one", argument(0, lambda p: p + 1), hint=FROM_ZERO),
    _deviation("mixed-bfloat16", "learned frequencies are held in bfloat16", held("bfloat16", 1), hint=KEEP_FLOAT32),
)  # fmt: skip
