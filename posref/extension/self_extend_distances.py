"""Relative positions of SelfExtend: grouped beyond a window. Source: Jin et al., arXiv:2401.01325."""

from typing import Literal, get_args

from posref.core.arrays import Array, DType, beside, cast, constants, distances, library, result_dtype, wide
from posref.core.checks import check_integer, check_word
from posref.extension.passes import PLACES, signed
from posref.spec import Domain, Integer, OneOf, encoding
from posref.types import ArrayOf, T

Rounding = Literal["floor", "exact"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
OPTIONS: dict[str, Domain] = {"group": Integer(1, usual=8), "window": Integer(1), "rounding": OneOf(ROUNDINGS)}


@encoding(
    title="Distances of Self-Extend",
    idea=(
        "Near keys keep their exact distance. Positions of far ones are grouped: with groups of 8, tokens 0 to 7 share one "
        "position. So far distances shrink to about an eighth, which the model met in training. This gives the distances."
    ),
    family="extension",
    source="arXiv:2401.01325, section 3; datamllab/LongLM",
    domains=OPTIONS,
    invariants=("decode",),
    arrays=PLACES,
    result="*B Q K",
    rows="*B Q K",
    noun="relative",
    read={
        "LongLM's flash decoding": "datamllab/LongLM@cdbbb06, self_extend_patch/Llama.py:270",
        "most of LongLM's prefill": "datamllab/LongLM@cdbbb06, self_extend_patch/Llama.py:134, 294, 402",
    },
)
def self_extend_distances(
    q_positions: ArrayOf[T], k_positions: ArrayOf[T], /, *,
    group: int, window: int, rounding: Rounding, dtype: DType | None = None,
) -> T:  # fmt: skip
    r"""
    Return the relative position by which Self-Extend rotates every query and key against each other.

    .. math:: f(m, n) = m - n \text{ for } 0 \le m - n < w, \qquad
        \left\lfloor \frac{m}{g} \right\rfloor - \left\lfloor \frac{n}{g} \right\rfloor + w - \frac{w}{g} \text{ otherwise}

    Here m is the position of the query, n the position of the key, g is `group` and w `window`. The last w/g is rounded down
    for ``rounding="floor"``.

    Parameters
    ----------
    q_positions : array, signed integer, shape ``(*B, Q)``
        m, in tokens.
    k_positions : array, signed integer, shape ``(*B, K)``
        n, in tokens.
    group : int
        g, at least 1; 8 in the authors' code. With 1 this is RoPE.
    window : int
        w, at least 1; 1024 in the authors' code.
    rounding : {"floor", "exact"}
        What is subtracted from w. The authors' commit 715c1e3 calls ``w / g`` an accident and fixes one place. The two differ
        unless g divides w.

        - ``"floor"``: Grouped positions move by w - floor(w / g), as the authors mean it. Used by LongLM's flash decoding.
        - ``"exact"``: Grouped positions move by w - w/g, a fraction unless g divides w. Used by most of LongLM's prefill.
    dtype : data type, optional
        Dtype of the result. None means the library's default real dtype.

    Returns
    -------
    array, real floating, shape ``(*B, Q, K)``
        In tokens.

    Raises
    ------
    ValueError
        If `group` or `window` is less than 1, `rounding` is unknown or positions are not signed integers; with "exact", if
        ``window * group`` is 2**31 or more.

    Notes
    -----
    Positions are grouped before they are subtracted, so f depends on m and n, not only on m - n. Negative positions are rounded
    down too.

    A key after the query is not in the window, as in the authors' code; a causal mask hides it. Their code omits the shift as
    long as all queries are before w. No visible key is far then, so no score changes.

    Examples
    --------
    >>> import numpy as np
    >>> self_extend_distances(np.asarray([9]), np.asarray([0, 3, 5, 7, 9]), group=2, window=5, rounding="floor").tolist()
    [[7.0, 6.0, 4.0, 2.0, 0.0]]
    """
    group, window = check_options("self_extend_distances", group, window, rounding)
    q_positions, k_positions = signed("self_extend_distances", q_positions, k_positions)
    xp = library("self_extend_distances", q_positions=q_positions, k_positions=k_positions)
    dtype = result_dtype("self_extend_distances", q_positions, dtype)
    work = wide(dtype, xp)
    apart, groups = distances(q_positions, k_positions), distances(q_positions // group, k_positions // group)
    c = constants(xp)
    exact = c.asarray(float(window * group - window), dtype=c.float64) / group
    far = cast(groups, work) + (beside(exact, apart, work) if rounding == "exact" else float(window - window // group))
    return cast(xp.where(near_window(apart, window), cast(apart, work), far), dtype)


def near_window(apart: Array, window: int) -> Array:
    """Return whether a key is inside the window: at or before the query, and less than `window` before it."""
    return (apart >= 0) & (apart < window)


def check_options(function: str, group: int, window: int, rounding: Rounding) -> tuple[int, int]:
    """Return group and window as ints. Raise if an option is out of range."""
    group = check_integer(function, "group", group, 1)
    window = check_integer(function, "window", window, 1)
    check_word(function, "rounding", rounding, ROUNDINGS)
    if rounding == "exact":
        check_integer(function, "window * group", window * group, 1)
    return group, window
