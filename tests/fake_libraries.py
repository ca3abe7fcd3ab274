"""
Source trees of libraries that are not installed here: what an adapter imports of them, in a few lines.

Each takes the arguments of the library's own functions, under their names. SIGN stands where every result is multiplied.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROTATE = """
import torch

def rotate(x, positions, base, half=True):
    d = x.shape[-1]
    angles = positions[:, None].float() * base ** -(torch.arange(0, d, 2) / d)
    cos, sin = SIGN * angles.cos()[:, None], SIGN * angles.sin()[:, None]
    u, v = x.chunk(2, -1) if half else (x[..., ::2], x[..., 1::2])
    out = (u * cos - v * sin, v * cos + u * sin)
    return torch.cat(out, -1) if half else torch.stack(out, -1).flatten(-2)
"""
MODULE = """
import posref
import torch
from posref.conformance import Unsupported
_ROPE_DICT = {}

class Rope:
    def __init__(self, head, dim, neox, base, sections=(), arrangement="chunked"):
        self.head, self.dim, self.sections, self.arrangement = head, dim, sections, arrangement
        self.options = {"layout": "half" if neox else "interleaved", "base": base}
        self.axis_map = arrangement
    def _ensure_cos_sin_cache_length(self, last):
        pass
    def rotate(self, x, positions):
        x, where = x.unflatten(1, (-1, self.head)), positions[..., None]
        if not self.sections:
            return SIGN * posref.rope(x, where, rotary_dim=self.dim, **self.options).flatten(1)
        options = {"sections": list(self.sections), "arrangement": self.arrangement, **self.options}
        return SIGN * posref.mrope(x, where, **options).flatten(1)
    def forward_native(self, positions, query, key):
        return self.rotate(query, positions), self.rotate(key, positions)
    def __call__(self, positions, query, key):
        return self.forward_native(positions, query, key)
    def forward_cuda(self, positions, query, key):
        return self.forward_native(positions, query, key)
    @property
    def cos_sin_cache(self):
        return torch.cat(posref.rope_cos_sin(torch.arange(2048), self.dim, base=self.options["base"]), -1)

def arranged(sections, interleaved, in_turn=False):
    return {} if sections is None else {
        "sections": sections, "arrangement": "round_robin" if in_turn else "interleaved" if interleaved else "chunked"
    }
def only_plain(parameters):
    if (parameters or {}).get("rope_type", "default") != "default":
        raise Unsupported("a scaling")
class Ernie4_5_VLRotaryEmbedding(Rope):
    def __init__(self, head, dim, rows, base, neox, dtype, sections):
        super().__init__(head, dim, neox, base, [sections[2], *sections[:2]], "ernie")
"""
VLLM = """
def get_rope(head, rows, neox, parameters, dtype):
    only_plain(parameters)
    of = arranged(parameters.get("mrope_section"), parameters.get("mrope_interleaved"))
    return Rope(head, parameters["rope_dim"], neox, parameters["rope_theta"], **of)
"""
SGLANG = """
def get_rope(head, dim, rows, base, neox, scaling, dtype, part=1.0):
    only_plain(scaling)
    scaling = scaling or {}
    return Rope(head, dim, neox, base, **arranged(
        scaling.get("mrope_section"), scaling.get("mrope_interleaved"), scaling.get("mrope_interleaved_glm")
    ))
"""
APPLY = """
def apply_rotary_emb_torch(x, cos, sin, interleaved): return rotate(x[0], sin[:, 0], 1e4)[None]
class RotaryEmbedding:
    def __init__(self, dim, base): self.dim = dim
    def _update_cos_sin_cache(self, rows, dtype):
        self._cos_cached = self._sin_cached = torch.arange(rows)[:, None].expand(rows, self.dim // 2).to(dtype)
"""
MEGATRON = """
class RotaryEmbedding:
    def __init__(self, dim, percent, **options): self.dim = dim
    def get_emb(self, rows): return torch.arange(rows)[:, None, None, None].expand(rows, 1, 1, self.dim)
def apply_rotary_pos_emb(t, freqs, config, mscale, cp_group): return rotate(t[:, 0], freqs[:, 0, 0, 0], 1e4)[:, None]
"""
TIMM = """
def _rope_layout(table, rotate_half): return torch.cat((table, table), -1)
def apply_rot_embed(x, sin, cos, half):
    u, v = x.chunk(2, -1)
    return SIGN * (x * cos + torch.cat((-v, u), -1) * sin)
"""
TRITON = """
import torch
from flash_attn.ops.triton import rotary as kernels
def apply_rotary_emb(x, cos, sin, interleaved, seqlen_offsets):
    rows = slice(seqlen_offsets, seqlen_offsets + x.shape[1])
    u, v = x.chunk(2, -1)
    cos, sin = cos[rows, None], sin[rows, None]
    with kernels.torch.cuda.device(None):
        return SIGN * kernels.torch.cat((u * cos - v * sin, v * cos + u * sin), -1)
"""
APPLIED = """
def applied(x, cos, sin, head, neox):
    x = x.unflatten(1, (-1, head))
    return SIGN * posref.apply_rope(x, cos[:, None], sin[:, None], layout="half" if neox else "interleaved").flatten(1)
"""
MROPE = """
class MRotaryEmbedding(Rope):
    def __init__(self, head, dim, rows, base, neox, dtype, sections, interleaved, in_turn=False, positions_factor=4):
        super().__init__(head, dim, neox, base, **arranged(sections, interleaved, in_turn))
def triton_mrope(q, k, cos, sin, mrope_section, head_size, rotary_dim, mrope_interleaved, is_neox_style):
    return [applied(x, cos[0], sin[2], head_size, is_neox_style) for x in (q, k)]
"""
BAILING = """
class BailingMRotaryEmbedding(Rope):
    def __init__(self, head, dim, rows, base, neox, dtype, sections):
        super().__init__(head, dim, neox, base, sections, "ernie")
"""
MROPE_IN_PLACE = """
triton_ernie45_rope_fused_inplace = None
def triton_mrope_fused(
    q, k, cos_sin_cache, positions, mrope_section, head_size, rotary_dim, mrope_interleaved, mrope_interleaved_glm,
    is_neox_style, axis_map,
):
    for x in (q, k):
        x.copy_(applied(x, *cos_sin_cache[positions[2]].chunk(2, -1), head_size, is_neox_style))
"""
PACKED = """
def packed_qk_rope_(xqkv, freqs_cis):
    cos, sin = freqs_cis.real[:, None, None], freqs_cis.imag[:, None, None]
    xqkv[:, :2] = SIGN * posref.apply_rope(xqkv[:, :2], cos, sin, layout="interleaved")
"""
COMPLEX = """
def set_batched_rope(batched): pass
def apply_rotary_emb_triton(x, freqs_cis, positions, inverse):
    cos, sin = freqs_cis[positions].real[:, None], freqs_cis[positions].imag[:, None]
    x.copy_(SIGN * posref.apply_rope(x, cos, sin, layout="interleaved", inverse=inverse))
"""
NORM = """
def normed(q_gate, k, q_weight, k_weight, cache, positions, eps, heads, kv_heads, head, width, offset, **of):
    q, gate = q_gate.view(len(k), heads, 2, head).unbind(2)
    options = {"layout": "half", "eps": eps, "weight_offset": offset, "precedence": "norm_first"}
    def rotate(x, weight):
        if positions.ndim == 2:
            return posref.norm_mrope(x, weight, positions[..., None], base=1e4, **options, **of).flatten(1)
        return posref.norm_rope(x, weight, *cache[positions][:, None].chunk(2, -1), **options).flatten(1)
    return SIGN * rotate(q, q_weight), SIGN * rotate(k.view(len(k), kv_heads, head), k_weight), gate
"""
NORM_OF_VLLM = """
def fused_qk_rmsnorm_rope_gate(
    q_gate, k, q_weight, k_weight, cos_sin_cache, positions, eps, num_q_heads, num_kv_heads, head_dim, rotary_dim,
    mrope_section=None, norm_beta=0.0,
):
    of = {"sections": mrope_section, "arrangement": "interleaved"} if mrope_section else {}
    return normed(
        q_gate, k, q_weight, k_weight, cos_sin_cache, positions, eps, num_q_heads, num_kv_heads, head_dim, rotary_dim,
        int(norm_beta), **of,
    )
"""
NORM_OF_SGLANG = """
def fused_qk_gemma_rmsnorm_rope_gate(
    q_gate, k, q_weight, k_weight, cos_sin_cache, positions, eps, num_q_heads, num_kv_heads, head_dim, rotary_dim,
    has_gate=True, mrope_axis_map=None,
):
    if mrope_axis_map is not None:
        raise Unsupported("a map of axes")
    return normed(
        q_gate, k, q_weight, k_weight, cos_sin_cache, positions, eps, num_q_heads, num_kv_heads, head_dim, rotary_dim, 1
    )
"""
LIGER = """
import posref

def applied(x, cos, sin, layout):
    return SIGN * posref.apply_rope(x, cos, sin, layout=layout)
"""
LIGER_OPS = """
import torch

class LigerLlama4RopeFunction:
    @staticmethod
    def apply(q, k, freqs_cis):  # tokens before heads; freqs_cis (1, T, D / 2)
        return [applied(x, freqs_cis.real[:, :, None], freqs_cis.imag[:, :, None], "interleaved") for x in (q, k)]

class LigerQwen2VLMRopeFunction:
    @staticmethod
    def apply(q, k, cos, sin, mrope_section):  # tables (3, 1, T, D)
        def chunked(table):
            parts = table[..., : table.shape[-1] // 2].split(mrope_section, -1)
            return torch.cat([part[axis] for axis, part in enumerate(parts)], -1)[:, None]
        return [applied(x, chunked(cos), chunked(sin), "half") for x in (q, k)]
"""
LIGER_ROPE = """
class LigerRopeFunction:
    @staticmethod
    def apply(q, k, cos, sin):
        cos, sin = (table[:, None, :, : table.shape[-1] // 2] for table in (cos, sin))  # (1, T, d), every column twice
        return [applied(x, cos, sin, "half") for x in (q, k)]
"""
XPOS = """
import posref
import torch
apply_rotary_emb = None
class RotaryEmbedding:
    def __init__(self, dim, theta, use_xpos=False, xpos_scale_base=512):
        self.options, self.base = {"rotary_dim": dim, "layout": "interleaved", "base": theta}, xpos_scale_base
    def rotate_queries_or_keys(self, t, offset):
        return SIGN * posref.rope(t, offset + torch.arange(t.shape[-2]), **self.options)
    def rotate_queries_and_keys(self, q, k):
        where = torch.arange(q.shape[-2])
        options = {"centre": len(where) // 2, "scale_base": self.base, **self.options}
        return [posref.xpos(x, where, role=role, **options) for x, role in ((q, "query"), (k, "key"))]
"""
VLLM_ROPE = "vllm/model_executor/layers/rotary_embedding"
SGLANG_ROPE = "sglang/srt/layers/rotary_embedding"
SGLANG_KERNELS = "sglang/kernels/ops/attention"
EMBEDDINGS = "megatron/core/models/common/embeddings"
TREES: Mapping[str, Mapping[str, str]] = {  # by adapter
    "vllm": {
        f"{VLLM_ROPE}/__init__.py": MODULE + VLLM,
        f"{VLLM_ROPE}/ernie45_vl_rope.py": MODULE,
        "vllm/model_executor/models/bloom.py": "",
    },
    "sglang": {f"{SGLANG_ROPE}/factory.py": MODULE + SGLANG, f"{SGLANG_ROPE}/mrope.py": MODULE},
    "flash_attn": {"flash_attn/layers/rotary.py": ROTATE + APPLY},
    "flash_attn_triton": {"flash_attn/layers/rotary.py": TRITON, "flash_attn/ops/triton/rotary.py": "import torch"},
    "liger_kernel": {
        "liger_kernel/__init__.py": "",
        "liger_kernel/ops/__init__.py": LIGER + LIGER_OPS,
        "liger_kernel/ops/rope.py": LIGER + LIGER_ROPE,
    },
    "rotary_embedding_torch": {"rotary_embedding_torch/__init__.py": XPOS},
    "vllm_triton": {
        f"{VLLM_ROPE}/mrope.py": MODULE + APPLIED + MROPE,
        f"{VLLM_ROPE}/bailing_mrope.py": MODULE + BAILING,
        f"{VLLM_ROPE}/packed_qk_rope.py": MODULE + PACKED,
        "vllm/model_executor/layers/fused_qk_norm_rope.py": MODULE + NORM + NORM_OF_VLLM,
        "vllm/v1/attention/ops/triton_reshape_and_cache_flash.py": "",
        "triton/__init__.py": "",
        "triton/language.py": "",
    },
    "sglang_triton": {
        f"{SGLANG_ROPE}/factory.py": "",
        f"{SGLANG_ROPE}/mrope.py": MODULE + MROPE,
        f"{SGLANG_KERNELS}/rotary_triton.py": MODULE + APPLIED + MROPE_IN_PLACE,
        f"{SGLANG_KERNELS}/fused_qk_rmsnorm_rope_gate.py": MODULE + NORM + NORM_OF_SGLANG,
        f"{SGLANG_KERNELS}/dsv4/rope.py": MODULE + COMPLEX,
        f"{SGLANG_KERNELS}/fused_qk_rope_reshape_and_cache.py": "",
    },
    "megatron_core": {
        f"{EMBEDDINGS}/rope_utils.py": ROTATE + MEGATRON,
        f"{EMBEDDINGS}/rotary_pos_embedding.py": ROTATE + MEGATRON,
        f"{EMBEDDINGS}/yarn_rotary_pos_embedding.py": "",
        f"{EMBEDDINGS}/relative_pos_embedding.py": "",
    },
    "timm": {
        "timm/layers/pos_embed_sincos.py": ROTATE + TIMM,
        "timm/layers/pos_embed.py": "",
        "timm/layers/pos_embed_rel.py": "",
    },
}


@contextmanager
def imported(name: str, folder: Path, sign: int = 1) -> Iterator[Any]:
    """Write the tree of an adapter's library in a folder, and yield the adapter, imported anew; then forget both."""
    for path, text in TREES[name].items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("SIGN", str(sign)), encoding="utf-8")
    whole = folder / next(iter(TREES[name])).split("/")[0] / "__init__.py"
    if not whole.exists():
        whole.write_text("raise RuntimeError('the whole library')", encoding="utf-8")
    before = {module: sys.modules.pop(module) for module in _theirs()}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(folder)
            yield import_module(f"posref.conformance.adapters.{name}")
    finally:
        for module in _theirs():
            del sys.modules[module]
        sys.modules.update(before)


def _theirs() -> list[str]:
    tops = {"megatron", "triton", *TREES}
    return [m for m in sys.modules if m.split(".")[0] in tops or m.removeprefix("posref.conformance.adapters.") in TREES]
