"""Positions of tokens in padded rows, from masks and from token ids."""

from posref.arrays import index_dtype, namespace, placement
from posref.checks import check_tokens
from posref.positions.looking import counted
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
        If the mask is neither boolean nor integer.

    Examples
    --------
    >>> import numpy as np
    >>> positions_from_mask(np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]]), padding=0).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 0]]
    """
    xp = namespace(mask)
    ones = counted("positions_from_mask", mask, xp, check=False)
    counts = xp.cumulative_sum(ones, axis=-1)
    return xp.where(ones == 1, counts - 1, xp.asarray(padding, dtype=ones.dtype, **placement(mask, xp)))


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
    xp = namespace(mask)
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


@encoding(
    title="RoBERTa's positions from token ids",
    idea=(
        "RoBERTa keeps a row of its position table for padding. Tokens are numbered from the row after that one, padding "
        "always has its own row, and a token's row does not depend on how much padding there is."
    ),
    family="positions",
    name="positions_from_tokens",
    source="fairseq, utils.make_positions; transformers 5.23.0, RoBERTa",
    models=("RoBERTa", "XLM-R", "M2M100"),
    domains={"padding_idx": Integer(0)},
    arrays={"tokens": Axes("*R T", "integer")},
    result="*R T",
    rows="*R",
    returns="integer",
)
def from_tokens(tokens: ArrayOf[T], /, *, padding_idx: int) -> T:
    r"""
    Return rows of a learned table as in RoBERTa and fairseq: tokens count from ``padding_idx + 1``, padding has `padding_idx`.

    .. math:: p_t = \mathrm{pad} + [x_t \ne \mathrm{pad}] \sum_{u \le t} [x_u \ne \mathrm{pad}]

    Here x_t is the id of token t, pad is `padding_idx`, and brackets are 1 if true, else 0.

    Parameters
    ----------
    tokens : array of integers, shape ``(*B, T)``
        x, token ids.
    padding_idx : int
        The id of the padding token: 1 in RoBERTa, XLM-R, BART's encoder and M2M100.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If `tokens` are not integers.

    Examples
    --------
    >>> import numpy as np
    >>> from_tokens(np.asarray([0, 42, 7, 1, 1]), padding_idx=1).tolist()
    [2, 3, 4, 1, 1]
    """
    xp = namespace(tokens)
    if not xp.isdtype(tokens.dtype, "integral"):
        msg = f"from_tokens: tokens must be integers; got {tokens.dtype}."
        raise ValueError(msg)
    real = xp.astype(tokens != padding_idx, index_dtype(tokens))
    return xp.cumulative_sum(real, axis=-1) * real + padding_idx
