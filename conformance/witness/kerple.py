"""
KERPLE. Source: Chi et al., arXiv:2205.09921, section 4:

    (power)        k(m, n) = c - r_1 |m - n|^{r_2},              r_1 > 0, 0 < r_2 <= 2
    (logarithmic)  k(m, n) = c - r_1 log(1 + r_2 |m - n|),       r_1, r_2 > 0

The constant c cancels in the softmax. The 3-para-bias+wht form multiplies the logits by exp(-r_3 |m - n|^{r_4}), here "weight".
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape


def kerple(q_positions: Any, k_positions: Any, r1: Any, r2: Any, *, form: str) -> Any:
    """Return the bias or the weight, shape (*B, H, Q, K)."""
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        m, n = at(q_positions, (*batch, i)), at(k_positions, (*batch, j))
        distance = mp.mpf(m - n) if m > n else mp.mpf(n - m)
        if form == "log":
            return -r1[h] * mp.log(1 + r2[h] * distance)
        power = distance ** r2[h] if distance else mp.mpf(0)
        return -r1[h] * power if form == "power" else mp.exp(-r1[h] * power)

    return build((*broadcast(q_batch, k_batch), len(r1), rows, columns), element)
