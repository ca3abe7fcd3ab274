"""
Relative scores of Transformer-XL. Source: Dai et al., arXiv:1901.02860, section 3.3, without its scale:

    A_ij = E_xi^T W_q^T W_k,E E_xj + E_xi^T W_q^T W_k,R R_{i-j} + u^T W_k,E E_xj + v^T W_k,R R_{i-j}

"R is a sinusoid encoding matrix without learnable parameters": the sines, then the cosines, in the authors' code. The order of
channels, the last exponent (Gemma 3n) and a largest distance (clamp_len) are options here.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, broadcast, build, shape


def transformer_xl_scores(
    q: Any, k: Any, r_weight: Any, q_positions: Any, k_positions: Any, *, layout: str, base: Any = 10000.0,
    endpoint: bool = False, max_distance: int | None = None, bias_u: Any = None, bias_v: Any = None,
) -> Any:  # fmt: skip
    """Return the sum of the four terms, shape (..., H, Q, K)."""
    (*lead, heads, rows, lanes), columns = shape(q), shape(k)[-2]
    width = shape(r_weight)[0]
    half = width // 2
    zeros = [[mpf(0)] * lanes] * heads
    u, v = bias_u or zeros, bias_v or zeros
    rates = [mpf(base) ** (-mpf(m) / (half - 1 if endpoint else half)) for m in range(half)]
    after, step = {"sin_cos": (half, 1), "interleaved": (1, 2)}[layout]  # from a sine to its cosine, and to the next sine
    seen: dict[tuple[int, int], list[Any]] = {}

    def key_of(distance: int, h: int) -> list[Any]:
        """Return W_k,R R_{i-j} of a head."""
        if max_distance is not None:
            distance = max(-max_distance, min(max_distance, distance))
        if (distance, h) not in seen:
            wave = [mpf(0)] * width
            for m, rate in enumerate(rates):
                wave[step * m], wave[step * m + after] = mp.sin(distance * rate), mp.cos(distance * rate)
            seen[distance, h] = [mp.fsum(wave[c] * r_weight[c][h][z] for c in range(width)) for z in range(lanes)]
        return seen[distance, h]

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        r = key_of(at(q_positions, (*batch, h, i)) - at(k_positions, (*batch, h, j)), h)
        a = mp.fsum(at(q, (*batch, h, i, z)) * at(k, (*batch, h, j, z)) for z in range(lanes))
        b = mp.fsum(at(q, (*batch, h, i, z)) * r[z] for z in range(lanes))
        c = mp.fsum(u[h][z] * at(k, (*batch, h, j, z)) for z in range(lanes))
        d = mp.fsum(v[h][z] * r[z] for z in range(lanes))
        return a + b + c + d

    return build((*broadcast(lead, shape(k)[:-3]), heads, rows, columns), element)
