"""Sine encoding of masked images (DETR): cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, always, argument, around, before, cases_of, deviations_of, narrowed, option
from .tools.hints import AXIS_ORDER, BRANCH, DEFAULT, EACH_ROW, IGNORED

USUAL: dict[str, Any] = {"dim": 8, "normalize": True, "centered": False}
SIZES: dict[str, Any] = {"H": 3, "W": 4}
OTHER_VALUES = {"eps": 0.5}
GAPS = (  # images are small, and their angles few turns
    "positions-4096-at-0", "positions-clamped-4095", "angles-reduced", "angles-reduced-fused",
)  # fmt: skip
KERNEL: tuple[dict[str, Any], ...] = ({"dim": 256, "normalize": True, "centered": False},)
KERNEL_SIZES: dict[str, Any] = {"R": (2,), "H": 33, "W": 65}

DETR = {"normalize": True, "centered": False}
DEFORMABLE = {"normalize": True, "centered": True}
COUNTED = {"normalize": False, "centered": False}
CORNER = ((1, 1, 1, 0), (1, 1, 1, 0), (0, 0, 0, 0))  # padded below and to the right, as a batch of images is
HOLES = ((1, 0, 1, 1, 0), (0, 1, 1, 0, 1))
TALL = ((1, 1), (1, 0), (1, 1), (0, 1), (1, 1))
_sine_2d = cases_of("sine_2d")


def _case(name: str, mask: Any, dim: int, params: dict[str, Any], comment: str = "", **rest: Any) -> Case:
    return _sine_2d(name, {"dim": dim, **params}, {"mask": np.asarray(mask, dtype=np.bool_)}, comment, **rest)


def _padded(height: int, width: int, valid: tuple[int, int]) -> Any:
    """Return an image's mask, valid in its first rows and columns."""
    return (np.arange(height)[:, None] < valid[0]) & (np.arange(width) < valid[1])


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("detr/small", CORNER, 8, DETR, tier="smoke"),
        _case("detr/model", _padded(2, 3, (1, 3)), 256, DETR, "d = 256"),
        _case("detr/features", _padded(25, 34, (19, 34)), 4, DETR, "800 by 1066 pixels"),
        _case("detr/scale", HOLES, 8, {**DETR, "scale": 3.0}),
        _case("detr/eps", HOLES, 8, {**DETR, "eps": 0.0078125}),
        _case("detr/base", TALL, 8, {**DETR, "base": 500.0}),
        _case("detr/padding", np.zeros((2, 3)), 8, DETR, "no cell is valid: all at 0"),
        _case("detr/long", np.ones((300, 1)), 4, DETR, "300 rows"),
        _case("deformable/holes", HOLES, 12, DEFORMABLE),
        _case("deformable/padding", ((1, 0, 0), (1, 1, 0)), 4, {**DEFORMABLE, "eps": 0.125}, "an empty column"),
        _case("counts/tall", TALL, 8, {**COUNTED, "base": 20.0}),
        _case("counts/long", np.ones((1, 300)), 4, COUNTED, "300 columns"),
        _case("empty/columns", np.zeros((3, 0)), 8, COUNTED),
        _case("empty/batches", np.zeros((2, 0, 3, 2)), 8, DETR),
        _case("forms/strided-counts", TALL, 8, COUNTED, form="non-contiguous"),
        _case("forms/length-one", (((1,),),), 8, DETR, "one cell"),
        _case("forms/length-one-column", ((1,), (0,), (1,)), 8, DEFORMABLE, "one column"),
        _case("forms/length-zero", np.zeros((2, 3, 0)), 4, DETR),
        _case("refused/width", HOLES, 10, DETR, "two axes cannot share five pairs", kind="reject"),
        _case("refused/offset", HOLES, 8, {**COUNTED, "centered": True}, "counts are whole", kind="reject"),
        _case("refused/vector", HOLES[0], 8, DETR, "a row says nothing of its image", kind="reject"),
        _sine_2d("refused/numbers", {"dim": 8, **DETR}, {"mask": np.asarray(HOLES)}, "not a boolean mask", kind="reject"),
    )


NARROW_COUNTS = "A cumsum of a mask needs a wider dtype than int8."
NORMALIZED = "Divide by the last count plus epsilon, then multiply by the scale."

_deviation, _normalized, _counts = deviations_of("sine_2d"), deviations_of("normalized_counts"), deviations_of("valid_counts")


@around
def _by_size(function: Function, places: Any, axis: int, /, *, offset: float, scale: float, eps: float) -> Real:
    """Counts are divided by the number of cells, valid or not."""
    return (places - offset) / (places.shape[axis] + eps) * scale


def _by_first_image(places: Any, axis: int, /, *, offset: float, scale: float, eps: float) -> Real:
    last = np.take(places, [-1], axis=axis)
    if last.ndim > 2 and last.size:
        last = last[(0,) * (last.ndim - 2)]
    return (places - offset) / (last + eps) * scale


def _swapped(out: Real, mask: Any, dim: int, /, **options: Any) -> Real:
    return np.concatenate([out[..., dim // 2 :], out[..., : dim // 2]], axis=-1)


DEVIATIONS = (
    _deviation("sine-2d-padding", "padding cells are counted", argument(0, np.logical_not),
               hint="DETR's mask is True for padding. The mask in transformers is True for pixels."),
    _deviation("sine-2d-columns-first", "columns come before rows", after(_swapped), hint=AXIS_ORDER),
    _deviation("sine-2d-first-image", "the first image's mask is used for the whole batch",
               argument(0, lambda m: np.broadcast_to(m[:1], m.shape) if m.ndim > 2 else m), hint=EACH_ROW),
    _deviation("sine-2d-all-valid", "the mask is ignored: rows and columns are numbered from 1", argument(0, np.ones_like),
               hint=IGNORED),
    _deviation("sine-2d-base-10000", "the base is always 10000", option(base=always(10000.0)), hint=DEFAULT),
    _deviation("sine-2d-not-normalized", "counts are not divided",
               before(lambda mask, dim, /, **o: ((mask, dim), {**o, "normalize": False, "centered": False})), hint=NORMALIZED),
    _counts("sine-2d-other-axis", "cells are counted along the other axis", before(lambda m, axis: ((m, -3 - axis), {})),
            hint=AXIS_ORDER),
    _counts("sine-2d-from-0", "counts begin at 0", after(lambda out, m, axis: out - np.asarray(m, dtype=np.int64)),
            hint="Counts of valid cells begin at 1: a cumsum of the mask."),
    _counts("sine-2d-counts-int8", "counts overflow int8", after(lambda out, m, axis: (out + 2**7) % 2**8 - 2**7),
            hint=NARROW_COUNTS),
    _counts("sine-2d-counts-uint8", "counts wrap at 256", after(lambda out, m, axis: out % 2**8), hint=NARROW_COUNTS),
    _counts("sine-2d-counts-bfloat16", "counts are held in bfloat16", after(lambda out, m, axis: narrowed("bfloat16")(out)),
            hint="A mask in bfloat16 counts only up to 256."),
    _normalized("sine-2d-offset-0", "no half cell is subtracted", option(offset=always(0.0)),
                hint="Deformable DETR subtracts half a cell, DETR does not."),
    _normalized("sine-2d-offset-half", "half a cell is always subtracted", option(offset=always(0.5)), hint=BRANCH),
    _normalized("sine-2d-by-size", "counts are divided by the size of the image", _by_size,
                hint="Divide by the last count of valid cells, not by the size with padding."),
    _normalized("sine-2d-first-last", "counts are divided by the first image's last counts", lambda _: _by_first_image,
                hint=EACH_ROW),
    _normalized("sine-2d-no-scale", "counts are not multiplied by the scale", option(scale=always(1.0)), hint=NORMALIZED),
    _normalized("sine-2d-eps", "epsilon is always 1e-6", option(eps=always(1e-6)), hint=DEFAULT),
)  # fmt: skip
