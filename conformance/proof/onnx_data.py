"""Golden data in the layout of ONNX's node tests: model.onnx, test_data_set_0/input_0.pb and output_0.pb."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import bits_of, round_to

from ..accuracy import DEFAULT_CLAIM
from ..calls import given_dtype, judged_as
from ..errors import TargetError
from ..model import Arrays, Case
from ..suite.atomic_files import whole_directory
from .onnx_nodes import OPSET, Node, node_of

IR = 10  # the version of ONNX's format that has opset 23
SET = "test_data_set_0"


def require_onnx() -> None:
    """Raise if the package onnx is missing: better now than after the proof."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        msg = "golden: --format onnx needs onnx: pip install onnx"
        raise TargetError(msg) from error


def write(path: Path, case: Case, expected: Arrays, allowed: Arrays, dtype: str, about: Mapping[str, Any]) -> str:
    """
    Write a call as an ONNX node test, or as tensors alone where ONNX has no operator for it; return which it is.

    Inputs are in `dtype`, which holds them exactly, and outputs are rounded to it. Beside them, ``allowed_0.pb`` has how far a
    result may be off that value, and ``about.json`` what the call is.
    """
    kept = judged_as(case.op, DEFAULT_CLAIM[dtype], dtype, gradients=False)[1]
    allowed = {n: x + np.abs(round_to(expected[n], kept) - expected[n]) for n, x in allowed.items()}
    inputs = {n: np.asarray(x) for n, x in case.inputs.items()}
    node = node_of(case.op, inputs, case.params)
    if isinstance(node, Node) and dtype not in node.dtypes:
        node = f"{node.operator} has no {dtype}"
    with whole_directory(path, replace=True) as new:
        if path.exists() and any(path.iterdir()) and not (path / SET).is_dir():
            msg = f"golden: --output must be new, empty, or hold an ONNX test; {path} holds something else. Choose another."
            raise TargetError(msg)
        if isinstance(node, Node):
            given: Mapping[str, Any] = {n: x for n, x in node.inputs.items() if x is not None}
            _put(new, "input", given, dict.fromkeys(given, dtype))
            results, shape = list(expected.values()), node.shape
            _put(new, "output", {"Y": results[0].reshape(shape)}, {"Y": dtype})
            _put(new, "allowed", {"Y": next(iter(allowed.values())).reshape(shape)}, {"Y": "float64"})
            (new / "model.onnx").write_bytes(_model(case.op, node, dtype))
        else:
            _put(new, "input", inputs, {n: given_dtype(case.op, n, dtype) for n in inputs})
            _put(new, "output", expected, dict.fromkeys(expected, kept))
            _put(new, "allowed", allowed, dict.fromkeys(allowed, "float64"))
        told = f"a node test of {node.operator}" if isinstance(node, Node) else f"tensors without a model: {node}"
        (new / "about.json").write_text(json.dumps({**about, "onnx": told}, indent=1) + "\n", encoding="utf-8")
    return told


def _put(folder: Path, role: str, arrays: Mapping[str, npt.NDArray[Any]], dtypes: Mapping[str, str]) -> None:
    """Write arrays as numbered tensors."""
    (folder / SET).mkdir(exist_ok=True)
    for k, (name, x) in enumerate(arrays.items()):
        data = _tensor(name, x, dtypes[name]).SerializeToString(deterministic=True)
        (folder / SET / f"{role}_{k}.pb").write_bytes(data)


def _tensor(name: str, x: npt.NDArray[Any], dtype: str) -> Any:
    """Return an array as a tensor of ONNX, its reals rounded once to `dtype`."""
    from onnx import TensorProto

    raw = bits_of(x, dtype) if x.dtype.kind == "f" else x.astype(np.bool_ if x.dtype.kind == "b" else np.int64)
    little = np.ascontiguousarray(raw.astype(raw.dtype.newbyteorder("<")))
    return TensorProto(name=name, dims=x.shape, data_type=_kind(x, dtype), raw_data=little.tobytes())


def _kind(x: npt.NDArray[Any], dtype: str) -> int:
    from onnx import TensorProto

    words = {"float64": "DOUBLE", "float32": "FLOAT", "bfloat16": "BFLOAT16", "float16": "FLOAT16"}
    word = words[dtype] if x.dtype.kind == "f" else "BOOL" if x.dtype.kind == "b" else "INT64"
    return int(getattr(TensorProto, word))


def _model(op: str, node: Node, dtype: str) -> bytes:
    """Return a model of one node."""
    from onnx import checker, helper

    inputs = {n: x for n, x in node.inputs.items() if x is not None}
    declared = [helper.make_tensor_value_info(n, _kind(x, dtype), x.shape) for n, x in inputs.items()]
    result = helper.make_tensor_value_info("Y", _kind(np.zeros(()), dtype), node.shape)
    made = helper.make_node(node.operator, list(inputs), ["Y"], **node.attributes)
    graph = helper.make_graph([made], f"posref_{op}", declared, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="posref")
    checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))
