"""The common part of adapters of Triton kernels: the interpreter, which runs them on a CPU, and calls with several heads."""

import os
from collections.abc import Callable

import torch
from torch import Tensor

from ._shared import lacks, queries_and_keys

os.environ["TRITON_INTERPRET"] = "1"  # which Triton reads at its import

DTYPES = ("float32", "float16")  # the interpreter cuts off the bits that bfloat16 does not have
CLAIMS = {"float32": "angle32", "float16": "low"}
LIMIT = 1 << 24  # elements of a cache of cosines and sines


def of_heads(x: Tensor, rotate: Callable[[Tensor], Tensor]) -> Tensor:
    """Rotate `x` as the last of three heads, in shape (1, T, 3, D)."""
    if not x.numel():
        lacks("an empty array")
    rows = x.reshape(1, -1, 1, x.shape[-1])
    return rotate(torch.cat((rows.flip(-1), 2 * rows, rows), 2))[0, :, -1].reshape(x.shape)


def rows_of(table: Tensor, x: Tensor) -> Tensor:
    """Return a table of cosines or sines with a row for each token of `x`, after one row that no token has."""
    pairs = table.shape[-1]
    rows = torch.broadcast_to(table, (*x.shape[:-1], pairs)).reshape(-1, pairs)
    return torch.cat((torch.full_like(table.reshape(-1, pairs)[:1], 9), rows))


def of_flat(x: Tensor, rotate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """Return `x` rotated by a kernel of queries (N, 4 * D) and keys (N, 2 * D), without gradients."""
    if not x.numel():
        lacks("an empty array")
    with torch.no_grad():
        q, k, back = queries_and_keys(x.detach())
        return back(*rotate(q.flatten(1), k.flatten(1)))


def of_weighted(x: Tensor, weight: Tensor, rotate: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """Return what `of_flat` does for ``rotate(q, k, weight of q, weight of k)``, where the other has another weight."""
    if weight.shape != x.shape[-1:]:
        lacks(f"weights of shape {tuple(weight.shape)} for heads of {x.shape[-1]} channels")
    other, weight = (weight.detach() + 1).contiguous(), weight.detach().contiguous()

    def both(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return rotate(q.clone(), k.clone(), weight, other)[0], rotate(q, k, other, weight)[1]

    return of_flat(x, both)


def of_pages(cache: Tensor, rows: Tensor, slots: Tensor, write: Callable[[Tensor, Tensor, Tensor, Tensor], object]) -> Tensor:
    """
    Return pages of keys and of values in turn, from two calls of ``write(keys, values, cache of keys, cache of values)``.

    In each call the other has other rows.
    """
    if not cache.numel() or not rows.numel():
        lacks("an empty array")
    count, size = cache.shape[:2]
    if rows.shape[1:] != cache.shape[2:] or slots.shape != rows.shape[:1] or int(slots.max()) >= count * size:
        lacks("a kernel that is given other rows or slots writes outside its arrays")
    pages, other = (cache.detach().contiguous() for cache in (cache, 2 * cache))
    keys, values, rows = pages.clone(), pages.clone(), rows.detach().contiguous()
    with torch.no_grad():
        write(rows, 2 * rows, keys, other.clone())
        write(2 * rows, rows, other.clone(), values)
    even = torch.arange(len(cache))[:, None, None, None] % 2 == 0
    return torch.where(even, keys, values)


def rows_at(x: Tensor, positions: Tensor, sections: list[int]) -> tuple[Tensor, int]:
    """
    Return positions of shape (3, N), and a power of two of rows, at least 2048, that a cache must have for them.

    A kernel that is given other positions, or more pairs than a head has, reads and writes outside its arrays.
    """
    if len(sections) != 3 or positions.shape[0] != 3 or not 0 < 2 * sum(sections) <= x.shape[-1]:
        lacks(f"sections {sections} of {x.shape[-1]} channels: three axes")
    if not x.numel() or positions.is_floating_point() or int(positions.min()) < 0:
        lacks("the cache has rows only for integers from 0 on")
    rows = 1 << max(11, int(positions.max()).bit_length())
    if 2 * rows * sum(sections) > LIMIT:
        lacks(f"a cache of {rows} rows is too large here")
    return torch.stack([torch.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions]), rows
