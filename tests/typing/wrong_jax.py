"""Mistakes of a JAX user, each with what mypy and what pyright call it."""

import jax
import numpy as np
import numpy.typing as npt
import torch

import posref


def positions_of_torch(x: jax.Array, positions: torch.Tensor) -> None:
    posref.rope(x, positions, layout="half", base=10_000.0)  # misc, reportArgumentType


def positions_of_numpy(x: jax.Array, positions: npt.NDArray[np.int64]) -> jax.Array:
    return posref.rope(x, positions, layout="half", base=10_000.0)  # misc, reportReturnType


def wrong_word(x: jax.Array, positions: jax.Array) -> jax.Array:
    return posref.rope(x, positions, layout="halves", base=10_000.0)  # arg-type, reportArgumentType
