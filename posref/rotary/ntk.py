"""NTK-aware changes of the base. Sources: bloc97, "NTK-Aware Scaled RoPE", and emozilla, 2023; Su, kexue.fm/archives/9706."""

from typing import Any

from posref.core.arrays import Array, Namespace, cast, namespace
from posref.core.checks import as_number, check_integer, check_positive
from posref.scaling import DynamicNTK, NTKAlpha, NTKAware, NTKFixed, NTKMixed


def check(function: str, scaling: NTKAware | NTKAlpha | DynamicNTK | NTKFixed | NTKMixed, dim: int, length: Any) -> None:
    """Raise if a field of the record, the number of channels or the length is out of range."""
    record = type(scaling).__name__
    field = "alpha" if isinstance(scaling, NTKAlpha) else "factor"
    check_positive(function, f"{record}.{field}", getattr(scaling, field))
    if isinstance(scaling, NTKMixed):
        check_positive(function, f"{record}.mix", scaling.mix)
    if isinstance(scaling, DynamicNTK):
        check_dynamic_length(function, scaling, length)
    if isinstance(scaling, NTKAware | NTKAlpha | DynamicNTK) and dim == 2:
        msg = f"rope_frequencies: dim must be at least 4 with NTK scaling (its exponent is dim/(dim-2)); got {dim}."
        raise ValueError(msg)


def check_dynamic_length(function: str, scaling: DynamicNTK, length: Any) -> None:
    """Raise unless the length is an int, or an array of integers without axes."""
    if not hasattr(length, "ndim"):
        check_length(function, "DynamicNTK", length, scaling.original_length)
        return
    if length.ndim or not namespace(length).isdtype(length.dtype, "integral"):
        msg = (
            "rope_frequencies: length must be an int, or with DynamicNTK an array of integers without axes; "
            f"got {length.dtype} of shape {tuple(length.shape)}."
        )
        raise ValueError(msg)
    check_integer(function, "DynamicNTK.original_length", scaling.original_length, 1)


def check_length(function: str, record: str, length: Any, original_length: int) -> None:
    """Raise if the length is not given, or one of both lengths is out of range."""
    if length is None:
        msg = f"{function}: length must be given with {record} (the number of tokens, cached ones included); got None."
        raise ValueError(msg)
    check_integer(function, "length", length, 0)
    check_integer(function, f"{record}.original_length", original_length, 1)


def raised(base: Array, factor: Array, dim: int, c: Namespace) -> Array:
    r"""
    Return :math:`b \, s^{d/(d-2)}`, where b is the base, s the factor and d the number of rotated channels.

    This base divides the slowest of the frequencies :math:`b^{-2i/d}`, i = 0 ... d/2-1, by s and keeps the fastest.
    """
    return base * c.pow(factor, c.asarray(float(dim), dtype=c.float64) / (dim - 2))


def factor_of(scaling: NTKAware | NTKAlpha | DynamicNTK, length: Any, c: Namespace) -> Array:
    r"""
    Return s, the record's factor or alpha. For ``DynamicNTK`` it is :math:`s l/L - (s - 1)`, with l = max(length, L).

    There L is the original length, so the result is 1 for lengths up to L. The length can be an array without axes, so that one
    graph serves every length.
    """
    s = _constant(scaling.alpha if isinstance(scaling, NTKAlpha) else scaling.factor, c)
    if not isinstance(scaling, DynamicNTK):
        return s
    original = scaling.original_length
    if not hasattr(length, "ndim"):
        return s * longest(length, original) / original - (s - 1)
    longer = c.maximum(cast(length, c.float64), c.asarray(float(original), dtype=c.float64))
    return s * longer / original - (s - 1)


def fixed(base: Array, dim: int, scaling: NTKFixed, c: Namespace) -> Array:
    r"""
    Return :math:`(b s)^{-2i/d} / s^{2/d}`, with base b, factor s, d rotated channels and pairs i = 0 ... d/2-1.

    So the frequency of pair i is divided by s to the power 2(i+1)/d.
    """
    s = _constant(scaling.factor, c)
    exponent = c.arange(0, dim, 2, dtype=c.float64) / dim
    return c.pow(base * s, -exponent) / c.pow(s, c.asarray(2.0, dtype=c.float64) / dim)


def mixed(inv_freq: Array, scaling: NTKMixed, c: Namespace) -> Array:
    r"""
    Return :math:`\theta_i \exp(-a (i+1)^\beta)`, where :math:`a = \ln s / (d/2)^\beta`.

    Here :math:`\theta_i` is the unscaled frequency of pair i, d/2 the number of pairs, s the factor, and beta is `mix`.
    """
    s = _constant(scaling.factor, c)
    mix = c.asarray(float(scaling.mix), dtype=c.float64)
    pairs = inv_freq.shape[0]
    share = c.pow(c.arange(1, pairs + 1, dtype=c.float64) / pairs, mix)
    return inv_freq * c.exp(-c.log(s) * share)


def longest(length: Any, original_length: int) -> int:
    """Return the larger of the sequence's length and the original one."""
    longer: int = max(as_number(length), original_length)
    return longer


def _constant(value: float, c: Namespace) -> Array:
    return c.asarray(float(value), dtype=c.float64)
