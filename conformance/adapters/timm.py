"""
timm: its rotary modules and functions, mixed RoPE, sines and cosines on a grid, the resampling of learned positions, and the
biases of windows.

Its layers are imported without the models around them, so that torchvision is not needed.
"""

from typing import Any

import torch
from torch import Tensor

from ._shared import from_grid, lacks, only_package

PACKAGE = "timm"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

sincos = only_package("timm.layers.pos_embed_sincos")
learned = only_package("timm.layers.pos_embed")
windows = only_package("timm.layers.pos_embed_rel")

LAYOUTS = ["half", "interleaved"]
GRID: dict[str, Any] = {"axes": [2], "unequal": False, "numbers": ["integers"], "negative": False, "empty": False}
# Windows of one row or column, whose coordinates RelPosMlp divides by 0 in mode swin.
ONE: list[dict[str, Any]] = [{p + side: {"max": 1}} for p in ("", "pretrained_") for side in ("height", "width")]

supports: dict[str, dict[str, Any]] = {
    "rope_frequencies": {"scaling": [None], "length": ["default"]},
    "apply_rope": {"layout": LAYOUTS, "inverse": [False], "partial": False},
    "mixed_rope": {"layout": ["interleaved"], "inverse": [False], "partial": False, "axes": [2]},
    "axial_rope": {
        **GRID, "layout": LAYOUTS, "allocation": ["own"], "arrangement": ["chunked"], "unit": ["radians"], "inverse": [False],
        "partial": False,
    },
    "sinusoidal_nd": {**GRID, "layout": ["sin_cos"], "endpoint": [False]},
    "window_bias": {"depth": [1], "order": ["query_minus_key"]},
    "continuous_position_bias": {"empty": False, "not": [{"form": "swin", **size} for size in ONE]},
    "resample": {"axes": [2], "empty": False, "boundary": ["border"], "interpolate_offset": ["default"]},
}  # fmt: skip


def rope_frequencies(dim: int, /, *, base: float, scaling: Any = None) -> tuple[Tensor, float]:
    """freq_bands of every second number."""
    if scaling is not None:
        lacks(f"no {scaling!r}")
    return sincos.freq_bands(dim, temperature=base), 1.0


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """apply_rot_embed, on tables whose columns are there twice, as _rope_layout puts them."""
    half = _half(layout, inverse)
    if 2 * cos.shape[-1] != x.shape[-1]:
        lacks("all channels of a head rotate")
    sines, cosines = (sincos._rope_layout(table, rotate_half=half) for table in (sin, cos))
    return sincos.apply_rot_embed(x, sines, cosines, half=half)


def mixed_rope(x: Tensor, positions: Tensor, frequencies: Tensor, /, *, layout: str, inverse: bool = False) -> Tensor:
    """get_mixed_freqs of two axes, each token as one of a head of its own, then apply_rot_embed_cat."""
    lanes, rows = x.shape[-1], x.shape[:-1]
    if layout != "interleaved" or inverse or positions.shape[0] != 2 or 2 * frequencies.shape[-1] != lanes:
        lacks(f"layout {layout!r}, inverse {inverse}, {positions.shape[0]} axes: neighbouring pairs, all channels, two axes")
    flat = x.reshape(-1, 1, lanes)
    first, second = (torch.broadcast_to(axis, rows).reshape(-1, 1) for axis in positions)
    spread = torch.stack([torch.broadcast_to(axis, (*rows, lanes // 2)).reshape(-1, lanes // 2) for axis in frequencies])
    return sincos.apply_rot_embed_cat(flat, sincos.get_mixed_freqs(spread, first, second)).reshape(x.shape)


def axial_rope(
    x: Tensor, positions: Tensor, /, *, dims: list[int], base: float, allocation: str, arrangement: str, layout: str,
    unit: str = "radians", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """RotaryEmbeddingCat of a grid that has these cells, then apply_rot_embed_cat."""
    half = _half(layout, inverse)
    if len(dims) != 2 or dims[0] != dims[1] or sum(dims) != x.shape[-1] or x.shape[-1] % 4:
        lacks("two axes share all channels of a head evenly")
    if (allocation, arrangement, unit) != ("own", "chunked", "radians"):
        lacks(f"no frequencies that are {allocation!r}, {arrangement!r}, in {unit!r}")
    module = sincos.RotaryEmbeddingCat(x.shape[-1], temperature=base, in_pixels=False, rotate_half=half)
    emb = from_grid(lambda *shape: module.get_embed(list(shape)), positions, 2 * x.shape[-1])
    return sincos.apply_rot_embed_cat(x, emb, half=half)


def sinusoidal_nd(
    positions: Tensor, /, *, dims: list[int], layout: str, arrangement: str, base: float = 1e4, endpoint: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """build_sincos2d_pos_embed of a grid that has these cells."""
    if layout != "sin_cos" or endpoint or len(dims) != 2 or dims[0] != dims[1]:
        lacks(f"layout {layout!r}, endpoint {endpoint}, dims {dims}: sines, then cosines, of two axes that share evenly")

    def table(*shape: int) -> Tensor:
        return sincos.build_sincos2d_pos_embed(
            list(shape), sum(dims), base, interleave_sin_cos=arrangement == "axis", dtype=dtype or torch.get_default_dtype()
        )

    return from_grid(table, positions, sum(dims))


def resample(
    table: Tensor, size: list[int], /, *, old_size: list[int], prefix: int, method: str, align_corners: bool, antialias: bool,
    interpolate_offset: float | None = None, boundary: str = "border",
) -> Tensor:  # fmt: skip
    """resample_abs_pos_embed."""
    if len(size) != 2 or not table.numel():
        lacks("the grid has two axes, and the table has numbers")
    if boundary != "border" or interpolate_offset is not None:
        lacks("no padding with zeros and no offset")
    mode = {"linear": "bilinear", "cubic": "bicubic"}[method]
    return learned.resample_abs_pos_embed(
        table[None], list(size), list(old_size), prefix, mode, antialias, align_corners=align_corners
    )[0]


def window_bias(table: Tensor, /, *, height: int, width: int, depth: int, order: str, class_token: bool) -> Tensor:
    """RelPosBias.get_bias with this table."""
    if depth != 1 or order != "query_minus_key":
        lacks("windows of images, query minus key")
    module = windows.RelPosBias((height, width), table.shape[1], prefix_tokens=int(class_token))
    del module.relative_position_bias_table
    module.relative_position_bias_table = table  # not a Parameter, so that gradients reach the caller's table
    return module.get_bias()[0]


def continuous_position_bias(
    w1: Tensor, b1: Tensor, w2: Tensor, /, *, b2: Tensor | None = None, height: int, width: int, form: str,
    pretrained_height: int | None = None, pretrained_width: int | None = None,
) -> Tensor:  # fmt: skip
    """RelPosMlp with these weights, in evaluation, of logits that are 0."""
    trained = (pretrained_height or height, pretrained_width or width)
    if form == "swin" and 1 in trained:
        lacks("a window of one row or column, whose coordinates it divides by 0")
    module = windows.RelPosMlp((height, width), len(w2), len(w1), mode=form, pretrained_window_size=trained).to(w1.dtype).eval()
    module.mlp.fc2 = torch.nn.Linear(len(w1), len(w2), bias=b2 is not None)
    weights = {"mlp.fc1.weight": w1, "mlp.fc1.bias": b1, "mlp.fc2.weight": w2} | ({} if b2 is None else {"mlp.fc2.bias": b2})
    zeros = torch.zeros(1, len(w2), height * width, height * width, dtype=w1.dtype)
    bias: Tensor = torch.func.functional_call(module, weights, (zeros,))
    return bias[0]


def _half(layout: str, inverse: bool) -> bool:
    if layout not in LAYOUTS or inverse:
        lacks(f"no layout {layout!r} with inverse={inverse}")
    return layout == "half"


# Read and run in timm 1.0.31 with torch 2.13.0 on a CPU.
NOTES = (
    "Positions are the cells of a grid (layers/pos_embed_sincos.py:116), looked up in the smallest that has them.",
    "RotaryEmbeddingMRope, whose time is always 0, and RotaryEmbeddingDinoV3, whose coordinates follow from the shape of the "
    "grid, are not asked; nor is RelPosBiasTf, whose table has heads first.",
    "RelPosMlp rounds coordinates to the dtype of its weights (layers/pos_embed_rel.py:419).",
    "resample_abs_pos_embed gives back a table of the size that it should have (layers/pos_embed.py:34).",
)
