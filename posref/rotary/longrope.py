"""LongRoPE. Source: Ding et al., arXiv:2402.13753, sections 2 and 3; the released code and configurations of Phi-3."""

import math
from typing import Any

from posref.core.arrays import Array, Namespace, number_system
from posref.core.checks import check_integer, check_positive
from posref.rotary.ntk import check_length, longest
from posref.scaling import LongRoPE


def check(function: str, scaling: LongRoPE, pairs: int, length: Any) -> None:
    """Raise if a list does not have an entry above 0 for each pair, or another field or the length is out of range."""
    for name, values in (("short_factor", scaling.short_factor), ("long_factor", scaling.long_factor)):
        if len(values) != pairs:
            msg = f"{function}: LongRoPE.{name} must have one entry for each of the {pairs} pairs; got {len(values)}."
            raise ValueError(msg)
        for value in values:
            check_positive(function, f"LongRoPE.{name}", value)
    check_factor(function, scaling, length)


def check_factor(function: str, scaling: LongRoPE, length: Any) -> None:
    """Raise if the record does not say how to scale cos and sin, or the length is out of range."""
    check_length(function, "LongRoPE", length, scaling.original_length)
    override = scaling.long_mscale if _is_long(scaling, length) else scaling.short_mscale
    if scaling.attention_factor is not None or override is not None:
        return
    if scaling.factor is None and scaling.max_length is None:
        msg = (
            "rope_frequencies: LongRoPE must have factor, max_length, attention_factor or the mscale of the list in use "
            "(to scale cos and sin); got none."
        )
        raise ValueError(msg)
    if scaling.factor is not None:
        check_positive(function, "LongRoPE.factor", scaling.factor)
    else:
        check_integer(function, "LongRoPE.max_length", scaling.max_length, 1)
    over, under = _extension(scaling)
    if over > under and scaling.original_length < 2:
        msg = "rope_frequencies: LongRoPE.original_length must be at least 2 (the factor divides by its logarithm); got 1."
        raise ValueError(msg)


def scaled(inv_freq: Array, scaling: LongRoPE, length: Any, c: Namespace) -> Array:
    r"""
    Return the frequencies, each divided by its entry in a list.

    .. math:: \theta'_i = \theta_i / \lambda_i, \qquad
        \lambda = \text{long\_factor if length} > L \text{ else short\_factor}

    Here :math:`\theta_i` is the unscaled frequency of pair i and L the original length. At length = L the short list is still
    in use. When a sequence grows past L, its cached keys were rotated with the short list, and new keys use the long one. The
    paper leaves this open; transformers recomputes nothing.
    """
    chosen = scaling.long_factor if _is_long(scaling, length) else scaling.short_factor
    return inv_freq / c.asarray([float(value) for value in chosen], dtype=c.float64)


def attention_factor(scaling: LongRoPE, length: Any, c: Namespace) -> Any:
    r"""
    Return the factor on cos and sin.

    It is `attention_factor` if given; else `long_mscale` with the long list, or `short_mscale` with the short one, if given.
    Without these it is

    .. math:: \sqrt{1 + \ln s / \ln L} \text{ for } s > 1, \text{ else } 1

    where L is the original length, and s is `factor` if given, else `max_length` / L.
    """
    override = scaling.long_mscale if _is_long(scaling, length) else scaling.short_mscale
    for factor in (scaling.attention_factor, override):
        if factor is not None:
            return float(factor)
    over, under = _extension(scaling)
    if over <= under:
        return 1.0
    if number_system(c) is not None:
        number = c.log(c.asarray(over, dtype=c.float64) / under)
        return c.sqrt(1 + number / c.log(c.asarray(float(scaling.original_length), dtype=c.float64)))
    return math.sqrt(1 + math.log(over / under) / math.log(scaling.original_length))


def _extension(scaling: LongRoPE) -> tuple[float, int]:
    """Return two numbers whose ratio is s."""
    if scaling.factor is not None:
        return float(scaling.factor), 1
    return float(scaling.max_length or 1), scaling.original_length


def _is_long(scaling: LongRoPE, length: Any) -> bool:
    return longest(length, scaling.original_length) > scaling.original_length
