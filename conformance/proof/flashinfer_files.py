"""FlashInfer-Bench: golden data as a definition whose reference is posref, and a workload with the inputs of the call."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import bits_of, round_to
from posref.spec import REGISTRY

from ..accuracy import DEFAULT_CLAIM
from ..calls import given_dtype, judged_as
from ..errors import TargetError, VectorError
from ..model import Arrays, Case
from ..suite import safe_files
from ..suite.file_limits import JSON_DOCUMENT
from ..suite.reader import parse
from ..suite.safe_files import whole_directory
from ..suite.writer import expect_only

ABOUT = "about.json"
CODES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16", "float64": "F64", "int64": "I64", "bool": "BOOL"}
Stored = dict[str, tuple[npt.NDArray[Any], str]]  # an array and its dtype, by name


def write(path: Path, case: Case, expected: Arrays, allowed: Arrays, dtype: str, about: Mapping[str, Any]) -> str:
    """
    Write a call as a data set of FlashInfer-Bench, and return the name of its definition.

    The definition calls posref. The workload reads its inputs, in `dtype`, from a file that also has the true results
    (``true/...``) and how far a result may be off them (``allowed/...``), both in float64.
    """
    kept = judged_as(case.op, DEFAULT_CLAIM[dtype], dtype, gradients=False)[1]
    allowed = {n: x + np.abs(round_to(expected[n], kept) - expected[n]) for n, x in allowed.items()}
    inputs = {n: np.asarray(case.inputs[n]) for n in signature(REGISTRY[case.op].function).parameters if n in case.inputs}
    given = {n: (x, _kind(x, given_dtype(case.op, n, dtype))) for n, x in inputs.items()}
    results = {n: (x, _kind(x, kept)) for n, x in expected.items()}
    if "float64" in {kind for _, kind in (*given.values(), *results.values())}:
        msg = "golden: FlashInfer-Bench has no float64. Give --dtype float32, bfloat16 or float16."
        raise TargetError(msg)
    definition = _definition(case, given, results, kept)
    name = definition["name"]
    blob = f"blob/workloads/{case.op}/{name}.safetensors"
    sources = {n: {"type": "safetensors", "path": blob, "tensor_key": n} for n in given}
    stored: Stored = {**given, **{f"true/{n}": (x, _kind(x, "float64")) for n, x in expected.items()}}
    stored |= {f"allowed/{n}": (x, "float64") for n, x in allowed.items()}
    tensors = _safetensors(stored)
    workload = {"uuid": hashlib.sha256(tensors).hexdigest()[:32], "axes": {}, "inputs": sources}
    trace = {"definition": name, "workload": workload, "solution": None, "evaluation": None}
    files = {
        f"definitions/{case.op}/{name}.json": (json.dumps(definition, indent=1) + "\n").encode(),
        f"workloads/{case.op}/{name}.jsonl": (json.dumps(trace) + "\n").encode(),
        blob: tensors,
        ABOUT: (json.dumps({**about, "definition": name, "dtype": dtype}, indent=1) + "\n").encode(),
    }
    with whole_directory(path, _expect_data_set) as new:
        for file, data in files.items():
            (new / file).parent.mkdir(parents=True, exist_ok=True)
            safe_files.write(new / file, data)
    return str(name)


def _definition(case: Case, given: Stored, results: Stored, kept: str) -> dict[str, Any]:
    """Return the definition: every size is constant, and the options are in the code."""
    outputs = {f"{n}_out" if n in given else n: found for n, found in results.items()}
    named = {**given, **outputs}
    axes = {f"{n}_{i}": {"type": "const", "value": size} for n, (x, _) in named.items() for i, size in enumerate(x.shape)}
    specs = {n: {"shape": [f"{n}_{i}" for i in range(x.ndim)], "dtype": kind} for n, (x, kind) in named.items()}
    found = {
        "op_type": case.op,
        "axes": axes,
        "inputs": {n: specs[n] for n in given},
        "outputs": {n: specs[n] for n in outputs},
        "reference": _reference(case, list(given), kept),
        "description": f"{REGISTRY[case.op].title}, as posref defines it.",
    }
    digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:8]
    return {"name": f"posref_{case.op}_{digest}", **found}


def _reference(case: Case, names: list[str], dtype: str) -> str:
    """Return the code of a definition: one call of posref."""
    parameters = signature(REGISTRY[case.op].function).parameters
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


def _kind(x: npt.NDArray[Any], real: str) -> str:
    return real if x.dtype.kind == "f" else "bool" if x.dtype.kind == "b" else "int64"


def _safetensors(stored: Stored) -> bytes:
    """Return arrays as a file, wide ones first, so that all are aligned."""
    header, body = {}, b""
    raw = {n: bits_of(x, kind) if x.dtype.kind == "f" else x.astype(kind) for n, (x, kind) in stored.items()}
    for name, bits in sorted(raw.items(), key=lambda item: -item[1].itemsize):
        data = np.ascontiguousarray(bits.astype(bits.dtype.newbyteorder("<"))).tobytes()
        place = [len(body), len(body) + len(data)]
        header[name] = {"dtype": CODES[stored[name][1]], "shape": list(bits.shape), "data_offsets": place}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def _expect_data_set(root: Path) -> None:
    """Raise `VectorError` unless a folder holds a data set that posref wrote, and nothing else."""
    about = parse(root / ABOUT, safe_files.read(root / ABOUT, JSON_DOCUMENT, root=root))
    if not (isinstance(about, dict) and {"operation", "posref", "definition"} <= {*about}):
        msg = f"{root / ABOUT}: must say what posref wrote there. Choose another folder."
        raise VectorError(msg)
    place, name = about["operation"], about["definition"]
    of_call = {f"definitions/{place}/{name}.json", f"workloads/{place}/{name}.jsonl"}
    expect_only(root, {ABOUT, *of_call, f"blob/workloads/{place}/{name}.safetensors"})
