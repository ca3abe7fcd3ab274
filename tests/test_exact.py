"""Balls and bounds: proved roundings, undecided comparisons, and the arithmetic of error bounds."""

import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posref.backends.bounds import CLASSES, ROUNDOFFS, Bounds, bounds, odd, rounded_up
from posref.backends.exact import (
    Unproved,
    correctly_rounded,
    enclosed,
    evaluate,
    exact,
    of_matrices,
    precision,
    ratio_to_float64,
)
from posref.backends.live import live
from posref.backends.numbers import Array, Undecided, storage
from posref.backends.rounding import BITS, bits_of, representable, round_to

ANY = np.asarray(np.inf)
SPREAD = np.ldexp(np.random.default_rng(0).standard_normal(4000), np.arange(4000) % 295 - 160)  # subnormals, overflow too
finite = st.floats(allow_nan=False, allow_infinity=False)
single = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(st.integers(-(2**200), 2**200), st.integers(-1300, 800))
def test_ratio_to_float64_is_pythons_division(mantissa: int, exponent: int) -> None:
    value = Fraction(mantissa) * Fraction(2) ** exponent
    try:
        true = value.numerator / value.denominator
    except OverflowError:
        return
    assert ratio_to_float64(mantissa, exponent) == true


def ball(value: Any) -> Any:
    return exact.asarray(np.asarray(value), dtype=exact.float64)


@given(finite)
def test_an_exact_ball_rounds_to_itself(value: float) -> None:
    assert correctly_rounded(ball(value)) == value


def test_halves_round_to_even() -> None:
    with precision(128):
        half = ball([1.0, 1.0 + 2**-52]) + 2.0**-53
        assert correctly_rounded(half).tolist() == [1.0, 1.0 + 2**-51]


def test_a_zero_by_cancellation_is_proved_by_underflow() -> None:
    x = ball([2.0])
    assert evaluate(lambda: (exact.sqrt(x) * exact.sqrt(x) - x,))[0].tolist() == [0.0]


def test_what_no_precision_decides_is_said_in_few_digits() -> None:
    x = ball(2.0)
    with pytest.raises(Unproved, match="not proved with") as floor:
        evaluate(lambda: (exact.floor(exact.sqrt(x) * exact.sqrt(x)),))
    with pytest.raises(Unproved) as half:
        evaluate(lambda: (ball(1.0) / 3 * 3 + 2.0**-53,))
    with precision(4096), pytest.raises(Undecided) as undecided:
        assert exact.sqrt(x) ** 2.0 > 2.0
    assert max(len(str(error.value)) for error in (floor, half, undecided)) < 200
    assert "choose another input" in str(floor.value)


def test_an_enclosure_needs_no_proof_of_rounding() -> None:
    """1/3 * 3 + 2^-53 lies halfway between two numbers, and no ball of it does not contain the half."""

    def call() -> tuple[object, ...]:
        return ball([1.0, 3.0]) / 3 * 3 + 2.0**-53, 0.5, exact.asarray(np.asarray([7, 8]))

    with pytest.raises(Unproved):
        evaluate(call)
    (value, radius), (scalar, none), (integers, no) = enclosed(call, [ANY] * 3)
    assert value[0] in (1.0, 1.0 + 2**-52)
    assert value[1] in (3.0, 3.0 + 2**-51)
    assert 0 < radius[0] < 2.0**-120
    assert (scalar.item(), none.item(), integers.tolist(), no.tolist()) == (0.5, 0.0, [7, 8], [0, 0])
    ((_, radius), *_) = enclosed(call, [np.asarray([2.0**-300, np.inf]), ANY, ANY])
    assert 0 < radius[0] <= 2.0**-300


@given(st.floats(-1e300, 1e300), st.floats(0, 1e300))
def test_an_enclosure_contains_its_ball(value: float, spread: float) -> None:
    """Subnormal midpoints and radii too."""
    low, high = sorted((value, np.nextafter(value, np.inf) + spread))
    ((middle, radius),) = enclosed(lambda: (exact.between(np.asarray([low]), np.asarray([high]), exact.float64),), [ANY])
    assert np.isfinite(middle)
    half = Fraction(np.nextafter(abs(middle.item()), np.inf)) - Fraction(abs(middle.item()))  # at most: its own rounding
    assert Fraction(middle.item()) - Fraction(radius.item()) - half <= Fraction(low)
    assert Fraction(middle.item()) + Fraction(radius.item()) + half >= Fraction(high)


def test_a_ball_that_is_not_finite_is_said_beside_those_that_are() -> None:
    ((value, radius),) = enclosed(lambda: (ball([6.0, 1.0]) / np.asarray([3.0, 0.0]),), [ANY])
    assert (value[0], radius[0]) == (2.0, 0.0)
    assert np.isnan(value[1])
    assert np.isinf(radius[1])


def test_an_enclosure_takes_more_bits_where_a_comparison_needs_them() -> None:
    x = ball(2.0)
    assert enclosed(lambda: (exact.where(exact.sqrt(x) * exact.sqrt(x) + 2.0**-900 > x, x, -x),), [ANY])[0][0] == 2.0
    with pytest.raises(Undecided):
        enclosed(lambda: (exact.floor(exact.sqrt(x) ** 2.0),), [ANY])


@given(st.lists(finite, min_size=1, max_size=5), st.sampled_from(["float32", "float16", "bfloat16"]))
def test_rounding_is_numpys_where_numpy_has_it_and_idempotent(values: list[float], dtype: str) -> None:
    x = np.asarray([*values, *SPREAD])
    narrow = round_to(x, dtype)
    assert np.array_equal(round_to(narrow, dtype), narrow)
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            assert np.array_equal(narrow, x.astype(dtype).astype(np.float64))


def test_bfloat16_rounds_once() -> None:
    """ml_dtypes, torch and JAX go through float32: 1 + 2^-8 + 2^-40 becomes a tie there, and then 1."""
    x = np.asarray([1 + 2**-8 + 2**-40, 1 + 3 * 2**-8 - 2**-40])
    assert round_to(x, "bfloat16").tolist() == [1.0078125, 1.0078125]
    assert bits_of(x, "bfloat16").tolist() == [0x3F81, 0x3F81]
    assert representable(np.asarray([1.0078125]), "bfloat16")
    assert not representable(x, "bfloat16")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_number_of_half_precision_is_representable_and_those_between_two_are_not(dtype: str) -> None:
    """Subnormal numbers too. Halfway between two, the one with an even last bit is nearest."""
    bits = np.arange(2**15, dtype=np.uint16)  # of numbers of at least 0, in their order
    values = (bits.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else bits.view(np.float16)
    finite = values[np.isfinite(values)].astype(np.float64)
    assert np.array_equal(round_to(finite, dtype), finite)
    assert np.array_equal(bits_of(finite, dtype).view(np.uint16), bits[: finite.size])
    halves = (finite[1:] + finite[:-1]) / 2
    assert np.array_equal(round_to(halves, dtype), np.where(bits[1 : finite.size] % 2 == 0, finite[1:], finite[:-1]))


OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}


@given(single, single, st.sampled_from(sorted(OPERATORS)))
def test_bounds_hold_for_float32_arithmetic(a: float, b: float, name: str) -> None:
    system = bounds("angle32")
    x, y = (system.asarray(np.asarray(v), dtype=system.float32) for v in (a, b))
    if name == "divide" and b == 0:
        return
    result = OPERATORS[name](x, y)
    with np.errstate(all="ignore"):
        single_result = float(OPERATORS[name](np.float32(a), np.float32(b)))
    true = float(OPERATORS[name](Fraction(a), Fraction(b))) if abs(a) < 1e30 and abs(b) < 1e30 else None
    if true is None or not np.isfinite(single_result) or abs(true) > 3e38:
        return
    assert abs(single_result - true) <= result.parts[1] + abs(true) * 2.0**-52


@given(st.integers(2**25, 2**28), st.integers(2**25, 2**28))
def test_a_product_is_exact_where_float64_holds_it(a: int, b: int) -> None:
    """Of 27 bits and 27 bits: some products have 53 bits and some 54."""
    system = bounds("float64")
    x, y = (system.asarray(np.asarray(float(v)), dtype=system.float64) for v in (a, b))
    assert ((x * y).parts[1] == 0) == (int(float(a) * float(b)) == a * b)


@given(st.floats(width=64))
def test_a_significand_is_an_odd_integer(value: float) -> None:
    """Also that of a subnormal number; of zero, infinities and NaN it is 0."""
    expected = abs(Fraction(value).numerator) if np.isfinite(value) else 0
    while expected and expected % 2 == 0:
        expected //= 2
    assert odd(np.asarray(value)) == expected
    for name in ("angle32", "low-bfloat16", "low-float16"):
        system = bounds(name)
        exact = np.isfinite(value) and expected < 2.0 ** system.bits[storage]
        assert system._fits(np.asarray(value), storage) == exact


@given(st.lists(st.tuples(st.integers(-(2**30), 2**30), st.sampled_from([0.0, 1.0])), min_size=1, max_size=5))
def test_what_erred_before_and_what_did_not_are_told_apart_in_one_array(numbers: list[tuple[int, float]]) -> None:
    """Every element has the bound that it has alone."""
    xp = bounds("angle32")
    values = xp.asarray(np.asarray([float(n) for n, _ in numbers]), dtype=xp.float32)
    erred = xp.sin(xp.asarray(np.asarray([e for _, e in numbers]), dtype=xp.float32))  # exact at 0 alone
    for name in ("add", "multiply"):
        whole = getattr(xp, name)(values, erred)
        for i in range(len(numbers)):
            alone = getattr(xp, name)(values[i : i + 1], erred[i : i + 1])
            assert [part[i] for part in whole.parts] == [part[0] for part in alone.parts]


@given(st.integers(-4095, 4095), st.integers(-4095, 4095))
def test_exact_arithmetic_adds_nothing(a: int, b: int) -> None:
    system = bounds("angle32")
    x, y = (system.asarray(np.asarray(float(v)), dtype=system.float32) for v in (a, b))
    for result in (x + y, x - y, x * y):
        assert result.parts[1] == 0


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_powers_sines_and_exponentials_are_exact_only_where_all_are(name: str) -> None:
    system = bounds(name)
    zero, one, two = (system.asarray(np.asarray(v), dtype=system.float64) for v in (0.0, 1.0, 2.0))
    assert [r.parts[1].item() for r in (two**zero, system.exp(zero), system.log(one), system.sin(zero), system.cos(zero))] == [
        0
    ] * 5
    assert system.log1p(zero).parts[1] == system.tanh(zero).parts[1] == 0
    assert all(r.parts[1] > 0 for r in (system.pi, system.log1p(one), system.tanh(one)))
    assert all(r.parts[1] > 0 for r in (two**two, system.exp(one), system.log(two), system.sin(one), system.cos(one)))


def exactly(xp: Bounds, *values: float) -> tuple[Array, ...]:
    return tuple(xp.asarray(np.asarray([v]), dtype=xp.float32) for v in values)


@pytest.mark.parametrize("system", [bounds("angle32"), live("angle32")], ids=["bounds", "live"])
def test_an_exact_product_waives_its_rounding_and_an_inexact_one_is_charged_with_it(system: Bounds) -> None:
    u = 2.0**-24
    three, five, eight, zero = exactly(system, 3.0, 5.0, 8.0, 0.0)
    product = three * five
    assert [part.item() for part in product.parts] == [15.0, 0.0, 15 * u]
    assert [part.item() for part in (product * five).parts] == [75.0, 0.0, 150 * u]  # two roundings
    for factor in (eight, zero):
        assert (three * factor).parts[2] == 0
        assert (factor * three).parts[2] == 0
    assert (product * eight).parts[2] == 8 * 15 * u
    assert (product + three * three).parts[2] == 24 * u
    assert system.negative(product).parts[2] == 15 * u
    assert (product / three).parts[2] == 10 * u
    assert (product / eight).parts[2] == 15 / 8 * u
    direct, reordered = system.asarray(np.asarray([15.0]), dtype=system.float32) * system.pi, product * system.pi
    assert reordered.parts[1] - direct.parts[1] == pytest.approx(15 * np.pi * u)
    assert reordered.parts[2] == 0
    long = system.asarray(np.asarray([1 + 2.0**-22]), dtype=system.float32)
    assert (product * long).parts[1] == pytest.approx(30 * u, rel=1e-6)  # rounded itself, so both count


@pytest.mark.parametrize("system", [bounds("angle32"), live("angle32")], ids=["bounds", "live"])
def test_functions_and_decisions_drop_what_was_waived(system: Bounds) -> None:
    product = exactly(system, 3.0)[0] * 5.0
    for found in (
        system.sin(product), system.sqrt(product), system.exp(product), system.log(product), system.log1p(product),
        system.maximum(product, exactly(system, 2.0)[0]), system.max(product, axis=0), system.settled(product),
        system.tanh(product), product ** 2.0, system.floor(product),
    ):  # fmt: skip
        assert np.all(found.parts[2] == 0)
    assert system.sin(product).parts[1] == system.sin(exactly(system, 15.0)[0]).parts[1]


@pytest.mark.parametrize("system", [bounds("angle32"), live("angle32")], ids=["bounds", "live"])
def test_a_matrix_product_of_one_term_waives_and_one_of_several_is_rounded(system: Bounds) -> None:
    u = 2.0**-24
    row, column = (system.asarray(np.asarray(v), dtype=system.float32) for v in ([[3.0, 0.0]], [[5.0], [7.0]]))
    one = system.matmul(row, column)
    assert [part.item() for part in one.parts] == [15.0, 0.0, 15 * u]
    both = system.asarray(np.asarray([[3.0, 5.0]]), dtype=system.float32)
    plain = system.matmul(both, column)
    assert plain.parts[2] == 0
    waived = system.matmul(both * system.asarray(np.asarray([[1.0, 3.0]]), dtype=system.float32), column)
    assert waived.parts[1] == pytest.approx((15 + 105) * u + 2 * (15 + 105) * u + 105 * u, rel=1e-6)  # products, sum, 5 * 3


@pytest.mark.parametrize("system", [bounds("angle32"), live("angle32")], ids=["bounds", "live"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "minimum", "maximum"])
def test_a_bound_holds_for_all_numbers_within_the_bounds_of_two(system: Bounds, name: str) -> None:
    """Each function is largest and smallest at the ends of both ranges, or where these meet."""
    rng = np.random.default_rng(1)
    p, q = (rng.integers(1024, 2048, 400) * rng.choice([-1, 1], 400) / 1024 for _ in range(2))
    e, f = (rng.integers(0, 1000, 400) / 1024 for _ in range(2))
    a, b = (system.array(value, error, system.float32) for value, error in ((p, e), (q, f)))
    found = getattr(system, name)(a, b) if hasattr(system, name) else OPERATORS[name](a, b)
    value, error, _ = found.parts
    ends = [getattr(np, name)(p + s * e, q + t * f) for s in (-1, 1) for t in (-1, 1)]
    assert np.all(np.max(np.abs(np.asarray(ends) - value), axis=0) <= error)


@pytest.mark.parametrize("system", [bounds("angle32"), live("angle32")], ids=["bounds", "live"])
@pytest.mark.parametrize("name", ["exp", "log", "log1p", "sqrt", "tanh"])
def test_a_bound_holds_for_all_numbers_within_the_bound_of_one(system: Bounds, name: str) -> None:
    """Each function rises, so that it is largest and smallest at the ends of the range, which comes near to where it ends."""
    rng = np.random.default_rng(1)
    low, high = np.sort(rng.integers(1, 2048, (2, 400)), axis=0) / 1024
    shift = 1.0 if name == "log1p" else 0.0
    found = getattr(system, name)(system.array((low + high) / 2 - shift, (high - low) / 2, system.float32))
    value, error, _ = found.parts
    ends = [getattr(np, name)(end - shift) for end in (low, high)]
    assert np.all(np.max(np.abs(np.asarray(ends) - value), axis=0) <= error)


@pytest.mark.parametrize("apart", [0.0, 1e-9, 9e-5, 2e-4, 0.5])
def test_live_exponentials_of_matrices_are_those_of_balls(apart: float) -> None:
    """The derivative too, whose quotient loses digits where two angles are near each other."""
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    turns = np.zeros((4, 4))
    turns[0, 1], turns[2, 3] = 0.75, 0.75 + apart
    a = basis @ (turns - turns.T) @ basis.T
    a, along = (a - a.T) / 2, rng.standard_normal((4, 4))
    for name, parts in (("exponential", (a,)), ("derivative_of_exponential", (a, along))):
        assert np.max(np.abs(live("float64").of_matrices(name, *parts) - of_matrices(name, *parts))) < 1e-11


def test_of_two_formulas_the_larger_bound_counts_unless_it_is_asked_alone() -> None:
    system = bounds("angle32")
    x, y = exactly(system, 3.0, 1.1)
    exact, other = system.either(x, lambda: y * 3.0), system.of_first_formulas().either(x, lambda: y * 3.0)
    assert exact.parts[0] == other.parts[0] == 3.0
    assert exact.parts[1] == (y * 3.0).parts[1] > 0
    assert other.parts[1] == 0


def test_decisions_within_the_bound_are_undecided() -> None:
    system = bounds("angle32")
    third = system.asarray(np.asarray(1.0), dtype=system.float32) / 3
    assert bool(third < 0.5)
    with pytest.raises(Undecided):
        bool(third * 3 < 1.0)
    with pytest.raises(Undecided):
        system.floor(third * 3)


def test_a_half_width_is_rounded_up() -> None:
    widths = np.asarray([0.0, 0.1, 1e-60, 2.0**-130, 3.0])
    up = rounded_up(widths)
    assert up.dtype == np.float32
    assert np.all(up.astype(np.float64) >= widths)
    assert up[0] == 0
    drawn = np.ldexp(np.random.default_rng(0).random(1000), np.arange(1000) % 270 - 150)
    up = rounded_up(drawn).astype(np.float64)
    normal = drawn > np.finfo(np.float32).tiny
    assert np.all(up >= drawn)
    assert np.all(up[normal] <= 1.001 * drawn[normal])
    assert np.all(np.isin(rounded_up(np.asarray([np.inf, np.nan, 1e39])), [np.inf]) == [True, False, True])


def test_every_roundoff_cites_its_source() -> None:
    assert all(r.units >= 1 and len(r.source) > 20 for r in ROUNDOFFS.values())
    assert set(BITS) == {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"}


@pytest.mark.parametrize("xp", [exact, bounds("angle32")], ids=["balls", "bounds"])
def test_quotients_of_integers_are_rounded_down_and_of_reals_are_none(xp: Any) -> None:
    found = xp.asarray(np.asarray([-9, -8, -1, 0, 7, 8])) // 4
    assert found.parts[0].tolist() == [-3, -2, -1, 0, 1, 2]
    with pytest.raises(TypeError, match="for integers; got storage"):
        xp.asarray(np.asarray([1.5])) // 4


@pytest.mark.parametrize("accuracy", ["float64", "angle32"])
def test_a_positive_power_of_zero_is_zero(accuracy: str) -> None:
    system = bounds(accuracy)
    base, power = (system.asarray(np.asarray(v), dtype=system.float64) for v in ([0.0, 0.0, 2.0], [0.5, 3.0, 0.5]))
    value, error, _ = system.pow(base, power).parts
    assert value.tolist() == [0.0, 0.0, 2**0.5]
    assert error[:2].tolist() == [0.0, 0.0]
    assert error[2] > 0
    with pytest.raises(Undecided):
        system.pow(base, -power)


@given(st.lists(single, min_size=1, max_size=40))
def test_bounds_of_cumulative_sums_hold_in_any_order(numbers: list[float]) -> None:
    """Summed one after another, and from the other end."""
    row = np.asarray(numbers, dtype=np.float32) / np.float32(2**40)
    true = [float(sum(map(Fraction, row[: n + 1].tolist()))) for n in range(len(row))]
    system = bounds("angle32")
    value, bound, _ = system.cumulative_sum(system.asarray(row.astype(np.float64), dtype=system.float32), axis=-1).parts
    with np.errstate(all="ignore"):
        forward = np.cumsum(row, dtype=np.float32)
        backward = np.asarray([np.cumsum(row[: n + 1][::-1], dtype=np.float32)[-1] for n in range(len(row))])
    for found in (forward, backward):
        if np.all(np.isfinite(found)):
            assert np.all(np.abs(found - true) <= bound + np.abs(true) * 2.0**-52)
    assert np.all(np.abs(value - true) <= bound + np.abs(true) * 2.0**-45)
