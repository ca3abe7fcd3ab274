"""The forms of a rotation of pairs: the bits of the one that is written, in every width, stride, dtype and library."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import few

from posref import apply_rope
from posref.core import blocks, pairs

DTYPES = {"numpy": ["float32", "float64", "float16"], "torch": ["float32", "float64", "float16", "bfloat16"]}
WAYS = [(read, write) for read in pairs.AXIS for write in pairs.AXIS]


def array(library: str, dtype: str, numbers: np.ndarray) -> Any:
    """Return numbers as an array of a library."""
    return numbers.astype(dtype) if library == "numpy" else torch.from_numpy(numbers).to(getattr(torch, dtype))


def bits(x: Any) -> tuple[str, tuple[int, ...], bytes]:
    """Return dtype, shape and bytes. NaN is one number, whatever its sign."""
    tensor = torch.as_tensor(x).detach().clone()
    tensor[tensor != tensor] = torch.nan
    return str(x.dtype), tuple(x.shape), tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def as_written(function: Any) -> Any:
    """Return the result of a call where every rotation is as it is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "ON", False)
        return function()


def in_strides(x: Any, way: str) -> Any:
    """Return the same numbers at other places in memory."""
    join = np.concatenate if isinstance(x, np.ndarray) else torch.cat
    if way in ("transposed", "by columns"):
        axes = (0, 1) if way == "transposed" else (-1, -2)
        y = x.swapaxes(*axes)
        return (y.copy() if isinstance(x, np.ndarray) else y.contiguous()).swapaxes(*axes)
    if way == "every other":
        y = join([x, x], -1)
        y[..., ::2] = x
        return y[..., ::2]
    if way == "odd offset":
        return join([x[..., :1], x], -1)[..., 1:]
    if way == "repeated":
        return np.broadcast_to(x[:1], x.shape) if isinstance(x, np.ndarray) else x[:1].expand(x.shape)
    return x


@settings(deadline=None, max_examples=80)
@given(data=st.data())
def test_every_form_has_the_bits_of_the_one_that_is_written(data: st.DataObject) -> None:
    """Tables of a few numbers are written in another form where they are kept."""
    library = data.draw(st.sampled_from(sorted(DTYPES)))
    dtype, of_table = (data.draw(st.sampled_from(DTYPES[library])) for _ in range(2))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    half, before, after = (
        data.draw(st.sampled_from([1, 3, 8, 15, 16, 17, 32, 48, 64])),
        *data.draw(st.sampled_from([(0, 0), (0, 3), (4, 0)])),
    )
    rows = data.draw(st.sampled_from([(3, 5), (1, 1), (2, 1), (4, 40)]))
    numbers = rng.standard_normal((*rows, before + 2 * half + after))
    special = data.draw(st.sampled_from([1.0, 0.0, -0.0, np.inf, np.nan, 1e-40, 3e38]))
    numbers.reshape(-1)[rng.integers(numbers.size, size=2)] = special
    with np.errstate(all="ignore"):
        strides = st.sampled_from(["", "transposed", "by columns", "every other", "odd offset", "repeated"])
        x = in_strides(array(library, dtype, numbers), data.draw(strides))
        cos, sin = (
            in_strides(array(library, of_table, rng.standard_normal((*table, half))), data.draw(strides))
            for table in [data.draw(st.sampled_from([rows, rows[1:], (rows[0], 1), (1, 1)]))]
            for _ in "cs"
        )
        read, write = data.draw(st.sampled_from(WAYS))

        def rotated() -> Any:
            return pairs.rotate_pairs(x, cos, sin, read=read, write=write, start=before)

        kept = bits(x + 0)
        result, _ = pairs.recorded(rotated, (), {})
        assert bits(result) == bits(as_written(rotated))
        assert bits(x + 0) == kept


@pytest.mark.parametrize("dtype", DTYPES["torch"])
def test_an_axis_of_one_token_may_have_an_odd_stride(dtype: str) -> None:
    """PyTorch calls such a tensor contiguous, and does not view it as complex numbers."""
    x = torch.randn(8, 128, 1).to(getattr(torch, dtype)).swapaxes(-1, -2)
    cos, sin = torch.randn(2, 1, 64, dtype=torch.float64 if dtype == "float64" else torch.float32)
    assert x.is_contiguous()
    assert x.stride(-2) == 1

    def rotated() -> torch.Tensor:
        return pairs.rotate_pairs(x, cos, sin, read="interleaved", write="interleaved", start=0)

    assert bits(rotated()) == bits(as_written(rotated))


@pytest.fixture
def threads() -> Iterator[None]:
    """Restore how many threads PyTorch has."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize(("read", "write"), WAYS)
def test_threads_change_no_bits(read: pairs.Pairs, write: pairs.Pairs, count: int, threads: None) -> None:
    torch.set_num_threads(count)
    x, (cos, sin) = torch.randn(4, 611, 64), torch.randn(2, 611, 32)

    def rotated() -> torch.Tensor:
        return pairs.rotate_pairs(x, cos, sin, read=read, write=write, start=0)

    assert bits(rotated()) == bits(as_written(rotated))


def test_the_forms_are_taken_where_they_have_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x, table = torch.randn(3, 64), torch.randn(3, 32)

    def form(x: Any, table: Any, read: pairs.Pairs = "interleaved", *, again: bool = True) -> str:
        plain = pairs._is_plain(x, table, table)
        return pairs._form(x, table, table, read, read, again=again) if plain else "written"

    def numpy(*shape: int) -> Any:
        return np.ones(shape, np.float32)

    assert form(numpy(3, 64), numpy(3, 32), "half", again=False) == "written"
    assert form(numpy(4, 600, 64), numpy(600, 32), "half", again=False) == "swapped"
    assert form(numpy(3, 600, 64), numpy(3, 600, 32), "half", again=False) == "swapped"
    assert form(numpy(3, 64), numpy(3, 32)) == form(numpy(3, 64), numpy(3, 32), "half") == "swapped"

    assert form(x, table, "half", again=False) == "placed"
    assert form(x, table, "half") == "joined"
    assert form(torch.randn(4, 600, 64), torch.randn(600, 32), "half") == "placed"
    assert form(x, table) == ("complex" if pairs._is_exact(torch.float32) else "placed")
    assert form(x, table[:, :20]) == "placed"
    assert form(x.requires_grad_(), table, "half") == "written"
    monkeypatch.setattr(pairs, "_is_exact", lambda dtype: False)
    assert form(x.detach(), table) == "placed"


def test_a_product_that_rounds_twice_is_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = torch.complex

    def off(real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
        return fused(real.nextafter(real + 1), imaginary)

    pairs._is_exact.cache_clear()
    monkeypatch.setattr(torch, "complex", off)
    assert not pairs._is_exact(torch.float32)
    pairs._is_exact.cache_clear()


@few(1, "layout", ["half", "interleaved", "interleaved_to_half"])
def test_modes_of_pytorch_keep_the_bits(layout: Any) -> None:
    x, (cos, sin) = torch.randn(2, 3, 5, 64), torch.randn(2, 5, 32)

    def rotated(x: torch.Tensor) -> torch.Tensor:
        return apply_rope(x, cos, sin, layout=layout)

    expected = bits(as_written(lambda: rotated(x)))
    assert bits(torch.vmap(rotated)(x)) == expected
    assert bits(torch.compile(rotated, backend="eager", fullgraph=True)(x)) == expected
    with torch.inference_mode():
        assert bits(rotated(x)) == expected
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert bits(rotated(x)) == expected


@pytest.mark.parametrize("dtype", DTYPES["torch"])
@pytest.mark.parametrize("axis", [-1, -2])
def test_pairs_stand_in_turn_or_one_after_the_other(axis: int, dtype: str) -> None:
    """In one piece of memory, whatever the strides of both, and with the gradients of a stack."""
    numbers = torch.randn(2, 5, 7, 16).to(getattr(torch, dtype))
    numbers[0, 0, 0, :4] = torch.tensor([torch.nan, torch.inf, -0.0, 1e-40])
    for change in (lambda x: x, lambda x: x.mT, lambda x: x[..., ::2], lambda x: x[:, :1].expand(5, 7, 16), lambda x: x[:0]):
        first, second = map(change, numbers)
        expected = torch.stack((first, second), axis).flatten(-2)
        for both in ((first, second), (first.clone().requires_grad_(), second)):
            result = pairs.paired(*both, axis)
            assert bits(result) == bits(expected)
            assert result.is_contiguous()
            assert result.requires_grad == both[0].requires_grad
        assert bits(torch.func.vmap(lambda u, v: pairs.paired(u, v, axis))(first, second)) == bits(expected)
