"""ONNX Runtime on the CPU: the operator RotaryEmbedding of ONNX (opset 23), one model for each set of attributes."""

import functools

import numpy as np
import onnxruntime as ort

from .onnx import INTERLEAVED, Array, rotary_inputs, rotary_model

PACKAGE = "onnxruntime"
ort.set_default_logger_severity(4)  # it prints what it raises, also where a refusal is what was asked for

backend = "numpy"
dtypes = ("float32", "float16")  # float64 is not in the operator's type list; bfloat16 is, but has no CPU kernel
claims = {"float32": "angle32", "float16": "low"}
supports = {"apply_rope": {"layout": ["half", "interleaved"], "inverse": [False], "lanes": ["leading"], "gradient": False}}


def apply_rope(x: Array, cos: Array, sin: Array, /, *, layout: str) -> Array:
    """Run the operator on `x` as one head of one sequence."""
    feed = rotary_inputs(x, cos, sin, layout)
    partial = 0 if 2 * cos.shape[-1] == x.shape[-1] else 2 * cos.shape[-1]
    (out,) = _session(x.dtype.name, INTERLEAVED[layout], partial).run(None, feed)
    return np.asarray(out).reshape(x.shape)


@functools.lru_cache(maxsize=64)
def _session(dtype: str, interleaved: int, rotary_dim: int) -> ort.InferenceSession:
    """Return a session of a model of this one node."""
    model = rotary_model(dtype, interleaved, rotary_dim)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


# Read and run in ONNX Runtime 1.32.0 with onnx 1.23.2.
NOTES = (
    "bfloat16 is in the operator's type list and has no CPU kernel: InferenceSession raises NOT_IMPLEMENTED ('Could "
    "not find an implementation for Mul(14)', of the function that the operator expands to).",
    "float64 is not in the type list: INVALID_GRAPH, 'tensor(double) of input parameter (x) ... is invalid'.",
    "The operator has no frequencies, table or inverse: cosines and sines are inputs, in the dtype of x.",
)
