"""
Camera transforms. Source: Miyato et al., GTA, arXiv:2310.10375, whose attention multiplies

    queries by rho(g)^T, keys and values by rho(g)^-1, the output by rho(g),   rho block-diagonal
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def camera_transform(x: Any, matrices: Any, inverses: Any, *, role: str, blocks: int) -> Any:
    """Return `x` (*R, T, D) with its first blocks of channels multiplied."""
    n = shape(matrices)[-1]

    def entry(*index: int) -> Any:
        *token, channel = index
        block, i = divmod(channel, n)
        if block >= blocks:
            return at(x, index)
        column = [at(x, (*token, block * n + j)) for j in range(n)]
        if role == "query":
            row = [at(matrices, (*token, j, i)) for j in range(n)]
        else:
            row = [at(inverses if role == "key_value" else matrices, (*token, i, j)) for j in range(n)]
        return mp.fsum(a * b for a, b in zip(row, column, strict=True))

    return build(shape(x), entry)
