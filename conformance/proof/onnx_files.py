"""ONNX node tests: golden data as model.onnx, test_data_set_0/input_0.pb and output_0.pb, and the operators of opset 23."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import bits_of, round_to

from ..accuracy import DEFAULT_CLAIM
from ..calls import given_dtype, judged_as
from ..errors import TargetError, VectorError
from ..model import Arrays, Case
from ..suite import safe_files
from ..suite.file_limits import JSON_DOCUMENT
from ..suite.reader import parse
from ..suite.safe_files import whole_directory
from ..suite.writer import expect_only

OPSET = 23
Reals = npt.NDArray[Any]


@dataclass(frozen=True)
class Node:
    """An operator, its inputs by name in their order (a missing one is None), its attributes, and its dtypes."""

    operator: str
    inputs: Mapping[str, npt.NDArray[Any] | None]
    shape: tuple[int, ...]  # of its output
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float16")


def apply_rope(inputs: Arrays, params: Mapping[str, Any]) -> Node | str:
    """Return RotaryEmbedding, with cosines and sines of shape (B, T, d/2)."""
    layout = params["layout"]
    if layout not in ("half", "interleaved") or params["inverse"] or params["lanes"] != "leading":
        return f"RotaryEmbedding has no layout {layout}, inverse {params['inverse']} and lanes {params['lanes']} together"
    x, cos, sin = (inputs[n] for n in ("x", "cos", "sin"))
    rows, pairs = x.shape[:-1], cos.shape[-1]
    four = (1,) * (4 - x.ndim) + x.shape
    by_token = x.ndim <= 4 and (cos.ndim < 3 or cos.shape[-3] == 1) and cos.shape[-2:-1] != (1,)
    if by_token:  # one table for all heads
        tables = [
            np.broadcast_to(t.reshape((1,) * (4 - t.ndim) + t.shape)[:, 0], (four[0], four[2], pairs)) for t in (cos, sin)
        ]
    else:  # each row of x is a token of one head
        four = (1, 1, int(np.prod(rows)), x.shape[-1])
        tables = [np.broadcast_to(t, (*rows, pairs)).reshape(1, -1, pairs) for t in (cos, sin)]
    attributes = {"interleaved": int(layout == "interleaved")}
    if 2 * pairs != x.shape[-1]:
        attributes["rotary_embedding_dim"] = 2 * pairs
    named = dict(zip(("X", "cos_cache", "sin_cache"), (x.reshape(four), *tables), strict=True))
    return Node("RotaryEmbedding", named, four, attributes)


def attention(inputs: Arrays, params: Mapping[str, Any]) -> Node | str:
    """Return Attention, with a bias or a mask as its attn_mask."""
    q, k, v = (inputs[n] for n in ("q", "k", "v"))
    bias, mask, scale = inputs.get("bias"), inputs.get("mask"), params.get("scale")
    if inputs.get("sinks") is not None:
        return "Attention has no sinks"
    if bias is not None and mask is not None:
        return "Attention takes a bias or a mask, and not both"
    if not 2 <= q.ndim <= 4 or not q.ndim == k.ndim == v.ndim:
        return "Attention takes q, k and v of the same axes, at most four"
    if scale is not None and float(np.float32(scale)) != scale:
        return f"Attention has its scale in float32, which has no {scale!r}"
    if mask is not None and not np.all(np.any(mask, axis=-1)):
        return "Attention leaves open what a query gets that may attend to no key"
    four = [x.reshape((1,) * (4 - x.ndim) + x.shape) for x in (q, k, v)]
    if not four[0].shape[0] == four[1].shape[0] == four[2].shape[0]:
        return "Attention takes q, k and v of the same batch"
    added = bias if mask is None else mask
    if added is not None:
        added = np.broadcast_to(added, np.broadcast_shapes(added.shape, (q.shape[-2], k.shape[-2])))
    attributes = {} if scale is None else {"scale": float(scale)}
    shape = (*four[0].shape[:-1], v.shape[-1])
    named = dict(zip(("Q", "K", "V", "attn_mask"), (*four, added), strict=True))
    return Node("Attention", named, shape, attributes, ("float64", "float32", "bfloat16", "float16"))


OPERATORS: dict[str, Callable[[Arrays, Mapping[str, Any]], Node | str]] = {f.__name__: f for f in (apply_rope, attention)}


def node_of(op: str, inputs: Arrays, params: Mapping[str, Any]) -> Node | str:
    """Return the node that computes a call, or why there is none."""
    return OPERATORS[op](inputs, params) if op in OPERATORS else f"opset {OPSET} has no operator for {op}"


IR = 10  # the version of ONNX's format that has opset 23
SET, ABOUT = "test_data_set_0", "about.json"
DATA = re.compile(r"(input|output|allowed)_\d+\.pb")


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
    with whole_directory(path, _expect_test) as new:
        if isinstance(node, Node):
            given: Mapping[str, Any] = {n: x for n, x in node.inputs.items() if x is not None}
            _put(new, "input", given, dict.fromkeys(given, dtype))
            results, shape = list(expected.values()), node.shape
            _put(new, "output", {"Y": results[0].reshape(shape)}, {"Y": dtype})
            _put(new, "allowed", {"Y": next(iter(allowed.values())).reshape(shape)}, {"Y": "float64"})
            safe_files.write(new / "model.onnx", _model(case.op, node, dtype))
        else:
            _put(new, "input", inputs, {n: given_dtype(case.op, n, dtype) for n in inputs})
            _put(new, "output", expected, dict.fromkeys(expected, kept))
            _put(new, "allowed", allowed, dict.fromkeys(allowed, "float64"))
        told = f"a node test of {node.operator}" if isinstance(node, Node) else f"tensors without a model: {node}"
        safe_files.write(new / ABOUT, (json.dumps({**about, "onnx": told}, indent=1) + "\n").encode())
    return told


def _expect_test(root: Path) -> None:
    """Raise `VectorError` unless a folder holds an ONNX test that posref wrote, and nothing else."""
    about = parse(root / ABOUT, safe_files.read(root / ABOUT, JSON_DOCUMENT, root=root))
    if not (isinstance(about, dict) and {"operation", "posref", "onnx"} <= {*about}):
        msg = f"{root / ABOUT}: must say what posref wrote there. Choose another folder."
        raise VectorError(msg)
    data = {f"{SET}/{p.name}" for p in (root / SET).glob("*.pb") if DATA.fullmatch(p.name)}
    expect_only(root, {ABOUT, "model.onnx", *data})


def _put(folder: Path, role: str, arrays: Mapping[str, npt.NDArray[Any]], dtypes: Mapping[str, str]) -> None:
    """Write arrays as numbered tensors."""
    (folder / SET).mkdir(exist_ok=True)
    for k, (name, x) in enumerate(arrays.items()):
        data = _tensor(name, x, dtypes[name]).SerializeToString(deterministic=True)
        safe_files.write(folder / SET / f"{role}_{k}.pb", data)


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
