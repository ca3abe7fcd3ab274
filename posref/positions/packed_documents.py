"""The sequences of a packed row, from positions alone."""

from posref.core.arrays import library, whole
from posref.core.checks import check_tokens
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


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
    xp = library("documents", positions=positions)
    integers = whole("documents", "positions", positions)
    if not positions.shape[-1]:
        return integers
    begins = xp.astype(integers[..., 1:] - integers[..., :-1] != 1, integers.dtype)
    return xp.cumulative_sum(xp.concat([0 * integers[..., :1], begins], axis=-1), axis=-1)
