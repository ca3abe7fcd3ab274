"""Float8 storage: against the casts of PyTorch and ml_dtypes, what its bounds say, and what the judge makes of both."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import posref
from posref import to_float8
from posref.backends.bounds import Bounds, bounds
from posref.backends.exact import exact, precision
from posref.backends.live import live
from posref.backends.numbers import Undecided
from posref.backends.rounding import BITS, LARGEST, LEAST, round_to
from posref.conformance.judge import judge
from posref.conformance.model import Call

FORMATS = ("e4m3fn", "e5m2", "e4m3fnuz")
Reals = npt.NDArray[Any]


def numbers_of(name: str) -> Reals:
    """Return all finite numbers of a format, as ml_dtypes reads the bytes."""
    found = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, f"float8_{name}")).astype(np.float64)
    return np.unique(found[np.isfinite(found)])


def delicate(name: str) -> npt.NDArray[np.float32]:
    """Return every number of a format, the middle of each two, the float32 numbers beside it, and numbers beyond the range."""
    numbers = numbers_of(name)
    middles = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf)]
    beyond = np.asarray([464, 480, 1e30, 61440, 65536, -464, -1e30, 3e38, -0.0, 1e-30, -1e-30, 1e-45])
    return np.concatenate([numbers, middles, *beside, beyond]).astype(np.float32)


def stored(v: Reals, name: str, scale: float = 1.0, direction: Any = "divide") -> Any:
    """Return what is stored of numbers of one head."""
    return to_float8(v[:, None, None], np.asarray([scale], v.dtype), format=name, direction=direction)[:, 0, 0]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_those_of_pytorchs_cast_after_a_clamp(name: str) -> None:
    drawn = np.random.default_rng(0)
    wide = np.ldexp(drawn.standard_normal(20_000), drawn.integers(-22, 18, 20_000)).astype(np.float32)
    v = np.concatenate([delicate(name), wide])
    dtype, limit = getattr(torch, f"float8_{name}"), LARGEST[f"float8_{name}"]
    expected = torch.from_numpy(v).clamp(-limit, limit).to(dtype).to(torch.float64).numpy()
    found = stored(v, name)
    assert np.array_equal(found, expected)
    assert np.array_equal(np.signbit(found), np.signbit(expected))
    assert np.array_equal(round_to(v, f"float8_{name}"), expected)
    assert np.array_equal(np.unique(found[np.isfinite(found)]), numbers_of(name))


@pytest.mark.parametrize("name", FORMATS)
def test_infinities_saturate_and_nan_stays(name: str) -> None:
    found = stored(np.asarray([np.inf, -np.inf, np.nan]), name)
    limit = LARGEST[f"float8_{name}"]
    assert found[:2].tolist() == [limit, -limit]
    assert np.isnan(found[2])


@pytest.mark.parametrize("name", FORMATS)
def test_balls_give_what_arrays_give(name: str) -> None:
    v = delicate(name).astype(np.float64)
    grid = BITS[f"float8_{name}"], LEAST[f"float8_{name}"], LARGEST[f"float8_{name}"]
    with precision(128):
        found = exact.saturated(exact.asarray(v, dtype=exact.float64), *grid, exact.float64)
        assert np.array_equal(found.parts[0].astype(np.float64), stored(v, name))
        third = exact.asarray(np.asarray([1.0]), dtype=exact.float64) / 3
        middle = {"e4m3fn": 17, "e5m2": 18, "e4m3fnuz": 17}[name]
        with pytest.raises(Undecided, match="rounding to"):
            exact.saturated(middle + third - third, *grid, exact.float64)


@given(st.sampled_from(FORMATS), st.floats(-1000, 1000), st.floats(0, 40))
def test_a_bound_is_0_just_where_all_that_it_allows_is_stored_as_one_number(name: str, value: float, error: float) -> None:
    system: Bounds = bounds("float64")
    grid = BITS[f"float8_{name}"], LEAST[f"float8_{name}"], LARGEST[f"float8_{name}"]
    found = system.saturated(system.array(np.asarray([value]), np.asarray([error]), system.float64), *grid, system.float64)
    allowed = stored(np.linspace(value - error, value + error, 201), name)
    y, bound = (float(part[0]) for part in found.parts[:2])
    assert y == stored(np.asarray([value]), name)[0]
    assert bound == np.max(np.abs(np.asarray(allowed) - y))


def judged(x: Reals, scale: Reals, output: Reals, accuracy: str, dtype: str, name: str) -> str:
    call = Call({"format": name, "direction": "divide"}, {"x": x, "scale": scale})
    return judge("to_float8", call, {"out": output}, accuracy, dtype, truth="live").verdict


def near_middles(name: str, scale: np.float32) -> npt.NDArray[np.float32]:
    """Return numbers that are the middle of two of a format, or one beside it, after the division."""
    numbers = numbers_of(name)
    middles = ((numbers[1:] + numbers[:-1]) / 2 * scale).astype(np.float32)
    return np.concatenate([middles, *(np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf))])[:, None, None]


@pytest.mark.parametrize("name", FORMATS)
def test_code_that_multiplies_by_the_inverse_is_right_and_a_neighbour_elsewhere_is_not(name: str) -> None:
    scale = np.asarray([0.3], np.float32)
    near = near_middles(name, scale[0])
    far = np.random.default_rng(1).uniform(-4, 4, near.shape).astype(np.float32)
    divided, multiplied = (round_to(v, f"float8_{name}") for v in (near / scale, near * (1 / scale)))
    assert np.count_nonzero(divided != multiplied) > 3
    assert np.count_nonzero(round_to(far / scale, f"float8_{name}") != round_to(far * (1 / scale), f"float8_{name}")) == 0
    for found in (divided, multiplied):
        assert judged(near, scale, found, "angle32", "float32", name) == "pass"
    right = round_to(far / scale, f"float8_{name}")
    assert judged(far, scale, right, "angle32", "float32", name) == "pass"
    numbers = numbers_of(name)
    for at, way in ((0, 1), (7, -1), (-1, 1)):
        wrong = right.copy()
        wrong[at] = numbers[np.searchsorted(numbers, right[at]) + way]
        assert judged(far, scale, wrong, "angle32", "float32", name) == "fail"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", FORMATS)
def test_quotients_that_are_held_in_half_precision_are_class_low_and_not_fused(name: str, dtype: str) -> None:
    scale = np.asarray([0.3], np.float32)
    half = getattr(torch, dtype)
    x = torch.from_numpy(np.random.default_rng(2).uniform(-4, 4, (4000, 1, 1))).to(half)
    narrow = getattr(torch, f"float8_{name}")
    once, twice = (
        v.to(narrow).to(torch.float64).numpy()
        for v in (x.float() / torch.from_numpy(scale), x / torch.from_numpy(scale).to(half))  # the second as SGLang computes it
    )
    assert np.count_nonzero(once != twice) > 10
    given = x.to(torch.float64).numpy()
    assert judged(given, scale, once, "fused", dtype, name) == judged(given, scale, once, "low", dtype, name) == "pass"
    assert judged(given, scale, twice, "low", dtype, name) == "pass"
    assert judged(given, scale, twice, "fused", dtype, name) == "fail"
    assert judged(given, scale, np.trunc(once), "low", dtype, name) == "fail"


def test_which_values_class_low_lets_move_is_their_distance_from_the_middle() -> None:
    """One in four in bfloat16: three roundings of 8 bits against steps of 4 bits. Few multiples of 1/64 are near a middle."""
    x = np.random.default_rng(3).uniform(-4, 4, (20_000, 1, 1))
    for accuracy, least, most in (("angle32", 0.0, 1e-4), ("fused-bfloat16", 0.0, 1e-4), ("low-bfloat16", 0.1, 0.4)):
        system = live(accuracy)
        given = system.asarray(round_to(x, "bfloat16"), dtype=system.storage)
        scale = system.asarray(np.asarray([0.371234]), dtype=system.float64)
        bound = to_float8(given, scale, format="e4m3fn", direction="divide").parts[1]
        assert least <= np.mean(bound > 0) <= most, accuracy


def wave(start: float) -> npt.NDArray[np.float64]:
    return np.sin(0.7 * np.arange(128) + start)


@pytest.mark.parametrize(
    ("layout", "lanes", "first", "three", "exponent", "total"),
    [
        ("half", "leading", 0, (-0.3590721, -1.7369637, -0.4775273), -8, 23857),
        ("interleaved", "leading", 0, (1.4152224, -0.2275769, -0.6127138), -7, 22320),
        ("interleaved", "trailing", 64, (1.1943546, -1.0013273, -0.2799522), -7, 22347),
    ],
)
def test_an_indexers_key_has_the_bytes_of_released_kernels(
    layout: Any, lanes: Any, first: int, three: tuple[float, ...], exponent: int, total: int
) -> None:
    """LayerNorm, 64 of 128 channels rotated, and a scale that is a power of two, as in vLLM 0.33.0 (csrc/cache_kernels.cu)."""
    frequencies, _ = posref.rope_frequencies(64, base=10000.0)
    table = posref.rope_table(np.asarray([5]), frequencies)
    norm = (2 * wave(0.3)[None], 1 + wave(2) / 2, wave(3) / 4)
    options = {"eps": 1e-6, "precedence": "norm_first", "lanes": lanes}
    key = posref.layer_norm_rope(*norm, *table, layout=layout, **options)  # type: ignore[call-overload]
    assert np.allclose(key[0, first : first + 3], three, atol=1e-7)
    assert np.ceil(np.log2(np.max(np.abs(key)) / 448)) == exponent
    rows = round_to(key, "bfloat16")
    stored = to_float8(rows, np.asarray([2.0**exponent]), format="e4m3fn", direction="divide")
    held = stored.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    assert held.sum() == total
    alike = to_float8(rows, np.asarray([2.0 ** (exponent + 1)]), format="e4m3fnuz", direction="divide")
    assert np.array_equal(alike.astype(ml_dtypes.float8_e4m3fnuz).view(np.uint8), held)  # the exponent's bias differs by one
