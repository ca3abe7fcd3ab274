"""
Equinox: its module RotaryPositionalEmbedding.

The module counts positions from 0, so every token is put on the row of its position, and the rows are read back. It keeps its
tables in a dictionary of the whole process; `reset` empties it, so that a case starts as a new process does.
"""

import jax.numpy as jnp
import numpy as np
from equinox.nn import RotaryPositionalEmbedding
from equinox.nn._embedding import internal_rope_embedding_cache
from jax import Array

from ._shared import lacks

PACKAGE = "equinox"
backend = "jax"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT = 1 << 24  # elements of a sequence that has a row for every position


def rope(x: Array, positions: Array, /, *, layout: str, base: float) -> Array:
    """RotaryPositionalEmbedding of a sequence in which each token stands at its position."""
    if layout != "half":
        lacks(f"no layout {layout!r}: pairs are halves, read and written")
    where = np.asarray(jnp.broadcast_to(positions, x.shape[:-1])).reshape(-1)
    if where.dtype.kind == "f" or where.size == 0 or where.min() < 0:
        lacks("positions are counted from 0")
    rows, dim = 1 << int(where.max()).bit_length(), x.shape[-1]  # few different lengths: JAX compiles for each
    if rows * dim > LIMIT:
        lacks(f"a sequence of {rows} tokens is too large here")
    module, flat = RotaryPositionalEmbedding(dim, theta=base, dtype=x.dtype), np.asarray(x).reshape(-1, dim)
    out = np.zeros_like(flat)
    for tokens in _rounds(where):
        sequence = np.zeros((rows, dim), flat.dtype)
        sequence[where[tokens]] = flat[tokens]
        out[tokens] = np.asarray(module(jnp.asarray(sequence)))[where[tokens]]
    return jnp.asarray(out.reshape(x.shape))


def reset() -> None:
    """Empty the library's dictionary of tables."""
    internal_rope_embedding_cache.clear()


def _rounds(where: np.ndarray) -> list[np.ndarray]:
    """Return the indices of the tokens in groups, no position twice in one of them."""
    seen: dict[int, int] = {}
    groups: list[list[int]] = []
    for token, position in enumerate(where.tolist()):
        turn = seen[position] = seen.get(position, -1) + 1
        groups += [[]] if turn == len(groups) else []
        groups[turn].append(token)
    return [np.asarray(group) for group in groups]


# Read and run in Equinox 0.13.8 with JAX 0.10.2 on a CPU.
NOTES = (
    "Tables are kept under the width and the dtype, without theta (nn/_embedding.py:222): a second module of the "
    "same width has the angles of the first.",
)
