"""
rotary-embedding-torch: its module RotaryEmbedding, by the method that its README shows, `rotate_queries_or_keys`.

A module counts positions from an offset, so tokens with consecutive positions are one call of it and others one call each.
"""

import math

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch import Tensor

from posref.scaling import Linear, NTKAware, Scaling

from ..errors import Unsupported
from ._shared import lacks, runs

PACKAGE = "rotary-embedding-torch"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LONGEST = 1 << 18  # the centre around which positions or tokens are added
LARGEST = 1 << 22  # numbers in a table of which a few rows are looked up


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


def axial_rope(
    x: Tensor, positions: Tensor, /, *, dims: list[int], base: float, allocation: str, arrangement: str, layout: str
) -> Tensor:
    """RotaryEmbedding.get_axial_freqs of a grid that has these cells, then apply_rotary_emb."""
    if (allocation, arrangement, layout) != ("own", "chunked", "interleaved") or len(set(dims)) > 1:
        lacks("every axis has the module's frequencies, and neighbouring channels of its own")
    if positions.is_floating_point() or (positions.numel() and int(positions.min()) < 0):
        lacks("get_axial_freqs has a grid of cells from 0 on")
    where = [torch.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions]
    sizes = [int(axis.max()) + 1 if axis.numel() else 1 for axis in where]
    if math.prod(sizes) * sum(dims) > LARGEST:
        lacks(f"get_axial_freqs makes a table of the whole grid: {sizes} are too many here")
    freqs = _module(dims[0], base, None).get_axial_freqs(*sizes)[tuple(where)]
    return apply_rotary_emb(freqs, x.reshape(-1, x.shape[-1])).reshape(x.shape)


def xpos_scales(
    positions: Tensor, dim: int, /, *, role: str, centre: int, scale_base: float = 512.0, gamma: float = 0.4
) -> Tensor:
    """RotaryEmbedding.get_scale, of as many positions at once as put the middle at the centre."""
    module = _xpos_module(dim, 1e4, scale_base, gamma)
    scales = torch.cat([_scale(module, part, centre, role) for part in positions.reshape(-1).split(2 * centre + 1)])
    return scales[:, ::2].reshape(*positions.shape, dim // 2)


def xpos(
    x: Tensor, positions: Tensor, /, *, role: str, layout: str, base: float, centre: int, rotary_dim: int | None = None,
    scale_base: float = 512.0, gamma: float = 0.4,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding.rotate_queries_and_keys of as many tokens as have the centre in their middle; x stands among them."""
    if layout != "interleaved":
        lacks(f"no layout {layout!r}: pairs are neighbours, read and written")
    module = _xpos_module(x.shape[-1] if rotary_dim is None else rotary_dim, base, scale_base, gamma)
    rows = x.reshape(-1, x.shape[-1])
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    count = _tokens(where, centre)
    turned = torch.empty_like(rows)
    for part in _apart(where.tolist()):
        tokens = torch.zeros(1, 1, count, x.shape[-1], dtype=x.dtype)
        tokens[0, 0, where[part].long()] = rows[part]
        other = tokens.roll(1, -2).flip(-1)  # in all other heads: four of queries, two of keys
        q, k = (tokens, other) if role == "query" else (other, tokens)
        queries, keys = module.rotate_queries_and_keys(torch.cat((other, other, other, q), 1), torch.cat((other, k), 1))
        turned[part] = (queries if role == "query" else keys)[0, -1, where[part].long()]
    return turned.reshape(x.shape)


def _apart(where: list[int]) -> list[list[int]]:
    """Return the indices of tokens in parts in which no position occurs twice."""
    parts: list[list[int]] = []
    seen: dict[int, int] = {}
    for index, position in enumerate(where):
        turn = seen[position] = seen.get(position, -1) + 1
        if turn == len(parts):
            parts.append([])
        parts[turn].append(index)
    return parts


def _tokens(positions: Tensor, centre: int) -> int:
    """Return how many tokens have the centre in their middle; all positions must be among them."""
    count = 2 * centre + 1
    if positions.is_floating_point():
        lacks("positions are counted, and integers")
    if positions.numel() and not 0 <= int(positions.min()) <= int(positions.max()) < count:
        lacks(f"positions count from 0, and the centre is half their number: with centre {centre} they end at {count - 1}")
    if centre > LONGEST:
        lacks(f"the centre is half the number of positions: {count} are too many here")
    return count


def _xpos_module(dim: int, base: float, scale_base: float, gamma: float) -> RotaryEmbedding:
    if gamma != 0.4:
        lacks("gamma is 0.4")
    if dim == 2:
        lacks("no RotaryEmbedding(2), which raises a ZeroDivisionError")
    return RotaryEmbedding(dim, theta=base, use_xpos=True, xpos_scale_base=scale_base)


def _scale(module: RotaryEmbedding, positions: Tensor, centre: int, role: str) -> Tensor:
    """Return the scales of a few positions, with zeros after them so that half their number is the centre."""
    if centre > LONGEST:
        lacks(f"the centre is half the number of positions: {2 * centre} are too many here")
    padded = torch.nn.functional.pad(positions, (0, 2 * centre + 1 - len(positions)))
    scales = module.get_scale(padded)[: len(positions)]
    return scales if role == "query" else scales**-1


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
    "tokens 256 and 257 are rotated by the same angle.",
    "The angles of a first call are kept for later ones (:347), in whatever dtype its positions were: after a "
    "bfloat16 call float32 queries are rotated by its rounded positions.",
    "xPos: the centre is half the number of positions (:261), so that it moves with every token; "
    "rotate_queries_with_cached_keys gives queries another centre than keys (:204). Positions and tokens are added "
    "until it is as asked.",
    "xPos: scales are kept by length (:257): a shorter call after a longer one has the longer one's centre.",
    "A negative offset reads the kept angles from their end (:339); it is not asked.",
    "RotaryEmbedding(2) raises a ZeroDivisionError (:112).",
    "get_axial_freqs asks the kept angles by length alone (:306): with offsets an axis no longer than the one before has "
    "that one's. Offsets are not asked.",
    "interpolate_factor divides positions (:175), in the dtype of the queries.",
)
