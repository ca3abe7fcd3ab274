"""How many compressed windows each query sees. Source: DeepSeek-V4, in transformers 5.23.0."""

from posref.core.arrays import whole
from posref.core.checks import check_integer, check_tokens
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Compressed windows that a query sees",
    idea=(
        "DeepSeek-V4 compresses every few keys to one. A query may look at a compressed key once all tokens of its window are "
        "there, so the number of windows that it sees is the number of tokens so far, divided and rounded down."
    ),
    family="positions",
    source="DeepSeek-V4: transformers 5.23.0, modeling_deepseek_v4.py, lines 448 and 589",
    models=("DeepSeek-V4",),
    domains={"rate": Integer(1)},
    arrays={"q_positions": Axes("*R Q", "integer")},
    result="*R Q",
    rows="*R Q",
    returns="integer",
)
def visible_windows(q_positions: ArrayOf[T], /, *, rate: int) -> T:
    r"""
    Return how many compressed windows each query sees: the complete ones, :math:`\lfloor (m + 1) / r \rfloor`.

    Parameters
    ----------
    q_positions : array of integers, shape ``(*B, Q)``
        m, positions of the queries, in tokens from the start of the text.
    rate : int
        r, tokens per window, as for `compressed`.

    Returns
    -------
    array of integers, shape ``(*B, Q)``
        The query sees window w if w, counted from the start of the text, is below this number.

    Raises
    ------
    ValueError
        If positions are not integers or have no axis of tokens, or `rate` is below 1.

    Source
    ------
    transformers 5.23.0, models/deepseek_v4/modeling_deepseek_v4.py, lines 448 and 589.

    Examples
    --------
    >>> import numpy as np
    >>> visible_windows(np.asarray([2, 3, 7]), rate=4).tolist()
    [0, 1, 2]
    """
    rate = check_integer("visible_windows", "rate", rate, 1)
    check_tokens("visible_windows", q_positions=q_positions)
    return (whole("visible_windows", "q_positions", q_positions) + 1) // rate
