"""Positions of draft tokens, which a small model proposes and the large model verifies in one pass."""

from posref.core.arrays import index_dtype, library, placement, whole
from posref.core.checks import check_integer, check_tokens
from posref.positions.draft_tree import draft_tree
from posref.positions.value_checks import first_where
from posref.types import ArrayOf, T


def tree(verified: ArrayOf[T], parents: ArrayOf[T], /, *, check: bool = True) -> T:
    r"""
    Return the positions of a tree of draft tokens: the number of verified tokens plus the depth in the tree.

    .. math:: p_j = n + d_j, \qquad d_j = 0 \text{ at a root, else } d_{\pi(j)} + 1

    Here n is the number of verified tokens and :math:`\pi(j)` is the parent of node j. Siblings have the same position.

    Parameters
    ----------
    verified : array of integers, shape ``(*B,)``
        n, the number of tokens before the tree in each row.
    parents : array of integers, shape ``(N,)`` or ``(*B, N)``
        The index of each node's parent, or -1 at a root. A parent comes before its children.
    check : bool
        Check that every parent comes before its node. Pass False under ``jax.jit`` and ``torch.compile``, where array values
        cannot be read.

    Returns
    -------
    array of integers, shape ``(*B, N)``

    Raises
    ------
    ValueError
        If an array is not integers, or `parents` has no axes. With `check`, also if a parent is below -1 or does not come
        before its node.

    Notes
    -----
    `posref.draft_tree` is the same without the check of values, and says who counts in this way.

    Examples
    --------
    >>> import numpy as np
    >>> tree(np.asarray([10]), np.asarray([-1, 0, 0, 1, 2])).tolist()
    [[10, 11, 11, 12, 12]]
    """
    xp = library("tree", verified=verified, parents=parents)
    check_tokens("tree", parents=parents)
    whole("tree", "verified", verified)
    above = whole("tree", "parents", parents)
    if check:
        nodes = xp.arange(parents.shape[-1], dtype=above.dtype, **placement(parents, xp))
        wrong = first_where(above, (above < -1) | (above >= nodes), xp)
        if wrong is not None:
            msg = f"tree: parents must come before their nodes, or be -1 at a root; got parent {wrong}."
            raise ValueError(msg)
    return draft_tree(verified, parents)


def constant_drafts(verified: ArrayOf[T], new: int, /) -> T:
    """
    Return the same position for all draft tokens: the position of the last verified token.

    Parameters
    ----------
    verified : array of integers, shape ``(*B,)``
        n, the number of tokens verified so far in each row. The draft model asks for every draft token at position n - 1.
    new : int
        The number of draft tokens.

    Returns
    -------
    array of integers, shape ``(*B, new)``

    Raises
    ------
    ValueError
        If `verified` is not integers, or `new` is not an int of at least 0.

    Source
    ------
    Gemma 4's assistant: transformers 5.23.0, generation/candidate_generator.py:1325. It reads the large model's keys and values
    and adds none of its own.

    Examples
    --------
    >>> import numpy as np
    >>> constant_drafts(np.asarray([7, 3]), 3).tolist()
    [[6, 6, 6], [2, 2, 2]]
    """
    new = check_integer("constant_drafts", "new", new, 0)
    xp = library("constant_drafts", verified=verified)
    last = whole("constant_drafts", "verified", verified) - 1
    return last[..., None] + xp.zeros(new, dtype=index_dtype(verified), **placement(verified, xp))
