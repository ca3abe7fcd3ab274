"""Biases of attention logits."""

import warnings
from collections.abc import Callable
from typing import Any

import torch

from posref import alibi, t5_bias

from . import peers
from .lines import Call, Line, Work


def buckets(small: bool, *, contiguous: bool, tokens: int = 1024) -> Work:
    """Make T5's bias of 32 heads. The peer's result is a view with heads last in memory, unless it is copied."""
    tokens = 16 if small else tokens
    layer, positions = peers.t5(32), torch.arange(tokens)
    table = layer.relative_attention_bias.weight
    finish = torch.Tensor.contiguous if contiguous else torch.Tensor.detach
    return Work(
        lambda: finish(t5_bias(positions, positions, table, bidirectional=True)),
        lambda: finish(layer.compute_bias(tokens, tokens)),
    )


def distances(small: bool, dtype: torch.dtype, tokens: int = 1024) -> Work:
    """Make ALiBi's bias of 32 heads."""
    positions = torch.arange(16 if small else tokens)
    return Work(
        lambda: alibi(positions, positions, heads=32, form="distance", dtype=dtype),
        lambda: peers.naive_alibi(positions, positions, 32, dtype),
    )


def in_chunks(small: bool) -> Work:
    """Describe T5's bias of 32 heads in chunks of 64 x 64, lazily. The peer describes ALiBi's."""
    dask = peers.module("dask.array")
    positions = dask.arange(128 if small else 4096, chunks=64)
    table = dask.from_array(peers.t5(32).relative_attention_bias.weight.numpy(), chunks=-1)

    def described(bias: Callable[[], Any]) -> Call:
        def call() -> object:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of many chunks, which are the point
                return len(bias().__dask_graph__())

        return call

    return Work(
        described(lambda: t5_bias(positions, positions, table, bidirectional=True)),
        described(lambda: alibi(positions, positions, heads=32, form="distance")),
    )


def keys(small: bool) -> Work:
    """Make ALiBi's bias of 32 heads for the keys, which broadcasts over queries, as BLOOM's does."""
    tokens = 16 if small else 4096
    build = peers.module("transformers.models.bloom.modeling_bloom").build_alibi_tensor
    positions, mask = torch.arange(tokens), torch.ones(1, tokens, dtype=torch.int64)
    return Work(
        lambda: alibi(positions, positions, heads=32, form="key", dtype=torch.float32), lambda: build(mask, 32, torch.float32)
    )


BLOCKS = "5 tasks for a block of the result, as alibi has, and not 7: the bucket and its row of the table in one function."
ONCE = "Fewer checks: most of the time is the copy of the strip's rows, and positions are read before it."
LINES = (
    Line("t5_bias 32 x 1024 x 1024", "transformers as it runs", 0.5, lambda s: buckets(s, contiguous=False)),
    Line("t5_bias 32 x 1024 x 1024, contiguous", "transformers, copied", 0.5, lambda s: buckets(s, contiguous=True)),
    Line(
        "t5_bias 32 x 4096 x 4096", "transformers as it runs", 1.0,
        lambda s: buckets(s, contiguous=False, tokens=4096), memory=1.0,
    ),  # of 2 GiB
    Line("t5_bias of Dask, 4096 x 4096 in chunks of 64 x 64", "alibi of Dask", 1.0, in_chunks, cost=BLOCKS),
    # No goal for the time: the checks of its arguments take longer than so small a product.
    Line("alibi 32 x 4096 keys, for 4096 queries", "transformers (BLOOM)", None, keys, memory=1.0),
    Line("alibi 32 x 256 x 256 float32", "the naive form", 1.0, lambda s: distances(s, torch.float32, 256), cost=ONCE),
    Line("alibi 32 x 1024 x 1024 float32", "the naive form", 0.8, lambda s: distances(s, torch.float32)),
    Line("alibi 32 x 1024 x 1024 bfloat16", "the naive form", 0.8, lambda s: distances(s, torch.bfloat16)),
)  # fmt: skip
