"""Positions of tokens among padding, from masks and from token ids."""

from posref.arrays import index_dtype, namespace, placement
from posref.positions.looking import counted
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


@encoding(
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

    .. math:: p_t = \sum_{u \le t} m_u - 1 \text{ where } m_t = 1, \text{ else } \mathrm{padding}

    where m is the mask and t the place in the row. The values of the mask are not looked at: `posref.positions.from_mask` is
    this function after it has refused what is no mask, and padding between tokens, which here is not counted either.

    Parameters
    ----------
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        m, 1 for tokens and 0 for padding.
    padding : int
        The position given to padding; see `posref.positions.from_mask` for who gives which.

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

    .. math:: p_t = \sum_{u \le t} m_u - 1

    where m is the mask and t the place in the row.

    Parameters
    ----------
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        m, 1 for tokens and 0 for padding. Padding may be on the left, on the right or on both sides, but not between tokens.
    padding : int
        The position given to padding; nothing should depend on it. transformers' generation has 0 (5.23.0,
        generation/utils.py:906; older versions 1), as vLLM and BLOOM's and Falcon's ALiBi; IDEFICS, Qwen2-Audio and both
        Qwen-Omni have 1, OPT -1.
    check : bool
        Look at the values of the mask, to refuse what is not one. Under ``jax.jit`` and ``torch.compile`` they cannot be looked
        at: pass False there.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If the mask is neither boolean nor integer; with `check`, if a value is neither 0 nor 1 or there is padding between
        tokens.

    Notes
    -----
    All these libraries count tokens in this way. OPT then adds 2 (`posref.learned` has an offset), so that padding -1 has row 1
    of its table. RoBERTa's padding is a row too: see `from_tokens`. A model called without positions counts padding on the left
    as well: rotary logits do not change, rows of a table do.

    Examples
    --------
    >>> import numpy as np
    >>> from_mask(np.asarray([[0, 0, 1, 1], [1, 1, 1, 0]]), padding=0).tolist()
    [[0, 0, 0, 1], [0, 1, 2, 0]]
    """
    xp = namespace(mask)
    ones = counted("from_mask", mask, xp, check=check)
    if check and mask.shape[-1]:
        begins = xp.astype((ones[..., 1:] == 1) & (ones[..., :-1] == 0), ones.dtype)
        runs = xp.sum(begins, axis=-1) + ones[..., 0]
        if bool(xp.any(runs > 1)):
            msg = "from_mask: padding must come before or after the tokens of a row; got some between them. Use packed()."
            raise ValueError(msg)
    return positions_from_mask(ones, padding=padding)


@encoding(
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
    Return RoBERTa's and fairseq's rows of a learned table: tokens count from ``padding_idx + 1``, padding is `padding_idx`.

    .. math:: p_t = \mathrm{pad} + [x_t \ne \mathrm{pad}] \sum_{u \le t} [x_u \ne \mathrm{pad}]

    where x_t is token t, pad is `padding_idx`, and a bracket is 1 if true, else 0.

    Parameters
    ----------
    tokens : array of integers, shape ``(*B, T)``
        x, token ids.
    padding_idx : int
        The id of the padding token; 1 in RoBERTa, XLM-R, BART's encoder and M2M100.

    Returns
    -------
    array of integers, shape ``(*B, T)``

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
