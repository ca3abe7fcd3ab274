"""
Axial positional embeddings.

Reformer, arXiv:2001.04451, section 5, and Trax's AxialPositionalEncoding: a position (p, q) of a grid has the vector of p from
one table beside that of q from the other. DETR, models/position_encoding.py, PositionEmbeddingLearned: torch.cat of the
embedding of the column and that of the row. VQ-Diffusion adds them: height_emb.unsqueeze(2) + width_emb.unsqueeze(1).
"""

from typing import Any

from .lists import at, build, shape


def axial_learned(positions: Any, first: Any, second: Any, *, combine: str) -> Any:
    """Return first[p] and second[q], end to end or added, shape (*P, width)."""
    (_, *places), width = shape(positions), shape(first)[1]

    def element(*index: int) -> Any:
        *where, lane = index
        p, q = (at(positions[axis], where) for axis in range(2))
        if combine == "sum":
            return first[p][lane] + second[q][lane]
        return first[p][lane] if lane < width else second[q][lane - width]

    return build((*places, width if combine == "sum" else width + shape(second)[1]), element)
