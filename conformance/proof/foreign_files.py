"""
Golden data in the formats of others: ONNX's node tests, and data sets of FlashInfer-Bench.

An ONNX node test is model.onnx, test_data_set_0/input_0.pb and output_0.pb, of the operators of opset 23. A data set of
FlashInfer-Bench is a definition whose reference is posref, and a workload with the inputs of the call.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import bits_of, round_to
from posref.spec import REGISTRY

from ..accuracy import STORED_CLAIM
from ..calls import class_and_dtype, given_dtype, parameters_of
from ..errors import TargetError
from ..model import Arrays, Case
from ..suite import safe_files
from ..suite.reader import parse
from ..suite.safe_files import JSON_DOCUMENT, whole_directory
from ..suite.writer import expect_only

ABOUT = "about.json"
Stored = dict[str, tuple[npt.NDArray[Any], str]]  # an array and its dtype, by name


def _rounded(case: Case, expected: Arrays, allowed: Arrays, dtype: str) -> tuple[str, Arrays]:
    """Return the dtype of results, and how far a result may be off the true one rounded to it."""
    kept = class_and_dtype(case.op, STORED_CLAIM[dtype], dtype, gradients=False)[1]
    return kept, {n: x + np.abs(round_to(expected[n], kept) - expected[n]) for n, x in allowed.items()}


def _kind(x: npt.NDArray[Any], real: str) -> str:
    """Return the name of an array's dtype, where reals are in `real`."""
    return real if x.dtype.kind == "f" else "bool" if x.dtype.kind == "b" else "int64"


def _bits(x: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """Return an array's bits in a dtype, little-endian, its reals rounded once."""
    raw = bits_of(x, kind) if x.dtype.kind == "f" else x.astype(kind)
    return np.ascontiguousarray(raw.astype(raw.dtype.newbyteorder("<")))


def _write_about(folder: Path, about: Mapping[str, Any]) -> None:
    safe_files.write(folder / ABOUT, (json.dumps(about, indent=1) + "\n").encode())


def _expect_written(root: Path, keys: Collection[str], names: Callable[[Mapping[str, Any]], Iterable[str]]) -> None:
    """Raise `VectorError` unless a folder holds what posref wrote, with `keys` in what it says, and nothing else."""
    about = parse(root / ABOUT, safe_files.read(root / ABOUT, JSON_DOCUMENT, root=root))
    if not (isinstance(about, dict) and {*keys} <= {*about}):
        raise safe_files.refusal(root / ABOUT, "must say what posref wrote there. Choose another folder")
    expect_only(root, {ABOUT, *names(about)})


# ---- ONNX -----------------------------------------------------------------------------------------------------------------
OPSET = 23


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
SET = "test_data_set_0"
DATA = re.compile(r"(input|output|allowed)_\d+\.pb")
WORDS = {
    "float64": "DOUBLE", "float32": "FLOAT", "bfloat16": "BFLOAT16", "float16": "FLOAT16", "bool": "BOOL", "int64": "INT64",
}  # fmt: skip


def require_onnx() -> None:
    """Raise if the package onnx is missing: better now than after the proof."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        msg = "golden: --format onnx needs onnx: pip install onnx"
        raise TargetError(msg) from error


def write_onnx(path: Path, case: Case, expected: Arrays, allowed: Arrays, dtype: str, about: Mapping[str, Any]) -> str:
    """
    Write a call as an ONNX node test, or as tensors alone where ONNX has no operator for it; return which it is.

    Inputs are in `dtype`, which holds them exactly, and outputs are rounded to it. Beside them, ``allowed_0.pb`` has how far a
    result may be off that value, and ``about.json`` what the call is.
    """
    kept, allowed = _rounded(case, expected, allowed, dtype)
    inputs = {n: np.asarray(x) for n, x in case.inputs.items()}
    node = node_of(case.op, inputs, case.params)
    if isinstance(node, Node) and dtype not in node.dtypes:
        node = f"{node.operator} has no {dtype}"
    with whole_directory(path, _expect_test) as new:
        if isinstance(node, Node):
            arrays = {n: (x, dtype) for n, x in node.inputs.items() if x is not None}
            results, shape = list(expected.values()), node.shape
            _put(new, "input", arrays)
            _put(new, "output", {"Y": (results[0].reshape(shape), dtype)})
            _put(new, "allowed", {"Y": (next(iter(allowed.values())).reshape(shape), "float64")})
            safe_files.write(new / "model.onnx", _model(case.op, node, arrays, dtype))
        else:
            _put(new, "input", {n: (x, given_dtype(case.op, n, dtype)) for n, x in inputs.items()})
            _put(new, "output", {n: (x, kept) for n, x in expected.items()})
            _put(new, "allowed", {n: (x, "float64") for n, x in allowed.items()})
        sentence = f"a node test of {node.operator}" if isinstance(node, Node) else f"tensors without a model: {node}"
        _write_about(new, {**about, "onnx": sentence})
    return sentence


def _expect_test(root: Path) -> None:
    """Raise `VectorError` unless a folder holds an ONNX test that posref wrote, and nothing else."""
    data = {f"{SET}/{p.name}" for p in (root / SET).glob("*.pb") if DATA.fullmatch(p.name)}
    _expect_written(root, ("operation", "posref", "onnx"), lambda _: {"model.onnx", *data})


def _put(folder: Path, role: str, arrays: Stored) -> None:
    """Write arrays as numbered tensors of ONNX."""
    from onnx import TensorProto

    (folder / SET).mkdir(exist_ok=True)
    for k, (name, (x, real)) in enumerate(arrays.items()):
        data = _bits(x, _kind(x, real)).tobytes()
        tensor = TensorProto(name=name, dims=x.shape, data_type=_onnx_kind(x, real), raw_data=data)
        safe_files.write(folder / SET / f"{role}_{k}.pb", tensor.SerializeToString(deterministic=True))


def _onnx_kind(x: npt.NDArray[Any], real: str) -> int:
    from onnx import TensorProto

    return int(getattr(TensorProto, WORDS[_kind(x, real)]))


def _model(op: str, node: Node, given: Stored, dtype: str) -> bytes:
    """Return a model of one node."""
    from onnx import checker, helper

    declared = [helper.make_tensor_value_info(n, _onnx_kind(x, dtype), x.shape) for n, (x, _) in given.items()]
    result = helper.make_tensor_value_info("Y", _onnx_kind(np.zeros(()), dtype), node.shape)
    made = helper.make_node(node.operator, list(given), ["Y"], **node.attributes)
    graph = helper.make_graph([made], f"posref_{op}", declared, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR, producer_name="posref")
    checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))


# ---- FlashInfer-Bench -----------------------------------------------------------------------------------------------------
CODES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "int64": "I64", "bool": "BOOL"}


def write_flashinfer(path: Path, case: Case, expected: Arrays, allowed: Arrays, dtype: str, about: Mapping[str, Any]) -> str:
    """
    Write a call as a data set of FlashInfer-Bench, and return the name of its definition.

    The definition calls posref. The workload reads its inputs, in `dtype`, from a file that also has the true results
    (``true/...``) and how far a result may be off them (``allowed/...``), both in float64.
    """
    kept, allowed = _rounded(case, expected, allowed, dtype)
    inputs = {n: np.asarray(case.inputs[n]) for n in parameters_of(REGISTRY[case.op].function) if n in case.inputs}
    inputs_with_kinds = {n: (x, _kind(x, given_dtype(case.op, n, dtype))) for n, x in inputs.items()}
    results = {n: (x, _kind(x, kept)) for n, x in expected.items()}
    if "float64" in {kind for _, kind in (*inputs_with_kinds.values(), *results.values())}:
        msg = "golden: FlashInfer-Bench has no float64. Give --dtype float32, bfloat16 or float16."
        raise TargetError(msg)
    definition = _definition(case, inputs_with_kinds, results, kept)
    name = definition["name"]
    blob = f"blob/workloads/{case.op}/{name}.safetensors"
    sources = {n: {"type": "safetensors", "path": blob, "tensor_key": n} for n in inputs_with_kinds}
    stored: Stored = {**inputs_with_kinds, **{f"true/{n}": (x, _kind(x, "float64")) for n, x in expected.items()}}
    stored |= {f"allowed/{n}": (x, "float64") for n, x in allowed.items()}
    tensors = _safetensors(stored)
    workload = {"uuid": hashlib.sha256(tensors).hexdigest()[:32], "axes": {}, "inputs": sources}
    trace = {"definition": name, "workload": workload, "solution": None, "evaluation": None}
    files = {
        f"definitions/{case.op}/{name}.json": (json.dumps(definition, indent=1) + "\n").encode(),
        f"workloads/{case.op}/{name}.jsonl": (json.dumps(trace) + "\n").encode(),
        blob: tensors,
    }
    with whole_directory(path, _expect_data_set) as new:
        for file, data in files.items():
            (new / file).parent.mkdir(parents=True, exist_ok=True)
            safe_files.write(new / file, data)
        _write_about(new, {**about, "definition": name, "dtype": dtype})
    return str(name)


def _definition(case: Case, given: Stored, results: Stored, kept: str) -> dict[str, Any]:
    """Return the definition: every size is constant, and the options are in the code."""
    outputs = {f"{n}_out" if n in given else n: definition for n, definition in results.items()}
    named = {**given, **outputs}
    axes = {f"{n}_{i}": {"type": "const", "value": size} for n, (x, _) in named.items() for i, size in enumerate(x.shape)}
    specs = {n: {"shape": [f"{n}_{i}" for i in range(x.ndim)], "dtype": kind} for n, (x, kind) in named.items()}
    definition = {
        "op_type": case.op,
        "axes": axes,
        "inputs": {n: specs[n] for n in given},
        "outputs": {n: specs[n] for n in outputs},
        "reference": _reference(case, list(given), kept),
        "description": f"{REGISTRY[case.op].title}, as posref defines it.",
    }
    digest = hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:8]
    return {"name": f"posref_{case.op}_{digest}", **definition}


def _reference(case: Case, names: list[str], dtype: str) -> str:
    """Return the code of a definition: one call of posref."""
    parameters = parameters_of(REGISTRY[case.op].function)
    placed = [n for n in names if parameters[n].kind is Parameter.POSITIONAL_ONLY]
    rest = {n: n for n in names if n not in placed} | {n: _literal(v) for n, v in case.params.items()}
    if "dtype" in parameters:
        rest["dtype"] = f"torch.{dtype}"
    call = ", ".join([*placed, *(f"{n}={v}" for n, v in rest.items())])
    kinds = sorted({type(v).__name__ for v in case.params.values() if is_dataclass(v)})
    imported = f"from posref.scaling import {', '.join(kinds)}\n" if kinds else ""
    return f"import torch\n\nimport posref\n{imported}\n\ndef run({', '.join(names)}):\n    return posref.{case.op}({call})\n"


def _literal(value: Any) -> str:
    """Return an option as Python code."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def _safetensors(stored: Stored) -> bytes:
    """Return arrays as a file, wide ones first, so that all are aligned."""
    header, body = {}, b""
    raw = {n: _bits(x, kind) for n, (x, kind) in stored.items()}
    for name, bits in sorted(raw.items(), key=lambda item: -item[1].itemsize):
        place = [len(body), len(body) + bits.nbytes]
        header[name] = {"dtype": CODES[stored[name][1]], "shape": list(bits.shape), "data_offsets": place}
        body += bits.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def _expect_data_set(root: Path) -> None:
    """Raise `VectorError` unless a folder holds a data set that posref wrote, and nothing else."""

    def names(about: Mapping[str, Any]) -> Iterable[str]:
        place, name = about["operation"], about["definition"]
        yield from (f"definitions/{place}/{name}.json", f"workloads/{place}/{name}.jsonl")
        yield f"blob/workloads/{place}/{name}.safetensors"

    _expect_written(root, ("operation", "posref", "definition"), names)
