"""
SGLang: its Triton kernels of rotations, of norm with rotation, and of the cache, run on a CPU by Triton's interpreter.

Its files are imported without the rest of SGLang, so the files alone are enough, as for the adapter sglang.
"""

import sys
from typing import Any

import torch
from torch import Tensor

from posref.scaling import Scaling

from ._shared import HEADS, KV_HEADS, lacks, only_package
from ._triton import CLAIMS, DTYPES, of_flat, of_pages, of_weighted, rows_at, rows_of  # before Triton is imported
from .sglang import multimodal

PACKAGE = "sglang"
backend, dtypes, claims = "torch", DTYPES, CLAIMS

FORWARD: dict[str, Any] = {"empty": False, "gradient": False}
NATURAL: dict[str, Any] = {"numbers": ["integers"], "negative": False, "position": {"max": 1 << 18}}
NORMED: dict[str, Any] = {
    "dtype": ["float16"], "empty": False, "gradient": False, "layout": ["half"], "precedence": ["norm_first"],
    "weight_offset": [1],
}  # fmt: skip

supports: dict[str, dict[str, Any]] = {
    "apply_rope": {
        **FORWARD,
        "layout": ["half", "interleaved"],
        "not": [{"layout": "half", "lanes": "trailing", "partial": True}, {"layout": "half", "inverse": True}],
    },
    "mrope": {**FORWARD, **NATURAL, "axes": [3], "layout": ["half", "interleaved"], "scaling": [None], "inverse": [False]},
    "norm_rope": {**NORMED, "not": [{"lanes": "trailing", "partial": True}]},
    "norm_mrope": {**NORMED, **NATURAL, "axes": [3], "arrangement": ["chunked", "interleaved", "round_robin"]},
    "write_cache": {"empty": False, "gradient": False, "head_size": {"multiple_of": 8, "max": 512}},
}

KERNELS = "sglang.kernels.ops.attention"
for name in ("rotary_triton", "mrope"):
    sys.modules.pop(f"{KERNELS}.{name}", None)  # what stands in for them where the native code is asked
rotary = only_package(f"{KERNELS}.rotary_triton")
fused = only_package(f"{KERNELS}.fused_qk_rmsnorm_rope_gate")
complexes = only_package(f"{KERNELS}.dsv4.rope")
paged = only_package(f"{KERNELS}.fused_qk_rope_reshape_and_cache")
vars(multimodal).update({n: getattr(rotary, n) for n in ("triton_mrope_fused", "triton_ernie45_rope_fused_inplace")})


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, /, *, layout: str, lanes: str = "leading", inverse: bool = False) -> Tensor:
    """DeepSeek-V4's kernels of neighbours, plain and batched; triton_mrope_fused of halves, with one position on three axes."""
    pairs, head = cos.shape[-1], x.shape[-1]
    if layout not in ("half", "interleaved") or (layout == "half" and (inverse or (lanes == "trailing" and 2 * pairs != head))):
        lacks(f"layout {layout!r}, lanes {lanes!r}, inverse {inverse}: in halves leading channels, forwards")
    if not x.numel() or 2 * pairs > head:
        lacks("an empty array, or more pairs than a head has")
    tables = [rows_of(t.detach(), x) for t in (cos, sin)]
    where = torch.arange(1, len(tables[0]))

    def neighbours(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        table = torch.complex(*(torch.cat((t, t[:1])).float() for t in tables))
        outputs = []
        for batched, heads in ((True, q), (False, k)):
            complexes.set_batched_rope(batched)
            room = torch.cat((heads, torch.zeros_like(heads[:1])))  # for what is written beyond the last head
            view = room[:-1].unflatten(1, (-1, head))
            view = view[..., head - 2 * pairs :] if lanes == "trailing" else view[..., : 2 * pairs]
            complexes.apply_rotary_emb_triton(view, table, where, inverse)
            outputs.append(room[:-1])
        return outputs[0], outputs[1]

    def halves(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        third, cache = pairs // 3, torch.cat(tables, -1).to(x.dtype)  # as _match_cos_sin_cache_dtype does
        of = (torch.stack(3 * [where]), [pairs - 2 * third, third, third], head, 2 * pairs, False, False, True, None)
        rotary.triton_mrope_fused(q, k, cache, *of)
        return q, k

    return of_flat(x, neighbours if layout == "interleaved" else halves)


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, length: int | None = None, inverse: bool = False,
) -> Tensor:  # fmt: skip
    """MRotaryEmbedding's and ERNIE's forward_cuda, which run triton_mrope_fused and triton_ernie45_rope_fused_inplace."""
    if scaling is not None or inverse or layout not in ("half", "interleaved"):
        lacks(f"layout {layout!r} with {scaling!r}, inverse {inverse}: two layouts, unscaled, forwards")
    where, module = _module(x, positions, sections, arrangement, layout, base)
    return of_flat(x, lambda q, k: module.forward_cuda(where, q, k))


def norm_rope(
    x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor, /, *,
    layout: str, eps: float, weight_offset: int, precedence: str, lanes: str = "leading",
) -> Tensor:  # fmt: skip
    """fused_qk_gemma_rmsnorm_rope_gate with a cache of the tables' rows."""
    _only(layout, precedence, weight_offset, lanes if 2 * cos.shape[-1] != x.shape[-1] else "leading")
    if not x.numel() or 2 * cos.shape[-1] > x.shape[-1]:
        lacks("an empty array, or more pairs than a head has")
    cache = torch.cat([rows_of(t.detach(), x) for t in (cos, sin)], -1)
    return _normed(x, weight, cache, torch.arange(1, len(cache)), eps)


def norm_mrope(
    x: Tensor, weight: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    eps: float, weight_offset: int, precedence: str,
) -> Tensor:  # fmt: skip
    """fused_qk_gemma_rmsnorm_rope_gate with MRotaryEmbedding's cache and axis_map."""
    _only(layout, precedence, weight_offset)
    if arrangement == "ernie":
        lacks("its module has no map of axes for this kernel")
    where, module = _module(x, positions, sections, arrangement, layout, base)
    return _normed(x, weight, module.cos_sin_cache, where, eps, module.axis_map)


def write_cache(cache: Tensor, rows: Tensor, slots: Tensor, /) -> Tensor:
    """fused_qk_rope_reshape_and_cache with a table of half a turn, which gives keys their sign and leaves values alone."""
    size, head = cache.shape[1], cache.shape[-1]
    if head % 8 or head > 512 or any(n & (n - 1) for n in (size, head)):
        lacks(f"{size} slots of {head} channels: powers of two")

    def write(keys: Tensor, values: Tensor, key_cache: Tensor, value_cache: Tensor) -> None:
        table = torch.cat((-torch.ones(1, head // 2), torch.zeros(1, head // 2)), -1).to(rows.dtype)
        where, like = torch.zeros(len(keys), dtype=torch.int64), (torch.empty_like(keys) for _ in range(3))
        paged.fused_qk_rope_reshape_and_cache(
            next(like), -keys, values, key_cache, value_cache, slots.contiguous(), where, table, None, None, True, True,
            output_zeros=False,
        )  # fmt: skip

    return of_pages(cache, rows, slots, write)


def _only(layout: str, order: str, offset: int, lanes: str = "leading") -> None:
    """Refuse what the kernel with the norm lacks."""
    if (layout, order, offset, lanes) != ("half", "norm_first", 1, "leading"):
        lacks(f"layout {layout!r}, order {order!r}, offset {offset}, lanes {lanes!r}: Gemma's norm, then leading halves")


def _normed(x: Tensor, weight: Tensor, cache: Tensor, where: Tensor, eps: float, axes: Tensor | None = None) -> Tensor:
    """Return what the fused kernel makes of heads that stand before gates of other values."""
    if x.dtype != torch.float16:
        lacks("the kernel takes half precision")
    head = x.shape[-1]

    def rotate(q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor) -> tuple[Tensor, Tensor]:
        gated = q.unflatten(1, (-1, head))
        gated = torch.cat((gated, -gated), -1).flatten(1)
        q, k, *_ = fused.fused_qk_gemma_rmsnorm_rope_gate(
            gated, k, q_weight, k_weight, cache.contiguous(), where, eps, HEADS, KV_HEADS, head, cache.shape[-1],
            mrope_axis_map=axes,
        )  # fmt: skip
        return q, k

    return of_weighted(x, weight, rotate)


def _module(
    x: Tensor, positions: Tensor, sections: list[int], arrangement: str, layout: str, base: float
) -> tuple[Tensor, Any]:
    """Return positions of shape (3, N), and the module whose cache has rows for them."""
    where, rows = rows_at(x, positions, sections)
    of = (x.shape[-1], 2 * sum(sections), rows, base, layout == "half", x.dtype)
    if arrangement == "ernie":  # which lists height, width, time
        return where, multimodal.Ernie4_5_VLRotaryEmbedding(*of, [*sections[1:], sections[0]])
    in_turn = arrangement == "round_robin"
    return where, multimodal.MRotaryEmbedding(*of, list(sections), in_turn or arrangement == "interleaved", in_turn)


# Read and run in sglang 0.5.23 with triton 3.9.0 and torch 2.13.0 on a CPU; paths in sglang/kernels/ops/attention.
NOTES = (
    "The kernels run in Triton's interpreter (TRITON_INTERPRET=1), not compiled. It truncates to bfloat16, so bfloat16 is not "
    "asked. table_qk_norm_rope.py is left out, since it always rounds to bfloat16. So is gemma_qkv_norm_rope.py, which calls "
    "CUDA's libdevice. Storage in 8 bits is not asked.",
    "apply_rotary_emb_flat_kernel, which set_batched_rope chooses, masks tokens but not channels (dsv4/rope.py:238). Where the "
    "width is not a power of two it rotates channels beyond it. It is asked with room after the last head.",
    "fused_qk_gemma_rmsnorm_rope_gate rounds to half precision between norm and rotation "
    "(fused_qk_rmsnorm_rope_gate.py:110), and always adds 1 to the weights.",
    "triton_mrope_fused reads mrope_interleaved_glm only where mrope_interleaved is set too (rotary_triton.py:50). With the "
    "first alone it takes chunks, where _build_axis_map gives axes in turn. Both are set here.",
    "triton_mrope_fused computes in the dtype of the tables (rotary_triton.py:83), which the module casts to that of the "
    "queries: in half precision every product is rounded.",
)
