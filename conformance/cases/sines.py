"""Cases of encodings made of sines, besides sinusoidal: timestep, sinusoidal_nd, sinusoidal_shift and sine_2d."""

from typing import Any

import numpy as np

from ..model import Case, Flag
from .forms import places
from .making import cases_of

FLAGS = {
    "timestep-flip": Flag("sines first where cosines are, or the reverse", "diffusers #1369"),
    "timestep-shift": Flag("the exponent divided by h where it is h - 1, or the reverse", "hojonathanho/diffusion #15"),
    "timestep-scale": Flag("timesteps multiplied by 1000 twice, or not at all"),
    "timestep-odd": Flag("the column of zeros of an odd width in another place, or left out"),
    "timestep-period": Flag("the longest period always 10000"),
    "timestep-fraction": Flag("fractional timesteps truncated or rounded"),
    "timestep-half": Flag("timesteps or their multiples in half precision: 2049 is no float16"),
    "timestep-true-size": Flag("a model's own width and options not reproduced"),
    "timestep-rows": Flag("the first timestep used for the whole batch"),
    "timestep-empty": Flag("no timesteps: a crash or a wrong shape"),
    "timestep-refuse": Flag("options accepted with which an exponent is divided by zero"),
    "sinusoidal-nd-order": Flag("rows and columns exchanged, which square grids hide", "transformers #41380, torchtitan #4244"),
    "sinusoidal-nd-layout": Flag("sines and cosines of a block in another order"),
    "sinusoidal-nd-phases": Flag("the sines of all axes before all cosines, or the reverse"),
    "sinusoidal-nd-width": Flag("the exponent divided by the whole width, not the block's, or blocks of equal widths"),
    "sinusoidal-nd-base": Flag("always base 10000, or never an endpoint"),
    "sinusoidal-nd-ids": Flag("coordinates counted from 0, or truncated to integers"),
    "sinusoidal-nd-far": Flag("coordinates in half precision"),
    "sinusoidal-nd-true-size": Flag("a model's own widths and coordinates not reproduced"),
    "sinusoidal-nd-empty": Flag("no cells: a crash or a wrong shape"),
    "sinusoidal-nd-refuse": Flag("widths or axes that do not fit accepted"),
    "sine-2d-polarity": Flag("valid cells taken for padding"),
    "sine-2d-order": Flag("columns before rows, or counts along the other axis; square images hide it"),
    "sine-2d-last": Flag("divided by the size of the image in place of the last count"),
    "sine-2d-offset": Flag("half a cell subtracted, or not"),
    "sine-2d-normalize": Flag("counts divided where they should not be, or not multiplied by the scale"),
    "sine-2d-base": Flag("the base always 10000"),
    "sine-2d-eps": Flag("a column or row of padding alone divided by zero, or epsilon left out"),
    "sine-2d-counts": Flag("counts from 0, or in half precision: 257 cells"),
    "sine-2d-true-size": Flag("a model's own width and options not reproduced"),
    "sine-2d-rows": Flag("the first image's mask used for the whole batch"),
    "sine-2d-empty": Flag("an image without rows or columns: a crash or a wrong shape"),
    "sine-2d-refuse": Flag("a width that axes cannot share, or a mask of numbers accepted"),
    "sinusoidal-shift-sign": Flag("the transpose, which goes back where it should go on"),
    "sinusoidal-shift-layout": Flag("sines and cosines in other columns than the layout's"),
    "sinusoidal-shift-frequency": Flag("other frequencies than those of the sinusoid"),
    "sinusoidal-shift-offsets": Flag("offsets truncated, without their sign, or in half precision"),
    "sinusoidal-shift-true-size": Flag("the paper's width not reproduced"),
    "sinusoidal-shift-empty": Flag("no offsets: a crash or a wrong shape"),
    "sinusoidal-shift-refuse": Flag("a width without such a map accepted"),
}

DDPM = {"flip": False, "shift": 1, "scale": 1.0}
GUIDED = {"flip": True, "shift": 0, "scale": 1.0}
FLUX = {"flip": True, "shift": 0, "scale": 1000.0}
ERNIE = {"flip": False, "shift": 0, "scale": 1.0}
STEPS = (999.5, 0.25, 37, 500)
FAR = (0, 1, 255, 257, 999, 2047, 2049, 4097, 65537, 1048575)
UNIT = (0.5, 0.03125, 1, 0.998046875)

_timestep = cases_of("timestep", "timestep-")


def _steps(
    name: str, flags: str, timesteps: Any, dim: int, params: dict[str, Any], comment: str = "", **rest: Any
) -> Case:  # fmt: skip
    return _timestep(name, flags, {"dim": dim, **params}, {"timesteps": timesteps}, comment, **rest)


TIMESTEP = (
    _steps("ddpm/small", "shift flip", (7, 0, 500), 6, DDPM, tier="smoke"),
    _steps("ddpm/fraction", "shift fraction", STEPS, 12, DDPM),
    _steps("ddpm/odd", "odd shift flip", STEPS, 7, DDPM),
    _steps("ddpm/true-size", "true-size shift", (0, 1, 257, 999), 128, DDPM, "the authors' CIFAR10 model"),
    _steps("ddpm/one-beyond", "shift", (3, 900), 4, DDPM, "h - 1 is 1: frequencies 1 and 1/P"),
    _steps("guided/small", "flip fraction", STEPS, 6, GUIDED),
    _steps("guided/odd", "odd flip", STEPS, 9, GUIDED, "zeros after the flip"),
    _steps("guided/far", "half", FAR, 10, GUIDED),
    _steps("guided/true-size", "true-size flip", (0, 1.5, 981, 999), 256, GUIDED, "DiT and SD3"),
    _steps("guided/rows", "rows", ((1, 20, 981), (0.5, 7, 300)), 14, GUIDED, "(B, T): a timestep for every token"),
    _steps("guided/scalar", "rows", 77, 10, GUIDED, "a timestep without axes"),
    _steps("guided/period", "period", STEPS, 12, {**GUIDED, "max_period": 500.0}),
    _steps("guided/shift", "shift flip", (3, 41.5, 800), 20, {**GUIDED, "shift": 1}),
    _steps("guided/one-pair", "odd flip", (2, 0.75), 3, GUIDED, "one frequency, and zeros"),
    _steps("flux/small", "scale flip", UNIT, 6, FLUX),
    _steps("flux/24-bits", "scale half", (0.3333333432674408, 0.8999999761581421, 0.0009999999310821295), 10, FLUX),
    _steps("flux/true-size", "true-size scale", (0.75, 0.99609375, 0.0625), 256, FLUX, "Qwen-Image and AuraFlow"),
    _steps("flux/odd", "odd scale", UNIT, 11, FLUX),
    _steps("flux/period", "period scale", UNIT, 8, {**FLUX, "max_period": 2e4}),
    _steps("ernie/small", "flip shift", (3, 250, 999.5, 1), 10, ERNIE),
    _steps("ernie/odd", "odd flip", (20, 1), 5, ERNIE),
    _steps("ernie/far", "half scale", FAR, 6, {**ERNIE, "scale": 0.5}),
    _steps("empty/none", "empty", np.zeros(0, dtype=np.int64), 6, GUIDED),
    _steps("empty/odd", "empty odd", np.zeros((2, 0), dtype=np.int64), 7, DDPM),
    _steps("refused/one-pair", "refuse", (0, 1, 5), 2, DDPM, "h - 1 divides by zero", kind="reject"),
    _steps("refused/one-pair-odd", "refuse odd", (0, 1, 5), 3, DDPM, "h - 1 divides by zero", kind="reject"),
    _steps("refused/one-column", "refuse odd", (0, 1, 5), 1, GUIDED, "there is no frequency", kind="reject"),
    _steps("refused/scale", "refuse scale", (0, 1, 5), 6, {**GUIDED, "scale": 0.0}, "all rows would be equal", kind="reject"),
    *places("timestep", "timesteps", {"dim": 6, **DDPM}),
)  # fmt: skip

GRID = ((0, 0, 0, 1, 1, 1), (0, 1, 2, 0, 1, 2))
SCATTERED = ((3, 0, 7, 3), (11, 5, 0, 2))
SCALED = ((0.75, 1.5, 0, 2.25), (1.3125, 0, 2.625, 0.65625))
VIDEO = ((0, 1, 1, 12), (2, 0, 44, 29), (1, 3, 2, 59))
SIN, COS, NEAR, TIMM = (
    {"layout": layout, "phases": phases}
    for layout, phases in (("sin_cos", "axis"), ("cos_sin", "axis"), ("interleaved", "axis"), ("sin_cos", "outer"))
)

_nd = cases_of("sinusoidal_nd", "sinusoidal-nd-")
_nd_form = cases_of("sinusoidal_nd")


def _cells(
    name: str, flags: str, positions: Any, widths: list[int], params: dict[str, Any], comment: str = "", **rest: Any
) -> Case:  # fmt: skip
    make = _nd_form if name.startswith("forms/") else _nd
    return make(name, flags, {"widths": widths, **params}, {"positions": positions}, comment, **rest)


ND = (
    _cells("sin-cos/small", "order layout", ((1, 0, 4), (3, 5, 0)), [4, 4], SIN, tier="smoke"),
    _cells("sin-cos/grid", "order ids", GRID, [6, 6], SIN, "a grid of 2 by 3"),
    _cells("sin-cos/unequal", "width order", SCATTERED, [4, 10], SIN),
    _cells("sin-cos/mae", "true-size order", ((0, 13, 7), (13, 2, 0)), [384, 384], SIN, "14 by 14 patches of ViT-B"),
    _cells("sin-cos/sd3", "true-size ids", ((20.0, 21.5, 63.666666984558105), (12.0, 0.3333333432674408, 41.0)), [768, 768],
           SIN, "coordinates of a window, scaled"),
    _cells("sin-cos/cogvideox", "true-size width order", VIDEO, [480, 720, 720], SIN, "frame, column, row"),
    _cells("sin-cos/fraction", "ids", SCALED, [8, 6], SIN),
    _cells("sin-cos/far", "far", (FAR, FAR[::-1]), [6, 4], SIN),
    _cells("sin-cos/base", "base width", SCATTERED, [6, 8], {**SIN, "base": 500.0}),
    _cells("sin-cos/endpoint", "base", SCATTERED, [8, 6], {**SIN, "endpoint": True}, "vit-pytorch"),
    _cells("sin-cos/endpoint-base", "base", SCATTERED, [4, 10], {**SIN, "endpoint": True, "base": 100.0}),
    _cells("sin-cos/one-axis", "width", (SCATTERED[0],), [6], SIN),
    _cells("sin-cos/one-pair", "width", VIDEO, [2, 2, 2], SIN, "every frequency is 1"),
    _cells("cos-sin/small", "layout order", SCATTERED, [6, 4], COS),
    _cells("cos-sin/three", "layout width", VIDEO, [4, 6, 8], COS),
    _cells("interleaved/small", "layout order", SCATTERED, [6, 4], NEAR),
    _cells("interleaved/three", "layout width order", VIDEO, [4, 4, 6], NEAR, "as positional-encodings' grids"),
    _cells("interleaved/one-axis", "layout", (SCATTERED[0],), [8], NEAR),
    _cells("outer/small", "phases order", SCATTERED, [6, 6], TIMM, "timm"),
    _cells("outer/unequal", "phases width", SCATTERED, [4, 10], TIMM),
    _cells("outer/timm", "true-size phases order", ((0, 13, 7), (13, 2, 0)), [192, 192], TIMM, "14 by 14 patches of ViT-S"),
    _cells("outer/cos-sin", "phases layout", VIDEO, [4, 6, 8], {**COS, "phases": "outer"}),
    _cells("outer/cos-sin-grid", "phases layout", GRID, [8, 8], {**COS, "phases": "outer", "base": 2e4}),
    _cells("rows/pairs", "ids order", (((3, 4), (0, 7)), ((5, 1), (2, 6))), [4, 6], SIN, "(B, T)"),
    _cells("rows/scalar", "order", (3, 8), [4, 6], SIN, "one cell, without axes"),
    _cells("empty/none", "empty", np.zeros((2, 0), dtype=np.int64), [4, 6], SIN),
    _cells("empty/rows", "empty", np.zeros((3, 2, 0), dtype=np.int64), [4, 2, 6], TIMM),
    _cells("forms/strided", "non-contiguous", (((3, 8, 1), (0, 5, 2)), ((4, 8, 0), (7, 1, 9))), [4, 6], SIN),
    _cells("forms/strided-vector", "non-contiguous", SCATTERED, [6, 4], NEAR),
    _cells("forms/expanded", "broadcast-view", ((SCATTERED[0],) * 2, (SCATTERED[1],) * 2), [4, 6], SIN),
    _cells("forms/batch-one", "batch-one", ((SCATTERED[0],), (SCATTERED[1],)), [4, 6], SIN),
    _cells("forms/length-one", "length-one batch-one", (((8,),), ((3,),)), [4, 6], SIN),
    _cells("refused/axes", "refuse", GRID, [4, 4, 4], SIN, "two coordinates for three widths", kind="reject"),
    _cells("refused/odd", "refuse width", GRID, [4, 5], SIN, kind="reject"),
    _cells("refused/outer", "refuse phases", GRID, [4, 4], {**NEAR, "phases": "outer"}, kind="reject"),
    _cells("refused/endpoint", "refuse", GRID, [4, 2], {**SIN, "endpoint": True}, "d/2 - 1 divides by zero", kind="reject"),
)  # fmt: skip

_shift = cases_of("sinusoidal_shift", "sinusoidal-shift-")


def _shifts(name: str, flags: str, offsets: Any, dim: int, layout: str, comment: str = "", **rest: Any) -> Case:
    kept = {key: rest.pop(key) for key in ("base", "endpoint") if key in rest}
    return _shift(name, flags, {"dim": dim, "layout": layout, **kept}, {"offsets": offsets}, comment, **rest)


SHIFT = (
    _shifts("interleaved/small", "sign layout", (2, 1, 5), 6, "interleaved", tier="smoke"),
    _shifts("interleaved/transformer", "true-size frequency", (3, 40), 64, "interleaved", "a head's width"),
    _shifts("interleaved/far", "offsets frequency", FAR[4:], 4, "interleaved"),
    _shifts("interleaved/endpoint", "frequency", (1, 7), 8, "interleaved", endpoint=True),
    _shifts("sin-cos/small", "sign layout", (1, 4), 6, "sin_cos"),
    _shifts("sin-cos/negative", "sign offsets", (-1, -300, 2), 4, "sin_cos", "back"),
    _shifts("sin-cos/fraction", "offsets", (0.5, 2.75), 6, "sin_cos"),
    _shifts("sin-cos/base", "frequency", (3, 20), 10, "sin_cos", base=500.0),
    _shifts("sin-cos/endpoint", "frequency", (3, 20), 6, "sin_cos", endpoint=True, base=2e4),
    _shifts("cos-sin/small", "sign layout", (1, 9, 0), 8, "cos_sin"),
    _shifts("cos-sin/scalar", "layout", 7, 6, "cos_sin", "one offset, without axes"),
    _shifts("cos-sin/one-pair", "sign", (1, 40), 2, "cos_sin"),
    _shifts("rows/pairs", "offsets", ((1, 2, 3), (7, 0, 300)), 4, "interleaved"),
    _shifts("empty/none", "empty", np.zeros(0, dtype=np.int64), 6, "sin_cos"),
    _shifts("empty/rows", "empty", np.zeros((2, 0), dtype=np.int64), 4, "interleaved"),
    _shifts("refused/odd", "refuse", (0, 1, 5), 7, "sin_cos", "a sine without its cosine", kind="reject"),
    _shifts("refused/endpoint", "refuse", (0, 1, 5), 2, "sin_cos", "d/2 - 1 divides by zero", kind="reject", endpoint=True),
    *places("sinusoidal_shift", "offsets", {"dim": 4, "layout": "interleaved"}),
)  # fmt: skip

DETR = {"normalize": True, "centered": False}
DEFORMABLE = {"normalize": True, "centered": True}
COUNTED = {"normalize": False, "centered": False}
DINO = {**DETR, "base": 20.0}
CORNER = ((1, 1, 1, 0), (1, 1, 1, 0), (0, 0, 0, 0))  # padded below and to the right, as a batch of images is
HOLES = ((1, 0, 1, 1, 0), (0, 1, 1, 0, 1))
TALL = ((1, 1), (1, 0), (1, 1), (0, 1), (1, 1))

_sine_2d = cases_of("sine_2d", "sine-2d-")
_sine_2d_form = cases_of("sine_2d")


def _image(name: str, flags: str, mask: Any, dim: int, params: dict[str, Any], comment: str = "", **rest: Any) -> Case:
    make = _sine_2d_form if name.startswith("forms/") else _sine_2d
    return make(name, flags, {"dim": dim, **params}, {"mask": np.asarray(mask, dtype=np.bool_)}, comment, **rest)


def _padded(height: int, width: int, valid: tuple[int, int]) -> Any:
    """Return an image's mask, valid in its first rows and columns."""
    return (np.arange(height)[:, None] < valid[0]) & (np.arange(width) < valid[1])


IMAGE = (
    _image("detr/small", "order last eps", CORNER, 8, DETR, tier="smoke"),
    _image("detr/holes", "polarity last order", HOLES, 8, DETR, "cells of padding between valid ones"),
    _image("detr/tall", "order last", TALL, 12, DETR),
    _image("detr/whole", "order normalize", np.ones((2, 3)), 8, DETR, "nothing is padding"),
    _image("detr/model", "true-size last", _padded(7, 9, (6, 9)), 256, DETR, "d = 256"),
    _image("detr/features", "true-size last", _padded(25, 34, (19, 34)), 16, DETR, "800 by 1066 pixels"),
    _image("detr/scale", "normalize", HOLES, 8, {**DETR, "scale": 3.0}),
    _image("detr/eps", "eps", HOLES, 8, {**DETR, "eps": 0.0078125}),
    _image("detr/base", "base", TALL, 8, {**DETR, "base": 500.0}),
    _image("detr/padding", "eps polarity", np.zeros((2, 3)), 8, DETR, "no cell is valid: all at 0"),
    _image("detr/long", "counts true-size", np.ones((300, 2)), 4, DETR, "300 rows"),
    _image("deformable/small", "offset order", CORNER[:2], 8, DEFORMABLE),
    _image("deformable/holes", "offset last", HOLES, 12, DEFORMABLE),
    _image("deformable/model", "true-size offset", _padded(6, 5, (6, 4)), 256, DEFORMABLE, "d = 256"),
    _image("deformable/scale", "offset normalize", TALL, 8, {**DEFORMABLE, "scale": 5.0}),
    _image("deformable/padding", "eps offset", ((1, 0, 0), (1, 1, 0)), 4, {**DEFORMABLE, "eps": 0.125}, "an empty column"),
    _image("dino/small", "base true-size", HOLES, 16, DINO, "Grounding DINO"),
    _image("counts/small", "normalize counts", HOLES, 8, COUNTED),
    _image("counts/tall", "normalize order", TALL, 8, {**COUNTED, "base": 20.0}),
    _image("counts/long", "counts", np.ones((2, 300)), 4, COUNTED, "300 columns"),
    _image("rows/batch", "rows last", (HOLES, tuple(row[::-1] for row in HOLES)), 8, DETR),
    _image("rows/batches", "rows offset", (((HOLES), (HOLES[::-1])), ((HOLES[::-1]), (HOLES))), 8, DEFORMABLE),
    _image("empty/rows", "empty", np.zeros((0, 3)), 8, DETR),
    _image("empty/columns", "empty", np.zeros((3, 0)), 8, COUNTED),
    _image("empty/batch", "empty", np.zeros((0, 2, 3)), 8, DEFORMABLE),
    _image("empty/batches", "empty", np.zeros((2, 0, 3, 2)), 8, DETR),
    _image("forms/strided", "non-contiguous", (HOLES, HOLES[::-1]), 8, DETR),
    _image("forms/strided-counts", "non-contiguous", TALL, 8, COUNTED),
    _image("forms/expanded", "broadcast-view", (HOLES,) * 2, 8, DETR),
    _image("forms/expanded-three", "broadcast-view", (TALL,) * 3, 4, DEFORMABLE),
    _image("forms/batch-one", "batch-one", (HOLES,), 8, DETR),
    _image("forms/batch-one-tall", "batch-one", (TALL,), 8, COUNTED),
    _image("forms/length-one", "length-one batch-one", (((1,),),), 8, DETR, "one cell"),
    _image("forms/length-one-row", "length-one", ((1, 0, 1, 1),), 8, DEFORMABLE, "one row"),
    _image("forms/length-one-column", "length-one", ((1,), (0,), (1,)), 8, DEFORMABLE, "one column"),
    _image("forms/length-zero", "length-zero", np.zeros((2, 3, 0)), 4, DETR),
    _image("forms/length-zero-rows", "length-zero", np.zeros((2, 0, 3)), 4, DEFORMABLE),
    _image("refused/width", "refuse", HOLES, 10, DETR, "two axes cannot share five pairs", kind="reject"),
    _image("refused/offset", "refuse offset", HOLES, 8, {**COUNTED, "centered": True}, "counts are whole", kind="reject"),
    _image("refused/vector", "refuse", HOLES[0], 8, DETR, "a row says nothing of its image", kind="reject"),
    _sine_2d("refused/numbers", "refuse", {"dim": 8, **DETR}, {"mask": np.asarray(HOLES)}, "not a boolean mask", kind="reject"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*TIMESTEP, *ND, *SHIFT, *IMAGE)
