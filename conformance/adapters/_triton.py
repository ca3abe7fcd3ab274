"""What adapters of Triton kernels share: Triton's interpreter, which runs them on a CPU, and calls with several heads."""

import os
from collections.abc import Callable

import torch
from torch import Tensor

from ._shared import lacks

os.environ["TRITON_INTERPRET"] = "1"  # which Triton reads at its import

DTYPES = ("float32", "float16")  # the interpreter cuts off the bits that bfloat16 does not have
CLAIMS = {"float32": "angle32", "float16": "low"}


def of_heads(x: Tensor, rotate: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the last head of what `rotate` makes of (1, T, 3, D), where `x` is the last of three heads."""
    if not x.numel():
        lacks("an empty array")
    rows = x.reshape(1, -1, 1, x.shape[-1])
    return rotate(torch.cat((rows.flip(-1), 2 * rows, rows), 2))[0, :, -1].reshape(x.shape)


def of_both(x: Tensor, rotate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """
    Return tokens of queries and keys in turn, from one call with (1, 3, T, D) and (1, 2, T, D).

    Every second token is taken from the last query head, the others from the last key head; the heads before them have other
    values. A kernel may write into these arrays.
    """
    if not x.numel():
        lacks("an empty array")
    rows = x.reshape(1, 1, -1, x.shape[-1])
    q, k = rotate(torch.cat((rows.flip(-1), 2 * rows, rows), 1), torch.cat((rows.flip(-1), rows), 1))
    even = torch.arange(rows.shape[2])[:, None] % 2 == 0
    return torch.where(even, q[0, -1], k[0, -1]).reshape(x.shape)


def rows_of(table: Tensor, x: Tensor) -> Tensor:
    """Return a table of cosines or sines with a row for each token of `x`, after one row that no token has."""
    pairs = table.shape[-1]
    rows = torch.broadcast_to(table, (*x.shape[:-1], pairs)).reshape(-1, pairs)
    return torch.cat((torch.full_like(table.reshape(-1, pairs)[:1], 9), rows))
