"""
diffusers: `get_1d_rotary_pos_embed` with `apply_rotary_emb`, and `get_timestep_embedding`, as its models call them.

Frequencies are float32, the function's default; Flux asks it for float64. All tokens are one sequence of one head.
"""

from typing import Any

import torch
from diffusers.models.embeddings import (
    GaussianFourierProjection,
    SinusoidalPositionalEmbedding,
    apply_rotary_emb,
    apply_rotary_emb_allegro,
    get_1d_rotary_pos_embed,
    get_2d_rotary_pos_embed_lumina,
    get_2d_sincos_pos_embed_from_grid,
    get_timestep_embedding,
)
from diffusers.models.transformers.transformer_cogview4 import CogView4RotaryPosEmbed
from diffusers.models.transformers.transformer_mochi import MochiRoPE
from diffusers.models.transformers.transformer_omnigen import OmniGenSuScaledRotaryEmbedding
from diffusers.models.transformers.transformer_sana_wm import _apply_ucpe_transform
from torch import Tensor

from posref.scaling import Linear, LongRoPE, NTKAware, Scaling

from ..errors import Unsupported
from ._shared import lacks

PACKAGE = "diffusers"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

scalings = ("Linear", "NTKAware", "LongRoPE")

supports: dict[str, dict[str, Any]] = {
    "sinusoidal": {
        "odd": ["refused", "zeros"],
        "scale": ["default"],
        "not": [
            {"layout": "interleaved", name: words}
            for name, words in {
                "endpoint": True,
                "base": "given",
                "odd": "zeros",
                "numbers": ["whole floats", "fractional"],
                "negative": True,
            }.items()
        ],
    },
    "random_fourier": {"axes": [1]},
    "timestep": {},
    "sinusoidal_nd": {
        "axes": [2],
        "unequal": False,
        "layout": ["sin_cos"],
        "arrangement": ["axis"],
        "base": ["default"],
        "endpoint": [False],
    },
}

UNBIND = {"interleaved": -1, "half": -2}
LIMIT = 1 << 25  # numbers in a table of which a few rows are looked up


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None,
    scaling: Scaling | None = None, length: int | None = None,
) -> Tensor:  # fmt: skip
    """get_1d_rotary_pos_embed of these positions, or OmniGen's module, then apply_rotary_emb."""
    if rotary_dim not in (None, x.shape[-1]):
        lacks("apply_rotary_emb rotates the whole head")
    if layout not in UNBIND:
        lacks(f"no layout {layout!r}; what is read is written")
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    if isinstance(scaling, LongRoPE):
        return _omnigen(x, where, layout, base, scaling, length)
    match scaling:
        case None:
            options = {}
        case Linear(factor):
            options = {"linear_factor": factor}
        case NTKAware(factor):
            options = {"ntk_factor": factor}
        case _:
            raise Unsupported(repr(scaling))
    repeat = layout == "interleaved"
    table = get_1d_rotary_pos_embed(x.shape[-1], where, base, use_real=True, repeat_interleave_real=repeat, **options)
    return apply_rotary_emb(x.reshape(1, 1, -1, x.shape[-1]), table, use_real_unbind_dim=UNBIND[layout]).reshape(x.shape)


def _omnigen(x: Tensor, where: Tensor, layout: str, base: float, scaling: LongRoPE, length: int | None) -> Tensor:
    """OmniGenSuScaledRotaryEmbedding, then apply_rotary_emb as OmniGen calls it."""
    settings = (scaling.factor, scaling.attention_factor, scaling.short_mscale, scaling.long_mscale)
    if layout != "half" or scaling.max_length is None or any(value is not None for value in settings):
        lacks("OmniGen pairs halves, and makes its factor of two lengths")
    if not where.numel() or length != int(where.max()) + 1:
        lacks("the length of OmniGen is always the largest position of the call plus 1")
    lists = {"short_factor": list(scaling.short_factor), "long_factor": list(scaling.long_factor)}
    module = OmniGenSuScaledRotaryEmbedding(x.shape[-1], scaling.max_length, scaling.original_length, base, lists)
    rows = x.reshape(1, 1, -1, x.shape[-1])
    return apply_rotary_emb(rows, module(x, where[None]), use_real_unbind_dim=-2).reshape(x.shape)


def axial_rope(
    x: Tensor, positions: Tensor, /, *, dims: list[int], base: float, allocation: str, arrangement: str, layout: str
) -> Tensor:
    """get_1d_rotary_pos_embed of every axis, joined as Flux joins them; or as Allegro, CogView4 and Lumina-Next have them."""
    if allocation != "own" or sum(dims) != x.shape[-1]:
        lacks("every axis has its own frequencies, and the axes share the whole head")
    where = [torch.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions]
    rows = x.reshape(1, 1, -1, x.shape[-1])
    if arrangement != "chunked" or layout == "half":
        return _of_grid(rows, where, dims, base, arrangement, layout).reshape(x.shape)
    near = layout == "interleaved"
    tables = [
        get_1d_rotary_pos_embed(dim, axis, base, use_real=True, repeat_interleave_real=near)
        for dim, axis in zip(dims, where, strict=True)
    ]
    if near:
        cos, sin = (torch.cat(part, dim=-1) for part in zip(*tables, strict=True))
        return apply_rotary_emb(rows, (cos, sin)).reshape(x.shape)
    if len(dims) != 3 or len(set(dims)) != 1:
        lacks("apply_rotary_emb_allegro has three axes of as many lanes")
    each = torch.arange(where[0].numel())[None]  # the tables have a row for every token
    return apply_rotary_emb_allegro(rows, tables, [each] * 3).reshape(x.shape)


def _of_grid(rows: Tensor, where: list[Tensor], dims: list[int], base: float, arrangement: str, layout: str) -> Tensor:
    """Look up the cells of the tables that CogView4 and Lumina-Next make of a whole grid."""
    if len(dims) != 2 or dims[0] != dims[1]:
        lacks("CogView4 and Lumina-Next have two axes of as many lanes")
    if any(axis.is_floating_point() or (axis.numel() and int(axis.min()) < 0) for axis in where):
        lacks("CogView4 and Lumina-Next have a grid of cells from 0 on")
    height, width = (int(axis.max()) + 1 if axis.numel() else 1 for axis in where)
    if height * width * sum(dims) > LIMIT:
        lacks(f"CogView4 and Lumina-Next make a table of the whole grid: {height} x {width} are too many here")
    cells = where[0] * width + where[1]
    if (arrangement, layout) == ("chunked", "half"):
        table = CogView4RotaryPosEmbed(sum(dims), 1, (height, width), base)(torch.empty(1, 1, height, width))
        return apply_rotary_emb(rows, [part[cells] for part in table], use_real_unbind_dim=-2)
    if (arrangement, layout, base) != ("round_robin", "interleaved", 10_000.0):
        lacks(f"no model has {arrangement!r}, {layout!r} and base {base}")
    turns = get_2d_rotary_pos_embed_lumina(sum(dims), height, width).flatten(0, 1)[cells]
    return apply_rotary_emb(rows.transpose(1, 2), turns[None], use_real=False)


def mixed_table(positions: Tensor, frequencies: Tensor, /, *, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """Mochi's frequencies times positions, with every token a row of one head."""
    if frequencies.ndim != 2:
        lacks("MochiRoPE has heads after tokens, and one list of tokens")
    axes, rows = positions.shape[0], positions.shape[1:]
    where = positions.reshape(axes, -1).movedim(0, -1)
    table = MochiRoPE()._create_rope(frequencies[:, None], where)
    return tuple(part.reshape(*rows, -1).to(dtype or torch.get_default_dtype()) for part in table)


def camera_transform(x: Tensor, matrices: Tensor, inverses: Tensor, /, *, role: str, blocks: int) -> Tensor:
    """
    SANA-WM's _apply_ucpe_transform in float32, without RoPE, with the matrix that its attention gives for this role.

    It multiplies the first half of the channels: so it gets the channels of the blocks twice. Every row is a batch of one head.
    """
    end = blocks * matrices.shape[-1]
    if end > x.shape[-1]:
        msg = f"{blocks} blocks of {matrices.shape[-1]} channels, of {x.shape[-1]}"
        raise ValueError(msg)
    each = {"query": matrices.transpose(-1, -2), "key_value": inverses, "output": matrices}[role].float()
    each = torch.broadcast_to(each, (*x.shape[:-1], *each.shape[-2:])).flatten(0, -4) if x.ndim > 2 else each[None]
    rows = (x.flatten(0, -3) if x.ndim > 2 else x[None])[:, None, :, :end].float()
    turned = _apply_ucpe_transform(torch.cat([rows, rows], -1), each)[..., :end]
    return torch.cat([turned.to(x.dtype).reshape(*x.shape[:-1], end), x[..., end:]], dim=-1)


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str) -> Tensor:
    """apply_rotary_emb on the table, its columns twice as get_1d_rotary_pos_embed returns them."""
    if 2 * cos.shape[-1] != x.shape[-1]:
        lacks("apply_rotary_emb rotates the whole head")
    if layout not in UNBIND:
        lacks(f"no layout {layout!r}; what is read is written")
    pairs = cos.shape[-1]
    table = [torch.broadcast_to(part, (*x.shape[:-1], pairs)).reshape(-1, pairs) for part in (cos, sin)]
    twice = tuple(t.repeat_interleave(2, 1) if layout == "interleaved" else torch.cat((t, t), -1) for t in table)
    return apply_rotary_emb(x.reshape(1, 1, -1, x.shape[-1]), twice, use_real_unbind_dim=UNBIND[layout]).reshape(x.shape)


def sinusoidal(
    positions: Tensor, dim: int, /, *, layout: str, base: float = 1e4, endpoint: bool = False, odd: str = "refused",
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """get_timestep_embedding with downscale_freq_shift 0, or 1 for the endpoint; SinusoidalPositionalEmbedding interleaved."""
    if layout == "interleaved":
        return _cast(_interleaved(positions, dim, base, endpoint), positions, dtype)
    if layout not in ("sin_cos", "cos_sin") or (dim % 2 and odd != "zeros"):
        lacks(f"no layout {layout!r}, or width {dim} with odd={odd!r}")
    return timestep(positions, dim, flip=layout == "cos_sin", freq_shift=int(endpoint), scale=1.0, base=base, dtype=dtype)


def _interleaved(positions: Tensor, dim: int, base: float, endpoint: bool) -> Tensor:
    """Return rows of SinusoidalPositionalEmbedding, which it adds to what it is given."""
    rows = int(positions.max()) + 1 if positions.numel() else 1
    if endpoint or base != 10_000.0 or dim % 2 or positions.is_floating_point() or rows * dim > LIMIT:
        lacks("SinusoidalPositionalEmbedding has base 10000 without endpoint, an even width, and a table of rows from 0 on")
    if positions.numel() and int(positions.min()) < 0:
        lacks("a negative position counts rows from the end")
    return SinusoidalPositionalEmbedding(dim, rows)(torch.zeros(1, rows, dim))[0][positions]


def timestep(
    timesteps: Tensor, dim: int, /, *, flip: bool, freq_shift: int, scale: float, base: float = 1e4,
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """get_timestep_embedding, cast as its models cast it."""
    embedding = get_timestep_embedding(timesteps.reshape(-1), dim, flip, freq_shift, scale, base)
    return _cast(embedding.reshape(*timesteps.shape, dim), timesteps, dtype)


def sinusoidal_nd(
    positions: Tensor, /, *, dims: list[int], layout: str, arrangement: str, base: float = 1e4, endpoint: bool = False,
    dtype: torch.dtype | None = None,
) -> Tensor:  # fmt: skip
    """get_2d_sincos_pos_embed_from_grid, which computes in float64, cast as PatchEmbed casts it."""
    if len(dims) != 2 or dims[0] != dims[1] or (layout, arrangement) != ("sin_cos", "axis") or base != 10_000.0 or endpoint:
        lacks("two axes that share evenly, sines before cosines on each, base 10000, no endpoint")
    embedding = get_2d_sincos_pos_embed_from_grid(sum(dims), positions.reshape(2, -1)).float()
    return _cast(embedding.reshape(*positions.shape[1:], sum(dims)), positions, dtype)


def random_fourier(x: Tensor, matrix: Tensor, /, *, layout: str, dtype: torch.dtype | None = None) -> Tensor:
    """GaussianFourierProjection of one coordinate, without the logarithm that it can take first."""
    if x.shape[-1] != 1:
        lacks("one coordinate")
    module = GaussianFourierProjection(matrix.shape[1], log=False, flip_sin_to_cos=layout == "cos_sin")
    module.weight.data = matrix[0]
    return _cast(module(x.reshape(-1)).reshape(*x.shape[:-1], 2 * matrix.shape[1]), x, dtype)


def _cast(found: Tensor, given: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Return it in the dtype of the call."""
    return found.to(dtype or (given.dtype if given.is_floating_point() else torch.get_default_dtype()))


# Read and run in diffusers 0.42.1 with torch 2.13.0 on a CPU.
NOTES = (
    "ntk_factor multiplies the base itself (models/embeddings.py:928); Lumina hands the factor in as it is "
    "(pipelines/lumina/pipeline_lumina.py:862).",
    "get_1d_sincos_pos_embed_from_grid (models/embeddings.py:222) works in float64, get_timestep_embedding (:27) in float32.",
    "GaussianFourierProjection takes the logarithm of its input itself unless log=False (models/embeddings.py).",
)
