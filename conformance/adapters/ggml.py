"""
ggml, the arithmetic of llama.cpp, on its CPU: ggml_rope_ext, ggml_rope_multi and their backward passes, called through ctypes.

Its libraries are those of llama-cpp-python, which is not imported: whatever folder ``llama_cpp/lib`` on the path holds is
enough. ggml ends the process if a call is not as it must be, so what it would not take is refused here.
"""

import ctypes
import functools
import math
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.scaling import Linear, LongRoPE, Scaling, YaRN

from ..errors import Unsupported
from ._shared import lacks

PACKAGE = "llama-cpp-python"
backend = "numpy"
dtypes = ("float32", "float16")  # ggml_compute_forward_rope has these two types
claims = {"float32": "angle32", "float16": "low"}
scalings = ("Linear", "YaRN", "LongRoPE")

Array = npt.NDArray[Any]
Pointer, Int, Float = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
NORMAL, NEOX, MROPE, VISION, IMROPE = 0, 2, 8, 24, 40  # GGML_ROPE_TYPE_*
MODES = {"interleaved": NORMAL, "half": NEOX}
TYPES = {"float32": 0, "float16": 1, "int32": 26}  # GGML_TYPE_*
ROOM = 1 << 22  # bytes for the graph and the work buffer
TAIL = (Int, Float, Float, Float, Float, Float, Float)  # n_ctx_orig, freq_base, freq_scale, ext_factor, attn_factor, beta_*
EVEN = {"multiple_of": 2}  # channels that do not rotate are copied in pairs, and offsets are even

supports: dict[str, dict[str, Any]] = {
    "rope": {
        "numbers": ["integers"], "empty": False, "layout": ["half", "interleaved"],
        "scaling": [None, *scalings], "YaRN.truncate": ["default"], "LongRoPE.short_mscale": ["default"],
        "LongRoPE.long_mscale": ["default"], "head_size": EVEN, "gradient": ["x"],
    },
    "mrope": {
        "numbers": ["integers"], "empty": False, "axes": [3], "layout": ["half"], "arrangement": ["chunked", "interleaved"],
        "scaling": [None, *scalings], "YaRN.truncate": ["default"], "LongRoPE.short_mscale": ["default"],
        "LongRoPE.long_mscale": ["default"], "head_size": EVEN, "gradient": ["x"],
    },
    "axial_rope": {
        "numbers": ["integers"], "empty": False, "axes": [2], "layout": ["half"], "allocation": ["own"],
        "arrangement": ["chunked"], "unit": ["radians"], "head_size": {"multiple_of": 4}, "unequal": False, "partial": False,
        "gradient": ["x"],
    },
}  # fmt: skip


def rope(
    x: Array, positions: Array, /, *, layout: str, base: float, rotary_dim: int | None = None,
    scaling: Scaling | None = None, length: int | None = None, lanes: str = "leading", inverse: bool = False,
) -> Array:  # fmt: skip
    """ggml_rope_ext, with ggml_rope_set_offset for trailing channels; the inverse is ggml_rope_ext_back."""
    if layout not in MODES or lanes not in ("leading", "trailing"):
        lacks(f"no layout {layout!r} or lanes {lanes!r}; what is read is written")
    width = x.shape[-1] if rotary_dim is None else rotary_dim
    factors, tail = _scaled(scaling, base, length)
    offset = x.shape[-1] - width if lanes == "trailing" else 0
    return _rotate(x, positions[None], (width, MODES[layout]), tail, factors=factors, offset=offset, back=inverse)


def mrope(
    x: Array, positions: Array, /, *, sections: tuple[int, ...], arrangement: str, layout: str, base: float,
    scaling: Scaling | None = None, length: int | None = None, inverse: bool = False,
) -> Array:  # fmt: skip
    """ggml_rope_multi in its M-RoPE modes. As llama.cpp does, the fourth section has no pairs and its positions are 0."""
    modes = {"chunked": MROPE, "interleaved": IMROPE}
    if layout != "half" or arrangement not in modes or not len(sections) == positions.shape[0] == 3:
        lacks(f"{layout!r}, {arrangement!r}, {len(sections)} axes: halves of three axes, in sections or interleaved")
    factors, tail = _scaled(scaling, base, length)
    four = np.concatenate((positions, np.zeros_like(positions[:1])))
    head = (2 * sum(sections), (Int * 4)(*sections, 0), modes[arrangement])
    return _rotate(x, four, head, tail, factors=factors, back=inverse)


def axial_rope(
    x: Array, positions: Array, /, *, dims: tuple[int, ...], base: float, allocation: str, arrangement: str, layout: str,
    unit: str = "radians", inverse: bool = False,
) -> Array:  # fmt: skip
    """ggml_rope_multi in its vision mode: two axes, each with half of all channels."""
    size = x.shape[-1]
    if (layout, allocation, arrangement, unit) != ("half", "own", "chunked", "radians") or 2 * list(dims) != [size // 2] * 4:
        lacks("two axes of half of the channels each, with frequencies of their own, in halves and radians")
    four = np.concatenate((positions, np.zeros_like(positions)))
    head = (size // 2, (Int * 4)(size // 4, size // 4, 0, 0), VISION)
    return _rotate(x, four, head, _scaled(None, base, None)[1], back=inverse)


def vjp(
    op: str, inputs: dict[str, Any], params: dict[str, Any], cotangents: dict[str, Any], wrt: tuple[str, ...]
) -> dict[str, Any]:
    """The gradient in x, by ggml_rope_ext_back and ggml_rope_multi_back."""
    if list(wrt) != ["x"] or op not in supports:
        lacks("gradients in x alone")
    turned = {**params, "inverse": not params.get("inverse", False)}
    return {"x": globals()[op](cotangents["out"], inputs["positions"], **turned)}


def _scaled(scaling: Scaling | None, base: float, length: int | None) -> tuple[Array | None, tuple[float, ...]]:
    """Return the divisors of the frequencies and the arguments from n_ctx_orig to beta_slow, as llama.cpp gives them."""
    match scaling:
        case None:
            return None, (0, base, 1, 0, 1, 0, 0)
        case Linear(factor):
            return None, (0, base, 1 / factor, 0, 1, 0, 0)
        case YaRN(factor, original, fast, slow) if scaling.truncate and factor > 0:
            gain = 1 + 0.1 * math.log(factor)  # by which ggml multiplies; llama.cpp divides by it
            return None, (original, base, 1 / factor, 1, _attention(scaling) / gain, fast, slow)
        case LongRoPE(short, long, original) if length is not None and scaling.short_mscale is scaling.long_mscale is None:
            factors = np.asarray(long if length > original else short, np.float32)
            scale = scaling.factor or (scaling.max_length or original) / original
            factor = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
            return factors, (original, base, 1, 0, scaling.attention_factor or factor, 0, 0)
        case _:
            msg = f"{scaling!r}: ggml scales positions, divides frequencies by a list, or blends as YaRN does"
            raise Unsupported(msg)


def _attention(yarn: YaRN) -> float:
    """Return the factor of cosines and sines, as llama.cpp computes it (llama-context.cpp:178)."""
    if yarn.attention_factor is not None:
        return yarn.attention_factor
    log = 0.1 * math.log(max(yarn.factor, 1))
    if yarn.mscale is None or yarn.mscale_all_dim is None:
        return log + 1
    return (yarn.mscale * log + 1) / (yarn.mscale_all_dim * log + 1)


# ---- the library ------------------------------------------------------------------------------------------------------------
class _Params(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", Pointer), ("no_alloc", ctypes.c_bool))


def _folder() -> Path:
    """Return the folder of the libraries, without importing llama-cpp-python, which would load all of llama.cpp."""
    spec = PathFinder.find_spec("llama_cpp")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        msg = "ggml: no package 'llama_cpp', which holds ggml's libraries."
        raise ModuleNotFoundError(msg, name="llama_cpp")
    return Path(places[0]) / "lib"


@functools.cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """Return ggml's base and CPU libraries, with the argument types of their functions."""
    name = {"win32": "{}.dll", "darwin": "lib{}.dylib"}.get(sys.platform, "lib{}.so")
    base, cpu = (ctypes.CDLL(str(_folder() / name.format(part)), ctypes.RTLD_GLOBAL) for part in ("ggml-base", "ggml-cpu"))
    ext, multi = (Pointer,) * 4 + (Int, Int) + TAIL, (Pointer,) * 4 + (Int, Pointer, Int) + TAIL
    sizes, pointers = (ctypes.c_int64,) * 3, (Pointer, Pointer)
    types: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "init": (Pointer, (_Params,)), "free": (None, (Pointer,)), "get_data": (Pointer, (Pointer,)),
        "new_tensor_1d": (Pointer, (Pointer, Int, sizes[0])), "new_tensor_3d": (Pointer, (Pointer, Int, *sizes)),
        "rope_ext": (Pointer, ext), "rope_ext_back": (Pointer, ext), "rope_multi": (Pointer, multi),
        "rope_multi_back": (Pointer, multi), "rope_set_offset": (Pointer, (Pointer, Int)),
        "new_graph": (Pointer, (Pointer,)), "build_forward_expand": (None, pointers),
    }  # fmt: skip
    for function, (result, arguments) in types.items():
        made = getattr(base, f"ggml_{function}")
        made.restype, made.argtypes = result, arguments
    cpu.ggml_graph_compute_with_ctx.restype, cpu.ggml_graph_compute_with_ctx.argtypes = Int, (*pointers, Int)
    cpu.ggml_cpu_init()
    return base, cpu


def _rotate(
    x: Array, positions: Array, head: tuple[Any, ...], tail: tuple[float, ...], *, factors: Array | None = None,
    offset: int = 0, back: bool = False,
) -> Array:  # fmt: skip
    """Return `x` rotated: the last of three heads of every token."""
    if not x.size or head[0] == 0:
        lacks("an empty array")
    if x.shape[-1] % 2:
        lacks("channels that do not rotate are copied in pairs, and offsets are even")
    if head[0] % 2 or head[0] > x.shape[-1]:
        msg = f"ggml: n_dims must be even and at most {x.shape[-1]}, the size of a head; got {head[0]}."
        raise ValueError(msg)  # ggml's own assertion ends the process
    if positions.dtype.kind not in "iu" or np.abs(positions.astype(np.float64)).max() >= 2**31:
        lacks("positions are of the type int32")
    rows = x.reshape(-1, x.shape[-1])
    heads = np.stack((rows[:, ::-1], 2 * rows, rows), 1)
    where = np.stack([np.broadcast_to(axis, x.shape[:-1]).reshape(-1) for axis in positions]).astype(np.int32)
    base, cpu = _libraries()
    ctx = base.ggml_init(_Params(3 * heads.nbytes + where.nbytes + ROOM, None, False))
    try:
        tensors = [_tensor(base, ctx, array) for array in (heads, where.reshape(-1), factors)]
        function = f"ggml_rope_{'multi' if len(head) == 3 else 'ext'}{'_back' if back else ''}"
        out = getattr(base, function)(ctx, *tensors, *head, *tail)
        if offset:
            base.ggml_rope_set_offset(out, offset)
        graph = base.ggml_new_graph(ctx)
        base.ggml_build_forward_expand(graph, out)
        if status := cpu.ggml_graph_compute_with_ctx(ctx, graph, 1):
            msg = f"ggml: the graph ended with status {status}."
            raise RuntimeError(msg)
        rotated = np.empty_like(heads)
        ctypes.memmove(rotated.ctypes.data, base.ggml_get_data(out), rotated.nbytes)
    finally:
        base.ggml_free(ctx)
    return rotated[:, -1].reshape(x.shape)


def _tensor(base: ctypes.CDLL, ctx: int, array: Array | None) -> int | None:
    """Copy an array into a tensor of ggml, whose first axis is the last one here."""
    if array is None:
        return None
    array = np.ascontiguousarray(array)
    kind = TYPES[array.dtype.name]
    made = (
        base.ggml_new_tensor_3d(ctx, kind, *array.shape[::-1])
        if array.ndim == 3
        else base.ggml_new_tensor_1d(ctx, kind, array.size)
    )
    ctypes.memmove(base.ggml_get_data(made), array.ctypes.data, array.nbytes)
    return int(made)


_folder()  # a target that cannot be imported says what to install

# Read and run in llama-cpp-python 0.3.36, which has ggml 0.25.3.
NOTES = (
    "Frequencies are repeated products in float32 (ggml-cpu/ops.cpp:6216), not the powers that ggml.h:1874 writes: within the "
    "class angle32, since the rounding of the angle is larger.",
    "ggml_rope_multi takes four positions of a token. The fourth is 0 here, as in llama.cpp for text (llama-graph.cpp:140) "
    "and images (tools/mtmd/mtmd.cpp:2482); ggml.h:1912 says that a last section of 0 pairs is ignored.",
    "YaRN multiplies by 1 + 0.1 ln(factor), also below a factor of 1 (ggml-cpu/ops.cpp:6198). llama.cpp divides by it and "
    "gives its own factor (llama-context.cpp:211), and so does the adapter.",
    "LongRoPE's lists are given as divisors of the frequencies, with the factor that llama.cpp's converter stores. The other "
    "scalings, but linear ones, change the base or the divisors before ggml sees them.",
    "Channels beyond the rotated ones are copied two at a time (ggml-cpu/ops.cpp:6452): a head of odd size is written one "
    "channel beyond its end. Such heads are not asked.",
)
