"""Positions of one rank's tokens, cut so that all ranks have equal causal work."""

from typing import Any

from posref.core.checks import check_integer
from posref.core.grids import made
from posref.positions.ranks import RANKS, check_rank
from posref.spec import Integer, encoding
from posref.types import HOST, N, NamespaceOf


@encoding(
    title="Zig-zag shard of a sequence",
    idea=(
        "In causal attention late tokens have more to do. Context parallelism cuts a sequence into twice as many chunks as "
        "there are devices, and gives each device one from the front and one from the back, so that all have equal work."
    ),
    family="positions",
    name="zigzag_shard",
    source="Megatron-core; torch 2.13, head-tail load balancer; zhuzilin/ring-flash-attention",
    domains={"length": Integer(0, 2**20, step=2), **RANKS},
    requires=("rank < ranks", "length % (2*ranks) == 0"),
    result="length//ranks",
    returns="integer",
    read={
        "ring-flash-attention": "zhuzilin/ring-flash-attention@8996282, test/test_zigzag_ring_flash_attn_func.py:9-14",
        "torch": "torch 2.13, distributed/tensor/experimental/_context_parallel/_load_balancer.py:78-166",
        "Megatron-core": (
            "megatron-core 0.16.1, megatron/core/utils.py:2021-2036; megatron/core/models/common/embeddings/rope_utils.py:60-69"
        ),
        "SGLang": "sglang 0.5.23, sglang/srt/layers/cp/zigzag.py:151-180, 301-313",
    },
)
def zigzag(length: int, /, *, rank: int, ranks: int, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    """
    Return the positions of one rank's shard under context parallelism, cut so that all ranks have equal causal work.

    The sequence is cut into 2c equal chunks for c ranks. Rank r has chunks r and 2c - 1 - r.

    Parameters
    ----------
    length : int
        The number of tokens in the whole sequence, a multiple of 2c.
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
    array of integers, shape ``(length // ranks,)``

    Raises
    ------
    ValueError
        If `length` is not a multiple of 2c, or `rank` is not from 0 to c - 1.

    Notes
    -----
    torch 2.13's head-tail load balancer, ring-flash-attention's zigzag, Megatron-core (bshd) and, for one sequence, SGLang's
    zigzag strategy (formerly in-seq split) divide sequences in this way.
    If the length is not a multiple of 2c, torch makes contiguous shards. For packed sequences see `packed_shard`.

    Examples
    --------
    >>> zigzag(8, rank=0, ranks=2).tolist()
    [0, 1, 6, 7]
    """
    length = check_integer("zigzag", "length", length, 0)
    rank, ranks = check_rank("zigzag", rank, ranks)
    if length % (2 * ranks):
        msg = f"zigzag: length must be a multiple of {2 * ranks}, two chunks for each of the {ranks} ranks; got {length}."
        raise ValueError(msg)
    chunk = length // (2 * ranks)
    starts = (rank * chunk, (2 * ranks - 1 - rank) * chunk)
    return made([start + i for start in starts for i in range(chunk)], (2 * chunk,), xp, device)
