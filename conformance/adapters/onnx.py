"""ONNX's reference evaluator: the operator RotaryEmbedding of opset 23, one model for each set of attributes."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from ._shared import lacks

PACKAGE = "onnx"
backend = "numpy"
dtypes = ("float32", "float16")  # the operator's type list has bfloat16 too, and no float64
claims = {"float32": "angle32", "float16": "low"}
supports = {"apply_rope": {"layout": ["half", "interleaved"], "inverse": [False], "lanes": ["leading"], "gradient": False}}

Array = npt.NDArray[Any]
KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
INTERLEAVED = {"half": 0, "interleaved": 1}


def apply_rope(x: Array, cos: Array, sin: Array, /, *, layout: str) -> Array:
    """Run the operator on `x` as one head of one sequence."""
    feed = rotary_inputs(x, cos, sin, layout)
    partial = 0 if 2 * cos.shape[-1] == x.shape[-1] else 2 * cos.shape[-1]
    (out,) = _evaluator(x.dtype.name, INTERLEAVED[layout], partial).run(None, feed)
    return np.asarray(out).reshape(x.shape)


def rotary_inputs(x: Array, cos: Array, sin: Array, layout: str) -> dict[str, Array]:
    """Return the operator's inputs: x as one head of one sequence (1, 1, N, D), caches (1, N, d/2), one row a token."""
    if layout not in INTERLEAVED:
        lacks(f"RotaryEmbedding has no layout {layout!r}; it writes the one that it reads")
    if x.dtype.name not in KINDS:
        lacks(f"RotaryEmbedding is not run here for {x.dtype.name}")
    rows, pairs = x.shape[:-1], cos.shape[-1]
    caches = (np.broadcast_to(table, (*rows, pairs)).reshape(1, -1, pairs).astype(x.dtype) for table in (cos, sin))
    feed = dict(zip(("cos", "sin"), caches, strict=True))
    return {"x": np.ascontiguousarray(x.reshape(1, 1, -1, x.shape[-1])), **feed}


def rotary_model(dtype: str, interleaved: int, rotary_dim: int) -> ModelProto:
    """Return a model of this one node: x (B, H, T, D), cos and sin (B, T, d/2) in, y out."""
    ranks = {"x": 4, "cos": 3, "sin": 3, "y": 4}
    x, cos, sin, y = (helper.make_tensor_value_info(n, KINDS[dtype], [None] * rank) for n, rank in ranks.items())
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": rotary_dim}
    node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin"], ["y"], **attributes)
    graph = helper.make_graph([node], "rotary", [x, cos, sin], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@functools.lru_cache(maxsize=64)
def _evaluator(dtype: str, interleaved: int, rotary_dim: int) -> ReferenceEvaluator:
    return ReferenceEvaluator(rotary_model(dtype, interleaved, rotary_dim))


# Read and run in onnx 1.23.2.
NOTES = (
    "The evaluator rounds every product and sum to the dtype of the input "
    "(reference/ops/op_rotary_embedding.py:77), so float16 is half precision at every operation.",
    "The operator has no frequencies, table or inverse: cosines and sines are inputs, in the dtype of x.",
)
