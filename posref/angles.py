"""
Position times frequency, as cosine and sine: accurate at every position, in every dtype.

Where the library has float64 the angle is a float64 product. Elsewhere an angle in float32 would be off by 0.7 at position 1e7,
so the product is formed exactly: a frequency is a fraction of a turn, held in five limbs of 12 bits, and integer positions
multiply limbs in int32; whole turns drop out and what is left is at most an eighth of a turn. The error then stays below
2^-22 for every int32 position, whatever the compiler does to floating-point arithmetic.
"""

from fractions import Fraction

from posref.arrays import Array, DType, beside, cast, has_float64, namespace, wide

LIMBS, BITS = 5, 12
# 1/(2 pi) as an integer over 2**320 (Sloane's A086201 in binary), so that a turn's fraction needs no floating point.
TURNS_PER_RADIAN = (0x28BE60DB9391054A7F09D5F47D4D377036D8A5664F10E4107F9458EAF7AEF1586DC91B8E909374B8, 320)


def cos_sin(positions: Array, frequencies: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """Return cos and sin of ``positions[..., None] * frequencies``: see `cos_sin_of_pairs`."""
    return cos_sin_of_pairs(positions[..., None], frequencies, dtype=dtype)


def cos_sin_of_pairs(positions: Array, frequencies: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """
    Return cos and sin of ``positions * frequencies`` in the working dtype of `dtype` (float32 or wider).

    `positions` are integer or floating, their last axis 1, or n: a position for every frequency; `frequencies` of shape
    ``(n,)`` are radians per token: host numbers, or an array of the caller's, which carries gradients. Frequencies that are
    traced on a library without float64 use a float32 product, of class ``angle32``.
    """
    xp = namespace(positions)
    work = wide(dtype, xp)
    if has_float64(positions):
        angles = cast(positions, xp.float64) * beside(frequencies, positions, xp.float64)
        return cast(xp.cos(angles), work), cast(xp.sin(angles), work)
    exact = _host_numbers(frequencies)
    if exact is None:
        angles = cast(positions, xp.float32) * beside(frequencies, positions, xp.float32)
        return xp.cos(angles), xp.sin(angles)
    return _cos_sin_of_turns([(positions, exact)], (len(exact),))


def cos_sin_of_sums(positions: Array, frequencies: Array, /, *, dtype: DType) -> tuple[Array, Array]:
    """
    Return cos and sin of ``sum(positions * frequencies, axis=0)`` in the working dtype of `dtype`: see `cos_sin_of_pairs`.

    `positions` and `frequencies` have as many axes, the first of one length; the last axis of `positions` is 1.
    """
    xp = namespace(positions)
    work = wide(dtype, xp)
    exact = None if has_float64(positions) else [_host_numbers(f) for f in _rows(frequencies)]
    if exact is None or None in exact:
        angle_dtype = xp.float64 if exact is None else xp.float32
        products = cast(positions, angle_dtype) * beside(frequencies, positions, angle_dtype)
        angles = xp.sum(products, axis=0)
        return cast(xp.cos(angles), work), cast(xp.sin(angles), work)
    axes = [(positions[axis, ...], f) for axis, f in enumerate(exact) if f is not None]
    return _cos_sin_of_turns(axes, tuple(frequencies.shape[1:]))


def turn_limbs(frequency: float) -> list[int]:
    """Return the fraction of a turn per token of a frequency in radians, as five limbs of 12 bits, highest first."""
    numerator, shift = TURNS_PER_RADIAN
    turn = round(Fraction(frequency) * Fraction(numerator, 1 << shift) * (1 << LIMBS * BITS)) % (1 << LIMBS * BITS)
    return [turn >> BITS * k & (1 << BITS) - 1 for k in reversed(range(LIMBS))]


def _host_numbers(frequencies: Array) -> list[float] | None:
    """Return `frequencies` as Python floats, or None where they are traced."""
    try:
        return [float(frequencies[i]) for i in range(frequencies.shape[0])]
    except TypeError:  # JAX's tracers raise a subclass of it
        return None


def _rows(frequencies: Array) -> list[Array]:
    """Return the frequencies of every axis, one after the other."""
    flat = namespace(frequencies).reshape(frequencies, (frequencies.shape[0], -1))
    return [flat[axis, :] for axis in range(flat.shape[0])]


def _cos_sin_of_turns(axes: list[tuple[Array, list[float]]], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return cos and sin in float32 of positions times frequencies (of `shape`), summed over axes in int32."""
    xp = namespace(axes[0][0])
    whole, rest = [], []
    for positions, frequencies in axes:
        if not xp.isdtype(positions.dtype, "real floating"):
            whole.append(_limbs(cast(positions, xp.int32), frequencies, shape))
            continue
        units = xp.trunc(positions)  # towards zero: the parts of an angle do not cancel
        parts = (positions - units) * 2**BITS
        count = xp.trunc(parts)
        whole.append(_limbs(cast(units, xp.int32), frequencies, shape))
        whole.append(_limbs(cast(count, xp.int32), [f * 2**-BITS for f in frequencies], shape))
        quarters = beside([float(Fraction(f) * 4 * _turns_per_radian()) * 2**-BITS for f in frequencies], positions, xp.float32)
        rest.append(cast(parts - count, xp.float32) * xp.reshape(quarters, shape))
    limbs = whole[0]
    for more in whole[1:]:
        limbs = _carried([a + b for a, b in zip(limbs, more, strict=True)])
    t1, t2, t3, t4, t5 = limbs
    quadrant = t1 + 512 >> 10
    head = (t1 - (quadrant << 10) << BITS) + t2  # exact in float32
    low = (t4 << BITS) + t5  # so that small angles keep their relative accuracy
    fraction = cast(head, xp.float32) + cast(t3, xp.float32) * 2**-BITS + cast(low, xp.float32) * 2 ** (-3 * BITS)
    quarters = fraction * 2**-22  # quarter turns, [-1/2, 1/2]
    if rest:
        quarters = sum(rest[1:], quarters + rest[0])
        nearest = xp.round(quarters)
        quarters, quadrant = quarters - nearest, quadrant + cast(nearest, xp.int32)
    angle = quarters * (xp.pi / 2)
    return _turn_back(xp.cos(angle), xp.sin(angle), quadrant)


def _limbs(n: Array, frequencies: list[float], shape: tuple[int, ...]) -> list[Array]:
    """Return the fraction of a turn of n times frequencies (of `shape`), as limbs of 12 bits, highest first."""
    xp = namespace(n)
    limbs = [turn_limbs(f) for f in frequencies]
    g1, g2, g3, g4, g5 = (xp.reshape(beside([row[k] for row in limbs], n, xp.int32), shape) for k in range(LIMBS))
    high, middle, low = n >> 2 * BITS, n >> BITS & 4095, n & 4095  # n = high 2^24 + middle 2^12 + low, high signed
    sums = [
        high * g3 + middle * g2 + low * g1,
        high * g4 + middle * g3 + low * g2,
        high * g5 + middle * g4 + low * g3,
        middle * g5 + low * g4,
        low * g5,
    ]
    return _carried(sums)


def _carried(limbs: list[Array]) -> list[Array]:
    """Return limbs with what is beyond 12 bits carried to the next higher one; whole turns are dropped."""
    found, carry = [], 0
    for limb in reversed(limbs):
        total = limb + carry
        carry = total >> BITS
        found.append(total & (1 << BITS) - 1)
    return found[::-1]


def _turns_per_radian() -> Fraction:
    """Return 1/(2 pi), correct to 320 bits."""
    numerator, shift = TURNS_PER_RADIAN
    return Fraction(numerator, 1 << shift)


def _turn_back(cos: Array, sin: Array, quadrant: Array) -> tuple[Array, Array]:
    """Return cos and sin of an angle from those of its remainder after `quadrant` quarter turns."""
    xp = namespace(cos)
    odd = (quadrant & 1) == 1
    c, s = xp.where(odd, sin, cos), xp.where(odd, cos, sin)
    return xp.where((quadrant + 1 & 2) != 0, -c, c), xp.where((quadrant & 2) != 0, -s, s)
