"""
Frequencies of axial rotary embeddings.

own     theta_t = base^(-t / (d_axis / 2)), t = 0 .. d_axis/2 - 1, for every axis: RoPE-ViT, arXiv:2403.13298, section 3.2
        (there with 100^(-t/(d_head/4)) for two axes of d_head/2 lanes)
shared  Pixtral: freqs = base^(-arange(0, dim, 2)/dim), freqs[::2] for the height and freqs[1::2] for the width
turns   DINOv3: 2 pi coordinate / period, period = base^(2t/d_axis)
"""

from typing import Any

from mpmath import mp, mpf


def axial_frequencies(dims: Any, *, base: Any, allocation: str, unit: str = "radians") -> list[Any]:
    """Return the frequencies of the pairs of one axis after the other."""
    base = mpf(base)
    if allocation == "own":
        freqs = [base ** -(mpf(t) / (mpf(dim) / 2)) for dim in dims for t in range(dim // 2)]
    else:
        whole = [base ** -(mpf(n) / sum(dims)) for n in range(0, sum(dims), 2)]
        freqs = [f for axis in range(len(dims)) for f in whole[axis :: len(dims)]]
    return [2 * mp.pi * f for f in freqs] if unit == "turns" else freqs
