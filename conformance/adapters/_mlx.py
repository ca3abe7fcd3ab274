"""The common part of the adapters of MLX and MLX LM: a rotary module is called once for each run of consecutive positions."""

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from ._shared import lacks, runs

Array = npt.NDArray[Any]
TRADITIONAL = {"half": False, "interleaved": True}


def turn(module: Callable[..., mx.array], x: Array, positions: Array) -> Array:
    """Return a rotary module's outputs; its positions are counted from an integer offset."""
    where = np.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    if where.dtype.kind == "f":
        lacks("an offset is an integer")
    flat = x.reshape(-1, x.shape[-1])
    parts = [np.asarray(module(mx.array(flat[None, None, part]), offset=offset))[0, 0] for part, offset in runs(where.tolist())]
    return np.concatenate(parts).reshape(x.shape) if parts else x.copy()
