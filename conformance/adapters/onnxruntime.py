"""ONNX Runtime on the CPU: the operator RotaryEmbedding of ONNX (opset 23), one model for each set of attributes."""

import functools
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from onnx import TensorProto, helper

from ..errors import Unsupported

ort.set_default_logger_severity(4)  # it prints what it raises, also where a refusal is what was asked for

backend = "numpy"
dtypes = ("float32", "float16")  # float64 is not in the operator's type list; bfloat16 is, but has no CPU kernel
claims = {"float32": "angle32", "float16": "low"}

Array = npt.NDArray[Any]
KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
INTERLEAVED = {"half": 0, "interleaved": 1}


def apply_rope(x: Array, cos: Array, sin: Array, /, *, layout: str) -> Array:
    """Run the operator on `x` as one head of one sequence (1, 1, N, D) with caches (1, N, d/2), one row a token."""
    if layout not in INTERLEAVED:
        _lacks(f"RotaryEmbedding has no layout {layout!r}; it writes the one that it reads")
    if x.dtype.name not in KINDS:
        _lacks(f"RotaryEmbedding has no CPU kernel for {x.dtype.name}")
    rows, pairs = x.shape[:-1], cos.shape[-1]
    partial = 0 if 2 * pairs == x.shape[-1] else 2 * pairs
    caches = (np.broadcast_to(table, (*rows, pairs)).reshape(1, -1, pairs) for table in (cos, sin))
    feed = dict(zip(("cos", "sin"), (cache.astype(x.dtype) for cache in caches), strict=True))
    feed["x"] = np.ascontiguousarray(x.reshape(1, 1, -1, x.shape[-1]))
    (out,) = _session(x.dtype.name, INTERLEAVED[layout], partial).run(None, feed)
    return out.reshape(x.shape)  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=64)
def _session(dtype: str, interleaved: int, rotary_dim: int) -> ort.InferenceSession:
    """Return a model of this one node: x (B, H, T, D), cos and sin (B, T, d/2) in, y out."""
    ranks = {"x": 4, "cos": 3, "sin": 3, "y": 4}
    x, cos, sin, y = (helper.make_tensor_value_info(n, KINDS[dtype], [None] * rank) for n, rank in ranks.items())
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": rotary_dim}
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin"], ["y"], **attributes)
    graph = helper.make_graph([node], "rotary", [x, cos, sin], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _lacks(what: str) -> NoReturn:
    raise Unsupported(what)


# Read and run in ONNX Runtime 1.31.1 with onnx 1.23.2.
NOTES = (
    "bfloat16 is in the operator's type list and has no CPU kernel: InferenceSession raises NOT_IMPLEMENTED ('Could "
    "not find an implementation for Mul(14)', of the function that the operator expands to).",
    "float64 is not in the type list: INVALID_GRAPH, 'tensor(double) of input parameter (x) ... is invalid'.",
    "The operator has no frequencies, table or inverse: cosines and sines are inputs, in the dtype of x.",
)
