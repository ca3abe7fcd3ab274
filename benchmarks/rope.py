"""
RoPE's speed, as ratios to what a user would call instead, and to a plain copy of the same bytes.

Everything runs in one process, the two sides of a ratio in turn, so that machine, allocator and clock are the same for both;
printed are ratios of medians. x is (1, 32, 4096, 128), layout half, and tables are given, as in a layer of a model.

transformers rotates queries and keys in one call of `apply_rotary_pos_emb`; both sides do so here, with as many heads
of keys as of queries. In bfloat16 it multiplies in bfloat16; here it is given float32 tables and its results are cast
once, which is what posref computes. The copies allocate their result as the compiled functions do.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from posref import apply_rope, rope_frequencies, rope_table

SHAPE = (1, 32, 4096, 128)
DECODE = (1, 32, 1, 128)
FREQUENCIES = rope_frequencies(128, base=10_000.0)[0]


class Ratio(NamedTuple):
    """Two functions of nothing that do the same work, and the ratio of their times that is aimed at."""

    what: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    target: float


def of_torch(shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Return x and its table, in float32."""
    return torch.randn(shape).to(dtype), rope_table(torch.arange(4096 - shape[-2], 4096), FREQUENCIES)


def eager(shape: tuple[int, ...], dtype: torch.dtype, what: str, target: float) -> Ratio:
    """Compare PyTorch, eager, with transformers: queries and keys."""
    (q, table), (k, _) = of_torch(shape, dtype), of_torch(shape, dtype)
    full = [torch.cat([t, t], -1)[None] for t in table]

    def ours() -> tuple[torch.Tensor, ...]:
        return apply_rope(q, *table, layout="half"), apply_rope(k, *table, layout="half")

    def theirs() -> tuple[torch.Tensor, ...]:
        a, b = apply_rotary_pos_emb(q, k, *full)
        return a.to(dtype), b.to(dtype)

    return Ratio(what, ours, theirs, target)


def compiled() -> Ratio:
    """Compare torch.compile with a copy."""
    x, table = of_torch(SHAPE, torch.float32)
    function = torch.compile(lambda x, cos, sin: apply_rope(x, cos, sin, layout="half"), fullgraph=True)
    return Ratio("torch.compile float32 / clone", lambda: function(x, *table), x.clone, 1.6)


def jitted() -> Ratio:
    """Compare jax.jit with the cheapest jitted function that reads and writes every byte."""
    x = jnp.asarray(np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32))
    table = rope_table(jnp.arange(SHAPE[-2]), FREQUENCIES)
    function, copy = jax.jit(lambda x, cos, sin: apply_rope(x, cos, sin, layout="half")), jax.jit(lambda x: x + 1)
    return Ratio(
        "jax.jit float32 / x + 1",
        lambda: function(x, *table).block_until_ready(),
        lambda: copy(x).block_until_ready(),
        1.3,
    )


def by_numpy() -> Ratio:
    """Compare NumPy with the rotate-half formula written by hand."""
    x = np.random.default_rng(0).standard_normal(SHAPE, dtype=np.float32)
    table = rope_table(np.arange(SHAPE[-2]), FREQUENCIES, dtype=np.float32)
    cos, sin = (np.concatenate([t, t], -1) for t in table)

    def by_hand() -> np.ndarray:
        a, b = x[..., :64], x[..., 64:]
        return x * cos + np.concatenate([-b, a], -1) * sin

    return Ratio("NumPy float32 / rotate-half by hand", lambda: apply_rope(x, *table, layout="half"), by_hand, 1.5)


def measured(ratio: Ratio, repeat: int) -> tuple[float, float]:
    """Return the median seconds of both sides, run in turn after two warm-ups each."""
    times: tuple[list[float], list[float]] = ([], [])
    calls = calls_per_time(ratio.theirs)
    for round_ in range(repeat + 2):
        for function, taken in zip((ratio.ours, ratio.theirs), times, strict=True):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            if round_ >= 2:
                taken.append((time.perf_counter() - start) / calls)
    return median(times[0]), median(times[1])


def calls_per_time(function: Callable[[], Any]) -> int:
    """Return how many calls last about a millisecond, so that the clock's step does not matter."""
    function()
    start = time.perf_counter()
    function()
    return max(1, int(1e-3 / (time.perf_counter() - start)))


def main() -> None:
    """Print one line for every ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=25, help="timed repetitions of each side (default 25)")
    repeat = parser.parse_args().repeat
    print(f"{'x is (1, 32, 4096, 128), layout half':42} {'ratio':>6} {'target':>7} {'ours':>10} {'theirs':>10}")
    ratios = (
        lambda: eager(SHAPE, torch.float32, "torch eager float32 / transformers", 1.1),
        lambda: eager(SHAPE, torch.bfloat16, "torch eager bfloat16 / transformers", 1.1),
        compiled,
        jitted,
        by_numpy,
        lambda: eager(DECODE, torch.float32, "decode step / transformers", 1.3),
    )
    for build in ratios:  # one at a time: arrays of the others would crowd the caches
        ratio = build()
        ours, theirs = measured(ratio, repeat)
        verdict = "" if ours <= ratio.target * theirs else "  missed"
        line = f"{ratio.what:42} {ours / theirs:6.2f} {ratio.target:7.1f}"
        print(f"{line} {ours * 1e6:8.0f}us {theirs * 1e6:8.0f}us{verdict}", flush=True)


if __name__ == "__main__":
    main()
