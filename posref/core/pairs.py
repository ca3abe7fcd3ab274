"""
The rotation of channel pairs: the one place that all rotations of RoPE's kind call.

Pair i has channels u and v, and becomes (u cos - v sin, v cos + u sin). This is computed as it is written, or with the same
four products, two sums and roundings in fewer passes over memory. Other forms are taken for arrays of NumPy and for plain CPU
tensors of PyTorch that record no gradient and are not compiled, exported or traced, as in `posref.core.blocks`. They write into
one result, in blocks that fit the processor's cache:

- "placed", in PyTorch: each product and sum is written where it belongs.
- "complex", in PyTorch if a pair is read or written as neighbours: a product of complex numbers. `_is_exact` says where it has
  the same bits. NumPy's product has not: it rounds twice where this rounds three times.
- "joined", in PyTorch for few halves whose table is remembered: as "swapped" below, in the fewest operations.
- "swapped", in NumPy, for pairs that are written where they were read: x times cosines, plus the other channel of each pair
  times sines with their signs. Each row of the table has both channels.
- "divided", in NumPy, for all others that are large: as it is written.
"""

import threading
from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, Literal, NamedTuple

from posref.core import blocks
from posref.core.arrays import Array, cast, is_of, namespace, wide

Pairs = Literal["half", "interleaved"]
Form = Literal["written", "joined", "placed", "complex", "swapped", "divided"]
# the axis that holds u and v when channels have shape (2, d/2) or (d/2, 2)
AXIS: dict[Pairs, int] = {"half": -2, "interleaved": -1}
LANES = 16  # the most complex numbers that a kernel of PyTorch takes at once: those left over have other roundings
GRAIN = 1 << 15  # numbers from which PyTorch divides a product among threads
LEAST = 1 << 16  # numbers of x from which NumPy's table is written in another form, and up to which PyTorch's halves are joined
HEADS = 4  # heads that share a table which is written so once for all blocks
BLOCK = 1 << 19  # numbers that are rotated at once: with what is computed on the way, some 4 MB
_RECORDS = threading.local()


class Rotation(NamedTuple):
    """
    A rotation of `channels` channels from `start` on.

    `table` is (cos, sin), or if `made` what the form makes of them.
    """

    form: Form
    table: tuple[Array, ...]
    made: bool
    read: Pairs
    write: Pairs
    start: int
    channels: int

    def of(self, x: Array) -> Array:
        """Return `x` with its pairs rotated. Arithmetic is in float32 or wider, with one rounding to the dtype of `x`."""
        width, end = x.shape[-1], self.start + self.channels
        if self.form in ("written", "joined"):
            rotating = x if self.channels == width else x[..., self.start : end]
            if self.form == "joined":
                rotated = _joined(rotating, self.table)
            else:
                work = cast(rotating, wide(x.dtype, namespace(x)))
                rotated = _written(work, self.table, self.read, self.write, x.dtype)
            if self.channels == width:
                return rotated
            parts = [x[..., : self.start], rotated] if self.start else [rotated, x[..., end:]]
            return namespace(x).concat(parts, axis=x.ndim - 1)
        if self.form == "complex" and self.channels == width and self._is_small_product(x):
            return _product(x, self.table[0] if self.made else _table(self.form, self.table, self.read)[0])
        result = blocks.empty(x.shape, x)
        if self.channels == width:
            self._write(result, x, self.table)
        else:
            result[..., : self.start], result[..., end:] = x[..., : self.start], x[..., end:]
            self._write(result[..., self.start : end], x[..., self.start : end], self.table)
        return result

    def _is_small_product(self, x: Array) -> bool:
        """Return whether the product of complex numbers is the result as it stands."""
        placed = self.read == self.write == "interleaved" and x.is_contiguous() and _is_complex(x)
        return placed and x.numel() <= BLOCK and _is_divided_well(x)

    def _write(self, result: Array, x: Array, table: tuple[Array, ...]) -> None:
        """Write the rotation of `x` into an array of its shape and dtype: half after half, if it does not fit the cache."""
        if prod(x.shape) > BLOCK and prod(x.shape[:-1]) > 1:
            axis = next(k for k, size in enumerate(x.shape) if size > 1)
            for start, stop in ((0, x.shape[axis] // 2), (x.shape[axis] // 2, x.shape[axis])):
                part = [blocks.taken(array, x.ndim - axis, start, stop) for array in (result, x, *table)]
                self._write(part[0], part[1], tuple(part[2:]))
            return
        work = cast(x, wide(x.dtype, namespace(x)))  # fresh if it has another dtype than the result
        made = table if self.made else _table(self.form, table, self.read)
        if self.form == "swapped":
            _write_swapped(result, work, made, self.read)
        elif self.form == "divided":
            result[...] = _written(work, made, self.read, self.write, x.dtype)
        elif self.form == "complex" and _is_divided_well(work):
            _write_product(result, work, made[0], self.read, self.write)
        else:
            table = (made[0].real, made[0].imag) if self.form == "complex" else made
            _write_placed(result, work, table, self.read, self.write)


def rotate_pairs(x: Array, cos: Array, sin: Array, /, *, read: Pairs, write: Pairs, start: int) -> Array:
    """Return `x` with the pairs of its channels from `start` on rotated, as many as the table has columns."""
    xp, channels = namespace(x), 2 * cos.shape[-1]
    cos, sin = cast(cos, wide(cos.dtype, xp)), cast(sin, wide(sin.dtype, xp))
    plain = _is_plain(x, cos, sin)
    records: list[tuple[Array, Rotation, Array]] | None = getattr(_RECORDS, "of_call", None) if plain else None
    form = _form(x, cos, sin, read, write, again=records is not None) if plain else "written"
    made = form != "written" and (records is not None or prod(x.shape) >= HEADS * 2 * prod(cos.shape))
    rotation = Rotation(form, _table(form, (cos, sin), read) if made else (cos, sin), made, read, write, start, channels)
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


def is_recording() -> bool:
    """Return whether this thread is in a call of `recorded`."""
    return getattr(_RECORDS, "of_call", None) is not None


def _is_plain(x: Array, cos: Array, sin: Array) -> bool:
    """Return whether a rotation may have other forms than the one that is written."""
    return blocks.ON and blocks.is_large(x, 1) and blocks.are_plain((x, cos, sin))


def _form(x: Array, cos: Array, sin: Array, read: Pairs, write: Pairs, *, again: bool) -> Form:
    """Return the fastest form with the bits of the written one. `again`: its table is kept."""
    xp, work = namespace(x), cos.dtype
    if work not in (xp.float32, xp.float64) or wide(x.dtype, xp) != work or sin.dtype != work:
        return "written"
    in_torch, size = type(x).__module__ == "torch", prod(x.shape)
    if in_torch:
        neighbours = "interleaved" in (read, write)
        if again and not neighbours and size <= LEAST:
            return "joined"
        return "complex" if neighbours and cos.shape[-1] % LANES == 0 and _is_exact(work) else "placed"
    if size < LEAST and not again:
        return "written"
    return "swapped" if read == write else "divided"


def _table(form: Form, table: tuple[Array, ...], layout: Pairs) -> tuple[Array, ...]:
    """Return the table of a form, made of (cos, sin)."""
    cos, sin = table
    if form in ("swapped", "joined"):
        return paired(cos, cos, AXIS[layout]), paired(-sin, sin, AXIS[layout])
    if form == "complex":
        import torch

        return (torch.complex(cos.contiguous(), sin.contiguous()),)
    return cos, sin


def _channels(x: Array, layout: Pairs) -> tuple[Array, Array]:
    """Return channels u and channels v of all pairs."""
    half = x.shape[-1] // 2
    if layout == "half":
        return x[..., :half], x[..., half:]
    return x[..., ::2], x[..., 1::2]


def _written(x: Array, table: tuple[Array, ...], read: Pairs, write: Pairs, dtype: Any) -> Array:
    """Return the rotation as it is written, in a dtype."""
    (cos, sin), (u, v) = table, _channels(x, read)
    first, second = u * cos - v * sin, v * cos + u * sin
    if first.dtype != dtype:  # rounded before they are stacked: fewer bytes to move
        first, second = cast(first, dtype), cast(second, dtype)
    return paired(first, second, AXIS[write])


def _joined(x: Array, table: tuple[Array, ...]) -> Array:
    """Return x cos + x' sin in the dtype of x, where x' has the halves of x in the other order."""
    cos, sin = table
    work = x.type_as(cos)
    rotated = work.roll(x.shape[-1] // 2, -1).contiguous()  # whatever the strides of x
    rotated *= sin
    rotated += work * cos if work is x else work.mul_(cos)
    return rotated.type_as(x)


def paired(first: Array, second: Array, axis: int) -> Array:
    """
    Return two arrays of shape (..., n) in one of (..., 2 n): one after the other for axis -2, in turn for axis -1.

    PyTorch stacks along a last axis in twice the time that it takes to stack before it and to copy the transpose. Compiled, it
    is the other way round. Real and imaginary parts of complex numbers stand in turn too, and are written in less time.
    """
    xp, shape = namespace(first), (*first.shape[:-1], 2 * first.shape[-1])
    if is_of(xp, "torch") and not xp.compiler.is_compiling():
        import torch

        if axis == -2:
            return torch.cat((first, second), -1)
        if first.dtype == second.dtype in (torch.float32, torch.float64) and blocks.ON and blocks.are_plain((first, second)):
            return torch.view_as_real(torch.complex(first.contiguous(), second.contiguous())).flatten(-2)
        return xp.reshape(xp.matrix_transpose(xp.stack([first, second], axis=-2)), shape)
    return xp.reshape(xp.stack([first, second], axis=axis), shape)


def _write_placed(result: Array, x: Array, table: tuple[Array, ...], read: Pairs, write: Pairs) -> None:
    """Write each product and sum where it belongs. A fresh x is overwritten first."""
    import torch

    cos, sin = table
    u, v = first, second = x.chunk(2, -1) if read == "half" else _channels(x, read)
    if x.dtype == result.dtype:
        first, second = result.chunk(2, -1) if write == "half" else _channels(result, write)
    of_v, of_u = v * sin, u * sin
    torch.mul(u, cos, out=first)
    torch.mul(v, cos, out=second)
    first -= of_v
    second += of_u
    if x.dtype != result.dtype:
        result.copy_(x if read == write else paired(first, second, AXIS[write]))


def _write_swapped(result: Array, x: Array, table: tuple[Array, ...], layout: Pairs) -> None:
    """Write x cos + x' sin, where x' has the other channel of each pair. A fresh x is overwritten first."""
    import numpy as np

    (cos, sin), (u, v) = table, _channels(x, layout)
    target, swapped = result if x.dtype == result.dtype else x, np.empty(x.shape, x.dtype)
    first, second = _channels(swapped, layout)
    first[...], second[...] = v, u
    swapped *= sin
    np.multiply(x, cos, out=target)
    target += swapped
    if target is not result:
        result[...] = target


def _product(x: Array, table: Array) -> Array:
    """Return neighbours as complex numbers times the table, in the dtype of x."""
    work = cast(x, wide(x.dtype, namespace(x)))
    numbers = work.view(table.dtype)
    return (numbers * table if work is x else numbers.mul_(table)).view(work.dtype).type_as(x)


def _write_product(result: Array, x: Array, table: Array, read: Pairs, write: Pairs) -> None:
    """Write the pairs as complex numbers times the table. A fresh x is overwritten."""
    import torch

    places = x.unflatten(-1, (2, -1)).transpose(-1, -2) if read == "half" else x
    fresh = read == "half" or not _is_complex(x)
    if fresh:
        places = places.clone(memory_format=torch.contiguous_format)
    numbers = places.view(table.dtype).view(*x.shape[:-1], -1)
    if write == "interleaved" and x.dtype == result.dtype and _is_complex(result):
        torch.mul(numbers, table, out=result.view(table.dtype))
        return
    fresh = fresh or x.dtype != result.dtype
    rotated = torch.mul(numbers, table, out=numbers if fresh else numbers.new_empty(numbers.shape)).view(x.dtype)
    result.copy_(rotated.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2) if write == "half" else rotated)


def _is_complex(x: Array) -> bool:
    """Return whether neighbouring channels lie in memory as complex numbers do. Axes of size 1 may have odd strides."""
    return x.stride(-1) == 1 and not (x.storage_offset() % 2 or any(step % 2 for step in x.stride()[:-1]))


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
