"""Gradients of rotations: the inverse rotation has the bits of automatic differentiation, and keeps no x."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from sampling import few
from torch import Tensor

from posref import apply_rope, mrope, rope, rope_frequencies, rope_table
from posref.core import blocks

WAYS: list[dict[str, Any]] = [
    {"layout": "half"},
    {"layout": "interleaved", "inverse": True},
    {"layout": "interleaved_to_half", "lanes": "trailing"},
    {"layout": "interleaved_to_half", "inverse": True},
]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def made(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def table(tokens: int, width: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return rope_table(torch.arange(5, 5 + tokens), rope_frequencies(width, base=100.0)[0], attention_factor=1.5, dtype=dtype)


def node(y: Tensor) -> str:
    return type(y.grad_fn).__name__


@pytest.fixture
def as_written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Differentiate a function as it is written."""

    def found(function: Any, *arrays: Tensor) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(blocks, "ON", False)
            return function(*arrays)

    return found


def pulled(function: Any, x: Tensor, cotangents: Tensor) -> tuple[Tensor, str]:
    """Return the gradient in x, and the name of the node that gives it."""
    x = x.detach().clone().requires_grad_()
    y = function(x)
    return torch.autograd.grad(y, x, cotangents)[0], node(y)


@pytest.mark.thorough
@few(1, "options", WAYS)
def test_gradients_of_two_orders_are_right(options: dict[str, Any]) -> None:
    x, (cos, sin) = made(2, 3, 4, 8).requires_grad_(), table(4, 6)

    def rotated(x: Tensor) -> Tensor:
        return apply_rope(x, cos, sin, **options)

    assert node(rotated(x)) == "RotationBackward"
    assert torch.autograd.gradcheck(rotated, (x,), check_batched_grad=True, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(rotated, (x,), check_batched_grad=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", WAYS)
def test_the_bits_are_those_of_automatic_differentiation(as_written: Any, options: dict[str, Any], dtype: torch.dtype) -> None:
    x, cotangents = made(2, 3, 5, 8, dtype=dtype), made(2, 3, 5, 8, dtype=dtype, seed=1)
    cos, sin = table(5, 6, torch.float64 if dtype == torch.float64 else torch.float32)

    def rotated(x: Tensor) -> Tensor:
        return apply_rope(x, cos, sin, **options)

    found, name = pulled(rotated, x, cotangents)
    expected, other = as_written(pulled, rotated, x, cotangents)
    assert (name, other == name) == ("RotationBackward", False)
    assert found.dtype == dtype
    assert torch.equal(found, expected)
    assert not torch.equal(found, cotangents)


@pytest.mark.thorough(dear=True)
def test_so_they_are_of_what_calls_it_and_of_large_views(as_written: Any) -> None:
    """A cotangent of a sum is one number, expanded; a transposed x is read in other strides."""
    positions, three = torch.arange(1024), torch.stack([torch.arange(1024)] * 3)
    calls = (
        lambda x: rope(x, positions, layout="half", base=1e4, rotary_dim=32),
        lambda x: mrope(x, three, sections=(8, 12, 12), arrangement="chunked", layout="half", base=1e6),
    )
    for dtype in (torch.float32, torch.bfloat16):
        x = made(2, 1024, 16, 64, dtype=dtype).transpose(1, 2)
        for call in calls:
            for cotangents in (torch.ones((), dtype=dtype).expand(x.shape), made(*x.shape, dtype=dtype, seed=1)):
                found, expected = pulled(call, x, cotangents), as_written(pulled, call, x, cotangents)
                assert found[1] == "RotationBackward"
                assert torch.equal(found[0], expected[0])


def test_no_x_is_kept() -> None:
    kept: list[tuple[int, ...]] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tuple(tensor.shape))
        return tensor

    x = made(1, 2, 64, 8, dtype=torch.float32).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = rope(x, torch.arange(64), layout="half", base=1e4)
    assert kept == [(64, 4), (64, 4)]
    with torch.no_grad():
        x.zero_()  # so it may be overwritten
    y.sum().backward()
    assert bool(x.grad.any())


def test_a_table_that_was_overwritten_is_refused() -> None:
    x, (cos, sin) = made(4, 6).requires_grad_(), table(4, 6)
    y = apply_rope(x, cos, sin, layout="half")
    cos.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_table_that_records_gradients_gets_them(as_written: Any) -> None:
    x, cotangents = made(4, 6), made(4, 6, seed=1)

    def gradients(*recorded: bool) -> list[Tensor | None]:
        arrays = [t.detach().clone().requires_grad_(r) for t, r in zip((x, *table(4, 6)), recorded, strict=True)]
        y = apply_rope(*arrays, layout="half")
        assert node(y) != "RotationBackward"
        y.backward(cotangents)
        return [array.grad for array in arrays]

    for recorded in ((True, True, False), (False, True, True), (True, True, True)):
        found, expected = gradients(*recorded), as_written(gradients, *recorded)
        assert [f is not None for f in found] == list(recorded)
        assert all(torch.equal(f, e) for f, e in zip(found, expected, strict=True) if f is not None)


def test_learned_frequencies_get_gradients() -> None:
    inv_freq = torch.tensor([1.0, 0.1, 0.01], dtype=torch.float64, requires_grad=True)
    x, positions = made(4, 6).requires_grad_(), torch.arange(4)
    assert torch.autograd.gradcheck(
        lambda x, f: apply_rope(x, *rope_table(positions, f, dtype=torch.float64), layout="half"), (x, inv_freq)
    )


class Named(Tensor):
    """A subclass of tensors, whose results are of the subclass."""


@pytest.mark.thorough
def test_elsewhere_the_definition_is_differentiated() -> None:
    x, (cos, sin) = made(2, 4, 6), table(4, 6)

    def rotated(x: Tensor) -> Tensor:
        return apply_rope(x, cos, sin, layout="half")

    expected = pulled(rotated, x, torch.ones_like(x))[0]
    of_func = torch.func.grad(lambda x: rotated(x).sum())
    assert torch.equal(of_func(x), expected)
    assert torch.equal(torch.vmap(of_func)(x), expected)
    recorded = x.clone().requires_grad_()
    assert torch.equal(torch.vmap(rotated)(recorded), rotated(x))
    assert torch.equal(torch.func.jvp(rotated, (x,), (x,))[1], rotated(x))
    subclass = x.clone().as_subclass(Named).requires_grad_()
    assert node(rotated(subclass)) != "RotationBackward"
    assert type(rotated(subclass)) is Named
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(recorded, x)
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(rotated(dual)).tangent, rotated(x))
    function = torch.compile(rotated, backend="aot_eager", fullgraph=True)
    assert torch.equal(pulled(function, x, torch.ones_like(x))[0], expected)
    with torch.no_grad():
        assert rotated(recorded).grad_fn is None


def test_checkpoints_and_parameters_work() -> None:
    x, (cos, sin) = made(4, 6).requires_grad_(), table(4, 6)

    def rotated(x: Tensor) -> Tensor:
        return apply_rope(x, cos, sin, layout="half") ** 2

    expected = torch.autograd.grad(rotated(x).sum(), x)[0]
    found = torch.autograd.grad(torch.utils.checkpoint.checkpoint(rotated, x, use_reentrant=False).sum(), x)[0]
    assert torch.equal(found, expected)
    parameter = torch.nn.Parameter(x.detach())
    assert torch.equal(torch.autograd.grad(rotated(parameter).sum(), parameter)[0], expected)


def test_errors_are_those_of_the_definition() -> None:
    x, (cos, sin) = made(4, 6).requires_grad_(), table(4, 6)
    with pytest.raises(ValueError, match=r"^apply_rope: inverse must be True or False; got 'yes'"):
        apply_rope(x, cos, sin, layout="half", inverse="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^apply_rope: cos and sin must have the same shape"):
        apply_rope(x, cos, sin[:, :2], layout="half")
