"""YaRN. Source: Peng et al., arXiv:2309.00071, sections 3.2-3.4, and the authors' code (find_correction_range)."""

import math
from typing import Any

from posref.core.arrays import Array, Namespace, number_system
from posref.core.checks import check_integer, check_positive
from posref.rotary.ntk import check_length, longest
from posref.scaling import DynamicYaRN, YaRN, YaRNByTurns

Record = YaRN | YaRNByTurns | DynamicYaRN


def check(function: str, base: float, scaling: Record, length: Any) -> None:
    """Raise for settings that the formulas do not allow."""
    if base <= 1:
        msg = f"{function}: base must be above 1 with YaRN (its ramp divides by ln(base)); got {base}."
        raise ValueError(msg)
    record = type(scaling).__name__
    for name in ("factor", "beta_fast", "beta_slow") if not isinstance(scaling, DynamicYaRN) else ("beta_fast", "beta_slow"):
        check_positive(function, f"{record}.{name}", getattr(scaling, name))
    check_integer(function, f"{record}.original_length", scaling.original_length, 1)
    if scaling.beta_fast < scaling.beta_slow:
        msg = (
            f"{function}: {record}.beta_fast must be at least beta_slow (fast pairs rotate more often); "
            f"got {scaling.beta_fast} and {scaling.beta_slow}."
        )
        raise ValueError(msg)
    if isinstance(scaling, DynamicYaRN):
        check_length(function, "DynamicYaRN", length, scaling.original_length)


def scaled(inv_freq: Array, base: Array, scaling: Record, length: Any, c: Namespace) -> Array:
    r"""
    Return the frequencies: slow ones divided by the factor s, fast ones kept, and a ramp over the pair's index i between.

    .. math:: \theta'_i = \theta_i / s \; r_i + \theta_i \, (1 - r_i), \qquad
        r_i = \mathrm{clip}\left(\frac{i - \mathrm{low}}{\mathrm{high} - \mathrm{low}}, 0, 1\right)

    Here :math:`\theta_i = b^{-2i/d}` is the unscaled frequency, b the base and d the number of rotated channels. Low is
    :math:`n(\beta_{fast})`, but at least 0, and high is :math:`n(\beta_{slow})`, but at most d - 1, where

    .. math:: n(\beta) = \frac{d \ln(L / 2\pi\beta)}{2 \ln b}

    is the index of the pair that makes beta turns in the original length L. With `truncate`, low is rounded down and high is
    rounded up, before these limits apply. If low = high after that, the ramp is 1/1000 wide. If low > high, where n is beyond a
    limit, the formula stands: above d - 1 every pair is slowed, below 0 none is.

    All code has this ramp. ``YaRNByTurns`` has the ramp of the paper's equation instead:

    .. math:: r_i = 1 - \mathrm{clip}\left(\frac{L \theta_i / 2\pi - \beta_{slow}}{\beta_{fast} - \beta_{slow}}, 0, 1\right)

    If both betas are equal, it is a step: pairs that make beta_slow turns or more keep their frequency.

    For ``DynamicYaRN``, s is max(length, L) / L.
    """
    ramp = _turns_ramp(inv_freq, scaling, c) if isinstance(scaling, YaRNByTurns) else _index_ramp(inv_freq, base, scaling, c)
    return inv_freq / _factor(scaling, length, c) * ramp + inv_freq * (1 - ramp)


def _turns_ramp(inv_freq: Array, scaling: YaRNByTurns, c: Namespace) -> Array:
    """Return r of ``YaRNByTurns``, the share of the slowed frequency, by how many turns a pair makes in the original length."""
    slow, fast = float(scaling.beta_slow), float(scaling.beta_fast)
    turns = inv_freq * scaling.original_length / (2 * c.pi)
    zero, one = c.asarray(0.0, dtype=c.float64), c.asarray(1.0, dtype=c.float64)
    if slow == fast:
        return c.where(turns >= slow, zero, one)
    width = c.asarray(fast, dtype=c.float64) - slow
    return 1 - c.minimum(c.maximum((turns - slow) / width, zero), one)


def _index_ramp(inv_freq: Array, base: Array, scaling: YaRN | DynamicYaRN, c: Namespace) -> Array:
    """Return r, the share of the slowed frequency, by the index of the pair."""
    dim = 2 * inv_freq.shape[0]
    low, high = (_correction_dim(beta, dim, base, scaling, c) for beta in (scaling.beta_fast, scaling.beta_slow))
    inside = (low >= 0) & (low <= dim - 1)
    if scaling.truncate:
        low, high = c.floor(low), c.ceil(high)
    low = c.maximum(low, c.asarray(0.0, dtype=c.float64))
    high = c.minimum(high, c.asarray(float(dim - 1), dtype=c.float64))
    thousandth = c.asarray(1.0, dtype=c.float64) / 1000
    if scaling.beta_fast == scaling.beta_slow and not scaling.truncate:
        width = c.where(inside, thousandth, high - low)  # no comparison of a number with itself
    else:
        width = c.where(high == low, thousandth, high - low)
    zero, one = c.asarray(0.0, dtype=c.float64), c.asarray(1.0, dtype=c.float64)
    return c.minimum(c.maximum((c.arange(dim // 2, dtype=c.float64) - low) / width, zero), one)


def attention_factor(scaling: Record, length: Any, c: Namespace) -> Any:
    r"""
    Return the factor on cos and sin.

    It is `attention_factor` if given; else g(mscale)/g(mscale_all_dim) if both of these are given (DeepSeek); else g(1).

    .. math:: g(m) = 1 \text{ for } s \le 1, \text{ else } m \ln(s) / 10 + 1

    Here s is the record's factor, or max(length, L) / L for ``DynamicYaRN``, which always has g(1).
    """
    if isinstance(scaling, DynamicYaRN):
        longer = longest(length, scaling.original_length)
        return _g(1, longer, scaling.original_length, c)
    if scaling.attention_factor is not None:
        return float(scaling.attention_factor)
    if isinstance(scaling, YaRN) and scaling.mscale is not None and scaling.mscale_all_dim is not None:
        return _g(scaling.mscale, scaling.factor, 1, c) / _g(scaling.mscale_all_dim, scaling.factor, 1, c)
    return _g(1, scaling.factor, 1, c)


def _g(m: float, over: float, under: int, c: Namespace) -> Any:
    """Return ``m ln(over/under)/10 + 1``: a Python float, or a number of the number system `c`."""
    if over <= under:
        return 1.0
    if number_system(c) is not None:
        return float(m) * c.log(c.asarray(float(over), dtype=c.float64) / under) / 10 + 1
    return float(m) * math.log(over / under) / 10 + 1


def _factor(scaling: Record, length: Any, c: Namespace) -> Any:
    """Return s: a float, or a ratio of lengths in the number system `c`."""
    if not isinstance(scaling, DynamicYaRN):
        return float(scaling.factor)
    longer = longest(length, scaling.original_length)
    return c.asarray(float(longer), dtype=c.float64) / scaling.original_length


def _correction_dim(beta: float, dim: int, base: Array, scaling: YaRN | DynamicYaRN, c: Namespace) -> Array:
    """Return the index of the pair that makes `beta` turns in the original length."""
    turns = scaling.original_length / (c.asarray(float(beta), dtype=c.float64) * 2 * c.pi)
    return dim * c.log(turns) / (2 * c.log(base))
