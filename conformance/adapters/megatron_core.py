"""
Megatron-core: its rotary modules, apply_rotary_pos_emb unfused, and T5's buckets, on a CPU.

Its embeddings are imported without the rest of Megatron. They move their frequencies to the current CUDA device; while the
adapter calls them, that is the CPU.
"""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from posref.scaling import Linear, Scaling, YaRN

from ._shared import flat_tokens, from_table, lacks, only_package

PACKAGE = "megatron-core"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

ROWS = 1 << 20  # of a table of which a few rows are looked up
scalings = ("Linear", "YaRN")

EMBEDDINGS = "megatron.core.models.common.embeddings"
STUBS: dict[str, dict[str, Any]] = {
    "megatron.core.parallel_state": {"get_context_parallel_group": lambda **options: None},
    "megatron.core.extensions.transformer_engine": {},
    "megatron.core.inference.contexts": {}, "megatron.core.transformer": {}, "megatron.core.utils": {},
    "megatron.core.transformer.transformer_block": {}, "megatron.core.transformer.transformer_config": {},
}  # fmt: skip
utils = only_package(f"{EMBEDDINGS}.rope_utils", stubs=STUBS)
rotary = only_package(f"{EMBEDDINGS}.rotary_pos_embedding")
yarn = only_package(f"{EMBEDDINGS}.yarn_rotary_pos_embedding")
relative = only_package(f"{EMBEDDINGS}.relative_pos_embedding")
vars(utils)["apply_rotary_emb_flash"] = None  # flash-attn's kernel needs a GPU

NATURAL: dict[str, Any] = {"numbers": ["integers"], "negative": False, "position": {"max": ROWS - 1}, "length": ["default"]}
LEADING = {"lanes": "trailing", "partial": True}

supports: dict[str, dict[str, Any]] = {
    "rope_frequencies": {"scaling": [None], "length": ["default"]},
    "rope_cos_sin": {**NATURAL, "scaling": [None, "Linear"]},
    "apply_rope": {"empty": False, "layout": ["half", "interleaved"], "inverse": [False], "not": [LEADING]},
    "rope": {
        **NATURAL, "empty": False, "scaling": [None, "Linear", "YaRN"], "inverse": [False],
        "YaRN.attention_factor": ["default"], "not": [LEADING, {"layout": "interleaved", "scaling": "YaRN"}],
    },
    "mrope": {
        "layout": ["half", "interleaved"], "axes": [3], "arrangement": ["chunked"], "scaling": [None, "Linear"],
        "inverse": [False], "length": ["default"],
    },
    "t5_buckets": {},
}  # fmt: skip


def rope_frequencies(dim: int, /, *, base: float, scaling: Scaling | None = None) -> tuple[Tensor, float]:
    """The inv_freq of RotaryEmbedding."""
    if scaling is not None:
        lacks(f"no {scaling!r}")
    return _module(dim, base, scaling).inv_freq, 1.0


def rope_cos_sin(
    positions: Tensor, dim: int, /, *, base: float, scaling: Scaling | None = None, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """RotaryEmbedding.get_cos_sin."""
    if scaling is not None and not isinstance(scaling, Linear):
        lacks(f"no {scaling!r}")
    cos, sin = from_table(_module(dim, base, scaling).get_cos_sin, positions, rows=ROWS)
    return cos.to(dtype or torch.get_default_dtype()), sin.to(dtype or torch.get_default_dtype())


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """apply_rotary_pos_emb_with_cos_sin of all tokens as one sequence of one head."""
    pairs = cos.shape[-1]
    if layout not in ("half", "interleaved") or inverse or (lanes == "trailing" and 2 * pairs != x.shape[-1]) or not x.numel():
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: leading channels, forwards, of one token at least")
    tables = (torch.broadcast_to(t, (*x.shape[:-1], pairs)).reshape(-1, pairs) for t in (cos, sin))
    flat = x.reshape(-1, 1, 1, x.shape[-1])
    return utils.apply_rotary_pos_emb_with_cos_sin(flat, *tables, rotary_interleaved=layout == "interleaved").reshape(x.shape)


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None,
    scaling: Scaling | None = None, lanes: str = "leading", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """RotaryEmbedding or YarnRotaryEmbedding, then apply_rotary_pos_emb; interleaved_to_half is multi-latent."""
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    if inverse or (lanes == "trailing" and width != x.shape[-1]) or not x.numel():
        lacks("leading channels, forwards, of one token at least")
    if isinstance(scaling, YaRN) and layout == "interleaved":
        lacks("YarnRotaryEmbedding refuses rotary_interleaved")
    tokens, where, back = flat_tokens(x, positions)
    module = _module(width, base, scaling, rotary_interleaved=layout == "interleaved")
    mscale = 1.0

    def table(rows: int) -> Tensor:
        nonlocal mscale
        with patch.object(torch.cuda, "current_device", lambda: "cpu"):
            made = module.get_emb(rows)
        if isinstance(scaling, YaRN):
            made, mscale = made
        return made

    freqs = from_table(table, where, rows=ROWS)
    return back(_apply(tokens[:, None], freqs, layout, mscale))


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, inverse: bool = False,
) -> Tensor:  # fmt: skip
    """MultimodalRotaryEmbedding, then apply_rotary_pos_emb, all tokens as one sequence of one head."""
    if len(sections) != 3 or arrangement != "chunked" or layout not in ("half", "interleaved") or inverse:
        lacks(f"{len(sections)} axes that are {arrangement!r}, with layout {layout!r}")
    factor = scaling.factor if isinstance(scaling, Linear) else None
    if scaling is not None and factor is None:
        lacks(f"no mRoPE with {scaling!r}")
    where = torch.stack([torch.broadcast_to(axis, x.shape[:-1]).reshape(1, -1) for axis in positions])
    with patch.object(torch.cuda, "current_device", lambda: "cpu"):
        module = rotary.MultimodalRotaryEmbedding(2 * sum(sections), 1.0, layout == "interleaved", factor, base)
        freqs = module(where.clone(), list(sections))
    return _apply(x.reshape(-1, 1, 1, x.shape[-1]), freqs, layout, 1.0).reshape(x.shape)


def t5_buckets(relative_positions: Tensor, /, *, bidirectional: bool, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """RelativePositionEmbedding._relative_position_bucket, which reads nothing of the module."""
    find = relative.RelativePositionEmbedding._relative_position_bucket
    return find(None, relative_positions, bidirectional, num_buckets, max_distance)


def _module(dim: int, base: float, scaling: Scaling | None, **options: Any) -> Any:
    """Return the module of a model with that scaling."""
    options |= {"rotary_base": base, "use_cpu_initialization": True}
    if isinstance(scaling, Linear):
        options |= {"seq_len_interpolation_factor": scaling.factor}
    elif isinstance(scaling, YaRN) and scaling.attention_factor is None:
        settings = {name: getattr(scaling, name) for name in ("beta_fast", "beta_slow", "mscale", "mscale_all_dim")}
        options |= {"scaling_factor": scaling.factor, "original_max_position_embeddings": scaling.original_length, **settings}
        options |= {"correction_range_round_to_int": scaling.truncate}
    elif scaling is not None:
        lacks(f"no {scaling!r}; Llama 3's lengths and bounds are fixed")
    kind = yarn.YarnRotaryEmbedding if isinstance(scaling, YaRN) else rotary.RotaryEmbedding
    with patch.object(torch.cuda, "current_device", lambda: "cpu"):
        return kind(dim, 1.0, **options)


def _apply(flat: Tensor, freqs: Tensor, layout: str, mscale: float) -> Tensor:
    config = SimpleNamespace(
        apply_rope_fusion=False,
        rotary_interleaved=layout == "interleaved",
        multi_latent_attention=layout == "interleaved_to_half",
    )
    return utils.apply_rotary_pos_emb(flat, freqs, config, mscale=mscale, cp_group=object())


# Read and run in megatron-core 0.16.1 with torch 2.13.0 on a CPU; paths in megatron/core/models/common/embeddings.
NOTES = (
    "Unfused code; Transformer Engine's and flash-attn's kernels are not asked. Cosines and sines are rounded to the dtype of "
    "the queries, and products are in it (rope_utils.py:122).",
    "apply_rotary_pos_emb_with_cos_sin without flash-attn takes the cosine of the cosines and the sine of the sines "
    "(rope_utils.py:326): every value is wrong. Megatron-LM #7465 fixes it.",
    "MultimodalRotaryEmbedding with rotary_interleaved raises a RuntimeError (rotary_pos_embedding.py:342).",
    "Llama 3's original length, 8192, and bounds, 1 and 4, cannot be set (rotary_pos_embedding.py:98); it is not asked.",
    "YaRN has no attention_factor, and refuses rotary_interleaved (yarn_rotary_pos_embedding.py:117).",
)
