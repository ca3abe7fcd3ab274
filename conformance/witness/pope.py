"""
PoPE. Source: Gopalakrishnan et al., arXiv:2509.10534, and x-transformers' PolarEmbedding and apply_polar_pos_emb:

    inv_freq = 1 / base ** (arange(dim) / dim);  phase = position inv_freq, of keys + learned_bias.clamp(-2 pi, 0)
    cat((softplus(t) cos(phase), softplus(t) sin(phase)))

which are the frequencies of RoPE for 2 dim lanes. PoPE-pytorch puts a lane's two coordinates next to each other.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape
from .rope_frequencies import rope_frequencies


def pope(x: Any, positions: Any, *, layout: str, base: Any, phases: Any = None) -> Any:
    """Return `x` (..., d) as (..., 2d)."""
    *lead, d = shape(x)
    inv_freq = rope_frequencies(2 * d, base=base)[0]

    def vector(*where: int) -> list[Any]:
        out = [mpf(0)] * (2 * d)
        for c in range(d):
            phase = at(positions, where) * inv_freq[c]
            if phases is not None:
                phase += min(max(at(phases, (*where, c)), -2 * mp.pi), mpf(0))
            mu = mp.log1p(mp.exp(at(x, (*where, c))))
            first, second = (2 * c, 2 * c + 1) if layout == "interleaved" else (c, d + c)
            out[first], out[second] = mu * mp.cos(phase), mu * mp.sin(phase)
        return out

    return build(lead, vector)
