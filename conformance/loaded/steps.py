"""
Follows queries and keys through a layer: what each norm and rotation gives must be what the next one or attention reads.

Between two steps heads move to other axes, and some channels are left out or put beside others; values stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Step:
    """A norm or a rotation of queries or keys; `what` is one of these words."""

    what: str
    name: str
    before: torch.Tensor
    after: torch.Tensor


def unused(steps: Sequence[Step], read: Sequence[torch.Tensor], tokens: int) -> Iterator[Step]:
    """Yield the steps whose result nothing reads, where something reads what they had; `read` is what attention gets."""
    for step in steps:
        readers = [other.before for other in steps if other is not step] + list(read)
        if not any(_is_read(step.after, x, tokens) for x in readers) and any(_is_read(step.before, x, tokens) for x in readers):
            yield step


def query_factors(sources: Iterable[torch.Tensor], q: torch.Tensor) -> tuple[torch.Tensor, float] | None:
    """
    Return the factor of each token between the queries of the first source that fits and those of attention, (T,).

    The second number is the relative error that roundings allow. None if no source fits.
    """
    for source in sources:
        allowed = _allowed(source)
        for x, y in _pairs(source, q, q.shape[-2]):
            each = (x * y).sum((0, 2)) / (x * x).sum((0, 2))
            want = x * each[None, :, None]
            if bool(((y - want).abs() <= allowed * want.abs()).all()):
                return each, allowed
    return None


def _is_read(source: torch.Tensor, x: torch.Tensor, tokens: int) -> bool:
    return any(bool(((a - b).abs() <= _allowed(source) * a.abs()).all()) for a, b in _pairs(source, x, tokens))


def _allowed(source: torch.Tensor) -> float:
    """Return the relative error of two roundings, of a factor and of a product, with as much to spare."""
    return float(2 * torch.finfo(source.dtype).eps)


def _pairs(source: torch.Tensor, x: torch.Tensor, tokens: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield the channels of two tensors that may be the same, (H, T, D) in float64: all, the first ones or the last ones."""
    a, b = _heads(source, tokens), _heads(x, tokens)
    if a is None or b is None:
        return
    if len(a) == 1 and a.shape[-1] == len(b) * b.shape[-1]:
        a = a.reshape(tokens, len(b), -1).transpose(0, 1)
    elif len(b) == 1 and b.shape[-1] == len(a) * a.shape[-1]:
        b = b.reshape(tokens, len(a), -1).transpose(0, 1)
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        return
    width = min(a.shape[-1], b.shape[-1])
    for first, second in ((a[..., :width], b[..., :width]), (a[..., -width:], b[..., -width:])):
        yield torch.broadcast_tensors(first, second)


def _heads(x: torch.Tensor, tokens: int) -> torch.Tensor | None:
    """Return a tensor of heads in the shape (H, T, D)."""
    axes = [axis for axis in range(x.ndim - 1) if x.shape[axis] == tokens]
    return x.movedim(axes[-1], -2).reshape(-1, tokens, x.shape[-1]).double() if axes else None
