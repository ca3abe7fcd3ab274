"""
The buckets of T5. Source: Raffel et al., arXiv:1910.10683, section 2.1, which leaves their bounds to the authors' code:
Mesh TensorFlow, mesh_tensorflow/transformer/transformer_layers.py, _relative_position_bucket.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def t5_buckets(relative_positions: Any, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Any:
    """Return the bucket of every relative position (key - query), integers of the same shape."""

    def element(*index: int) -> int:
        return _relative_position_bucket(at(relative_positions, index), bidirectional, num_buckets, max_distance)

    return build(shape(relative_positions), element)


def _relative_position_bucket(relative_position: int, bidirectional: bool, num_buckets: int, max_distance: int) -> int:
    ret = 0
    n = -relative_position
    if bidirectional:
        num_buckets //= 2
        ret += int(n < 0) * num_buckets
        n = abs(n)
    else:
        n = max(n, 0)
    max_exact = num_buckets // 2
    if n < max_exact:
        return ret + n
    share = mp.log(mpf(n) / max_exact) / mp.log(mpf(max_distance) / max_exact) * (num_buckets - max_exact)
    return ret + min(max_exact + _to_int(share), num_buckets - 1)


def _to_int(x: Any) -> int:
    nearest = mp.nint(x)  # a threshold that is met exactly may come out as 5.999...
    return int(nearest if abs(x - nearest) <= mp.ldexp(1, -(mp.prec // 2)) else mp.floor(x))
