"""Rotations of queries and keys, without gradients."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from posref import apply_rope, axial_rope, rope, rope_frequencies, rope_table
from posref.scaling import Llama3, YaRN

from . import peers
from .lines import Call, Line, Missing, Work

TRANSFORMERS = "transformers as it runs"
OPTIONS: dict[str, Any] = {"layout": "half", "base": 10_000.0}
INTERLEAVED: dict[str, Any] = {"layout": "interleaved", "base": 10_000.0}
F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
SCALINGS: dict[str, tuple[Any, dict[str, Any] | None]] = {  # posref's record, and the words of config.json
    "": (None, None),
    "YaRN": (
        YaRN(factor=4.0, original_length=4096),
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
    ),
    "Llama 3": (
        Llama3(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_length=8192),
        {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    ),
}  # fmt: skip


def tables(positions: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return posref's table in float32."""
    return rope_table(positions, rope_frequencies(width, base=10_000.0)[0])


def of_both(rotate: Callable[[torch.Tensor], object], q: torch.Tensor, k: torch.Tensor) -> Call:
    """Return a call that rotates queries and keys."""
    return lambda: (rotate(q), rotate(k))


def by_table(small: bool, shape: tuple[int, ...], dtype: torch.dtype) -> Work:
    """Rotate queries and keys by given tables, in layout half. The peer's tables have the dtype of the model."""
    shape = (*shape[:-2], min(shape[-2], 8), shape[-1]) if small else shape
    q, k = torch.randn(2, *shape).to(dtype)
    _, rotate = peers.llama(shape[1], shape[-1])
    cos, sin = tables(torch.arange(4096 - shape[-2], 4096), shape[-1])
    wide = [torch.cat([t, t], -1)[None].to(dtype) for t in (cos, sin)]
    return Work(of_both(lambda x: apply_rope(x, cos, sin, layout="half"), q, k), lambda: rotate(q, k, *wide))


def interleaved(small: bool, dtype: torch.dtype) -> Work:
    """Rotate queries and keys of shape (B, T, H, D) by given tables, in layout interleaved, as GPT-J does."""
    q, k = torch.randn(2, 1, 8 if small else 4096, 32, 128).to(dtype)
    rotate = peers.module("transformers.models.gptj.modeling_gptj").apply_rotary_pos_emb
    cos, sin = tables(torch.arange(q.shape[1]), 128)
    of_peer = [t[None].to(dtype) for t in (sin, cos)]
    cos, sin = cos[:, None], sin[:, None]
    ours = of_both(lambda x: apply_rope(x, cos, sin, layout="interleaved"), q, k)
    return Work(ours, of_both(lambda x: rotate(x, *of_peer), q, k))


def compiled(small: bool, layout: Any, dtype: torch.dtype) -> Work:
    """Rotate by a compiled function. The peer allocates its result, reads and writes every byte, and does nothing else."""
    x = torch.randn(1, 32, 8 if small else 4096, 128).to(dtype)
    cos, sin = tables(torch.arange(x.shape[-2]), 128)
    torch.compiler.reset()
    function = torch.compile(
        lambda x, cos, sin: apply_rope(x, cos, sin, layout=layout), fullgraph=True, backend="eager" if small else "inductor"
    )
    try:
        function(x, cos, sin)
    except Exception as error:
        raise Missing(f"torch.compile does not run here: {type(error).__name__}") from error
    return Work(lambda: function(x, cos, sin), x.clone)


def compiled_rope(small: bool) -> Work:
    """Make the table and rotate, in a compiled function. The peer is a copy."""
    x, positions = torch.randn(1, 32, 8 if small else 4096, 128), torch.arange(8 if small else 4096)
    torch.compiler.reset()
    function = torch.compile(lambda x: rope(x, positions, **OPTIONS), fullgraph=True, backend="eager" if small else "inductor")
    try:
        function(x)
    except Exception as error:
        msg = f"torch.compile does not run here: {type(error).__name__}"
        raise Missing(msg) from error
    return Work(lambda: function(x), x.clone)


def jitted(small: bool, layout: Any = "half", dtype: Any = jnp.float32, *, table: bool = True) -> Work:
    """Rotate by a function of jax.jit, which makes its table or is given it. The peer reads and writes every byte."""
    numbers = np.random.default_rng(0).standard_normal((1, 32, 8 if small else 4096, 128), dtype=np.float32)
    x, positions = jnp.asarray(numbers, dtype=dtype), jnp.arange(numbers.shape[-2])
    tables = rope_table(positions, rope_frequencies(128, base=10_000.0)[0]) if table else (positions,)
    rotate = apply_rope if table else partial(rope, base=10_000.0)
    function, copy = jax.jit(partial(rotate, layout=layout)), jax.jit(lambda x: x + 1)
    return Work(lambda: function(x, *tables).block_until_ready(), lambda: copy(x).block_until_ready())


def by_numpy(small: bool, layout: Any) -> Work:
    """Rotate in NumPy."""
    x = np.random.default_rng(0).standard_normal((1, 32, 8 if small else 4096, 128), dtype=np.float32)
    cos, sin = rope_table(np.arange(x.shape[-2]), rope_frequencies(128, base=10_000.0)[0], dtype=np.float32)
    return Work(lambda: apply_rope(x, cos, sin, layout=layout), x.copy)


def with_table(small: bool, tokens: int, dtype: torch.dtype, scaling: str = "", *, heads: int = 32, batch: int = 1) -> Work:
    """Make the table, and rotate queries and keys. posref remembers that of few tokens."""
    q, k = torch.randn(2, batch, heads, min(tokens, 8) if small else tokens, 128).to(dtype)
    record, words = SCALINGS[scaling]
    table, rotate = peers.llama(heads, 128, words)
    positions = torch.arange(4096 - q.shape[-2], 4096)
    rows = positions[None]
    ours = of_both(lambda x: rope(x, positions, scaling=record, **OPTIONS), q, k)
    return Work(ours, lambda: rotate(q, k, *table(q, rows)))


def partially(small: bool, dtype: torch.dtype) -> Work:
    """Make the table of one token, and rotate half of the channels of queries and keys, as GPT-NeoX does with a quarter."""
    del small
    q, k = torch.randn(2, 1, 32, 1, 128).to(dtype)
    table, rotate = peers.gpt_neox(32, 128, 0.5)
    positions = torch.arange(4095, 4096)
    rows = positions[None]
    return Work(of_both(lambda x: rope(x, positions, rotary_dim=64, **OPTIONS), q, k), lambda: rotate(q, k, *table(q, rows)))


def on_a_grid(small: bool, side: int) -> Work:
    """Make the table of a grid of patches, and rotate, as timm does for images of several sizes."""
    timm = peers.module("timm.layers.pos_embed_sincos")
    side, width = (4 if small else side), 64
    x = torch.randn(1, 12, side * side, width)
    grid = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).reshape(2, -1)
    options: dict[str, Any] = {"dims": (32, 32), "allocation": "own", "arrangement": "chunked", **INTERLEAVED}

    def theirs() -> object:
        return timm.apply_rot_embed(x, *timm.build_rotary_pos_embed([side, side], dim=width, in_pixels=False))

    return Work(lambda: axial_rope(x, grid, **options), theirs)


def neighbours(small: bool, tokens: int, dtype: torch.dtype) -> Work:
    """Rotate by given tables, in layout interleaved. The peer is a copy, which reads and writes every byte."""
    x = torch.randn(1, 8, min(tokens, 8) if small else tokens, 128).to(dtype)
    cos, sin = tables(torch.arange(x.shape[-2]), 128)
    return Work(lambda: apply_rope(x, cos, sin, layout="interleaved"), x.clone)


def diffusers(small: bool) -> Work:
    """Rotate queries and keys by given tables, in layout interleaved, as Flux does."""
    rotate = peers.module("diffusers.models.embeddings").apply_rotary_emb
    q, k = torch.randn(2, 1, 32, 8 if small else 2048, 128)
    cos, sin = tables(torch.arange(q.shape[-2]), 128)
    twice = tuple(t.repeat_interleave(2, -1) for t in (cos, sin))
    ours = of_both(lambda x: apply_rope(x, cos, sin, layout="interleaved"), q, k)
    return Work(ours, of_both(lambda x: rotate(x, twice), q, k))


def x_transformers(small: bool) -> Work:
    """Make the angles, and rotate queries and keys, in layout interleaved."""
    library = peers.module("x_transformers.x_transformers")
    q, k = torch.randn(2, 1, 32, 8 if small else 2048, 128)
    angles, positions = library.RotaryEmbedding(128), torch.arange(q.shape[-2])

    def theirs() -> object:
        rows, scale = angles(positions)
        return library.apply_rotary_pos_emb(q, rows, scale), library.apply_rotary_pos_emb(k, rows, scale)

    return Work(of_both(lambda x: rope(x, positions, **INTERLEAVED), q, k), theirs)


def rotary_embedding_torch(small: bool) -> Work:
    """Rotate queries and keys, in layout interleaved. The peer keeps its angles."""
    table = peers.module("rotary_embedding_torch").RotaryEmbedding(128).requires_grad_(False)
    q, k = torch.randn(2, 1, 32, 8 if small else 2048, 128)
    positions = torch.arange(q.shape[-2])
    return Work(of_both(lambda x: rope(x, positions, **INTERLEAVED), q, k), of_both(table.rotate_queries_or_keys, q, k))


def large(small: bool) -> Work:
    """Rotate 1 GiB of queries."""
    x = torch.zeros(1, 32, 64 if small else 65_536, 128)
    positions = torch.arange(x.shape[-2])
    return Work(lambda: rope(x, positions, **OPTIONS))


def neighbours_of_layer(small: bool) -> Work:
    """Rotate a layer in bfloat16 by a given table, in layout interleaved. The peer is a copy."""
    x = torch.randn(1, 32, 8 if small else 4096, 128).bfloat16()
    cos, sin = tables(torch.arange(x.shape[-2]), 128)
    return Work(lambda: apply_rope(x, cos, sin, layout="interleaved"), x.clone)


SINGLY = (
    "Pairs that are read and written as words of 32 bits. Inductor emits one loop that reads and writes the bfloat16 of a pair "
    "one by one, without vectors."
)
ANEW = (
    "A table that is made before the loop over heads. {} computes its cosines and sines inside, for each of the 32 heads anew."
)
FUSED = (
    "One operation of PyTorch for the four, or six in bfloat16, that are left: a kernel of its own. Most of the other time "
    "compares the table with the one that is remembered."
)
ROUNDED = (
    "A product of complex numbers. NumPy's rounds otherwise, so its bits are not those of the definition as it is written."
)
LAYER, STEP = (1, 32, 4096, 128), (8, 32, 1, 128)
DTYPES, SIZES = (
    {"float32": F32, "bfloat16": BF16},
    ((1, 8, 16), (1, 32, 16), (1, 8, 128), (1, 32, 128), (1, 8, 512), (1, 32, 512), (1, 8, 1024), (1, 32, 1024), (8, 8, 256)),
)
LINES = (
    Line("apply_rope half float32, 4096 tokens", TRANSFORMERS, 0.4, lambda s: by_table(s, LAYER, F32)),
    Line("apply_rope interleaved float32, 4096 tokens", TRANSFORMERS, 0.45, lambda s: interleaved(s, F32)),
    Line("apply_rope half bfloat16, 4096 tokens", TRANSFORMERS, 0.45, lambda s: by_table(s, LAYER, BF16)),
    Line("apply_rope interleaved bfloat16, 4096 tokens", TRANSFORMERS, 0.45, lambda s: interleaved(s, BF16)),
    Line("torch.compile half float32", "a copy", 1.2, lambda s: compiled(s, "half", F32)),
    Line("torch.compile half bfloat16", "a copy", 1.2, lambda s: compiled(s, "half", BF16)),
    Line("torch.compile half float16", "a copy", 1.2, lambda s: compiled(s, "half", F16)),
    Line("torch.compile interleaved bfloat16", "a copy", 1.5, lambda s: compiled(s, "interleaved", BF16), cost=SINGLY),
    Line("torch.compile rope half float32, its table inside", "a copy", 2.0, compiled_rope, cost=ANEW.format("Inductor")),
    Line("jax.jit half float32", "x + 1, jitted", 1.3, jitted),
    Line("jax.jit interleaved bfloat16", "x + 1, jitted", 1.5, lambda s: jitted(s, "interleaved", jnp.bfloat16)),
    Line(
        "jax.jit rope half float32, its table inside",
        "x + 1, jitted",
        2.0,
        lambda s: jitted(s, table=False),
        cost=ANEW.format("XLA"),
    ),
    Line("NumPy half float32", "a copy", 4.0, lambda s: by_numpy(s, "half")),
    Line("NumPy interleaved float32", "a copy", 2.5, lambda s: by_numpy(s, "interleaved"), cost=ROUNDED),
    Line("rope float32, 2048 tokens", TRANSFORMERS, 0.5, lambda s: with_table(s, 2048, F32)),
    Line("rope bfloat16, 2048 tokens", TRANSFORMERS, 0.6, lambda s: with_table(s, 2048, BF16)),
    *(
        Line(
            f"rope {scaling} {name}, one token".replace("  ", " "),
            TRANSFORMERS,
            1.0,
            lambda s, d=d, w=scaling: with_table(s, 1, d, w),
        )
        for scaling in SCALINGS
        for name, d in DTYPES.items()
    ),
    *(
        Line(f"rope {name}, half of the channels, one token", "transformers (GPT-NeoX)", 1.0, lambda s, d=d: partially(s, d))
        for name, d in DTYPES.items()
    ),
    Line("apply_rope float32, decode of 8", TRANSFORMERS, 1.0, lambda s: by_table(s, STEP, F32), cost=FUSED),
    Line("apply_rope bfloat16, decode of 8", TRANSFORMERS, 1.0, lambda s: by_table(s, STEP, BF16), cost=FUSED),
    *(
        Line(
            f"rope {name}, {b} x {h} x {t} tokens",
            TRANSFORMERS,
            1.0,
            lambda s, b=b, h=h, t=t, d=d: with_table(s, t, d, heads=h, batch=b),
        )
        for name, d in DTYPES.items()
        for b, h, t in SIZES
    ),
    *(
        Line(f"apply_rope interleaved {name}, 8 x {t} tokens", "a copy", goal, lambda s, t=t, d=d: neighbours(s, t, d))
        for (name, d), goal in zip(DTYPES.items(), (3.0, None), strict=True)
        for t in (128, 512, 2048)
    ),
    Line("apply_rope interleaved bfloat16, 32 x 4096 tokens", "a copy", 1.5, neighbours_of_layer),
    Line("axial_rope float32, 14 x 14", "timm", 1.0, lambda s: on_a_grid(s, 14)),
    Line("axial_rope float32, 48 x 48", "timm", 0.6, lambda s: on_a_grid(s, 48)),
    Line("apply_rope interleaved float32, 2048 tokens", "diffusers", None, diffusers),
    Line("rope interleaved float32, 2048 tokens", "x-transformers", None, x_transformers),
    Line("rope interleaved float32, 2048 tokens", "rotary-embedding-torch", None, rotary_embedding_torch),
    Line("rope of 1 GiB", "its result's bytes", None, large, memory=2.15, of_result=True),
)
