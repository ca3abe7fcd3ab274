"""
vLLM: its Triton kernels of rotations, of Qwen3.5's norm with rotation, and of the cache, run on a CPU by Triton's interpreter.

Its files are imported without the rest of vLLM, so the source alone is enough, as for the adapter vllm.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from posref.scaling import Scaling

from ._shared import HEADS, KV_HEADS, lacks, only_package
from ._triton import CLAIMS, DTYPES, of_flat, of_pages, of_weighted, rows_at, rows_of  # before Triton is imported

# isort: split
import triton
from triton import language

PACKAGE = "vllm"
backend, dtypes, claims = "torch", DTYPES, CLAIMS

LAYERS = "vllm.model_executor.layers"
FORWARD: dict[str, Any] = {"empty": False, "gradient": False, "inverse": [False]}
NATURAL: dict[str, Any] = {"numbers": ["integers"], "negative": False, "position": {"max": 1 << 18}}
NORMED: dict[str, Any] = {
    "dtype": ["float16"], "empty": False, "gradient": False, "layout": ["half"], "precedence": ["norm_first"],
}  # fmt: skip

supports: dict[str, dict[str, Any]] = {
    "apply_rope": {**FORWARD, "layout": ["half", "interleaved"], "not": [{"lanes": "trailing", "partial": True}]},
    "mrope": {
        **FORWARD,
        **NATURAL,
        "axes": [3],
        "arrangement": ["chunked", "interleaved", "ernie"],
        "layout": ["half", "interleaved"],
        "scaling": [None],
        "not": [{"arrangement": "ernie", "layout": "half"}],
    },
    "norm_rope": {**NORMED, "not": [{"lanes": "trailing", "partial": True}]},
    "norm_mrope": {**NORMED, **NATURAL, "axes": [3], "arrangement": ["interleaved"]},
    "write_cache": {"empty": False, "gradient": False},
}

_compilation = SimpleNamespace(custom_ops=["none"], enabled_custom_ops=set(), disabled_custom_ops=set())
_platform = SimpleNamespace(
    is_rocm=lambda: False, is_cuda=lambda: False, is_cpu=lambda: True, is_xpu=lambda: True, is_out_of_tree=lambda: False
)
STUBS: dict[str, dict[str, Any]] = {
    "vllm.config": {"get_cached_compilation_config": lambda: _compilation},
    "vllm.platforms": {"current_platform": _platform},
    "vllm._aiter_ops": {"rocm_aiter_ops": SimpleNamespace(is_triton_rotary_embed_enabled=lambda: False)},
    "vllm.triton_utils": {"triton": triton, "tl": language},
    "vllm.config.compilation": {}, "vllm.logger": {}, "vllm.model_executor.utils": {}, "vllm.utils.torch_utils": {},
    "vllm.utils.flashinfer": {"has_flashinfer": lambda: False},
    f"{LAYERS}.quantization.utils.quant_utils": {"get_fp8_min_max": lambda: (-448.0, 448.0)},
    "vllm.v1.kv_cache_interface": {"is_quantized_kv_cache": lambda kind: False},
}  # fmt: skip
multimodal = only_package(f"{LAYERS}.rotary_embedding.mrope", stubs=STUBS)
bailing = only_package(f"{LAYERS}.rotary_embedding.bailing_mrope")
packed = only_package(f"{LAYERS}.rotary_embedding.packed_qk_rope")
fused = only_package(f"{LAYERS}.fused_qk_norm_rope")
paged = only_package("vllm.v1.attention.ops.triton_reshape_and_cache_flash")


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """packed_qk_rope_ of all neighbours, else triton_mrope with the same table for each of three axes."""
    pairs, head = cos.shape[-1], x.shape[-1]
    if layout not in ("half", "interleaved") or inverse or (lanes == "trailing" and 2 * pairs != head):
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: leading channels, forwards")
    if not x.numel() or 2 * pairs > head:
        lacks("an empty array, or more pairs than a head has")
    tables = [rows_of(t.detach(), x)[1:].to(x.dtype) for t in (cos, sin)]  # as _match_cos_sin_cache_dtype does

    def neighbours(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        q, k = (t.unflatten(1, (-1, head)) for t in (q, k))
        filled = torch.cat((k, torch.zeros_like(q[:, KV_HEADS:])), 1)  # as many heads as q
        both = torch.stack((q, filled, torch.zeros_like(q)), 1)
        packed.packed_qk_rope_(both, torch.complex(*(t.float() for t in tables)))
        return both[:, 0].flatten(1), both[:, 1, : k.shape[1]].flatten(1)

    def axes(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        third = pairs // 3
        three = (torch.stack(3 * [t]) for t in tables)
        q, k = multimodal.triton_mrope(
            q, k, *three, [pairs - 2 * third, third, third], head, 2 * pairs, False, layout == "half"
        )
        return q, k

    return of_flat(x, neighbours if layout == "interleaved" and 2 * pairs == head else axes)


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, length: int | None = None, inverse: bool = False,
) -> Tensor:  # fmt: skip
    """MRotaryEmbedding's forward_cuda, which runs triton_mrope, or Bailing's: height and width in turn, then time."""
    if scaling is not None or inverse or layout not in ("half", "interleaved"):
        lacks(f"layout {layout!r} with {scaling!r}, inverse {inverse}: two layouts, unscaled, forwards")
    if arrangement not in ("chunked", "interleaved", "ernie") or (arrangement == "ernie" and layout != "interleaved"):
        lacks(f"no mRoPE that is {arrangement!r} in layout {layout!r}")
    where, rows = rows_at(x, positions, sections)
    of = (x.shape[-1], 2 * sum(sections), rows, base, layout == "half", x.dtype, list(sections))
    if arrangement == "ernie":
        module = bailing.BailingMRotaryEmbedding(*of)
    else:
        module = multimodal.MRotaryEmbedding(*of, arrangement == "interleaved", positions_factor=1)
    return of_flat(x, lambda q, k: module.forward_cuda(where, q, k))


def norm_rope(
    x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, /, *,
    layout: str, eps: float, weight_offset: int, precedence: str, lanes: str = "leading",
) -> Tensor:  # fmt: skip
    """fused_qk_rmsnorm_rope_gate with a cache of the tables' rows."""
    if layout != "half" or precedence != "norm_first" or (lanes == "trailing" and 2 * cos.shape[-1] != x.shape[-1]):
        lacks(f"layout {layout!r}, precedence {precedence!r}, lanes {lanes!r}: norm first, then leading channels in halves")
    if not x.numel() or 2 * cos.shape[-1] > x.shape[-1]:
        lacks("an empty array, or more pairs than a head has")
    cache = torch.cat([rows_of(t.detach(), x) for t in (cos, sin)], -1)
    return _normed(x, weight, cache, torch.arange(1, len(cache)), eps, weight_offset)


def norm_mrope(
    x: Tensor, weight: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    eps: float, weight_offset: int, precedence: str,
) -> Tensor:  # fmt: skip
    """fused_qk_rmsnorm_rope_gate with MRotaryEmbedding's cache and three rows of positions."""
    if arrangement != "interleaved" or layout != "half" or precedence != "norm_first":
        lacks(f"axes that are {arrangement!r}, layout {layout!r}, precedence {precedence!r}")
    where, rows = rows_at(x, positions, sections)
    module = multimodal.MRotaryEmbedding(
        x.shape[-1], 2 * sum(sections), rows, base, True, x.dtype, list(sections), True, positions_factor=1
    )
    return _normed(x, weight, module.cos_sin_cache, where, eps, weight_offset, list(sections))


def write_cache(cache: Tensor, rows: Tensor, slots: Tensor, /) -> Tensor:
    """triton_reshape_and_cache_flash, which writes keys and values."""
    one = torch.ones(1)
    return of_pages(
        cache, rows, slots, lambda *arrays: paged.triton_reshape_and_cache_flash(*arrays, slots.contiguous(), "auto", one, one)
    )


def _normed(
    x: Tensor, weight: Tensor, cache: Tensor, where: Tensor, eps: float, offset: int, sections: list[int] | None = None
) -> Tensor:
    """Return what the fused kernel makes of heads that stand before gates of other values."""
    if x.dtype != torch.float16:
        lacks("the kernel takes half precision")
    head = x.shape[-1]

    def rotate(q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor) -> tuple[Tensor, Tensor]:
        gated = q.unflatten(1, (-1, head))
        gated = torch.cat((gated, -gated), -1).flatten(1)
        q, k, *_ = fused.fused_qk_rmsnorm_rope_gate(
            gated, k, q_weight, k_weight, cache.contiguous(), where, eps, HEADS, KV_HEADS, head, cache.shape[-1],
            mrope_section=sections, norm_beta=float(offset),
        )  # fmt: skip
        return q, k

    return of_weighted(x, weight, rotate)


# Read and run in vllm 0.33.0 (sdist) with triton 3.9.0 and torch 2.13.0 on a CPU; paths in vllm.
NOTES = (
    "The kernels run in Triton's interpreter (TRITON_INTERPRET=1), not compiled. It truncates to bfloat16, so bfloat16 is not "
    "asked: models/flint/ops/qk_norm_rope.py rounds to bfloat16 whatever it is given, and is left out. So is "
    "models/common/ops/fused_qk_rmsnorm.py, whose launcher needs the engine's warmup. Storage in 8 bits is not asked.",
    "triton_mrope computes in the dtype of the tables (model_executor/layers/rotary_embedding/mrope.py:109 for halves, 147 for "
    "neighbours), which the module casts to that of the queries: in half precision every product is rounded.",
    "fused_qk_rmsnorm_rope_gate rounds to half precision between norm and rotation (model_executor/layers/"
    "fused_qk_norm_rope.py:98).",
    "The kernels of mRoPE do not compare the sections with the width of a head. More pairs than a head has are written "
    "outside.",
)
