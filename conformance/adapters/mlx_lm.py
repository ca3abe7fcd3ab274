"""MLX LM on the CPU: `initialize_rope`, from which its models get their rotary modules."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from mlx_lm.models.rope_utils import initialize_rope

from posref.scaling import DynamicNTK, Linear, Llama3, Scaling, YaRN

from ..errors import Unsupported
from ._mlx import TRADITIONAL, Array, turn
from ._shared import lacks

PACKAGE = "mlx-lm[cpu]"
backend = "numpy"
dtypes = ("float32", "float16")  # NumPy, through which arrays come and go, has no bfloat16
claims = {"float32": "angle32", "float16": "low"}


def rope(
    x: Array,
    positions: Array,
    /,
    *,
    layout: str,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | None = None,
) -> Array:
    """The module that initialize_rope makes of the configuration."""
    if layout not in TRADITIONAL:
        lacks(f"no layout {layout!r}; what is read is written")
    if isinstance(scaling, DynamicNTK):
        where = np.asarray(positions).reshape(-1).tolist()
        if length != len(where) + where[0] or where != list(range(where[0], where[0] + len(where))):
            lacks("the length of dynamic NTK is always the offset of the call plus its tokens")
    return turn(_module(x.shape[-1] if rotary_dim is None else rotary_dim, base, layout, scaling), x, positions)


@functools.lru_cache(maxsize=64)
def _module(dim: int, base: float, layout: str, scaling: Scaling | None) -> Callable[..., Any]:
    config, original = _config(scaling)
    return initialize_rope(dim, base, TRADITIONAL[layout], config, max_position_embeddings=original)  # type: ignore[no-any-return]


def _config(scaling: Scaling | None) -> tuple[dict[str, Any] | None, int]:
    """Return a model's rope_scaling for a record of posref.scaling, and max_position_embeddings."""
    match scaling:
        case None:
            return None, 2048
        case Linear(factor):
            return {"rope_type": "linear", "factor": factor}, 2048
        case DynamicNTK(factor, original):
            return {"rope_type": "dynamic", "factor": factor}, original
        case Llama3() | YaRN():
            settings = {name: value for name, value in vars(scaling).items() if value is not None}
            original = settings.pop("original_length")
            kind = "yarn" if isinstance(scaling, YaRN) else "llama3"
            return {"rope_type": kind, "original_max_position_embeddings": original, **settings}, original
        case _:
            raise Unsupported(repr(scaling))


# Read and run in MLX LM 0.32.2 with MLX 0.32.4 on a CPU.
NOTES = (
    "YarnRoPE rounds its correction range always (models/rope_utils.py:151); initialize_rope does not hand truncate"
    " on (:330), which gpt-oss has as false.",
    "YarnRoPE multiplies x by the attention factor before the rotation (:184), which changes no number but its rounding.",
)
