"""T5's relative position buckets. Source: Raffel et al., arXiv:1910.10683, section 2.1, and mesh-tensorflow's code."""

from posref.core.arrays import beside, clipped, library, rows, whole
from posref.core.checks import check_integer
from posref.spec import Axes, Flag, Integer, encoding
from posref.types import ArrayOf, T

LARGEST = 2**20  # of max_distance


@encoding(
    title="T5 distance buckets",
    idea=(
        "Whether a key is 3 or 4 tokens away matters; whether it is 300 or 301 does not. T5 sorts distances into buckets: each "
        "short distance has its own, and long ones share buckets that get wider and wider. This gives the bucket of each "
        "distance."
    ),
    family="bias",
    source="arXiv:1910.10683, section 2.1",
    models=("T5", "Flan-T5", "mT5", "UMT5", "LongT5", "MPNet"),
    domains={"bidirectional": Flag(), "num_buckets": Integer(2, usual=64), "max_distance": Integer(2, usual=512)},
    arrays={"relative_positions": Axes("*P", "integer")},
    result="*P",
    rows="*P",
    requires=(
        "num_buckets >= 4 and num_buckets % 2 == 0 or not bidirectional",
        "max_distance > num_buckets // (4 if bidirectional else 2)",
    ),
    returns="integer",
    noun="buckets",
    read={
        "mT5": "transformers 5.23.0, models/mt5/modeling_mt5.py:223-268",
        "UMT5": "transformers 5.23.0, models/umt5/modeling_umt5.py:232-277",
        "LongT5": "transformers 5.23.0, models/longt5/modeling_longt5.py:377-422",
        "MPNet": "transformers 5.23.0, models/mpnet/modeling_mpnet.py:330-347",
    },
)
def t5_buckets(relative_positions: ArrayOf[T], /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> T:
    r"""
    Return the bucket of every relative position. Each short distance has its own bucket; longer ones share wider buckets.

    .. math:: f(n) = n \text{ for } n < e, \qquad
        f(n) = \min\left(e + \left\lfloor (N - e) \, \frac{\ln(n/e)}{\ln(D/e)} \right\rfloor, N - 1\right) \text{ otherwise}

    with D = `max_distance` and e = N/2 rounded down. Causal: the bucket is f(max(-r, 0)), with N = `num_buckets`.
    Bidirectional: it is f(abs(r)), plus N if r > 0 (the key comes after the query), with N half of `num_buckets`. In integers:
    f(n) is at least e + k, for k from 1 to N - 1 - e, exactly if :math:`n^{N-e} e^k \ge D^k e^{N-e}`.

    Parameters
    ----------
    relative_positions : array, signed integer, any shape
        r, key position minus query position, in tokens.
    bidirectional : bool
        True in encoders, False in decoders. There is no default, because the two give different buckets.
    num_buckets : int
        At least 2; if bidirectional, even and at least 4. 32 in T5.
    max_distance : int
        D, above e; 128 in T5. Distances from about D on share the last bucket.

    Returns
    -------
    array, default integer dtype, shape of `relative_positions`
        Between 0 and ``num_buckets - 1``.

    Raises
    ------
    ValueError
        If positions are not signed integers, or `num_buckets` or `max_distance` is out of its range.

    Notes
    -----
    posref decides the buckets in integers. Most code takes the logarithm in float32. That agrees for T5's own settings, but
    with rare other settings it is off by one bucket at a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> t5_buckets(np.asarray([-200, -8, -1, 0, 1, 8, 200]), bidirectional=True).tolist()
    [15, 8, 1, 0, 17, 24, 31]
    """
    xp = library("t5_buckets", relative_positions=relative_positions)
    if not xp.isdtype(relative_positions.dtype, "signed integer"):
        msg = f"t5_buckets: relative_positions must be signed integers; got {relative_positions.dtype}."
        raise ValueError(msg)
    apart = whole("t5_buckets", "relative_positions", relative_positions)
    sided, max_distance = check_buckets("t5_buckets", bidirectional, num_buckets, max_distance)
    buckets = one_sided(sided, max_distance)
    after = [sided + b for b in buckets[1:]] if bidirectional else [0] * max_distance
    lookup = beside([*reversed(buckets), *after], apart, None)
    return rows(lookup, clipped(apart, -max_distance, max_distance) + max_distance)


def one_sided(num_buckets: int, max_distance: int) -> list[int]:
    """
    Return the bucket of every distance from 0 to `max_distance`, using integers only.

    Distance n is in bucket e + k or above when ``(n/e)**(N-e) >= (D/e)**k``.
    """
    exact = num_buckets // 2
    wide = num_buckets - exact
    buckets = list(range(exact))
    for k in range(1, wide):
        first, beyond = len(buckets), max_distance + 1  # bisect for the first distance of bucket e + k
        while first < beyond:
            n = (first + beyond) // 2
            reached = n**wide * exact**k >= max_distance**k * exact**wide
            first, beyond = (first, n) if reached else (n + 1, beyond)
        buckets += [exact + k - 1] * (first - len(buckets))
    return buckets + [num_buckets - 1] * (max_distance + 1 - len(buckets))


def check_buckets(function: str, bidirectional: bool, num_buckets: int, max_distance: int) -> tuple[int, int]:
    """Return the number of buckets on one side and the largest distance. Raise if one is out of range."""
    num_buckets = check_integer(function, "num_buckets", num_buckets, 4 if bidirectional else 2)
    if bidirectional and num_buckets % 2:
        msg = f"{function}: num_buckets must be even when bidirectional (half for each side); got {num_buckets}."
        raise ValueError(msg)
    sided = num_buckets // 2 if bidirectional else num_buckets
    reason = " (above half the buckets of one side)"
    max_distance = check_integer(function, "max_distance", max_distance, sided // 2 + 1, reason)
    if max_distance > LARGEST:
        msg = f"{function}: max_distance must be at most {LARGEST} (every distance up to it is listed); got {max_distance}."
        raise ValueError(msg)
    return sided, max_distance
