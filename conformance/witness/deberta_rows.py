"""
Rows of DeBERTa's table. Sources: He et al., arXiv:2006.03654, equation (3), delta(i, j) = 0 for i - j <= -k, 2k - 1 for
i - j >= k, else i - j + k; microsoft/DeBERTa, commit c558ad9, DeBERTa/deberta/da_utils.py, make_log_bucket_position:

    log_pos = ceil(log(abs_pos / mid) / log((max_position - 1) / mid) * (mid - 1)) + mid
    bucket_pos = where(abs_pos <= mid, relative_pos, log_pos * sign)
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def row(relative: int, num_buckets: int | None, max_distance: int) -> int:
    """Return the row for a relative position, query minus key."""
    span = max_distance if num_buckets is None else num_buckets
    bucket = relative
    if num_buckets is not None and abs(relative) > num_buckets // 2:
        mid = num_buckets // 2
        share = mp.log(mpf(abs(relative)) / mid) / mp.log(mpf(max_distance - 1) / mid) * (mid - 1)
        nearest = mp.nint(share)  # a threshold that is met exactly may come out as 5.000...1
        ceiling = nearest if abs(share - nearest) <= mp.ldexp(1, -(mp.prec // 2)) else mp.ceil(share)
        bucket = (int(ceiling) + mid) * (1 if relative > 0 else -1)
    return max(0, min(bucket + span, 2 * span - 1))


def deberta_rows(relative_positions: Any, *, num_buckets: int | None, max_distance: int) -> Any:
    """Return the rows, integers of the same shape."""
    return build(shape(relative_positions), lambda *index: row(at(relative_positions, index), num_buckets, max_distance))
