"""Remembered tables of a few tokens: the bits of a first call, refused where it is, and no more than a few."""

from typing import Any

import numpy as np
import pytest
import torch

from posref import apply_rope, axial_rope, mrope, rope, rope_frequencies, rope_table
from posref.core import decoder
from posref.scaling import YaRN

OPTIONS: dict[str, Any] = {"layout": "half", "base": 10_000}


@pytest.fixture(autouse=True)
def fresh() -> None:
    decoder._ROTATIONS.clear()


def count() -> int:
    """Return how many rotations are remembered."""
    return len(decoder._ROTATIONS)


@pytest.mark.parametrize("scaling", [None, YaRN(factor=4.0, original_length=4096)])
@pytest.mark.parametrize("layout", ["half", "interleaved", "interleaved_to_half"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_later_call_has_the_bits_of_a_first_one(layout: Any, dtype: torch.dtype, scaling: Any) -> None:
    for positions in (torch.arange(900, 903), torch.tensor([7])):
        for options in ({}, {"inverse": True}, {"rotary_dim": 32}):
            made = {"layout": layout, "base": 1e4, "scaling": scaling, **options}
            for _ in range(3):  # other numbers, the same table, which no caller can change
                x = torch.randn(2, 4, len(positions), 64).to(dtype)
                result = rope(x, positions, **made)
                held = dict(decoder._ROTATIONS)
                decoder._ROTATIONS.clear()
                assert torch.equal(result, rope(x, positions, **made))
                decoder._ROTATIONS.update(held)
                result.zero_()
    assert count() > 1


def test_what_decides_about_a_call_is_told_apart() -> None:
    x, positions = torch.ones(2, 1, 64), torch.tensor([3])
    rope(x, positions, **OPTIONS)
    calls = [
        (x, positions, {"base": 10_001}),
        (x, positions, {"layout": "interleaved"}),
        (x, positions, {"lanes": "trailing", "rotary_dim": 32}),
        (x, positions, {"lanes": "leading", "rotary_dim": 32}),
        (x, positions, {"inverse": True}),
        (x, torch.tensor([4]), {}),
        (x, torch.tensor([-3]), {}),
        (x.double(), positions, {}),
        (x[..., :32], positions, {}),
        (x.numpy(), positions.numpy(), {}),
    ]
    for x_, p, more in calls:
        for _ in range(2):
            result = np.asarray(rope(x_, p, **OPTIONS | more))
        expected = rope(np.asarray(x_), np.asarray(p).astype(np.float64), **OPTIONS | more)
        assert np.allclose(result, expected, atol=1e-5), more


def test_a_call_that_is_refused_stays_refused() -> None:
    x, positions = torch.ones(2, 3, 64), torch.arange(3)
    rope(x, positions, **OPTIONS | {"base": 1})
    for x_, p, more in (
        (x, positions, {"base": True}),
        (x, positions, {"base": 1, "inverse": 0}),
        (x, positions, {"base": 1, "rotary_dim": 63}),
        (x.long(), positions, {"base": 1}),
        (x[:, :2], positions, {"base": 1}),
        (x, positions == 1, {"base": 1}),
    ):
        for _ in range(2):
            with pytest.raises(ValueError, match=r"^rope: "):
                rope(x_, p, **OPTIONS | more)


@pytest.mark.thorough
def test_few_tables_are_remembered_whatever_comes() -> None:
    x = np.ones((2, 1, 16), np.float32)
    for position in range(10_000):
        rope(x, np.asarray([position]), **OPTIONS)
        assert count() <= decoder.KEPT
    assert count() > 0
    for width, tokens in ((128, 2048), (64, 2048), (256, 2048), (128, 1000), (1024, 2048), (8, 8193), (64, 2048), (64, 1)):
        rope(np.ones((1, tokens, width), np.float32), np.arange(tokens), **OPTIONS)
        assert decoder._bytes(*decoder._ROTATIONS.values()) <= decoder.MOST <= 4 * 2**20
    assert count() == 3  # since the fourth, which had no place beside the first two


def test_none_is_remembered_where_the_definition_runs_as_it_is_written() -> None:
    x, positions = torch.ones(2, 1, 64), torch.tensor([3])

    def rotated(x: torch.Tensor) -> torch.Tensor:
        return rope(x, positions, **OPTIONS)

    expected = rotated(x)
    assert count() == 1
    decoder._ROTATIONS.clear()
    assert torch.equal(torch.compile(rotated, backend="eager", fullgraph=True)(x), expected)
    assert torch.equal(torch.vmap(rotated)(x), expected)
    assert rotated(x.clone().requires_grad_()).grad_fn is not None
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(rotated(dual)).tangent, expected)
    assert count() == 0


def test_positions_between_tokens_are_told_apart() -> None:
    x = torch.ones(2, 1, 64)
    first, later = torch.tensor([3.25], dtype=torch.float64), torch.tensor([3.25 + 2.0**-40], dtype=torch.float64)
    assert torch.equal(rope(x, first, **OPTIONS), rope(x, first, **OPTIONS))
    assert count() == 1
    assert torch.equal(rope(x.double(), later, **OPTIONS), rope(x.double(), later, **OPTIONS))
    assert not torch.equal(rope(x.double(), first, **OPTIONS), rope(x.double(), later, **OPTIONS))


def test_tables_of_coordinates_are_remembered_too() -> None:
    x = torch.randn(2, 4, 64)
    places, grid = torch.stack([torch.arange(4)] * 3), torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]])
    axial: dict[str, Any] = {"dims": (32, 32), "base": 100.0, "allocation": "own", "arrangement": "chunked"}
    for call in (
        lambda: mrope(x, places, sections=(8, 12, 12), arrangement="chunked", layout="half", base=1e6),
        lambda: axial_rope(x, grid, layout="interleaved", **axial),
        lambda: axial_rope(x, grid, layout="half_by_axis", **axial),
    ):
        first = call()
        assert torch.equal(first, call())
    assert count() == 2  # the last rotates in parts


def test_a_table_made_in_inference_mode_serves_outside_of_it() -> None:
    x, positions = torch.randn(2, 1, 64), torch.tensor([3])
    with torch.inference_mode():
        first = rope(x, positions, **OPTIONS)
    assert torch.equal(rope(x, positions, **OPTIONS), first)
    assert count() == 1


@pytest.mark.parametrize("layout", ["half", "interleaved", "interleaved_to_half"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_given_table_is_remembered_by_its_numbers(layout: Any, dtype: torch.dtype) -> None:
    """A caller may write over it. Its numbers decide, and so does the sign of a zero."""
    cos, sin = rope_table(torch.arange(900, 903), rope_frequencies(64, base=1e4)[0])
    for change in (lambda: None, lambda: cos.mul_(2), lambda: sin.numpy().fill(0.0), sin.neg_):
        change()
        for options in ({}, {"inverse": True}, {"lanes": "trailing"}):
            for _ in range(3):
                x = torch.randn(2, 4, 3, 96 if options else 64).to(dtype)
                result = apply_rope(x, cos, sin, layout=layout, **options)
                held = dict(decoder._ROTATIONS)
                decoder._ROTATIONS.clear()
                again = apply_rope(x, cos, sin, layout=layout, **options)
                assert torch.equal(result.view(torch.int16), again.view(torch.int16))
                decoder._ROTATIONS.update(held)
                result.zero_()
    assert count() > 1


def test_a_given_table_is_remembered_where_nothing_watches() -> None:
    x, (cos, sin) = torch.randn(2, 1, 64), rope_table(torch.tensor([3]), rope_frequencies(64, base=1e4)[0])
    expected = apply_rope(x, cos, sin, layout="half")
    assert count() == 1
    decoder._ROTATIONS.clear()
    learned = torch.nn.Parameter(cos)
    assert apply_rope(x.clone().requires_grad_(), cos, sin, layout="half").grad_fn is not None
    assert apply_rope(x, learned, sin, layout="half").grad_fn is not None
    assert torch.equal(torch.vmap(lambda x: apply_rope(x, cos, sin, layout="half"))(x), expected)
    assert count() == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_positions_are_refused_in_a_sentence(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=r"^rope: positions must be integer or at least float32"):
        rope(torch.ones(2, 3, 64), torch.arange(3).to(dtype), **OPTIONS)
