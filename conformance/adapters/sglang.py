"""
SGLang: get_rope and the modules that it makes, and mRoPE, by their native code on a CPU.

Its rotary package is imported without the rest of SGLang, so the files alone are enough: install sglang without what it needs,
or put an unpacked sdist or a checkout on the path. It needs transformers besides.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from posref.scaling import DynamicNTK, Linear, LongRoPE, Proportional, Scaling, YaRN

from ._shared import hf_parameters, is_neox, lacks, only_package, queries_and_keys

PACKAGE = "sglang"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT = 1 << 27  # elements of a cache of cosines and sines
scalings = ("Linear", "NTKAlpha", "DynamicNTK", "Llama3", "YaRN", "LongRoPE", "Proportional")
NATURAL: dict[str, Any] = {"numbers": ["integers"], "negative": False, "empty": False, "inverse": [False]}

supports: dict[str, dict[str, Any]] = {
    "rope": {
        **NATURAL,
        "layout": ["half", "interleaved"],
        "scaling": [None, *scalings],
        "Proportional.factor": ["default"],
        "not": [{"layout": "interleaved", "scaling": "LongRoPE"}, {"lanes": "trailing", "partial": True}],
    },
    "mrope": {
        **NATURAL,
        "axes": [3],
        "layout": ["half", "interleaved"],
        "scaling": [None, "YaRN"],
        "not": [{"arrangement": ["ernie", "round_robin"], "scaling": "YaRN"}],
    },
}


class Native(nn.Module):  # type: ignore[misc]
    """A fused operation that always runs its native code."""

    def forward(self, *args: Any, **options: Any) -> Any:
        """Return what the native code returns."""
        return self.forward_native(*args, **options)


def _no(*args: Any) -> bool:
    return False


_envs = SimpleNamespace(
    SGLANG_ROPE_CACHE_FP32=SimpleNamespace(get=_no), SGLANG_ROPE_CACHE_ALIGN=SimpleNamespace(get=lambda: 128)
)
STUBS: dict[str, dict[str, Any]] = {
    "sglang.kernels.fused_op": {"BaseFusedOp": Native},
    "sglang.kernels.ops.attention.rotary_triton": {}, "sglang.kernels.ops.attention.mrope": {},
    "sglang.srt.environ": {"envs": _envs},
    "sglang.srt.platforms": {}, "sglang.srt.runtime_context": {"publish_role": lambda: None},
    "sglang.srt.utils": {
        **{f"is_{name}": _no for name in ("cuda", "hip", "mps", "musa", "npu", "xpu")}, "is_cpu": lambda: True,
        "cpu_has_amx_support": _no, "get_bool_env_var": _no, "get_compiler_backend": lambda: "eager",
    },
}  # fmt: skip
rotary = only_package("sglang.srt.layers.rotary_embedding.factory", stubs=STUBS)
multimodal = only_package("sglang.srt.layers.rotary_embedding.mrope")


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None,
    scaling: Scaling | None = None, length: int | None = None, lanes: str = "leading", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """get_rope for a model of this dtype, whose cache reaches the largest position."""
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    if inverse or (lanes == "trailing" and width != x.shape[-1]):
        lacks("get_rope's modules rotate the leading channels, forwards")
    q, k, back = queries_and_keys(x)
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    parameters, position = _parameters(scaling, width, x.shape[-1])
    if isinstance(scaling, LongRoPE) and layout != "half":
        lacks("LongRoPE is in halves")
    position = _position(where, width, position, grows=not isinstance(scaling, LongRoPE))
    part = scaling.rotated if isinstance(scaling, Proportional) else 1.0
    module = rotary.get_rope(x.shape[-1], width, position, base, is_neox(layout), parameters, x.dtype, part)
    if not isinstance(scaling, LongRoPE):
        module._ensure_cos_sin_cache_length(int(where.max()))  # as the engine does
    return back(*module(where, q.flatten(1), k.flatten(1)))


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, length: int | None = None,
) -> Tensor:  # fmt: skip
    """The module that get_rope makes with sections, or ERNIE's, which lists height, width, time."""
    if len(sections) != 3:
        lacks("the axes are time, height and width")
    if scaling is not None and not isinstance(scaling, YaRN):
        lacks(f"no mRoPE with {scaling!r}")
    dim = 2 * sum(sections)
    q, k, back = queries_and_keys(x)
    where = torch.stack([torch.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions])
    parameters, position = _parameters(scaling, dim, x.shape[-1])
    position = _position(where, dim, position, grows=True)
    if arrangement == "ernie" and scaling is None:
        listed = [*sections[1:], sections[0]]
        module = multimodal.Ernie4_5_VLRotaryEmbedding(x.shape[-1], dim, position, base, is_neox(layout), x.dtype, listed)
        module._apply_rotary_emb_wrapped = multimodal.apply_rotary_emb  # not compiled
        return back(*module.forward_native(where, q.flatten(1), k.flatten(1)))
    if arrangement == "ernie" or (arrangement == "round_robin" and scaling is not None):
        lacks(f"no mRoPE that is {arrangement!r} with {scaling!r}")
    how = {"mrope_interleaved": arrangement == "interleaved", "mrope_interleaved_glm": arrangement == "round_robin"}
    parameters = {**(parameters or {"rope_type": "default"}), "mrope_section": list(sections), **how}
    module = rotary.get_rope(x.shape[-1], dim, position, base, is_neox(layout), parameters, x.dtype)
    module._ensure_cos_sin_cache_length(int(where.max()))  # as the engine does
    return back(*module(where, q.flatten(1), k.flatten(1)))


def _parameters(scaling: Scaling | None, dim: int, head: int) -> tuple[dict[str, Any] | None, int | None]:
    """Return rope_scaling of a configuration and max_position, None where that may follow the positions."""
    match scaling:
        case None:
            return None, None
        case DynamicNTK(factor, original):
            return {"rope_type": "dynamic", "factor": factor}, original
        case Proportional(_, factor):
            if factor != 1 or dim != head:
                lacks("proportional frequencies are those of the whole head, and not divided")
            return {"rope_type": "proportional"}, None
        case LongRoPE():
            if scaling.max_length is None and scaling.factor is None:
                lacks("get_rope takes max_position")
            lists = {name: list(getattr(scaling, name)) for name in ("short_factor", "long_factor")}
            names = ("factor", "attention_factor", "short_mscale", "long_mscale")
            settings = {name: getattr(scaling, name) for name in names if getattr(scaling, name) is not None}
            trained = {"original_max_position_embeddings": scaling.original_length}
            longest = scaling.max_length or int(scaling.original_length * (scaling.factor or 1))
            return {"rope_type": "longrope", **lists, **trained, **settings}, longest
        case Linear(factor):
            return {"rope_type": "linear", "factor": float(factor)}, None
        case YaRN(factor, original):
            return hf_parameters(scaling)[0], int(original * factor)
        case _:
            return hf_parameters(scaling)[0], None


def _position(where: Tensor, dim: int, position: int | None, *, grows: bool) -> int:
    """Return max_position: the one given, or a power of two of at least 2048 that the largest position is below."""
    if where.is_floating_point() or not where.numel() or int(where.min()) < 0:
        lacks("the cache has rows only for integers from 0 on")
    last = int(where.max())
    result = 1 << max(11, last.bit_length()) if position is None else position
    if last >= result and not grows:
        lacks(f"a cache of {result} rows has none for position {last}")
    if max(result, last) * dim > LIMIT:
        lacks(f"a cache of {max(result, last)} rows is too large here")
    rotary._ROPE_DICT.clear()  # it grows in place, and is large
    return result


# Read and run in sglang 0.5.23 with torch 2.13.0 on a CPU; paths in sglang/srt/layers/rotary_embedding.
NOTES = (
    "Native code, which runs on a CPU without AMX; the CUDA, Triton and ROCm kernels are not asked. Products are in the dtype "
    "of the queries (utils.py:50).",
    "Dynamic NTK has one base for all lengths, that of max_position times the factor (rope_variant.py:881), and what the cache "
    "grows by has the base of no scaling (base.py:281).",
    "LongRoPE takes the long list if a position is more than the original length (rope_variant.py:143), not from that position "
    "on: where it is the largest, it reads the long list's row of position 0.",
    "mRoPE with YaRN passes mscale and mscale_all_dim to a class without them (factory.py:348): a TypeError.",
    "MRotaryEmbedding's native code does not read mrope_interleaved_glm (mrope.py:204): axes in turn are asked as chunks.",
    "get_rope passes no attention_factor on, neither YaRN's nor LongRoPE's (factory.py:329, 414).",
    "A linear factor that is an int raises a TypeError (base.py:640): it is passed as a float.",
    "ERNIE's native code is asked without torch.compile (mrope.py:546). FoPE, dual chunk attention, DeepSeek's and Bailing's "
    "modules are not asked.",
)
