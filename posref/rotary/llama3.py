"""Llama 3's frequency scaling. Source: Meta's llama-models, apply_scaling; Llama 3, arXiv:2407.21783, section 3.4.2."""

from posref.core.arrays import Array, Namespace
from posref.core.checks import check_integer, check_positive
from posref.scaling import Llama3


def check(function: str, scaling: Llama3) -> None:
    """Raise if a field of the record is out of range."""
    low, high = float(scaling.low_freq_factor), float(scaling.high_freq_factor)
    check_positive(function, "Llama3.factor", scaling.factor)
    check_integer(function, "Llama3.original_length", scaling.original_length, 1)
    check_positive(function, "Llama3.low_freq_factor", scaling.low_freq_factor)
    if not low <= high < float("inf"):
        msg = f"rope_frequencies: Llama3.high_freq_factor must be finite and at least low_freq_factor, {low}; got {high}."
        raise ValueError(msg)


def scaled(inv_freq: Array, scaling: Llama3, c: Namespace) -> Array:
    r"""
    Return the frequencies: slow ones divided by the factor s, fast ones kept, and a ramp between.

    .. math:: \theta'_i = (1 - \sigma_i) \, \theta_i / s + \sigma_i \theta_i, \qquad
        \sigma_i = \mathrm{clip}\left(\frac{L \theta_i / 2\pi - l}{h - l}, 0, 1\right)

    Here :math:`\theta_i` is the unscaled frequency of pair i in radians per token, L is the original length, l is
    `low_freq_factor` and h is `high_freq_factor`. Pair i makes :math:`L \theta_i / 2\pi` turns in the original length. If
    h = l (Llama 4), the ramp is a step: sigma is 1 for l turns or more, else 0. Meta's reference code has s = 8 built in. The
    released configurations of Llama 3.2 1B and 3B say 32.
    """
    low, high = float(scaling.low_freq_factor), float(scaling.high_freq_factor)
    turns = inv_freq * scaling.original_length / (2 * c.pi)
    slowed = inv_freq / float(scaling.factor)
    if low == high:
        return c.where(turns >= low, inv_freq, slowed)
    zero, one = c.asarray(0.0, dtype=c.float64), c.asarray(1.0, dtype=c.float64)
    width = c.asarray(high, dtype=c.float64) - low  # in the number system: Python would round the difference
    ramp = c.minimum(c.maximum((turns - low) / width, zero), one)
    return slowed * (1 - ramp) + inv_freq * ramp
