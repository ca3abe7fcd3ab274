"""
rotary-embedding-torch: its module RotaryEmbedding, by the method that its README shows, `rotate_queries_or_keys`.

A module counts positions from an offset, so tokens with consecutive positions are one call of it and others one call each.
"""

import torch
from rotary_embedding_torch import RotaryEmbedding
from torch import Tensor

from posref.scaling import Linear, NTKAware, Scaling

from ..errors import Unsupported
from ._shared import lacks, runs

PACKAGE = "rotary-embedding-torch"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}


def rope_frequencies(dim: int, /, *, base: float, scaling: Scaling | None = None) -> tuple[Tensor, float]:
    """The parameter `freqs` of the module."""
    if isinstance(scaling, Linear):
        lacks("interpolate_factor divides positions, not frequencies")
    return _module(dim, base, scaling).freqs.detach(), 1.0


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None, scaling: Scaling | None = None
) -> Tensor:
    """RotaryEmbedding.rotate_queries_or_keys, with the offset of every stretch of consecutive positions."""
    if layout != "interleaved":
        lacks(f"no layout {layout!r}: pairs are neighbours, read and written")
    module = _module(x.shape[-1] if rotary_dim is None else rotary_dim, base, scaling)
    flat = x.reshape(-1, x.shape[-1])
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1).tolist()
    if where and min(where) < 0:
        lacks("an offset below 0 counts rows of the module's cache from its end")
    parts = [module.rotate_queries_or_keys(flat[None, None, part], offset=offset)[0, 0] for part, offset in runs(where)]
    return torch.cat(parts).reshape(x.shape) if parts else x.clone()


def _module(dim: int, base: float, scaling: Scaling | None) -> RotaryEmbedding:
    match scaling:
        case None:
            return RotaryEmbedding(dim, theta=base)
        case Linear(factor) if factor >= 1:
            return RotaryEmbedding(dim, theta=base, interpolate_factor=factor)
        case NTKAware(factor):
            return RotaryEmbedding(dim, theta=base, theta_rescale_factor=factor)
        case _:
            raise Unsupported(repr(scaling))


# Read and run in rotary-embedding-torch 0.9.1 with torch 2.13.0 on a CPU.
NOTES = (
    "Positions are made in the dtype of the queries (rotary_embedding_torch.py:175, from :184): in bfloat16 the "
    "tokens 256 and 257 are turned by one angle.",
    "The angles of a first call are kept for later ones (:347), in whatever dtype its positions were: after a "
    "bfloat16 call float32 queries are turned by its rounded positions.",
    "A negative offset reads the kept angles from their end (:339); it is not asked.",
    "RotaryEmbedding(2) is a ZeroDivisionError (:112).",
    "interpolate_factor divides positions (:175), in the dtype of the queries.",
)
