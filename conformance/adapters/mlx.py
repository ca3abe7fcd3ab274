"""MLX on the CPU: mlx.nn's RoPE, SinusoidalPositionalEncoding and ALiBi."""

import mlx.core as mx
import numpy as np
from mlx import nn

from posref.scaling import Linear, Scaling

from ._mlx import TRADITIONAL, Array, turn
from ._shared import lacks

PACKAGE = "mlx[cpu]"
backend = "numpy"
dtypes = ("float32", "float16")  # NumPy, through which arrays come and go, has no bfloat16
claims = {"float32": "angle32", "float16": "low"}


def rope(
    x: Array, positions: Array, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Scaling | None = None
) -> Array:
    """mlx.nn.RoPE, that is mx.fast.rope."""
    if layout not in TRADITIONAL:
        lacks(f"no layout {layout!r}; what is read is written")
    if not isinstance(scaling, Linear | None):
        lacks(f"no {scaling!r}")
    scale = 1.0 if scaling is None else 1 / scaling.factor
    module = nn.RoPE(x.shape[-1] if rotary_dim is None else rotary_dim, TRADITIONAL[layout], base, scale)
    return turn(module, x, positions)


def sinusoidal(
    positions: Array, dim: int, /, *, layout: str, base: float = 1e4, endpoint: bool = False, scale: float = 1.0
) -> Array:
    """SinusoidalPositionalEncoding; its lowest frequency is 1/base, or without endpoint base**(2/dim)/base."""
    if layout not in ("sin_cos", "cos_sin"):
        lacks(f"no layout {layout!r}")
    lowest = 1 / base if endpoint else base ** (2 / dim) / base
    module = nn.SinusoidalPositionalEncoding(dim, min_freq=lowest, scale=scale, cos_first=layout == "cos_sin")
    return np.asarray(module(mx.array(positions)))


def alibi_slopes(heads: int, /) -> Array:
    """mlx.nn.ALiBi.create_alibi_slope."""
    return np.asarray(nn.ALiBi.create_alibi_slope(heads)).reshape(heads)


def alibi(q_positions: Array, k_positions: Array, /, *, heads: int, form: str) -> Array:
    """mlx.nn.ALiBi.create_alibi_matrix of one query at a time, with its position as offset."""
    if form != "distance":
        lacks(f"no form {form!r}: the bias is -m|i - j|")
    if any(p.dtype.kind == "f" or p.ndim != 1 or p.size == 0 or p.min() < 0 for p in (q_positions, k_positions)):
        lacks("positions are counted from 0, the same for every sequence")
    keys = int(k_positions.max()) + 1
    matrix = nn.ALiBi.create_alibi_matrix
    rows = [np.asarray(matrix(int(q) + 1, keys, heads, offset=int(q)))[0, :, 0] for q in q_positions]
    return np.stack(rows, axis=1)[..., k_positions]


# Read and run in MLX 0.32.4 on a CPU.
NOTES = (
    "SinusoidalPositionalEncoding multiplies by sqrt(2/dim) unless told its scale "
    "(nn/layers/positional_encoding.py:112); here it is 1.",
    "create_alibi_matrix counts queries from offset to q_sequence_length (:162), which is thus their end and not their number.",
)
