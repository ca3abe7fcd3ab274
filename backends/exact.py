"""
Balls (intervals with a midpoint and a radius): real arrays over python-flint's arb. On them a definition is proved.

Every ball contains the true value. A comparison that the balls do not decide raises `Undecided`, and more bits are tried.
`evaluate` returns the float64 numbers that are proved to be nearest, as stored vectors need them. `enclosed` proves no
rounding: it returns midpoints and radii, which exist where the true value lies halfway between two float64 numbers, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, arb_mat, ctx, fmpz

from .numbers import Array, Label, NumberSystem, Part, Undecided, float64, pulled_through_cayley

SMALLEST_NORMAL = 2.0**-1022  # from here on flint's conversion rounds to nearest
BITS = (128, 256, 512, 1024, 4096)  # tried in turn; the last also decides underflow to zero


class Unproved(ArithmeticError):
    """The rounding of a value was not proved, even at the highest precision."""


def _ball(value: Any) -> arb:
    """Return the exact ball of an int, or of a float's exact binary64 value."""
    return arb(int(value)) if isinstance(value, int | np.integer) else arb(float(value))


def _short(ball: arb) -> str:
    """Return a ball with as many digits as a message needs."""
    return str(ball.str(17))


def _decide(name: str, a: arb, b: arb) -> bool:
    """Return the result of a comparison, or raise `Undecided`."""
    answers = {
        "less": (a < b, a >= b), "less_equal": (a <= b, a > b), "greater": (a > b, a <= b), "greater_equal": (a >= b, a < b),
        "equal": (a == b, a != b), "not_equal": (a != b, a == b),
    }  # fmt: skip
    yes, no = answers[name]
    if yes or no:
        return bool(yes)
    msg = f"{name} of {_short(a)} and {_short(b)}"
    raise Undecided(msg)


def _whole(rounded: arb) -> arb:
    """Return a floor or ceiling, or raise `Undecided`."""
    if not rounded.is_exact():
        msg = f"rounding to the integer {_short(rounded)}"
        raise Undecided(msg)
    return rounded


def _saturated(ball: arb, bits: int, least: int, largest: float) -> arb:
    """Return the number of `bits` bits, a multiple of 2**least, at most `largest` in size, that is nearest to all of a ball."""
    low, high = (_nearest(end, bits, least, largest) for end in (ball.lower(), ball.upper()))
    if low == high:
        return arb(low)
    msg = f"rounding to {low!r} or {high!r}: {_short(ball)}"
    raise Undecided(msg)


def _nearest(end: arb, bits: int, least: int, largest: float) -> float:
    if abs(end) > largest:
        return math.copysign(largest, float(end))
    mantissa, power = (int(part) for part in end.man_exp())
    drop = max(abs(mantissa).bit_length() - bits, least - power, 0)
    kept = round(Fraction(mantissa, 1 << drop))  # half to even
    return math.ldexp(kept, power + drop)


def _elementwise(function: Callable[..., arb], *parts: Part) -> Part:
    return np.asarray(np.frompyfunc(function, len(parts), 1)(*parts), dtype=object)


class Exact(NumberSystem):
    """The namespace of balls. Its float dtypes are only labels: nothing is rounded."""

    __name__ = "posref.backends.exact"

    @property
    def pi(self) -> Array:
        """Pi at the current precision."""
        return Array((np.asarray(arb.pi(), dtype=object),), float64, self)

    def real(self, values: Part, dtype: Label) -> Array:
        return Array((_elementwise(_ball, values),), dtype, self)

    def astype(self, x: Array, dtype: Label) -> Array:
        if x.dtype.kind == dtype.kind:
            return Array(x.parts, dtype, self)
        if dtype is self.int64 and x.dtype.kind == "bool":
            return Array((x.parts[0].astype(np.int64),), dtype, self)
        if dtype.kind == "real floating":
            return self.real(x.parts[0].astype(np.int64), dtype)
        whole = np.frompyfunc(lambda b: int(_whole(b).unique_fmpz()), 1, 1)(x.parts[0])
        return Array((np.asarray(whole, dtype=np.int64),), dtype, self)

    def real_add(self, a: Array, b: Array, dtype: Label) -> Array:
        return Array((np.asarray(a.parts[0] + b.parts[0], dtype=object),), dtype, self)

    def real_multiply(self, a: Array, b: Array, dtype: Label) -> Array:
        return Array((np.asarray(a.parts[0] * b.parts[0], dtype=object),), dtype, self)

    def real_divide(self, a: Array, b: Array, dtype: Label) -> Array:
        return Array((np.asarray(a.parts[0] / b.parts[0], dtype=object),), dtype, self)

    def real_pow(self, a: Array, b: Array, dtype: Label) -> Array:
        return Array((np.asarray(a.parts[0] ** b.parts[0], dtype=object),), dtype, self)

    def real_minimum(self, a: Array, b: Array, dtype: Label) -> Array:
        return Array((_elementwise(lambda p, q: p.min(q), a.parts[0], b.parts[0]),), dtype, self)

    def real_maximum(self, a: Array, b: Array, dtype: Label) -> Array:
        return Array((_elementwise(lambda p, q: p.max(q), a.parts[0], b.parts[0]),), dtype, self)

    def real_compare(self, name: str, a: Array, b: Array) -> Part:
        return np.asarray(np.frompyfunc(lambda p, q: _decide(name, p, q), 2, 1)(a.parts[0], b.parts[0]), dtype=np.bool_)

    def surely_greater(self, a: Array, b: Array) -> Part:
        """Return where the balls decide that a > b."""
        return np.asarray(np.frompyfunc(lambda p, q: bool(p > q), 2, 1)(a.parts[0], b.parts[0]), dtype=np.bool_)

    def between(self, low: Part, high: Part, dtype: Label) -> Array:
        """Return balls that contain everything between two NumPy arrays."""
        return Array((_elementwise(lambda p, q: _ball(p).union(_ball(q)), low, high),), dtype, self)

    def slope(self, a: Array, b: Array) -> Array:
        """Return the derivative of max(a, b) with respect to a: 1 or 0, or everything between if the balls allow both."""
        low, high = self.surely_greater(a, b), ~self.surely_greater(b, a)
        return self.between(low.astype(np.float64), high.astype(np.float64), a.dtype)

    def _function(self, x: Array, function: Callable[[arb], arb]) -> Array:
        return Array((_elementwise(function, x.parts[0]),), x.dtype, self)

    def floor(self, x: Array) -> Array:
        """Return the largest integer not above x. Raise `Undecided` if the ball allows two."""
        return self._function(x, lambda b: _whole(b.floor()))

    def ceil(self, x: Array) -> Array:
        """Return the smallest integer not below x. Raise `Undecided` if the ball allows two."""
        return self._function(x, lambda b: _whole(b.ceil()))

    def saturated(self, x: Array, bits: int, least: int, largest: float, dtype: Label) -> Array:
        """Return the nearest number of a narrow format, half to even. Raise `Undecided` if the ball allows two."""
        return Array((_elementwise(lambda b: _saturated(b, bits, least, largest), x.parts[0]),), dtype, self)

    def sqrt(self, x: Array) -> Array:
        """Return the square root."""
        return self._function(x, lambda b: b.sqrt())

    def exp(self, x: Array) -> Array:
        """Return e to the x."""
        return self._function(x, lambda b: b.exp())

    def log(self, x: Array) -> Array:
        """Return the natural logarithm."""
        return self._function(x, lambda b: b.log())

    def tanh(self, x: Array) -> Array:
        """Return the hyperbolic tangent."""
        return self._function(x, lambda b: b.tanh())

    def log1p(self, x: Array) -> Array:
        """Return the natural logarithm of 1 + x."""
        return self._function(x, lambda b: b.log1p())

    def sin(self, x: Array) -> Array:
        """Return the sine."""
        return self._function(x, lambda b: b.sin())

    def cos(self, x: Array) -> Array:
        """Return the cosine."""
        return self._function(x, lambda b: b.cos())

    constant_sin = sin

    def sin_pi(self, x: Array) -> Array:
        """Return the sine of pi x: 0 at whole numbers."""
        return self._function(x, lambda b: b.sin_pi())

    def cos_pi(self, x: Array) -> Array:
        """Return the cosine of pi x: 0 halfway between whole numbers."""
        return self._function(x, lambda b: b.cos_pi())

    def either(self, a: Array, b: Callable[[], Array]) -> Array:
        """Return the first of two formulas for the same numbers."""
        return a

    def cayley(self, x: Array, found: Array) -> Array:
        """Return the Cayley transforms `found` of skew-symmetric matrices."""
        return found

    def cayley_adjoint(self, u: Array, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the Cayley transforms `u`, carried back to the matrices `x`."""
        return pulled_through_cayley(u, g)

    def skew_exponential(self, x: Array) -> Array:
        """Return the exponentials of the matrices in the last two axes."""
        return Array((by_matrices(lambda a: a.exp(), x.parts[0]),), x.dtype, self)

    def skew_exponential_adjoint(self, x: Array, g: Array) -> Array:
        """Return the cotangents `g` of the exponentials, carried back to the matrices `x`."""
        return Array((by_matrices(derivative_of_exponential, -x.parts[0], g.parts[0]),), x.dtype, self)

    def real_cumulative_sum(self, x: Array, axis: int) -> Array:
        return self.moved(x, lambda part: np.cumsum(part, axis=axis, dtype=object))

    def sum(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        total = np.sum(x.parts[0], axis=axis, keepdims=keepdims, initial=arb(0))
        return Array((np.asarray(total, dtype=object),), x.dtype, self)

    def max(self, x: Array, *, axis: int, keepdims: bool = False) -> Array:
        """Return the largest along `axis`."""
        slices = np.moveaxis(x.parts[0], axis, 0)
        largest = reduce(lambda a, b: _elementwise(lambda p, q: p.max(q), a, b), slices)
        return Array((np.expand_dims(largest, axis) if keepdims else largest,), x.dtype, self)


exact = Exact()


def by_matrices(function: Callable[..., arb_mat], *parts: Part) -> Part:
    """Apply a function of matrices of balls to every matrix in the last two axes."""
    results = np.empty(parts[0].shape, dtype=object)
    for index in np.ndindex(results.shape[:-2]):
        results[index] = function(*(arb_mat(part[index].tolist()) for part in parts)).table()
    return results


def derivative_of_exponential(a: arb_mat, direction: arb_mat) -> arb_mat:
    """
    Return the derivative of the exponential at `a` along `direction`: the upper right block of exp([[a, direction], [0, a]]).

    Source: Higham, Functions of Matrices, equation (10.43). The adjoint is the derivative at the transpose, which is -a for
    skew-symmetric a.
    """
    n = a.nrows()
    rows, across, zeros = a.table(), direction.table(), [arb(0)] * n
    block = arb_mat([[*rows[i], *across[i]] for i in range(n)] + [[*zeros, *row] for row in rows])
    return arb_mat([row[n:] for row in block.exp().table()[:n]])


def elementary(name: str, *parts: Part) -> Part:
    """Return an elementary function of NumPy float64, correctly rounded: "pow", or a method of arb."""
    parts = np.broadcast_arrays(*(np.asarray(part, dtype=np.float64) for part in parts))
    data = _elementary(name, *(part.tobytes() for part in parts))
    return np.frombuffer(data).reshape(parts[0].shape)


@lru_cache(maxsize=64)  # accuracy classes differ in errors: one after the other asks for the same values
def _elementary(name: str, *parts: bytes) -> bytes:
    """Return the bytes of the values of an elementary function, from the bytes of its arguments."""

    def one(*numbers: float) -> float:
        first, *others = (arb(n) if math.isfinite(n) else arb(str(n)) for n in numbers)
        return nearest_float64(first ** others[0] if name == "pow" else getattr(first, name)())

    rows = zip(*(np.frombuffer(part).tolist() for part in parts), strict=True)
    with precision(160):
        return np.asarray([one(*numbers) for numbers in rows], dtype=np.float64).tobytes()


def of_matrices(name: str, *parts: Part) -> Part:
    """Return a function of matrices of NumPy float64: the midpoint of each ball, rounded to float64."""
    function = derivative_of_exponential if name == "derivative_of_exponential" else arb_mat.exp
    with precision(160):
        balls = by_matrices(function, *(np.frompyfunc(arb, 1, 1)(part) for part in parts))
        return np.asarray(np.frompyfunc(round_to_float64, 1, 1)(balls), dtype=np.float64)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with `bits` of precision inside the block. The setting is global in flint, so use processes, not threads."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def evaluate(call: Callable[[], tuple[Any, ...]]) -> tuple[npt.NDArray[Any], ...]:
    """
    Return the results of `call`, which computes on balls, as proved NumPy float64 (or integers and booleans).

    Raises
    ------
    Unproved
        If no precision in `BITS` decides every comparison and every rounding.
    """
    for bits in BITS:
        with precision(bits):
            try:
                return tuple(correctly_rounded(value) for value in call())
            except (Undecided, Unproved) as error:
                last = error
    reason = "At a jump, a tie or the kink of a gradient nothing decides it: choose another input"
    msg = f"not proved with {BITS[-1]} bits: {last}. {reason}"
    raise Unproved(msg)


def correctly_rounded(value: Any) -> npt.NDArray[Any]:
    """Return balls as the nearest float64, all else unchanged. Raise Unproved if a ball contains a rounding boundary."""
    if not isinstance(value, Array):
        return np.asarray(value, dtype=np.float64)
    if value.dtype.kind != "real floating":
        return value.parts[0]
    return np.asarray(np.frompyfunc(nearest_float64, 1, 1)(value.parts[0]), dtype=np.float64)


Enclosure = tuple[npt.NDArray[Any], npt.NDArray[Any]]


def enclosed(call: Callable[[], tuple[Any, ...]], enough: Sequence[Part]) -> list[Enclosure]:
    """
    Return the results of `call`, which computes on balls, as midpoints in float64 and radii. Integers have no radius.

    A true value is within the radius of a number that rounds to the midpoint. More bits are tried until no radius is above
    `enough`, an array for each result. Where a ball is not finite, the midpoint is NaN and the radius infinite.

    Raises
    ------
    Undecided
        If no precision in `BITS` decides every comparison.
    """
    for bits in BITS:
        with precision(bits):
            try:
                enclosures = [_midpoint_and_radius(value) for value in call()]
            except Undecided:
                if bits == BITS[-1]:
                    raise
                continue
        if all(np.all(radius <= most) for (_, radius), most in zip(enclosures, enough, strict=True)):
            break
    return enclosures


def _midpoint_and_radius(value: Any) -> Enclosure:
    if not isinstance(value, Array):
        return np.asarray(value, dtype=np.float64), np.zeros(())
    if value.dtype.kind != "real floating":
        return value.parts[0], np.zeros(value.shape)
    pairs = np.frompyfunc(_enclosure, 1, 2)(value.parts[0])
    middle, radius = (np.asarray(x, dtype=np.float64) for x in pairs)
    return middle, radius


def _enclosure(ball: arb) -> tuple[float, float]:
    """Return the float64 nearest to the ball's midpoint, and the radius, rounded up."""
    if not ball.is_finite():
        return math.nan, math.inf
    middle, radius = _float64_of(ball.mid()), ball.rad()
    return middle, 0.0 if radius.is_zero() else math.nextafter(_float64_of(radius), math.inf)


def _float64_of(end: arb) -> float:
    """Return the float64 nearest to an exact ball: as `round_to_float64`, by the library unless it is subnormal."""
    nearest = float(end)
    return nearest if abs(nearest) >= SMALLEST_NORMAL else round_to_float64(end)


def nearest_float64(ball: arb) -> float:
    """Return the float64 to which all numbers of the ball round, half to even. Raise Unproved if there are two."""
    if not ball.is_finite():
        msg = f"not a finite number: {_short(ball)}"
        raise Unproved(msg)
    low, high = float(ball.lower()), float(ball.upper())
    if abs(low) < SMALLEST_NORMAL or abs(high) < SMALLEST_NORMAL:
        low, high = (round_to_float64(end) for end in (ball.lower(), ball.upper()))
    if low == high:
        return low
    msg = f"rounds to {low!r} or {high!r}: {_short(ball)}"
    raise Unproved(msg)


def round_to_float64(end: arb) -> float:
    """Return the float64 nearest to an exact ball, half to even, including subnormal numbers."""
    mantissa, exponent = end.mid().man_exp()
    return ratio_to_float64(fmpz(mantissa), int(exponent))


def ratio_to_float64(mantissa: fmpz, exponent: int) -> float:
    """Return mantissa times 2**exponent as the nearest float64, half to even."""
    whole = abs(int(mantissa))
    if whole == 0:
        return 0.0
    sign = -1.0 if int(mantissa) < 0 else 1.0
    if whole.bit_length() + exponent < -1074:  # below half the smallest float64
        return sign * 0.0
    drop = max(whole.bit_length() - 53, -1074 - exponent, 0)  # bits that float64 does not keep
    kept, rest = whole >> drop, whole & ((1 << drop) - 1)
    half = 1 << drop >> 1
    kept += bool(drop) and (rest > half or (rest == half and kept & 1))
    return sign * math.ldexp(kept, exponent + drop)
