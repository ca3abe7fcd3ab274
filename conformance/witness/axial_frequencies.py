"""
Frequencies of axial rotary embeddings.

own     theta_t = base^(-t / (d_axis / 2)), t = 0 .. d_axis/2 - 1, for every axis: RoPE-ViT, arXiv:2403.13298, section 3.2
        (there with 100^(-t/(d_head/4)) for two axes of d_head/2 lanes)
shared  Pixtral: freqs = base^(-arange(0, dim, 2)/dim), freqs[::2] for the height and freqs[1::2] for the width
turns   DINOv3: 2 pi coordinate / period, period = base^(2t/d_axis)
endpoint
        DINOv3 with min_period and max_period: periods = min_period * (max_period / min_period)^linspace(0, 1, d_axis/2)
        LTX-Video: freqs = theta^linspace(0, 1, d_axis/2) * pi / 2
"""

from typing import Any

from mpmath import mp, mpf


def ladder(pairs: int, base: Any, *, endpoint: bool) -> list[Any]:
    """Return powers of 1/base with `pairs` exponents from 0 on, up to 1 itself or up to one step before it."""
    return [1 / mpf(base) ** (mpf(t) / (pairs - 1 if endpoint else pairs)) for t in range(pairs)]


def axial_frequencies(
    dims: Any, *, base: Any, allocation: str, unit: str = "radians", endpoint: bool = False, first_frequency: Any = 1.0
) -> list[Any]:
    """Return the frequencies of the pairs of one axis after the other."""
    if allocation == "own":
        freqs = [f for dim in dims for f in ladder(dim // 2, base, endpoint=endpoint)]
    else:
        whole = ladder(sum(dims) // 2, base, endpoint=endpoint)
        freqs = [f for axis in range(len(dims)) for f in whole[axis :: len(dims)]]
    return [mpf(first_frequency) * (2 * mp.pi * f if unit == "turns" else f) for f in freqs]
