"""YaRN. Source: Peng et al., arXiv:2309.00071, sections 3.2-3.4, and the authors' code (find_correction_range)."""

import math
from typing import Any

from posref.arrays import Array, Namespace, check_integer, check_positive
from posref.scaling import YaRN


def scaled(inv_freq: Array, base: Array, scaling: YaRN, c: Namespace) -> Array:
    r"""
    Return frequencies with slow pairs divided by the factor s, fast ones kept, and a ramp over the pair's index between.

    .. math:: \theta'_i = \theta_i / s \; r_i + \theta_i \, (1 - r_i), \qquad
        r_i = \mathrm{clip}\left(\frac{i - \mathrm{low}}{\mathrm{high} - \mathrm{low}}, 0, 1\right)

    `low` is the correction dimension of beta_fast, not below 0, and `high` that of beta_slow, not above d - 1, where

    .. math:: \mathrm{dim}(\beta) = \frac{d \ln(L / 2\pi\beta)}{2 \ln b}

    rounded down and up when `truncate`. The paper's equation has its ramp over the number of turns; all code has this one.
    Where low = high the ramp is 1/1000 wide.
    """
    _check(scaling)
    dim = 2 * inv_freq.shape[0]
    low, high = (_correction_dim(beta, dim, base, scaling, c) for beta in (scaling.beta_fast, scaling.beta_slow))
    if scaling.truncate:
        low, high = c.floor(low), c.ceil(high)
    low = c.maximum(low, c.asarray(0.0, dtype=c.float64))
    high = c.minimum(high, c.asarray(float(dim - 1), dtype=c.float64))
    thousandth = c.asarray(1.0, dtype=c.float64) / 1000
    if scaling.beta_fast == scaling.beta_slow and not scaling.truncate:
        width = thousandth
    else:
        width = c.where(high == low, thousandth, high - low)
    zero, one = c.asarray(0.0, dtype=c.float64), c.asarray(1.0, dtype=c.float64)
    ramp = c.minimum(c.maximum((c.arange(dim // 2, dtype=c.float64) - low) / width, zero), one)
    return inv_freq / float(scaling.factor) * ramp + inv_freq * (1 - ramp)


def attention_factor(scaling: YaRN, c: Namespace) -> Any:
    r"""
    Return the factor on cos and sin: as given; else g(mscale)/g(mscale_all_dim) when both are given (DeepSeek); else g(1).

    .. math:: g(m) = 1 \text{ for } s \le 1, \text{ else } m \ln(s) / 10 + 1
    """
    if scaling.attention_factor is not None:
        return float(scaling.attention_factor)
    if scaling.mscale is not None and scaling.mscale_all_dim is not None:
        return _g(scaling.mscale, scaling.factor, c) / _g(scaling.mscale_all_dim, scaling.factor, c)
    return _g(1, scaling.factor, c)


def _g(m: float, factor: float, c: Namespace) -> Any:
    """Return ``m ln(factor)/10 + 1``: a Python float, or a number of the system `c`."""
    if factor <= 1:
        return 1.0
    log = c.log(c.asarray(float(factor), dtype=c.float64)) if getattr(c, "computes_constants", False) else math.log(factor)
    return float(m) * log / 10 + 1


def _correction_dim(beta: float, dim: int, base: Array, scaling: YaRN, c: Namespace) -> Array:
    """Return the index of the pair that makes `beta` turns in the original length."""
    turns = scaling.original_length / (c.asarray(float(beta), dtype=c.float64) * 2 * c.pi)
    return dim * c.log(turns) / (2 * c.log(base))


def _check(scaling: YaRN) -> None:
    """Refuse settings for which the formulas mean nothing."""
    for name in ("factor", "beta_fast", "beta_slow"):
        check_positive("rope_frequencies", f"YaRN.{name}", getattr(scaling, name))
    check_integer("rope_frequencies", "YaRN.original_length", scaling.original_length, 1)
    if scaling.beta_fast < scaling.beta_slow:
        msg = (
            "rope_frequencies: YaRN.beta_fast must be at least beta_slow (fast pairs turn more often); "
            f"got {scaling.beta_fast} and {scaling.beta_slow}."
        )
        raise ValueError(msg)
