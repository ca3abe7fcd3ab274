"""Rows of DeBERTa's relative table. Source: He et al., arXiv:2006.03654, equation (3); microsoft/DeBERTa, da_utils.py."""

from posref.core.arrays import beside, cast, clipped, index_dtype, library, rows
from posref.core.checks import check_integer
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T

BUCKETS = Integer(4, 1024, step=2, optional=True, usual=64)
MAX_DISTANCE = Integer(1, 2**20, usual=64)


@encoding(
    title="DeBERTa distance rows",
    idea=(
        "DeBERTa has a learned vector for each distance, with its direction. In version 2, far distances share vectors: each "
        "bucket is wider than the one before. This gives the row of the table for each distance."
    ),
    tool=True,
    family="relative",
    source="arXiv:2006.03654, equation (3); microsoft/DeBERTa",
    models=("DeBERTa", "DeBERTa-v2", "DeBERTa-v3", "mDeBERTa"),
    domains={"num_buckets": BUCKETS, "max_distance": MAX_DISTANCE},
    arrays={"relative_positions": Axes("*P", "integer")},
    result="*P",
    rows="*P",
    requires=("num_buckets is None or max_distance > num_buckets // 2 + 1",),
    returns="integer",
    noun="rows of the table",
    read={
        "DeBERTa-v2": "transformers 5.23.0, models/deberta_v2/modeling_deberta_v2.py:56-100",
        "DeBERTa-v3": "keras-hub 0.32.0, keras_hub/src/models/deberta_v3/disentangled_self_attention.py:206-255",
        "mDeBERTa": "keras-hub 0.32.0, keras_hub/src/models/deberta_v3/deberta_v3_presets.py:48-57",
    },
)
def deberta_rows(relative_positions: ArrayOf[T], /, *, num_buckets: int | None, max_distance: int) -> T:
    r"""
    Return the row of DeBERTa's table for every relative position.

    .. math:: \delta(r) = \min(\max(\beta(r) + S, 0), 2S - 1), \qquad
        \beta(r) = \mathrm{sign}(r) \left(m + \left\lceil (m - 1) \, \frac{\ln(|r|/m)}{\ln((D-1)/m)} \right\rceil\right)
        \text{ if } |r| > m, \qquad \beta(r) = r \text{ otherwise}

    with D = `max_distance`, S = `num_buckets` and m = S/2. Without `num_buckets`, beta(r) = r everywhere and S = D. In
    integers: for r > m the bucket is m + t with the least t for which :math:`(D-1)^t m^{m-1} \ge r^{m-1} m^t`.

    Parameters
    ----------
    relative_positions : array, signed integer, any shape
        r, query position minus key position, in tokens.
    num_buckets : int, optional
        S, even, from 4 to 1024; 256 in DeBERTa-v2 and v3 (``position_buckets``). None in DeBERTa, and in version 2 for -1.
    max_distance : int
        D, in tokens, from 1 to 2**20, and above m + 1; 512 in the released models (``max_relative_positions``, or
        ``max_position_embeddings`` where that is -1).

    Returns
    -------
    array, default integer dtype, shape of `relative_positions`
        From 0 to 2S - 1. Row S is for distance 0. Row 0 is for r of -D and below; the last is shared from D - 1 on.

    Raises
    ------
    ValueError
        If positions are not signed integers, or `num_buckets` or `max_distance` is out of its range.

    Notes
    -----
    posref decides the buckets in integers. Libraries take logarithms in float32, as the authors' code does (microsoft/DeBERTa,
    deberta/da_utils.py). That agrees for 256 and 512, and for 16 other settings that were compared; for 512 and 4096, which no
    released model has, it is one row off at a distance of 1643. transformers' make_log_bucket_position gives beta, which the
    caller clips.

    Examples
    --------
    >>> import numpy as np
    >>> deberta_rows(np.asarray([-600, -2, 0, 128, 129, 511]), num_buckets=256, max_distance=512).tolist()
    [0, 254, 256, 384, 385, 511]
    """
    name = "deberta_rows"
    xp = library(name, relative_positions=relative_positions)
    if not xp.isdtype(relative_positions.dtype, "signed integer"):
        msg = f"{name}: relative_positions must be signed integers; got {relative_positions.dtype}."
        raise ValueError(msg)
    span = check_span(name, num_buckets, max_distance)
    num_buckets, max_distance = None if num_buckets is None else int(num_buckets), int(max_distance)
    apart = clipped(cast(relative_positions, index_dtype(relative_positions)), -max_distance, max_distance)
    if num_buckets is None:
        return clipped(apart + span, 0, 2 * span - 1)
    bucket = rows(beside(log_buckets(num_buckets, max_distance), relative_positions, None), xp.abs(apart))
    return clipped(xp.where(apart < 0, -bucket, bucket) + span, 0, 2 * span - 1)


def log_buckets(num_buckets: int, max_distance: int) -> list[int]:
    """
    Return the bucket of every distance from 0 to `max_distance`, using integers only.

    The bucket of r > m is m + t with the least t for which ``((D-1)/m)**t >= (r/m)**(m-1)``.
    """
    middle = num_buckets // 2
    rows = list(range(middle + 1))
    t = 1
    while len(rows) <= max_distance:
        largest, over = (max_distance - 1) ** t * middle ** (middle - 1), middle**t
        last, beyond = len(rows) - 1, max_distance + 1  # bisect for the last distance of this bucket
        while beyond - last > 1:
            r = (last + beyond) // 2
            last, beyond = (r, beyond) if r ** (middle - 1) * over <= largest else (last, r)
        rows += [middle + t] * (last + 1 - len(rows))
        t += 1
    return rows


def check_span(function: str, num_buckets: int | None, max_distance: int) -> int:
    """Return S, half the number of rows. Raise if an option is out of its range."""
    max_distance = check_integer(function, "max_distance", max_distance, 1)
    num_buckets = num_buckets if num_buckets is None else check_integer(function, "num_buckets", num_buckets, BUCKETS.low)
    for argument, value, domain in (("num_buckets", num_buckets, BUCKETS), ("max_distance", max_distance, MAX_DISTANCE)):
        if value is not None and domain.high is not None and value > domain.high:
            msg = f"{function}: {argument} must be at most {domain.high}; got {value}."
            raise ValueError(msg)
    if num_buckets is None:
        return max_distance
    if num_buckets % 2:
        msg = f"{function}: num_buckets must be even (half for each side); got {num_buckets}."
        raise ValueError(msg)
    check_integer(function, "max_distance", max_distance, num_buckets // 2 + 2, " (above half the buckets and one more)")
    return num_buckets
