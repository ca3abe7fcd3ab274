"""Positions of packed sequences, and the sequences that positions belong to."""

from posref.arrays import namespace, placement, whole
from posref.checks import check_tokens
from posref.positions.looking import starts_of
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


def packed(cu_seqlens: ArrayOf[T], /) -> T:
    """
    Return positions that restart at 0 in every sequence of a packed batch.

    Parameters
    ----------
    cu_seqlens : array of integers, shape ``(S + 1,)``
        Where each of the S sequences begins, then the total number of tokens. Begins with 0 and never decreases.

    Returns
    -------
    array of integers, shape ``(total,)``

    Raises
    ------
    ValueError
        If `cu_seqlens` is not a 1-D array of integers, does not begin with 0, or decreases.

    Examples
    --------
    >>> import numpy as np
    >>> packed(np.asarray([0, 3, 3, 5])).tolist()
    [0, 1, 2, 0, 1]
    """
    xp = namespace(cu_seqlens)
    starts = starts_of("packed", cu_seqlens)
    every = xp.arange(int(starts[-1]), dtype=starts.dtype, **placement(cu_seqlens, xp))
    own = xp.searchsorted(starts, every, side="right") - 1
    return every - xp.take(starts, own, axis=0)


@encoding(
    title="Documents of a packed row",
    idea=(
        "Several documents are packed into one row, and positions start again in each. A document begins wherever a position "
        "is not one more than the one before. Attention may then look only at tokens of its own document."
    ),
    family="positions",
    name="packed_documents",
    source="transformers 5.23.0, masking_utils.py, find_packed_sequence_indices",
    arrays={"positions": Axes("*R T", "integer")},
    result="*R T",
    rows="*R",
    returns="integer",
)
def documents(positions: ArrayOf[T], /) -> T:
    r"""
    Return which sequence each token of a packed row belongs to, from positions alone.

    .. math:: d_t = \sum_{1 \le u \le t} [p_u - p_{u-1} \ne 1]

    Here p is the position, t is the place in the row, and brackets are 1 if true, else 0.

    Parameters
    ----------
    positions : array of integers, shape ``(*B, T)``
        p, which restart in every sequence, as in the result of `packed`.

    Returns
    -------
    array of integers, shape ``(*B, T)``
        d, the index of the sequence, from 0.

    Raises
    ------
    ValueError
        If the positions are not integers, or have no axis of tokens.

    Source
    ------
    transformers 5.23.0, masking_utils.py, find_packed_sequence_indices.

    Notes
    -----
    A token begins a sequence if its position is not one more than the position before it. So padding tokens, which all have the
    same position, become sequences of their own: 0, 0, 0, 1, 2 with two tokens of left padding gives 0, 1, 2, 2, 2. Padding can
    also join a real sequence: left padding at -1 joins the token at 0 after it. The repeated positions of an image in M-RoPE
    become separate sequences too. If a row has padding or images, use the mask instead.

    Examples
    --------
    >>> import numpy as np
    >>> documents(np.asarray([0, 1, 2, 0, 1])).tolist()
    [0, 0, 0, 1, 1]
    >>> documents(np.asarray([0, 0, 0, 1, 2])).tolist()
    [0, 1, 2, 2, 2]
    """
    check_tokens("documents", positions=positions)
    xp = namespace(positions)
    own = whole("documents", "positions", positions)
    if not positions.shape[-1]:
        return own
    begins = xp.astype(own[..., 1:] - own[..., :-1] != 1, own.dtype)
    return xp.cumulative_sum(xp.concat([0 * own[..., :1], begins], axis=-1), axis=-1)
