"""
Residue bins. Source: AlphaFold 2, supplement, algorithm 4 (relpos), and AlphaFold 3, algorithm 3:

    d_ij = clip(r_i - r_j + r_max, 0, 2 r_max)   if b_same,   2 r_max + 1   otherwise

ESMFold (transformers, modeling_esmfold.py): clamp(r_j - r_i, -bins, bins) + bins + 1, and 0 where the mask is False.
"""

from typing import Any

from .lists import at, broadcast, build, shape


def residue_bins(q_residues: Any, k_residues: Any, *, left: int, right: int, order: str, outside: str, same: Any = None) -> Any:
    """Return the bins, shape (*B, Q, K)."""
    (*q_batch, rows), (*k_batch, columns) = shape(q_residues), shape(k_residues)
    m_batch = shape(same)[:-2] if same is not None else ()

    def element(*index: int) -> int:
        *batch, i, j = index
        offset = at(q_residues, (*batch, i)) - at(k_residues, (*batch, j))
        if order == "key_minus_query":
            offset = -offset
        comparable = same is None or at(same, index)
        if outside == "first":
            return min(max(offset + left, 0), left + right) + 1 if comparable else 0
        return min(max(offset + left, 0), left + right) if comparable else left + right + 1

    return build((*broadcast(q_batch, k_batch, m_batch), rows, columns), element)
