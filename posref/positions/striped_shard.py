"""Positions of one rank's tokens if tokens are dealt to the ranks in turn. Source: arXiv:2311.09431."""

from typing import Any

from posref.core.checks import check_integer
from posref.core.grids import made
from posref.positions.ranks import RANKS, check_rank
from posref.spec import Integer, encoding
from posref.types import HOST, N, NamespaceOf


@encoding(
    title="Striped shard of a sequence",
    idea=(
        "Tokens are dealt to devices like cards, one by one in turn. Every device then has early and late tokens in equal "
        "number, so that in causal attention all have nearly the same work, and every one knows its own positions."
    ),
    family="positions",
    name="striped_shard",
    source="arXiv:2311.09431; zhuzilin/ring-flash-attention; SGLang",
    domains={"length": Integer(0, 2**20), **RANKS},
    requires=("rank < ranks",),
    result="max(0,(length-rank+ranks-1)//ranks)",
    returns="integer",
    read={
        "ring-flash-attention": "zhuzilin/ring-flash-attention@8996282, test/test_stripe_flash_attn_func.py:9-14",
        "SGLang": "sglang 0.5.23, sglang/srt/layers/cp/interleave.py:17-22, 209-229; sglang/srt/layers/cp/base.py:19-23",
    },
)
def striped(length: int, /, *, rank: int, ranks: int, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    """
    Return the positions of one rank's shard if tokens are dealt to the ranks in turn: r, r + c, r + 2c and so on.

    Parameters
    ----------
    length : int
        The number of tokens in the whole sequence.
    rank : int
        r, the number of this shard, from 0.
    ranks : int
        c, the number of shards.
    xp : module, optional
        The array library of the result, such as ``torch``. None means NumPy.
    device : optional
        The device of the result, such as "cuda". Without `xp` it has no effect.

    Returns
    -------
    array of integers, shape ``(ceil((length - rank) / ranks),)``

    Raises
    ------
    ValueError
        If `rank` is not from 0 to c - 1.

    Source
    ------
    Brandon et al., Striped Attention, arXiv:2311.09431.

    Notes
    -----
    ring-flash-attention's stripe divides sequences in this way. So does SGLang's interleave strategy, formerly round-robin
    split, over all tokens of a batch.

    Examples
    --------
    >>> striped(8, rank=1, ranks=2).tolist()
    [1, 3, 5, 7]
    """
    length = check_integer("striped", "length", length, 0)
    rank, ranks = check_rank("striped", rank, ranks)
    tokens = list(range(rank, length, ranks))
    return made(tokens, (len(tokens),), xp, device)
