"""Cosines and sines by the addition theorem: as accurate as angles in float64, and the same in every company."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import posref
from posref.backends.exact import precision
from posref.core import addition, angles, blocks

FREQUENCIES = {
    "1e4": 1e4 ** (-np.arange(0, 128, 4) / 128),
    "1e6": 1e6 ** (-np.arange(0, 96, 4) / 96),
    "one": np.asarray([1.0]),
    "odd": np.asarray([0.0, 1.5, np.pi, 40.0, 3e-10]),
}
RNG = np.random.default_rng(7)
POSITIONS = {
    "consecutive": np.arange(250, 520),
    "below zero": np.arange(-140, 140),
    "far": np.arange(2**31 - 200, 2**31),
    "apart": RNG.integers(-(2**31), 2**31, 300),
    "falling": np.arange(300, 0, -1, dtype=np.int32),
    "small": np.arange(-128, 128).astype(np.int8),
    "one": np.asarray([123457]),
    "ends": np.asarray([-(2**63), 2**63 - 1, 2**53 + 1]),
    "none": np.asarray([], dtype=np.int64),
}
LIBRARIES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "numpy": (np.asarray, np.float32),
    "torch": (torch.as_tensor, torch.float32),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each call by addition."""
    seen: list[int] = []

    def counted(positions: Any, frequencies: Any) -> Any:
        seen.append(int(np.asarray(positions).size))
        return addition.cos_sin_by_addition(positions, frequencies)

    monkeypatch.setattr(angles, "cos_sin_by_addition", counted)
    return seen


def within(got: Any, positions: np.ndarray, frequencies: np.ndarray) -> None:
    """
    Assert that cosines and sines in float32 are rounded from angles in float64.

    The bound is half a unit of the angle, half a unit of the result, and six roundings of numbers up to 1 in float64.
    """
    cos, sin = (np.asarray(out) for out in got)
    assert cos.dtype == sin.dtype == np.float32
    assert cos.shape == sin.shape == (positions.size, frequencies.size)
    with precision(200):
        for row, p in enumerate(positions.tolist()):
            for column, f in enumerate(frequencies.tolist()):
                angle = arb(p) * arb(fmpq(*f.as_integer_ratio()))
                half = np.spacing(abs(p * f)) * (0.5 if abs(p) <= 2**53 else 1.0)  # there a position is rounded too
                for found, true in ((cos, angle.cos()), (sin, angle.sin())):
                    off = abs(arb(float(found[row, column])) - true)
                    assert off <= abs(true) * 2.0**-24 + half * (1 + 2.0**-20) + 6 * 2.0**-53 + 2.0**-149, (p, f)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("frequencies", FREQUENCIES)
@pytest.mark.parametrize("positions", POSITIONS)
def test_it_is_as_accurate_as_angles_in_float64(positions: str, frequencies: str, library: str, asked: list[int]) -> None:
    asarray, dtype = LIBRARIES[library]
    p, f = POSITIONS[positions], FREQUENCIES[frequencies]
    got = angles.cos_sin(asarray(p), f, dtype=dtype)
    few = np.unique(np.linspace(0, p.size - 1, 12).astype(np.int64)) if p.size else np.asarray([], dtype=np.int64)
    assert asked == ([p.size] if p.size else [])
    assert np.asarray(got[0]).shape == (p.size, f.size)
    within([np.asarray(out)[few] for out in got], p[few], f)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_position_has_the_same_bits_in_every_company(data: st.DataObject) -> None:
    f = FREQUENCIES[data.draw(st.sampled_from(sorted(FREQUENCIES)))]
    start, count = data.draw(st.integers(-400, 10**9)), data.draw(st.integers(1, 600))
    p = np.arange(start, start + count)
    order = np.random.default_rng(data.draw(st.integers(0, 9))).permutation(count)
    whole, shuffled = (angles.cos_sin(rows, f, dtype=np.float32) for rows in (p, p[order]))
    few = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3))
    tensors = angles.cos_sin(torch.as_tensor(p.reshape(1, -1)), torch.as_tensor(f), dtype=torch.float32)
    for out, other, tensor, of_few in zip(whole, shuffled, tensors, angles.cos_sin(p[few], f, dtype=np.float32), strict=True):
        assert np.array_equal(out[order], other)
        assert np.array_equal(out[None], tensor.numpy())
        assert np.array_equal(out[few], of_few)


def test_the_result_belongs_to_the_caller() -> None:
    p, f = np.arange(300), FREQUENCIES["1e4"]
    first = [out.copy() for out in angles.cos_sin(p, f, dtype=np.float32)]
    for out in angles.cos_sin(p, f, dtype=np.float32):
        out[...] = 7
    assert all(np.array_equal(a, b) for a, b in zip(first, angles.cos_sin(p, f, dtype=np.float32), strict=True))


@pytest.mark.thorough
def test_it_is_not_done_for_gradients_graphs_fractions_or_float64(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    f = FREQUENCIES["1e4"]
    learned = torch.as_tensor(f).requires_grad_()
    cos, _ = angles.cos_sin(torch.arange(300), learned, dtype=torch.float32)
    cos.sum().backward()
    assert learned.grad is not None
    torch.compile(lambda p: angles.cos_sin(p, f, dtype=torch.float32), fullgraph=True, backend="eager")(torch.arange(300))
    torch.func.vmap(lambda p: angles.cos_sin(p, f, dtype=torch.float32))(torch.arange(300)[:, None])
    angles.cos_sin(np.arange(300.0), f, dtype=np.float32)
    angles.cos_sin(np.arange(300), f, dtype=np.float64)
    monkeypatch.setattr(blocks, "ON", False)
    angles.cos_sin(np.arange(300), f, dtype=np.float32)
    assert asked == []
    monkeypatch.setattr(blocks, "ON", True)
    posref.rope(np.ones((2, 300, 64), np.float32), np.arange(300), base=1e4, layout="half")
    posref.sinusoidal(torch.arange(300), 64, layout="interleaved")
    assert len(asked) >= 2


@pytest.mark.parametrize("position", [0, 1, 127, 128, 131_071, -1, -128, -300])
def test_one_position_has_the_row_of_many_and_may_be_overwritten(position: int) -> None:
    """One position is kept for the next call, so its result must be a copy."""
    inv_freq = posref.rope_frequencies(16, base=100.0)[0]
    many = np.asarray([position, position + 5])
    for xp in (np.asarray, torch.as_tensor):
        cos, sin = posref.rope_table(xp(many[:1]), inv_freq, dtype=xp(np.float32(1)).dtype)
        expected = [np.asarray(t)[:1].copy() for t in posref.rope_table(many, inv_freq, dtype=np.float32)]
        assert [np.asarray(t).tobytes() for t in (cos, sin)] == [t.tobytes() for t in expected]
        cos[...], sin[...] = 7.0, 7.0
        again = posref.rope_table(xp(many[:1]), inv_freq, dtype=xp(np.float32(1)).dtype)
        assert [np.asarray(t).tobytes() for t in again] == [t.tobytes() for t in expected]
        shaped = posref.rope_table(xp(many[:1].reshape(1, 1)), inv_freq, dtype=xp(np.float32(1)).dtype)
        assert [tuple(t.shape) for t in shaped] == [(1, 1, 8)] * 2
