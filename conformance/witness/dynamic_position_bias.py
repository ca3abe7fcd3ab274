"""
Dynamic position bias. Sources: Wang et al., CrossFormer, arXiv:2108.00154, section 3.3, where a network of offsets replaces the
table of relative position biases:

    B_ij = DPB(delta x_ij, delta y_ij)

and x-transformers 2.31.10, x_transformers/x_transformers.py, lines 580-629, with one offset and SiLU:

    pos = sign(rel_pos) * log(abs(rel_pos) + 1)   (if log_distance);   for layer in mlp: pos = layer(pos)
"""

from typing import Any

from mpmath import mp

from .lists import at, broadcast, build, shape


def dynamic_position_bias(
    q_positions: Any, k_positions: Any, w_in: Any, b_in: Any, w_hidden: Any, b_hidden: Any, w_out: Any, b_out: Any, *,
    distance: str,
) -> Any:  # fmt: skip
    """Return the bias, shape (*B, H, Q, K), one number at a time."""
    (*q_batch, rows), (*k_batch, columns) = shape(q_positions), shape(k_positions)

    def silu(x: Any) -> Any:
        return x / (1 + mp.exp(-x))

    def dot(a: Any, b: Any) -> Any:
        return mp.fsum(m * n for m, n in zip(a, b, strict=True))

    def element(*index: int) -> Any:
        *batch, h, i, j = index
        apart = mp.mpf(at(q_positions, (*batch, i))) - mp.mpf(at(k_positions, (*batch, j)))
        if distance == "log":
            apart = mp.sign(apart) * mp.log(abs(apart) + 1)
        hidden = [silu(w * apart + b) for w, b in zip(w_in, b_in, strict=True)]
        for weights, biases in zip(w_hidden, b_hidden, strict=True):
            hidden = [silu(dot(row, hidden) + b) for row, b in zip(weights, biases, strict=True)]
        return dot(w_out[h], hidden) + b_out[h]

    return build((*broadcast(q_batch, k_batch), len(b_out), rows, columns), element)
