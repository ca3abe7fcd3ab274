"""
FoPE. Source: Hua et al., arXiv:2412.17739, and the authors' FourierEmbedding (olmo/model.py), also in vLLM:

    fourier_cos = einsum("bhtD, hDd -> bhtd", pos_cos, cos_coef), and the same of sines; padded with 1 to head_dim / 2
    t * cat(fourier_cos, fourier_cos) + rotate_half(t) * cat(fourier_sin, fourier_sin)

Bands with inv_freq below 2 pi / max_sequence_length are left out. In vLLM a key head's coefficients serve its query heads.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape
from .rope_frequencies import rope_frequencies


def fope(x: Any, positions: Any, cos_mix: Any, sin_mix: Any, *, base: Any) -> Any:
    """Return `x` (..., H, T, d) turned by its positions."""
    *lead, d = shape(x)
    n, m = shape(cos_mix)[-2:]
    inv_freq = rope_frequencies(d, base=base)[0]

    def vector(*where: int) -> list[Any]:
        angles = [at(positions, where) * inv_freq[i] for i in range(n)]
        head = where[-2] // (lead[-2] // len(cos_mix)) if len(shape(cos_mix)) == 3 else None
        a, b = (mix if head is None else mix[head] for mix in (cos_mix, sin_mix))
        out = [mpf(0)] * d
        for j in range(d // 2):
            c = mp.fsum(mp.cos(angles[i]) * a[i][j] for i in range(n)) if j < m else mpf(1)
            s = mp.fsum(mp.sin(angles[i]) * b[i][j] for i in range(n)) if j < m else mpf(1)
            first, second = at(x, (*where, j)), at(x, (*where, j + d // 2))
            out[j], out[j + d // 2] = first * c - second * s, second * c + first * s
        return out

    return build(lead, vector)
