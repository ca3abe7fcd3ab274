"""Cosine and sine of position times frequency against balls, where the library has no float64: nowhere off by 2^-22."""

from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, fmpq
from sampling import few

from posref.backends.exact import nearest_float64, precision
from posref.core.angles import BITS, LIMBS, cos_sin, cos_sin_of_running_sums, running_sums, turn_limbs

LIMIT = 2.0**-22
RNG = np.random.default_rng(2)
EDGES = [0, 1, 2, 3, 255, 256, 257, 4095, 4096, 4097, 65537, 131071, 1048573, 7368787, 16777213, 2**24 - 1, 2**24]
TO_2_24 = np.unique([*EDGES, *(-p for p in EDGES), *RNG.integers(-(2**24), 2**24, 200)]).astype(np.int32)
LARGE = [2**31 - 1, 2**31 - 2, 2**30 + 1, 2**24 + 1, 2**28 - 57]
TO_2_31 = np.unique([*LARGE, *(-p for p in LARGE), -(2**31), *RNG.integers(-(2**31), 2**31 - 1, 100)]).astype(np.int32)
FREQUENCIES = {
    "1e4": 1e4 ** (-np.arange(0, 128, 8) / 128),
    "5e5": 5e5 ** (-np.arange(0, 128, 8) / 128),
    "1e6": 1e6 ** (-np.arange(0, 128, 8) / 128),
    "above 1": np.asarray([1.0, 1.5, np.pi, 2 * np.pi, 40.0, 1234.5]),
    "NTK below 1e-9": np.asarray([3e-10, 1e-12, 0.0]),
}


def truth(positions: np.ndarray, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of the exact products, correctly rounded to float64."""

    def wave(p: float, f: float, function: str) -> float:
        angle = arb(fmpq(*float(p).as_integer_ratio())) * arb(fmpq(*float(f).as_integer_ratio()))
        return nearest_float64(getattr(angle, function)())

    with precision(200):
        grid = np.frompyfunc(wave, 3, 1)
        cos, sin = (grid(positions[:, None], frequencies, name).astype(np.float64) for name in ("cos", "sin"))
    return cos, sin


def on_strict(positions: np.ndarray, frequencies: np.ndarray) -> tuple[Any, Any]:
    x = strict.asarray(positions, device=strict.Device("no_float64"))
    return tuple(
        np.asarray(strict.asarray(out, device=strict.Device("CPU_DEVICE")))
        for out in cos_sin(x, frequencies, dtype=strict.float32)
    )


def on_jax(positions: np.ndarray, frequencies: np.ndarray) -> tuple[Any, Any]:
    return cos_sin(jnp.asarray(positions), frequencies, dtype=jnp.float32)


def under_jit(positions: np.ndarray, frequencies: np.ndarray) -> tuple[Any, Any]:
    return jax.jit(lambda p: cos_sin(p, frequencies, dtype=jnp.float32))(jnp.asarray(positions))


WAYS: dict[str, Callable[..., Any]] = {"strict no_float64": on_strict, "JAX": on_jax, "JAX jit": under_jit}
ways = pytest.mark.parametrize(
    "way", [pytest.param(way, id=name, marks=[] if way is on_strict else [pytest.mark.thorough]) for name, way in WAYS.items()]
)


def worst(got: tuple[Any, Any], expected: tuple[np.ndarray, np.ndarray]) -> float:
    for out in got:
        assert out.dtype in (np.float32, strict.float32)
    return max(float(np.max(np.abs(np.asarray(g, np.float64) - e))) for g, e in zip(got, expected, strict=True))


def test_jax_has_no_float64_here() -> None:
    assert not jax.config.jax_enable_x64


@ways
@pytest.mark.parametrize("frequencies", FREQUENCIES.values(), ids=FREQUENCIES)
@pytest.mark.parametrize("positions", [TO_2_24, TO_2_31], ids=["to 2^24", "to 2^31"])
def test_integer_positions(way: Callable[..., Any], positions: np.ndarray, frequencies: np.ndarray) -> None:
    assert worst(way(positions, frequencies), truth(positions, frequencies)) < LIMIT


@ways
@pytest.mark.parametrize("frequencies", FREQUENCIES.values(), ids=FREQUENCIES)
def test_fractional_positions(way: Callable[..., Any], frequencies: np.ndarray) -> None:
    """Float32 positions are taken at their value: grid points of images, interpolated positions, whole ones."""
    positions = np.concatenate([RNG.uniform(-5000, 5000, 200), [0.5, -0.5, -3.25, 1e-3, 2.0**23 - 0.5, -7.0, 2.0**24]])
    positions = positions.astype(np.float32)
    assert worst(way(positions, frequencies), truth(positions, frequencies)) < LIMIT


@ways
def test_small_angles_keep_their_relative_accuracy(way: Callable[..., Any]) -> None:
    """
    The sine of a small angle is within the bound of `angle64`, 7 roundoffs: it is not lost below fixed-point digits.
    """
    frequencies = np.asarray([1e-2, 1e-4, 1e-6, 1.3e-7, 7e-9, 1.9e-10, 2.3e-11])
    for positions in (np.asarray([1, 2, -3, 17, 100], np.int32), np.asarray([0.1, -0.3, 1e-3, 2e-4, 3e-9, 5.7], np.float32)):
        _, sin = way(positions, frequencies)
        _, expected = truth(positions, frequencies)
        assert np.all(np.abs(np.asarray(sin, np.float64) - expected) <= 7 * 2.0**-24 * np.abs(expected))


@few(1, "dtype", [np.int8, np.int16, np.uint8, np.uint16, np.uint32, np.int64])
def test_every_integer_dtype(dtype: Any) -> None:
    """Small integer dtypes are widened before anything is multiplied; int64 is not held against a device without float64."""
    last = np.iinfo(dtype).max if np.iinfo(dtype).bits < 32 else {np.uint32: 70000, np.int64: 2**31 - 1}[dtype]
    positions = np.asarray([0, 1, 100, last], dtype=dtype)
    for way in (on_strict, on_jax):
        for frequencies in (FREQUENCIES["1e4"], FREQUENCIES["5e5"]):
            assert worst(way(positions, frequencies), truth(positions, frequencies)) < LIMIT


def test_float64_angles_everywhere_else() -> None:
    """NumPy: the product's error, 2^-53 of an angle up to 2^24, the sine's, and the rounding to float32."""
    frequencies = FREQUENCIES["1e4"]
    got = cos_sin(TO_2_24, frequencies, dtype=np.float32)
    assert worst(got, truth(TO_2_24, frequencies)) <= 2.0**-53 * 2**24 + 2.0**-52 + 2.0**-25


def test_limbs_are_the_fraction_of_a_turn() -> None:
    """Against balls: what the limbs hold differs from f / 2 pi, whole turns aside, by half a unit of the last place."""
    with precision(300):
        for f in (1.0, 0.01, 1e-9, 6.25, 1234.5):
            held = arb(sum(limb << BITS * (LIMBS - 1 - k) for k, limb in enumerate(turn_limbs(f))))
            units = arb(2) ** (LIMBS * BITS)
            away = arb(f) / (2 * arb.pi()) * units - held
            whole = (away / units + arb(0.5)).floor()
            assert abs(away - whole * units) <= arb(0.5)


def test_traced_frequencies_are_of_class_angle32() -> None:
    """
    A float32 product: off by at most half an ulp of an angle up to 1000, then by the sine's own error of 4 roundoffs.
    """
    positions = np.arange(0, 1000, 37).astype(np.int32)
    frequencies = np.asarray([1.0, 0.5, 0.25], dtype=np.float32)
    got = jax.jit(lambda p, f: cos_sin(p, f, dtype=jnp.float32))(jnp.asarray(positions), jnp.asarray(frequencies))
    assert worst(got, truth(positions, frequencies)) <= 1000 * 2.0**-24 + 4 * 2.0**-24


@pytest.mark.thorough
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_gradient_to_positions(wrap: Callable[..., Any]) -> None:
    """d cos(p f)/dp = -f sin(p f), d sin(p f)/dp = f cos(p f), at whole and fractional positions."""
    positions = np.asarray([0.0, 0.25, 3.0, -7.5, 100.125, 4097.0], dtype=np.float32)
    frequencies = np.asarray([1.0, 0.3, 0.01])
    cos, sin = truth(positions, frequencies)
    for which, expected in ((0, -sin * frequencies), (1, cos * frequencies)):
        slope = wrap(jax.vmap(jax.jacfwd(lambda p, which=which: cos_sin(p, frequencies, dtype=jnp.float32)[which])))
        got = np.asarray(slope(jnp.asarray(positions)), np.float64)
        # the wave's error times f, and f held as float32 quarter turns (two roundings), and the product's rounding
        assert np.all(np.abs(got - expected) <= frequencies * (LIMIT + 3 * 2.0**-24))


@few(1, "scale", [1e-4, 1.0, 30.0])
@few(1, "wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_running_sums_are_exact_before_they_are_rounded(wrap: Callable[..., Any], scale: float) -> None:
    """Two numbers of 24 bits are off by half an ulp where the sum is rounded once; a sum in float32 loses far more."""
    terms = (np.random.default_rng(7).standard_normal((2, 2000, 3)) * scale).astype(np.float32)
    start = np.asarray([[100.3, -7.25, 4e3], [0.0, -1e-3, 2.0]], dtype=np.float32)
    every = np.concatenate([start[:, None], terms], axis=1).astype(np.longdouble)
    expected = np.cumsum(every, axis=1)[:, 1:]
    got = np.asarray(wrap(running_sums)(jnp.asarray(terms), jnp.asarray(start)), np.float64)
    assert np.all(np.abs(got - expected) <= 2.0**-24 * np.abs(expected) + 2.0**-53)
    single = np.cumsum(every.astype(np.float32), axis=1)[:, 1:]
    assert np.any(np.abs(single - expected) > 2.0**-21 * np.abs(expected))
    waves = wrap(lambda t, s: cos_sin_of_running_sums(t, s, dtype=jnp.float32))(jnp.asarray(terms), jnp.asarray(start))
    assert worst(waves, (np.cos(expected), np.sin(expected))) <= LIMIT


@pytest.mark.thorough
def test_gradients_pass_through_running_sums() -> None:
    terms, start = jnp.asarray([[0.3], [1e-3], [-40.7]]), jnp.asarray([2.5])
    by_terms, by_start = jax.grad(lambda t, s: jnp.sum(running_sums(t, s) * jnp.asarray([[1.0], [2.0], [4.0]])), (0, 1))(
        terms, start
    )
    assert by_terms.tolist() == [[7.0], [6.0], [4.0]]
    assert by_start.tolist() == [7.0]
