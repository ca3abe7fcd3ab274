"""Positions of one rank's tokens under context parallelism, which divides a sequence or a packed batch among ranks."""

from itertools import pairwise
from typing import Any, Literal, get_args

from posref.core.arrays import library, placement
from posref.core.checks import check_integer, check_word
from posref.core.grids import made
from posref.positions.ranks import check_rank
from posref.positions.value_checks import starts_of
from posref.types import HOST, ArrayOf, N, NamespaceOf, T

Split = Literal["rank", "halves", "document", "striped"]
SPLITS: tuple[Split, ...] = get_args(Split)
Within = Literal["document", "pack"]
WITHIN: tuple[Within, ...] = get_args(Within)


def contiguous(length: int, /, *, rank: int, ranks: int, xp: NamespaceOf[N] | None = HOST, device: Any = None) -> N:
    """
    Return the positions of one rank's shard if the sequence is cut into equal contiguous parts, one for each rank.

    Rank r of c has positions r T / c to (r + 1) T / c - 1.

    Parameters
    ----------
    length : int
        T, the number of tokens in the whole sequence, a multiple of c.
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
        If `length` is not a multiple of c, or `rank` is not from 0 to c - 1.

    Notes
    -----
    torch 2.13 divides sequences in this way without a load balancer, as for lengths that are not a multiple of 2c
    (distributed/tensor/experimental/_context_parallel/_load_balancer.py:470-478). Causal work is not equal: the last rank has
    most.

    Examples
    --------
    >>> contiguous(6, rank=1, ranks=2).tolist()
    [3, 4, 5]
    """
    length = check_integer("contiguous", "length", length, 0)
    rank, ranks = check_rank("contiguous", rank, ranks)
    if length % ranks:
        msg = f"contiguous: length must be a multiple of ranks ({ranks}); got {length}."
        raise ValueError(msg)
    size = length // ranks
    return made(list(range(rank * size, (rank + 1) * size)), (size,), xp, device)


def packed_shard(cu_seqlens: ArrayOf[T], /, *, rank: int, ranks: int, split: Split, within: Within) -> T:
    """
    Return the positions of one rank's tokens if every sequence of a packed batch is divided among the ranks.

    Each sequence is cut into 2c chunks for c ranks. Rank r has chunks r (its head) and 2c - 1 - r (its tail) of each sequence,
    unless `split` says otherwise.

    Parameters
    ----------
    cu_seqlens : array of integers, shape ``(S + 1,)``
        Where each of the S sequences begins, then the total number of tokens, as for `packed`.
    rank : int
        r, the number of this shard, from 0.
    ranks : int
        c, the number of shards.
    split : {"rank", "halves", "document", "striped"}
        Which tokens the rank has, and in which order:

        - "rank": head and tail of the first sequence, head and tail of the second, and so on (Megatron-core 0.16.1's
          thd layout, megatron/core/models/common/embeddings/rope_utils.py:153-170; ring-flash-attention@8996282's zigzag with
          varlen, test/test_zigzag_ring_flash_attn_varlen_func.py:9-20).
        - "halves": the heads of all sequences, then all tails (SGLang 0.5.23's zigzag strategy, formerly in-seq
          split: sglang/srt/layers/cp/zigzag.py:151-180, 301-313). A length L need not be a multiple of 2c:
          the first L mod 2c chunks have one more token.
        - "document": order the chunks of each sequence by rank (head and tail of rank 0, then of rank 1, and so on), put the
          sequences one after the other, and cut the whole into c equal parts (torch 2.13's per-document head-tail load
          balancer, _load_balancer.py:251-291). So rank r may lack its own head or tail.
        - "striped": tokens r, r + c, r + 2c and so on of each sequence, without chunks: `striped` for every
          sequence on its own.
    within : {"document", "pack"}
        Where positions start at 0: at the beginning of each sequence ("document"), or only at the beginning of the pack
        ("pack"). Megatron-core 0.16.1 uses "pack" if its table of angles has a row for each token of the pack
        (rope_utils.py:206-241), else "document".

    Returns
    -------
    array of integers, shape ``(tokens of this rank,)``

    Raises
    ------
    ValueError
        If `cu_seqlens` is not a 1-D array of integers, does not begin with 0, or decreases. If `rank` is not from 0 to c - 1, a
        word is unknown or, with `split` "rank" or "document", a sequence's length is not a multiple of 2c.

    Examples
    --------
    >>> import numpy as np
    >>> starts = np.asarray([0, 8, 12])
    >>> packed_shard(starts, rank=0, ranks=2, split="rank", within="document").tolist()
    [0, 1, 6, 7, 0, 3]
    >>> packed_shard(starts, rank=0, ranks=2, split="halves", within="document").tolist()
    [0, 1, 0, 6, 7, 3]
    >>> packed_shard(starts, rank=0, ranks=2, split="document", within="pack").tolist()
    [0, 1, 6, 7, 2, 3]
    """
    check_word("packed_shard", "split", split, SPLITS)
    check_word("packed_shard", "within", within, WITHIN)
    rank, ranks = check_rank("packed_shard", rank, ranks)
    xp = library("packed_shard", cu_seqlens=cu_seqlens)
    starts = starts_of("packed_shard", cu_seqlens)
    edges = [int(start) for start in starts]
    parts: list[list[tuple[int, int]]] = [[], []]  # heads, then tails: tokens as (sequence's start, place)
    for start, stop in pairwise(edges):
        length = stop - start
        if split in ("rank", "document") and length % (2 * ranks):
            multiple = f"have a length that is a multiple of {2 * ranks} (two chunks a rank) for split {split!r}"
            msg = f"packed_shard: every sequence in cu_seqlens must {multiple}; got length {length}."
            raise ValueError(msg)
        if split == "striped":
            parts[0] += [(start, place) for place in range(rank, length, ranks)]
            continue
        for part_of in range(ranks) if split == "document" else (rank,):
            for half, chunk in enumerate((part_of, 2 * ranks - 1 - part_of)):
                places = range(_edge(length, 2 * ranks, chunk), _edge(length, 2 * ranks, chunk + 1))
                parts[half if split == "halves" else 0] += [(start, place) for place in places]
    tokens = parts[0] + parts[1]
    if split == "document":
        size = len(tokens) // ranks
        tokens = tokens[rank * size : (rank + 1) * size]
    values = [place if within == "document" else start + place for start, place in tokens]
    return xp.asarray(values, dtype=starts.dtype, **placement(cu_seqlens, xp))


def _edge(length: int, chunks: int, chunk: int) -> int:
    """Return where a chunk begins. The first ``length % chunks`` chunks have one more token than the others."""
    return chunk * (length // chunks) + min(chunk, length % chunks)
