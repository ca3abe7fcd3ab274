"""Positions of a tree of draft tokens. Source: Medusa, arXiv:2401.10774; EAGLE-2, arXiv:2406.16858."""

from posref.core.arrays import Beside, beside, library, whole
from posref.core.checks import check_tokens
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Positions of a tree of draft tokens",
    idea=(
        "A small model proposes several continuations at once, as a tree, and the large model checks all of them in one pass. "
        "A node's position is the number of verified tokens plus its depth, so siblings stand at the same position."
    ),
    family="positions",
    source="Medusa, arXiv:2401.10774, section 2.1.2; EAGLE-2, arXiv:2406.16858, section 4.2",
    models=("Medusa", "EAGLE"),
    arrays={
        "verified": Axes("*R", "integer", low="0"),
        "parents": Axes("~*R N", "integer", low="-1", high="N-1", earlier=True),
    },
    result="*R N",
    rows="*R",
    returns="integer",
    read={
        "SGLang": "sglang 0.5.23, sglang/kernels/ops/speculative/spec_tree.py:87-88, 159-207",
        "Medusa": "FasterDecoding/Medusa@e2a5d20, medusa/model/utils.py:85-89, 333",
        "EAGLE": "SafeAILab/EAGLE@cb7e084, eagle/model/cnets.py:778-782",
    },
)
def draft_tree(verified: ArrayOf[T], parents: ArrayOf[T], /) -> T:
    r"""
    Return the positions of a tree of draft tokens: the number of verified tokens plus the depth in the tree.

    .. math:: p_j = n + d_j, \qquad d_j = 0 \text{ at a root, else } d_{\pi(j)} + 1

    Here n is the number of verified tokens and :math:`\pi(j)` is the parent of node j. Siblings have the same position. This
    function does not check the values of the parents. `posref.positions.tree` does.

    Parameters
    ----------
    verified : array of integers, shape ``(*B,)``
        n, the number of tokens before the tree in each row.
    parents : array of integers, shape ``(N,)`` or ``(*B, N)``
        The index of each node's parent, or -1 at a root. A parent comes before its children. The result is unspecified if it
        does not.

    Returns
    -------
    array of integers, shape ``(*B, N)``

    Raises
    ------
    ValueError
        If an array is not integers, or `parents` has no axes.

    Notes
    -----
    SGLang's EAGLE kernels and Medusa count in this way. A common mistake is to add the index in the tree instead of the depth.
    Both are equal in a chain and differ after the first branch.

    Examples
    --------
    >>> import numpy as np
    >>> draft_tree(np.asarray([10]), np.asarray([-1, 0, 0, 1, 2])).tolist()
    [[10, 11, 11, 12, 12]]
    """
    xp = library("draft_tree", verified=verified, parents=parents)
    check_tokens("draft_tree", parents=parents)
    before, above = whole("draft_tree", "verified", verified), whole("draft_tree", "parents", parents)
    count, zero = parents.shape[-1], beside(0, above, above.dtype)
    nodes, up = Beside(above).arange(1, count + 1, 1, dtype=above.dtype), above + 1  # counted from 1: 0 is above a root
    depths = xp.where(up > 0, zero + 1, zero)
    for _ in range(count.bit_length()):  # each step looks up twice as far as the one before
        here = nodes == up[..., :, None]
        further, up = (xp.cumulative_sum(xp.where(here, x[..., None, :], zero), axis=-1)[..., -1] for x in (depths, up))
        depths = depths + further
    return before[..., None] + depths
