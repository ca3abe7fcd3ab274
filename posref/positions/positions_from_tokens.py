"""Rows of a learned table for the tokens of padded rows, from token ids."""

from posref.core.arrays import library, whole
from posref.core.checks import check_integer
from posref.spec import Axes, Integer, encoding
from posref.types import ArrayOf, T


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
    read={
        "fairseq": (
            "facebookresearch/fairseq@3d262bb, fairseq/utils.py:256-266; "
            "fairseq/models/transformer/transformer_encoder.py:60-75; fairseq/models/bart/model.py:333"
        ),
        "RoBERTa": "transformers 5.23.0, models/roberta/modeling_roberta.py:142-155",
        "M2M100": "transformers 5.23.0, models/m2m_100/modeling_m2m_100.py:169-182",
        "XLM-R": "transformers 5.23.0, models/xlm_roberta/modeling_xlm_roberta.py:142-155",
    },
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
        The id of the padding token: 1 in RoBERTa, XLM-R, M2M100 and, in fairseq, BART's encoder.

    Returns
    -------
    array of integers, shape ``(*B, T)``

    Raises
    ------
    ValueError
        If `tokens` are not integers, or `padding_idx` is not an int of at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from_tokens(np.asarray([0, 42, 7, 1, 1]), padding_idx=1).tolist()
    [2, 3, 4, 1, 1]
    """
    xp = library("from_tokens", tokens=tokens)
    padding_idx = check_integer("from_tokens", "padding_idx", padding_idx, 0)
    ids = whole("from_tokens", "tokens", tokens)
    real = xp.astype(ids != padding_idx, ids.dtype)
    return xp.cumulative_sum(real, axis=-1) * real + padding_idx
