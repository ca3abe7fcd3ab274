"""Positions of tokens that a draft model proposes and the model verifies in one pass."""

from posref.arrays import index_dtype, namespace, placement, whole
from posref.checks import check_integer, check_tokens
from posref.positions.looking import first_where
from posref.types import ArrayOf, T


def tree(verified: ArrayOf[T], parents: ArrayOf[T], /, *, check: bool = True) -> T:
    r"""
    Return the positions of a tree of draft tokens: the number of verified tokens plus the depth in the tree.

    .. math:: p_j = n + d_j, \qquad d_j = 0 \text{ at a root, else } d_{\pi(j)} + 1

    where n is the number of verified tokens and :math:`\pi(j)` the parent of node j. Siblings have the same position.

    Parameters
    ----------
    verified : array of integers, shape ``(*B,)``
        n, tokens before the tree in each row.
    parents : array of integers, shape ``(N,)`` or ``(*B, N)``
        The index of every node's parent, which comes before it, or -1 at a root.
    check : bool
        Look at the values, to refuse a parent that does not come before its node. Under ``jax.jit`` and ``torch.compile`` they
        cannot be looked at: pass False there.

    Returns
    -------
    array of integers, shape ``(*B, N)``

    Raises
    ------
    ValueError
        If an array is not of integers; with `check`, if a parent is below -1 or does not come before its node.

    Notes
    -----
    SGLang's EAGLE kernels and Medusa count in this way. A common mistake is the index in the tree instead of the depth: equal
    in a chain, wrong at the first branch.

    Examples
    --------
    >>> import numpy as np
    >>> tree(np.asarray([10]), np.asarray([-1, 0, 0, 1, 2])).tolist()
    [[10, 11, 11, 12, 12]]
    """
    xp = namespace(verified, parents)
    check_tokens("tree", parents=parents)
    before, above = whole("tree", "verified", verified), whole("tree", "parents", parents)
    nodes = xp.arange(parents.shape[-1], dtype=above.dtype, **placement(parents, xp))
    if check:
        wrong = first_where(above, (above < -1) | (above >= nodes), xp)
        if wrong is not None:
            msg = f"tree: parents must come before their nodes, or be -1 at a root; got {wrong}."
            raise ValueError(msg)
    depths = xp.zeros_like(above)
    for node in range(1, parents.shape[-1]):
        from_parent = xp.where(nodes == above[..., node : node + 1], depths + 1, xp.zeros_like(depths))
        own = xp.sum(from_parent, axis=-1, keepdims=True, dtype=depths.dtype)
        depths = xp.where(nodes == node, own, depths)
    return before[..., None] + depths


def constant_drafts(verified: ArrayOf[T], new: int, /) -> T:
    """
    Return the positions at which a draft model asks if it does not count on: the last verified token's, at every step.

    Parameters
    ----------
    verified : array of integers, shape ``(*B,)``
        n, tokens verified so far in each row; every draft token is asked for at n - 1.
    new : int
        Draft tokens.

    Returns
    -------
    array of integers, shape ``(*B, new)``

    Raises
    ------
    ValueError
        If `verified` is not of integers, or `new` is below 0.

    Source
    ------
    The assistant of Gemma 4: transformers 5.23.0, generation/candidate_generator.py:1325. It reads the model's own keys and
    values and adds none.

    Examples
    --------
    >>> import numpy as np
    >>> constant_drafts(np.asarray([7, 3]), 3).tolist()
    [[6, 6, 6], [2, 2, 2]]
    """
    new = check_integer("constant_drafts", "new", new, 0)
    xp = namespace(verified)
    last = whole("constant_drafts", "verified", verified) - 1
    return last[..., None] + xp.zeros(new, dtype=index_dtype(verified), **placement(verified, xp))
