"""
Cosine and sine of position times frequency, accurate at every position and in every dtype.

In a library with float64, the angle is a float64 product, or for whole positions on a CPU what comes to the same
(`posref.core.addition`). In the others a float32 angle would be off by 0.7 radians at position 1e7, so the product is computed
exactly. Each frequency becomes a fraction of a turn, held in six limbs of 12 bits. Integer positions multiply the limbs in
int32. Whole turns and quarter turns are taken off, so that at most an eighth of a turn is left. The error then stays below
2^-22 for every int32 position, whatever the compiler does to floating-point arithmetic. A floating position is split into whole
tokens, 4096ths of a token, and a rest. The first two are multiplied in this way; only the rest, below 2^-12 tokens, is
multiplied in float32.
"""

from fractions import Fraction
from functools import reduce

from posref.core import blocks
from posref.core.addition import cos_sin_by_addition
from posref.core.arrays import Array, DType, Namespace, beside, cast, has_float64, namespace, wide
from posref.spec import part

LIMBS, BITS = 6, 12
# 1/(2 pi) as an integer over 2**320 (Sloane's A086201 in binary), so that fractions of a turn need no floating point
TURNS_PER_RADIAN = (0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF1586DC91B8E909374B8, 320)


def cos_sin(positions: Array, frequencies: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """Return cos and sin of ``positions[..., None] * frequencies``: see `cos_sin_of_pairs`."""
    return cos_sin_of_pairs(positions[..., None], frequencies, dtype=dtype)


@part()
def cos_sin_of_pairs(
    positions: Array, frequencies: Array, /, *, dtype: DType, phases: Array | None = None
) -> tuple[Array, Array]:
    """
    Return cos and sin of ``positions * frequencies + phases`` in the working dtype of `dtype` (float32 or wider).

    `positions` are integer or floating. Their last axis has size 1, or n: one position for each frequency. `frequencies`, of
    shape ``(n,)``, are in radians per token. They are host numbers, or an array of the caller, which carries gradients. If they
    are traced in a library without float64, the product is in float32 (class ``angle32``). `phases` are angles of a few
    radians. They broadcast with the products, and are in float64, or float32 if the library has no float64.
    """
    xp = namespace(positions)
    work = wide(dtype, xp)
    if has_float64(positions):
        if phases is None and _is_by_addition(positions, frequencies, work, xp):
            return cos_sin_by_addition(positions, frequencies)
        frequency, angle = _dtypes(xp)
        angles = cast(positions, angle) * beside(frequencies, positions, frequency)
        angles = angles if phases is None else angles + cast(phases, angle)
        return cast(xp.cos(angles), work), cast(xp.sin(angles), work)
    exact = _host_numbers(frequencies)
    if exact is None:
        angles = cast(positions, xp.float32) * beside(frequencies, positions, xp.float32)
        angles = angles if phases is None else angles + phases
        return xp.cos(angles), xp.sin(angles)
    return _cos_sin_of_turns([(positions, exact)], (len(exact),), phases, _nothing(positions, frequencies, exact))


@part()
def cos_sin_of_sums(positions: Array, frequencies: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """
    Return cos and sin of ``sum(positions * frequencies, axis=0)`` in the working dtype of `dtype`: see `cos_sin_of_pairs`.

    `positions` and `frequencies` have the same number of axes. The sum runs over their first axes, which have the same size.
    The last axis of `positions` has size 1.
    """
    xp = namespace(positions)
    work = wide(dtype, xp)
    exact = None if has_float64(positions) else [_host_numbers(f) for f in _rows(frequencies)]
    if exact is None or None in exact:
        frequency, angle = _dtypes(xp) if exact is None else (xp.float32, xp.float32)
        products = cast(positions, angle) * beside(frequencies, positions, frequency)
        angles = xp.sum(products, axis=0)
        return cast(xp.cos(angles), work), cast(xp.sin(angles), work)
    axes = [(positions[axis, ...], f) for axis, f in enumerate(exact) if f is not None]
    nothing = _nothing(positions, frequencies, [number for _, f in axes for number in f])
    return _cos_sin_of_turns(axes, tuple(frequencies.shape[1:]), None, None if nothing is None else xp.sum(nothing, axis=0))


@part()
def cos_sin_of_half_turns(positions: Array, frequencies: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """
    Return cos and sin of ``pi * sum(positions * frequencies, axis=0)``: as `cos_sin_of_sums`, but with a factor pi.

    If the sum is floating (in float64, or in float32 with traced frequencies), quarter turns are taken off before the
    multiplication by pi, so that whole half turns have sine 0.
    """
    xp = namespace(positions)
    work = wide(dtype, xp)
    exact = None if has_float64(positions) else [_host_numbers(f) for f in _rows(frequencies)]
    if exact is not None and None not in exact:
        axes = [(positions[axis, ...], [f * xp.pi for f in of_axis or ()]) for axis, of_axis in enumerate(exact)]
        nothing = _nothing(positions, frequencies, [f for of_axis in exact for f in of_axis or ()])
        nothing = None if nothing is None else xp.sum(nothing, axis=0) * xp.pi
        return _cos_sin_of_turns(axes, tuple(frequencies.shape[1:]), None, nothing)
    frequency, angle = _dtypes(xp) if exact is None else (xp.float32, xp.float32)
    half_turns = xp.sum(cast(positions, angle) * beside(frequencies, positions, frequency), axis=0)
    if hasattr(xp, "cos_pi"):  # a number system of the error bounds
        return cast(xp.cos_pi(half_turns), work), cast(xp.sin_pi(half_turns), work)
    quarters = xp.round(half_turns * 2)
    rest = (half_turns - quarters / 2) * xp.pi
    quadrant = cast(quarters - 4 * xp.floor(quarters / 4), xp.int32)
    return _turn_back(cast(xp.cos(rest), work), cast(xp.sin(rest), work), quadrant)


def running_sums(terms: Array, start: Array, /) -> Array:
    """
    Return `start` plus the sum of each of `terms` and all before it, along the last axis but one of `terms`.

    In a library with float64 they are float64 sums. In the others the result is in float32, rounded once from the sum of
    `_exact_running_sums`.
    """
    if has_float64(terms):
        return _float64_running_sums(terms, start)
    numbers, rest = _exact_running_sums(terms, start)
    (total, *parts), lost = _multiples(numbers), rest
    for piece in parts:
        rounded = total + piece
        total, lost = rounded, lost + (piece - (rounded - total))  # exact: `piece` is the smaller of both, or `total` is 0
    return total + lost


def cos_sin_of_running_sums(terms: Array, start: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """Return cos and sin of `running_sums`, in radians, in the working dtype of `dtype`: see `cos_sin_of_pairs`."""
    xp = namespace(terms)
    work = wide(dtype, xp)
    if has_float64(terms):
        angles = _float64_running_sums(terms, start)
        return cast(xp.cos(angles), work), cast(xp.sin(angles), work)
    numbers, rest = _exact_running_sums(terms, start)
    turns = _sum(_turns(numbers[0], [1.0], (1,)), _turns(numbers[1], [2.0**-BITS], (1,)))
    quarters, quadrant = _quarters(turns)
    angle = quarters * (xp.pi / 2) + (sum(_multiples(numbers)[2:]) + rest)
    return _turn_back(xp.cos(angle), xp.sin(angle), quadrant)


def _is_by_addition(positions: Array, frequencies: Array, work: DType, xp: Namespace) -> bool:
    """Return whether `cos_sin_by_addition` takes these: not if a gradient is recorded, a graph is made, or in float64."""
    return (
        blocks.ON
        and work == xp.float32
        and blocks.is_large(positions, 1)
        and positions.shape[-1] == 1
        and xp.isdtype(positions.dtype, "integral")
        and blocks.are_plain((positions, frequencies))
    )


def angle_dtype(x: Array) -> DType:
    """Return the dtype of angles in the library of `x`, if it has float64: that, or the label that error bounds use."""
    return _dtypes(namespace(x))[1]


def _float64_running_sums(terms: Array, start: Array) -> Array:
    """Return `running_sums` in a library with float64."""
    angles = angle_dtype(terms)
    return _cumulative(cast(terms, angles), cast(start, angles))


def _cumulative(terms: Array, start: Array) -> Array:
    """Return `start` plus the sum of each term and all before it, in their dtype. There is one sum, from `start` on."""
    xp = namespace(terms)
    every = xp.concat([start[..., None, :], terms], axis=terms.ndim - 2)
    return cast(xp.cumulative_sum(every, axis=-2), terms.dtype)[..., 1:, :] if every.shape[-1] else terms


def _exact_running_sums(terms: Array, start: Array) -> tuple[list[Array], Array]:
    """
    Return `running_sums` as whole numbers, 2^12ths, 2^24ths and 2^36ths, in int32, and a rest in float32.

    Each term is split in this way, and what is left is below 2^-37. The numbers are summed as integers, which fit for 2^20
    terms. Gradients pass through what is left, whose slope in a term is 1.
    """
    xp = namespace(terms)
    left, left_of_start, sums = cast(terms, xp.float32), cast(start, xp.float32), []
    for _ in range(4):
        nearest, nearest_of_start = xp.round(left), xp.round(left_of_start)
        sums.append(_cumulative(cast(nearest, xp.int32), cast(nearest_of_start, xp.int32)))
        left, left_of_start = (left - nearest) * 2**BITS, (left_of_start - nearest_of_start) * 2**BITS
    for k in (3, 2, 1):
        carry = sums[k] + 2 ** (BITS - 1) >> BITS
        sums[k - 1], sums[k] = sums[k - 1] + carry, sums[k] - (carry << BITS)
    return sums, _cumulative(left, left_of_start) * 2 ** (-4 * BITS)


def _multiples(numbers: list[Array]) -> list[Array]:
    """Return integers of `_exact_running_sums` as the numbers that they count, in float32."""
    return [cast(of_power, namespace(of_power).float32) * 2 ** (-BITS * k) for k, of_power in enumerate(numbers)]


def _dtypes(xp: Namespace) -> tuple[DType, DType]:
    """Return the dtypes of frequencies and angles in a library with float64: float64, or the labels that error bounds use."""
    return getattr(xp, "frequencies", xp.float64), getattr(xp, "angles", xp.float64)


def turn_limbs(frequency: float) -> list[int]:
    """Convert radians per token to a fraction of a turn per token, as six limbs of 12 bits, highest first."""
    numerator, shift = TURNS_PER_RADIAN
    turn = round(Fraction(frequency) * Fraction(numerator, 1 << shift) * (1 << LIMBS * BITS)) % (1 << LIMBS * BITS)
    return [turn >> BITS * k & (1 << BITS) - 1 for k in reversed(range(LIMBS))]


def _host_numbers(frequencies: Array) -> list[float] | None:
    """Return `frequencies` as Python floats, or None if they are traced."""
    try:
        return [float(frequencies[i]) for i in range(frequencies.shape[0])]
    except TypeError:  # JAX's tracers raise a subclass of it
        return None


def _nothing(positions: Array, frequencies: Array, numbers: list[float]) -> Array | None:
    """
    Return ``positions * (frequencies - numbers)``, or None if the frequencies are host numbers.

    `numbers` are the values of the frequencies, so this is 0. It is added to an angle to carry the gradient of the frequencies,
    because MLX gives their values even while it traces them.
    """
    if not isinstance(frequencies, type(positions)):
        return None
    xp = namespace(positions)
    host = xp.reshape(beside(numbers, positions, xp.float32), frequencies.shape)
    return cast(positions, xp.float32) * (cast(frequencies, xp.float32) - host)


def _rows(frequencies: Array) -> list[Array]:
    """Return the frequencies of each axis."""
    flat = namespace(frequencies).reshape(frequencies, (frequencies.shape[0], -1))
    return [flat[axis, :] for axis in range(flat.shape[0])]


def _cos_sin_of_turns(
    axes: list[tuple[Array, list[float]]], shape: tuple[int, ...], phases: Array | None = None, nothing: Array | None = None
) -> tuple[Array, Array]:
    """
    Return cos and sin, in float32, of positions times frequencies, summed over axes, plus phases of a few radians.

    Each entry of `axes` holds the positions and frequencies of one axis. The frequencies are reshaped to `shape`. Whole tokens,
    4096ths of a token, and 4096ths of a radian in a phase are summed exactly. All of these are rounded towards zero, so that
    the parts of an angle do not cancel. `nothing` is added to the angles for its gradient.
    """
    xp = namespace(axes[0][0])
    exact, left = [], []
    for positions, frequencies in axes:
        if not xp.isdtype(positions.dtype, "real floating"):
            exact.append(_turns(positions, frequencies, shape))
            continue
        whole = xp.trunc(positions)
        part = (positions - whole) * 2**BITS
        fine = xp.trunc(part)
        exact += [_turns(whole, frequencies, shape), _turns(fine, [f / 2**BITS for f in frequencies], shape)]
        per_part = beside([float(Fraction(f) * 4 * _turns_per_radian() / 2**BITS) for f in frequencies], positions, xp.float32)
        left.append(cast(part - fine, xp.float32) * xp.reshape(per_part, shape))
    if phases is not None:
        steps = xp.trunc(phases * 2**BITS)
        exact.append(_turns(steps, [2.0**-BITS], (1,)))
    quarters, quadrant = _quarters(reduce(_sum, exact))
    if left:
        quarters = sum(left, quarters)
        nearest = xp.round(quarters)
        quarters, quadrant = quarters - nearest, quadrant + cast(nearest, xp.int32)
    angle = quarters * (xp.pi / 2)
    if phases is not None:
        angle = angle + (phases - steps * 2**-BITS)
    if nothing is not None:
        angle = angle + nothing
    return _turn_back(xp.cos(angle), xp.sin(angle), quadrant)


def _turns(numbers: Array, frequencies: list[float], shape: tuple[int, ...]) -> list[Array]:
    """Return the product of whole numbers and each frequency, as a fraction of a turn in limbs of 12 bits, highest first."""
    xp = namespace(numbers)
    of_each = [turn_limbs(f) for f in frequencies]
    limbs = [xp.reshape(beside([row[k] for row in of_each], numbers, xp.int32), shape) for k in range(LIMBS)]
    n = cast(numbers, xp.int32)
    high, middle, low = n >> 2 * BITS, n >> BITS & 4095, n & 4095  # n = high 2^24 + middle 2^12 + low, high signed
    products = [low * limb for limb in limbs]
    for k, limb in enumerate(limbs[1:]):
        products[k] = products[k] + middle * limb
    for k, limb in enumerate(limbs[2:]):
        products[k] = products[k] + high * limb
    return _carried(products)


def _sum(turns: list[Array], others: list[Array]) -> list[Array]:
    """Return the sum of two fractions of a turn."""
    return _carried([a + b for a, b in zip(turns, others, strict=True)])


def _carried(limbs: list[Array]) -> list[Array]:
    """Return the limbs with carries passed on, so that each has 12 bits. Whole turns drop out."""
    carry: Array = 0
    carried = []
    for limb in reversed(limbs):
        total = limb + carry
        carry = total >> BITS
        carried.append(total & 4095)
    return carried[::-1]


def _quarters(turns: list[Array]) -> tuple[Array, Array]:
    """Return a fraction of a turn as quarter turns in [-1/2, 1/2], and the number of quarter turns taken off."""
    t1, t2, t3, t4, t5, t6 = turns
    xp = namespace(t1)
    quadrant = t1 + 512 >> 10
    head = (t1 - (quadrant << 10) << BITS) + t2  # exact in float32
    next_two = (t4 << BITS) + t5  # so that small angles keep their relative accuracy
    fraction = (
        cast(head, xp.float32)
        + cast(t3, xp.float32) * 2**-BITS
        + cast(next_two, xp.float32) * 2 ** (-3 * BITS)
        + cast(t6, xp.float32) * 2 ** (-4 * BITS)
    )
    return fraction * 2**-22, quadrant


def _turns_per_radian() -> Fraction:
    """Return 1/(2 pi), correct to 320 bits."""
    numerator, shift = TURNS_PER_RADIAN
    return Fraction(numerator, 1 << shift)


def _turn_back(cos: Array, sin: Array, quadrant: Array) -> tuple[Array, Array]:
    """Return cos and sin of an angle, given cos and sin of the angle minus `quadrant` quarter turns."""
    xp = namespace(cos)
    odd = (quadrant & 1) == 1
    c, s = xp.where(odd, sin, cos), xp.where(odd, cos, sin)
    return xp.where((quadrant + 1 & 2) != 0, -c, c), xp.where((quadrant & 2) != 0, -s, s)
