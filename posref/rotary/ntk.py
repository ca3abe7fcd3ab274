"""NTK-aware changes of the base. Sources: bloc97, "NTK-Aware Scaled RoPE", and emozilla, 2023; Su, kexue.fm/archives/9706."""

from typing import Any

from posref.core.arrays import Array, Namespace, cast, namespace
from posref.core.callers import called
from posref.core.checks import check_integer, check_positive
from posref.scaling import DynamicNTK, NTKAlpha, NTKAware, NTKFixed, NTKMixed


def raised(base: Array, factor: Array, dim: int, c: Namespace) -> Array:
    r"""
    Return :math:`b \, s^{d/(d-2)}`, where b is the base, s the factor and d the number of rotated channels.

    This base divides the slowest of the frequencies :math:`b^{-2i/d}`, i = 0 ... d/2-1, by s and keeps the fastest.
    """
    if dim < 4:
        msg = f"rope_frequencies: dim must be at least 4 with NTK scaling (its exponent is dim/(dim-2)); got {dim}."
        raise ValueError(msg)
    return base * c.pow(factor, c.asarray(float(dim), dtype=c.float64) / (dim - 2))


def factor_of(scaling: NTKAware | NTKAlpha, c: Namespace) -> Array:
    """Return s: the record's factor or alpha."""
    name = "alpha" if isinstance(scaling, NTKAlpha) else "factor"
    return _positive(scaling, name, c)


def dynamic_factor(scaling: DynamicNTK, length: Any, c: Namespace) -> Array:
    r"""
    Return :math:`s l/L - (s - 1)`, with factor s, original length L and l = max(length, L).

    The result is 1 for lengths up to L. The length can be an array without axes, so that one graph serves every length.
    """
    s, original = _positive(scaling, "factor", c), scaling.original_length
    if not hasattr(length, "ndim"):
        return s * longest("DynamicNTK", length, original) / original - (s - 1)
    if length.ndim or not namespace(length).isdtype(length.dtype, "integral"):
        msg = (
            "rope_frequencies: length must be an int, or with DynamicNTK an array of integers without axes; "
            f"got {length.dtype} of shape {tuple(length.shape)}."
        )
        raise ValueError(msg)
    check_integer("rope_frequencies", "DynamicNTK.original_length", original, 1)
    longer = c.maximum(cast(length, c.float64), c.asarray(float(original), dtype=c.float64))
    return s * longer / original - (s - 1)


def fixed(base: Array, dim: int, scaling: NTKFixed, c: Namespace) -> Array:
    r"""
    Return :math:`(b s)^{-2i/d} / s^{2/d}`, with base b, factor s, d rotated channels and pairs i = 0 ... d/2-1.

    So the frequency of pair i is divided by s to the power 2(i+1)/d.
    """
    s = _positive(scaling, "factor", c)
    exponent = c.arange(0, dim, 2, dtype=c.float64) / dim
    return c.pow(base * s, -exponent) / c.pow(s, c.asarray(2.0, dtype=c.float64) / dim)


def mixed(inv_freq: Array, scaling: NTKMixed, c: Namespace) -> Array:
    r"""
    Return :math:`\theta_i \exp(-a (i+1)^\beta)`, where :math:`a = \ln s / (d/2)^\beta`.

    Here :math:`\theta_i` is the unscaled frequency of pair i, d/2 the number of pairs, s the factor, and beta is `mix`.
    """
    s = _positive(scaling, "factor", c)
    check_positive("rope_frequencies", "NTKMixed.mix", scaling.mix)
    mix = c.asarray(float(scaling.mix), dtype=c.float64)
    pairs = inv_freq.shape[0]
    share = c.pow(c.arange(1, pairs + 1, dtype=c.float64) / pairs, mix)
    return inv_freq * c.exp(-c.log(s) * share)


def longest(record: str, length: Any, original_length: int) -> int:
    """Return the larger of the sequence's length and the original one. Raise if the length is not given."""
    if length is None:
        function = called("rope_frequencies", "length")
        msg = f"{function}: length must be given with {record} (the number of tokens, cached ones included); got None."
        raise ValueError(msg)
    length = check_integer("rope_frequencies", "length", length, 0)
    check_integer("rope_frequencies", f"{record}.original_length", original_length, 1)
    longer: int = max(length, original_length)
    return longer


def _positive(scaling: object, name: str, c: Namespace) -> Array:
    """Return a field of a record as a constant. Raise if it is not above 0."""
    value = getattr(scaling, name)
    check_positive("rope_frequencies", f"{type(scaling).__name__}.{name}", value)
    return c.asarray(float(value), dtype=c.float64)
