"""Positions of tokens in padded rows, from masks and from token ids."""

from posref.core.arrays import library
from posref.core.checks import check_tokens
from posref.positions.positions_from_mask import positions_from_mask
from posref.positions.value_checks import counted
from posref.types import ArrayOf, T


def from_mask(mask: ArrayOf[T], /, *, padding: int, check: bool = True) -> T:
    r"""
    Return the position of every token of padded rows: the number of tokens before it, padding not counted.

    .. math:: p_t = \sum_{u \le t} m_u - 1 \text{ if } m_t = 1, \text{ else } \mathrm{padding}

    Here m is the mask and t is the place in the row.

    Parameters
    ----------
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        m, 1 for tokens and 0 for padding. Padding may be on the left, on the right or on both sides, but not between tokens.
    padding : int
        The position of padding tokens. Nothing should depend on it. It is 0 in transformers' generation (5.23.0,
        generation/utils.py:906; 1 in older versions), in vLLM and in the ALiBi of BLOOM and Falcon. It is 1 in IDEFICS,
        Qwen2-Audio and both Qwen-Omni models, and -1 in OPT.
    check : bool
        Check the values of the mask. Pass False under ``jax.jit`` and ``torch.compile``, where array values cannot be read.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If the mask is neither boolean nor integer, or has no axes. With `check`, also if a value is neither 0 nor 1, or if
        there is padding between tokens.

    Notes
    -----
    All these libraries count tokens in this way. OPT then adds 2 (the `offset` of `posref.learned`), so padding at -1 reads row
    1 of its table. RoBERTa also has a row for padding: see `from_tokens`. A model that is called without positions counts the
    padding on the left too. This does not change the logits of rotary encodings, but it reads other rows of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from_mask(np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]]), padding=0).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 0]]
    """
    xp = library("from_mask", mask=mask)
    ones = counted("from_mask", mask, xp, check=check)
    check_tokens("from_mask", mask=mask)
    if check and mask.shape[-1]:
        begins = xp.astype((ones[..., 1:] == 1) & (ones[..., :-1] == 0), ones.dtype)
        runs = xp.sum(begins, axis=-1) + ones[..., 0]
        if bool(xp.any(runs > 1)):
            msg = (
                "from_mask: mask must have padding only before or after the tokens of a row; got padding between tokens. For "
                "packed sequences, use packed()."
            )
            raise ValueError(msg)
    return positions_from_mask(ones, padding=padding)
