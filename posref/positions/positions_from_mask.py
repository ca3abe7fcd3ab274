"""Positions of tokens in padded rows, from a mask."""

from posref.core.arrays import library, placement
from posref.core.checks import check_integer
from posref.positions.value_checks import counted
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Positions from a padding mask",
    idea=(
        "Rows of a batch are padded to one length. A token's position is the number of tokens before it, padding not counted, "
        "so that a row gets the same positions however much padding stands in front of it."
    ),
    family="positions",
    source="transformers 5.23.0, generation/utils.py:906; vLLM; BLOOM",
    domains={"padding": Integer(-1)},
    arrays={"mask": Axes("*R T", "mask")},
    result="*R T",
    rows="*R",
    returns="integer",
)
def positions_from_mask(mask: ArrayOf[T], /, *, padding: int) -> T:
    r"""
    Return the position of every token of padded rows: the number of tokens before it, padding not counted.

    .. math:: p_t = \sum_{u \le t} m_u - 1 \text{ if } m_t = 1, \text{ else } \mathrm{padding}

    Here m is the mask and t is the place in the row. This function does not check the values of the mask.
    `posref.positions.from_mask` does, and also raises for padding between tokens, which this function skips.

    Parameters
    ----------
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        m, 1 for tokens and 0 for padding.
    padding : int
        The position of padding tokens. `posref.positions.from_mask` says which library uses which.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If the mask is neither boolean nor integer, or `padding` is not an int of at most 32 bits.

    Examples
    --------
    >>> import numpy as np
    >>> positions_from_mask(np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]]), padding=0).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 0]]
    """
    xp = library("positions_from_mask", mask=mask)
    padding = check_integer("positions_from_mask", "padding", padding, -(2**31))
    ones = counted("positions_from_mask", mask, xp, check=False)
    counts = xp.cumulative_sum(ones, axis=-1)
    return xp.where(ones == 1, counts - 1, xp.asarray(padding, dtype=ones.dtype, **placement(mask, xp)))
