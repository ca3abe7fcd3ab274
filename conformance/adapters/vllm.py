"""
vLLM: get_rope and the modules that it makes, mRoPE and BLOOM's slopes, by their native code on a CPU.

Its rotary package is imported without the rest of vLLM, so the source alone is enough: install vllm, or put an unpacked sdist
or a checkout on the path: ``PYTHONPATH=vllm-0.33.0 posref check vllm``. Slopes need transformers besides.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from posref.scaling import DynamicNTK, Linear, LongRoPE, NTKAlpha, NTKFixed, NTKMixed, Proportional, Scaling, YaRN

from ._shared import hf_parameters, is_neox, lacks, only_package, queries_and_keys

PACKAGE = "vllm"
backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}

LIMIT, KEPT = 1 << 27, 1 << 22  # elements of a cache of cosines and sines; of one that stays with others
LAYERS = "vllm.model_executor.layers"
MODELS = "vllm.model_executor.models"
scalings = ("Linear", "NTKAlpha", "NTKFixed", "NTKMixed", "DynamicNTK", "Llama3", "YaRN", "LongRoPE", "Proportional")
NATURAL = {"numbers": ["integers"], "negative": False, "empty": False, "layout": ["half", "interleaved"], "inverse": [False]}

supports: dict[str, dict[str, Any]] = {
    "rope": {
        **NATURAL,
        "scaling": [None, *scalings],
        "Proportional.factor": ["default"],
        "not": [{"layout": "interleaved", "scaling": "LongRoPE"}, {"lanes": "trailing", "partial": True}],
    },
    "mrope": {**NATURAL, "axes": [3], "arrangement": ["chunked", "interleaved", "ernie"], "scaling": [None, "YaRN"]},
    "alibi_slopes": {"max_bias": ["default"], "first": ["default"], "count": ["default"]},
}

_compilation = SimpleNamespace(custom_ops=["none"], enabled_custom_ops=set(), disabled_custom_ops=set())
_model = SimpleNamespace(max_model_len=0)  # what the engine is started with
_no = SimpleNamespace(is_cpu=lambda: True, is_cuda=lambda: False, is_rocm=lambda: False)
STUBS: dict[str, dict[str, Any]] = {
    "vllm.config": {
        "get_cached_compilation_config": lambda: _compilation,
        "get_current_vllm_config": lambda: SimpleNamespace(model_config=_model),
    },
    "vllm.platforms": {"current_platform": _no},
    "vllm._aiter_ops": {"rocm_aiter_ops": SimpleNamespace(is_triton_rotary_embed_enabled=lambda: False)},
    "vllm.config.compilation": {}, "vllm.logger": {}, "vllm.distributed": {}, "vllm.triton_utils": {},
    "vllm.model_executor.utils": {}, "vllm.utils.torch_utils": {}, "vllm.utils.flashinfer": {"has_flashinfer": lambda: False},
}  # fmt: skip
OF_BLOOM = (
    "vllm.compilation.decorators", f"{LAYERS}.activation", f"{LAYERS}.attention", f"{LAYERS}.linear",
    f"{LAYERS}.logits_processor", f"{LAYERS}.quantization", f"{LAYERS}.vocab_parallel_embedding", "vllm.sequence",
    f"{MODELS}.interfaces", f"{MODELS}.utils",
)  # fmt: skip
rotary = only_package(f"{LAYERS}.rotary_embedding", stubs=STUBS)
ernie = only_package(f"{LAYERS}.rotary_embedding.ernie45_vl_rope")
bloom = only_package(f"{MODELS}.bloom", stubs={name: {} for name in OF_BLOOM})


def rope(
    x: Tensor, positions: Tensor, /, *, layout: str, base: float, rotary_dim: int | None = None,
    scaling: Scaling | None = None, length: int | None = None, lanes: str = "leading", inverse: bool = False,
) -> Tensor:  # fmt: skip
    """get_rope for a model of this dtype, whose cache reaches the largest position; the module of DeepSeek-V4 for the rest."""
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    if inverse or (lanes == "trailing" and width != x.shape[-1]):
        lacks("get_rope's modules rotate the leading channels, forwards")
    q, k, back = queries_and_keys(x)
    where = torch.broadcast_to(positions, x.shape[:-1]).reshape(-1)
    parameters, rows = _parameters(scaling, width, x.shape[-1], length)
    if isinstance(scaling, LongRoPE) and layout != "half":
        lacks("LongRoPE is in halves")
    rows = _rows(where, width, rows)
    module = rotary.get_rope(x.shape[-1], rows, is_neox(layout), {"rope_theta": base, **parameters}, dtype=x.dtype)
    return back(*module(where, q.flatten(1), k.flatten(1)))


def mrope(
    x: Tensor, positions: Tensor, /, *, sections: list[int], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, length: int | None = None,
) -> Tensor:  # fmt: skip
    """MRotaryEmbedding as get_rope makes it, or ERNIE's, which lists height, width, time."""
    if len(sections) != 3:
        lacks("the axes are time, height and width")
    if scaling is not None and not isinstance(scaling, YaRN):
        lacks(f"no mRoPE with {scaling!r}")
    dim = 2 * sum(sections)
    q, k, back = queries_and_keys(x)
    where = torch.stack([torch.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions])
    parameters, rows = _parameters(scaling, dim, x.shape[-1], length)
    rows = _rows(where, dim, None if rows is None else 4 * rows)
    if arrangement in ("chunked", "interleaved"):
        parameters |= {"mrope_section": list(sections), "mrope_interleaved": arrangement == "interleaved"}
        module = rotary.get_rope(x.shape[-1], rows, is_neox(layout), {"rope_theta": base, **parameters}, dtype=x.dtype)
    elif arrangement == "ernie" and scaling is None:
        listed = [*sections[1:], sections[0]]
        module = ernie.Ernie4_5_VLRotaryEmbedding(x.shape[-1], dim, rows, base, is_neox(layout), x.dtype, listed)
    else:
        lacks(f"no mRoPE that is {arrangement!r} with {scaling!r}")
    return back(*module(where, q.flatten(1), k.flatten(1)))


def alibi_slopes(heads: int, /) -> Tensor:
    """_get_alibi_slopes of BLOOM."""
    return bloom._get_alibi_slopes(heads)


def _parameters(scaling: Scaling | None, dim: int, head: int, length: int | None) -> tuple[dict[str, Any], int | None]:
    """Return rope_parameters of a configuration and the number of rows in its cache; None means as many as the call needs."""
    part = {"rope_dim": dim}
    match scaling:
        case NTKFixed(factor):
            return {"rope_type": "ntk", "factor": factor, **part}, None
        case NTKMixed(factor, mix):
            return {"rope_type": "ntk", "factor": factor, "mixed_b": mix, **part}, None
        case DynamicNTK(factor, original):
            if length is None:
                lacks("the base follows from max_position")
            return {"rope_type": "dynamic", "factor": factor, "max_trained_positions": original, **part}, max(length, original)
        case Proportional(rotated, factor):
            if factor != 1 or dim != head or not rotated:
                lacks("proportional frequencies are those of the whole head, not divided, and not all of them 0")
            return {"rope_type": "proportional", "partial_rotary_factor": rotated}, None
        case LongRoPE():
            parameters, longest = _longrope(scaling, length)
            return {**parameters, **part}, longest
        case Linear(factor):
            return {"rope_type": "linear", "factor": float(factor), **part}, None
        case NTKAlpha() | None:
            return {**hf_parameters(scaling)[0], **part}, None
        case _:
            parameters, _ = hf_parameters(scaling)
            rows = int(scaling.original_length * scaling.factor) if isinstance(scaling, YaRN) else None
            return {**parameters, **part}, rows


def _longrope(scaling: LongRoPE, length: int | None) -> tuple[dict[str, Any], int]:
    """Return rope_parameters of LongRoPE and its longest text, and set the length of the engine."""
    if scaling.max_length is None and scaling.factor is None:
        lacks("get_rope takes max_position")
    if length is None:
        lacks("the list follows from the length of the engine")
    _model.max_model_len = length
    rotary._ROPE_DICT.clear()  # the length of the engine is no part of its key
    lists = {name: list(getattr(scaling, name)) for name in ("short_factor", "long_factor")}
    names = ("factor", "attention_factor", "short_mscale", "long_mscale")
    settings = {name: getattr(scaling, name) for name in names if getattr(scaling, name) is not None}
    trained = {"original_max_position_embeddings": scaling.original_length}
    longest = scaling.max_length or int(scaling.original_length * (scaling.factor or 1))
    return {"rope_type": "longrope", **lists, **trained, **settings}, longest


def _rows(where: Tensor, dim: int, rows: int | None) -> int:
    """Return max_position: `rows`, or a power of two of at least 2048 that the largest position is below."""
    if where.is_floating_point() or not where.numel() or int(where.min()) < 0:
        lacks("the cache has rows only for integers from 0 on")
    last = int(where.max())
    result = 1 << max(11, last.bit_length()) if rows is None else rows
    if last >= result:
        lacks(f"a cache of {result} rows has none for position {last}")
    if result * dim > LIMIT:
        lacks(f"a cache of {result} rows is too large here")
    if result * dim > KEPT:
        rotary._ROPE_DICT.clear()
    return result


# Read and run in vllm 0.33.0 (sdist) with torch 2.13.0 on a CPU; paths in vllm/model_executor/layers/rotary_embedding.
NOTES = (
    "Native forward paths, which run where custom operations are off; the CUDA, Triton and ROCm kernels are not asked.",
    "The cache is rounded to the dtype of the model (base.py:61), and products are in that dtype (common.py:163).",
    "MRotaryEmbedding makes its cache four times as long by multiplying max_position_embeddings (mrope.py:351), which YaRN's "
    "correction range reads as the original length (yarn_scaling_rope.py:63): with YaRN the frequencies are those of four "
    "times the original length. With mrope_positions_factor=1 they are right.",
    "YaRN takes mscale=0 or mscale_all_dim=0 for not given (yarn_scaling_rope.py:40).",
    "Dynamic NTK has one base for all lengths, from max_position and max_trained_positions (dynamic_ntk_scaling_rope.py:58); "
    "without the second the factor changes nothing. A length is asked here as max_position, or the trained length if that is "
    "more: below it the module takes a power of a negative number.",
    "LongRoPE's list follows from max_model_len (phi3_long_rope_scaled_rope.py:55), which is set to the length that is asked. "
    "get_rope passes neither factor nor attention_factor on (__init__.py:320).",
    "A linear factor that is an int raises a TypeError (linear_scaling_rope.py:70): it is passed as a float.",
    "DeepSeek-V4's module (trailing channels, inverse), openPangu's mRoPE, FoPE and dual chunk attention are not asked.",
)
