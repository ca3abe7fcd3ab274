"""
The rotation of channel pairs: the one place that all rotations of RoPE's kind call.

Pair i has channels u and v, and becomes (u cos - v sin, v cos + u sin). This is computed as it is written, or with the same
four products, two sums and roundings in fewer passes over memory. Other forms are taken for arrays of NumPy and for plain CPU
tensors of PyTorch that record no gradient and are not compiled, exported or traced, as in `posref.core.blocks`:

- "swapped", for pairs that are written where they were read: x times cosines, plus the other channel of each pair times sines
  with their signs. Each row of the table has both channels.
- "complex", in PyTorch if a pair is read or written as neighbours: a product of complex numbers. `_is_exact` says where it has
  the same bits. NumPy's product has not: it rounds twice where this rounds three times.
"""

import threading
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, Literal, NamedTuple

from posref.core import blocks
from posref.core.arrays import Array, cast, namespace, paired, wide

Pairs = Literal["half", "interleaved"]
Form = Literal["written", "swapped", "complex"]
# the axis that holds u and v when channels have shape (2, d/2) or (d/2, 2)
AXIS: dict[Pairs, int] = {"half": -2, "interleaved": -1}
LANES = 16  # the most complex numbers that a kernel of PyTorch takes at once: those left over have other roundings
GRAIN = 1 << 15  # numbers from which PyTorch divides a product among threads
LEAST, HEADS = 1 << 16, 4  # a table is written in another form for so many numbers of x, where so many heads share it
_RECORDS = threading.local()


class Rotation(NamedTuple):
    """A rotation of `channels` channels from `start` on. `table` is (cos, sin), or what the form makes of them."""

    form: Form
    table: tuple[Array, ...]
    read: Pairs
    write: Pairs
    start: int
    channels: int

    def of(self, x: Array) -> Array:
        """Return `x` with its pairs rotated. Arithmetic is in float32 or wider, with one rounding to the dtype of `x`."""
        xp, width, end = namespace(x), x.shape[-1], self.start + self.channels
        rotating = x if self.channels == width else x[..., self.start : end]
        rotating = cast(rotating, wide(x.dtype, xp))
        if self.form == "swapped":
            rotated = cast(_swapped(rotating, self.table, self.read, fresh=rotating.dtype != x.dtype), x.dtype)
        elif self.form == "complex" and _is_divided_well(rotating):
            rotated = cast(_product(rotating, self.table[0], self.read, self.write), x.dtype)
        else:
            cos, sin = self.table if self.form == "written" else (self.table[0].real, self.table[0].imag)
            u, v = _channels(rotating, self.read)
            first, second = u * cos - v * sin, v * cos + u * sin
            if first.dtype != x.dtype:  # rounded before they are stacked: fewer bytes to move
                first, second = cast(first, x.dtype), cast(second, x.dtype)
            rotated = paired(first, second, AXIS[self.write])
        if self.channels == width:
            return rotated
        return xp.concat([x[..., : self.start], rotated] if self.start else [rotated, x[..., end:]], axis=x.ndim - 1)


def rotate_pairs(x: Array, cos: Array, sin: Array, /, *, read: Pairs, write: Pairs, start: int) -> Array:
    """Return `x` with the pairs of its channels from `start` on rotated, as many as the table has columns."""
    xp, channels = namespace(x), 2 * cos.shape[-1]
    cos, sin = cast(cos, wide(cos.dtype, xp)), cast(sin, wide(sin.dtype, xp))
    plain = _is_plain(x, cos, sin)
    records: list[tuple[Array, Rotation, Array]] | None = getattr(_RECORDS, "of_call", None) if plain else None
    form = _form(x, cos, sin, read, write, again=records is not None) if plain else "written"
    rotation = Rotation(form, _table(form, cos, sin, read), read, write, start, channels)
    rotated = rotation.of(x)
    if records is not None and form != "written":
        records.append((x, rotation, rotated))
    return rotated


def recorded(function: Callable[..., Any], arrays: tuple[Array, ...], options: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Return the result of a call, and what its rotations took, were and returned, if not as they are written."""
    records: list[Any] = []
    before, _RECORDS.of_call = getattr(_RECORDS, "of_call", None), records
    try:
        return function(*arrays, **options), records
    finally:
        _RECORDS.of_call = before


def _is_plain(x: Array, cos: Array, sin: Array) -> bool:
    """Return whether a rotation may have other forms than the one that is written."""
    return blocks.ON and blocks.is_large(x, 1) and blocks.are_plain((x, cos, sin))


def _form(x: Array, cos: Array, sin: Array, read: Pairs, write: Pairs, *, again: bool) -> Form:
    """Return the fastest form with the bits of the written one. `again`: its table is kept."""
    xp, work = namespace(x), cos.dtype
    if work not in (xp.float32, xp.float64) or wide(x.dtype, xp) != work or sin.dtype != work:
        return "written"
    in_torch, size = type(x).__module__ == "torch", prod(x.shape)
    if read == write and (read == "half" or not in_torch):
        return "swapped" if again or (size >= LEAST and size >= HEADS * 2 * prod(cos.shape)) else "written"
    return "complex" if in_torch and cos.shape[-1] % LANES == 0 and _is_exact(work) else "written"


def _table(form: Form, cos: Array, sin: Array, layout: Pairs) -> tuple[Array, ...]:
    """Return the table of a form."""
    if form == "written":
        return cos, sin
    if form == "complex":
        import torch

        return (torch.view_as_complex(torch.stack((cos, sin), -1)),)
    if type(cos).__module__ == "torch":
        import torch

        return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)
    return paired(cos, cos, AXIS[layout]), paired(-sin, sin, AXIS[layout])


def _channels(x: Array, layout: Pairs) -> tuple[Array, Array]:
    """Return channels u and channels v of all pairs."""
    half = x.shape[-1] // 2
    if layout == "half":
        return x[..., :half], x[..., half:]
    return x[..., ::2], x[..., 1::2]


def _swapped(x: Array, table: tuple[Array, ...], layout: Pairs, *, fresh: bool) -> Array:
    """Return x cos + x' sin, where x' has the other channel of each pair. A `fresh` x is overwritten."""
    (cos, sin), (u, v) = table, _channels(x, layout)
    if type(x).__module__ == "torch":
        import torch

        rotated = torch.cat((v, u), -1).contiguous()
    else:
        rotated = blocks.empty(x.shape, x)
        first, second = _channels(rotated, layout)
        first[...], second[...] = v, u
    rotated *= sin
    if fresh:
        x *= cos
    else:
        x = x * cos
    rotated += x
    return rotated


def _product(x: Array, table: Array, read: Pairs, write: Pairs) -> Array:
    """Return the pairs as complex numbers times the table. The result is one array, so that its rows lie in memory in turn."""
    import torch

    places = x.unflatten(-1, (2, -1)).transpose(-1, -2) if read == "half" else x
    if read == "half" or x.stride(-1) != 1 or x.storage_offset() % 2 or any(step % 2 for step in x.stride()[:-1]):
        places = places.clone(
            memory_format=torch.contiguous_format
        )  # what is contiguous may have odd strides in axes of size 1
    numbers = places.view(table.dtype).view(*x.shape[:-1], -1)
    rotated = torch.mul(numbers, table, out=numbers.new_empty(numbers.shape)).view(x.dtype)
    return rotated.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2) if write == "half" else rotated


def _is_divided_well(x: Array) -> bool:
    """Return whether PyTorch gives each thread whole multiples of `LANES` numbers."""
    import torch

    numbers = x.numel() // 2
    threads = min(torch.get_num_threads(), -(-numbers // GRAIN))
    return bool(threads < 2 or numbers % (LANES * threads) == 0)


@cache
def _is_exact(dtype: Any) -> bool:
    """Return whether a product of complex numbers rounds as its formula is written, on this processor."""
    import torch

    numbers = torch.sin(torch.arange(4 * 64 * LANES, dtype=dtype, device="cpu")).view(4, -1)
    u, v, cos, sin = numbers
    product = torch.complex(u, v) * torch.complex(cos, sin)
    return bool(torch.equal(product.real, u * cos - v * sin) and torch.equal(product.imag, v * cos + u * sin))
