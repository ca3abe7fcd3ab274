"""Messages between posref and a program in any language, with tensors in the message or in files."""

from __future__ import annotations

import base64
import binascii
import json
import math
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import bits_of
from posref.spec import REGISTRY

from ..calls import given_dtype, parameters_of, to_json
from ..errors import PosrefError, VectorError, shown
from ..model import Call, LoadedCase
from ..suite import safe_files, tensors
from ..suite.reader import load_manifest
from ..suite.safe_files import EMPTY_TENSOR
from ..suite.schemas import validator
from .limits import BYTES_PER_VALUE, START_REPLY

VERSION = 1
CODES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "bool": "BOOL"}
DTYPES = {
    code: name for name, code in {**CODES, "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8"}.items()
}  # what a tensor of a reply may be
Tensor = dict[str, Any]
Decoded = tuple[npt.NDArray[Any], str]  # reals widened to float64, with the name of the dtype they came in


class ProtocolError(PosrefError):
    """A message that is not as the protocol says."""


def start(suite: Path) -> dict[str, Any]:
    """Return the message that begins a session on a suite."""
    sums = tensors.digest((suite / "SUITE.json").read_bytes())
    return {"cmd": "start", "protocol": VERSION, "suite": load_manifest(suite)["suite"], "sha256": sums["sha256"]}


def run(seq: int, case: LoadedCase, step: int, dtype: str) -> dict[str, Any]:
    """Return the request for one call of a case, with its inputs; what is expected of it stays here."""
    call = case.calls[step]
    message = {
        "cmd": "run", "seq": seq, "case": case.id, "step": step, "op": case.op, "dtype": dtype,
        "params": options(case.op, call.params), "defaults": defaults(case.op, call.params),
        "inputs": {n: given(case.op, n, v, dtype, case.form) for n, v in call.inputs.items()},
        "outputs": outputs(case, call),
    }  # fmt: skip
    cotangents = {n: given(case.op, "", v, dtype) for n, v in call.cotangents.items()}
    return message | forms(case) | ({"cotangents": cotangents} if cotangents else {})


def forms(case: LoadedCase) -> dict[str, list[str]]:
    """Return what a request says of the form in which a library with strides should make its arrays, if anything."""
    return {"forms": [case.form]} if case.form else {}


def outputs(case: LoadedCase, call: Call) -> list[str]:
    """Return what a call is asked for: the operation's outputs, or the inputs whose gradients are wanted."""
    return list(call.expected if call.cotangents else REGISTRY[case.op].outputs)


def options(op: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return every option of an operation as JSON, those that are not given with their defaults."""
    parameters = parameters_of(REGISTRY[op].function)
    complete = {n: parameters[n].default for n in defaults(op, params)} | dict(params)
    return {n: to_json(complete[n]) for n in parameters if n in complete}


def defaults(op: str, params: Mapping[str, Any]) -> list[str]:
    """Return the options of an operation that are not given, and have a default."""
    parameters, domains = parameters_of(REGISTRY[op].function), REGISTRY[op].domains
    return [n for n, p in parameters.items() if n in domains and p.default is not p.empty and n not in params]


def given(op: str, name: str, value: npt.NDArray[Any], dtype: str, form: str = "") -> Tensor:
    """Return an input as a tensor, reals rounded to the dtype that it is given in."""
    if value.dtype.kind != "f":
        return encode(value, value.dtype.name)
    return encode(value, given_dtype(op, name, dtype, form))


def encode(value: npt.NDArray[Any], dtype: str) -> Tensor:
    """Return an array as a tensor of `dtype`: its code, its shape and its little-endian bytes in base64."""
    bits = bits_of(value, dtype) if value.dtype.kind == "f" else value.astype(dtype)
    data = bits.astype(bits.dtype.newbyteorder("<")).tobytes()
    return {"dtype": CODES[dtype], "shape": list(value.shape), "data": base64.b64encode(data).decode("ascii")}


def decode(tensor: Mapping[str, Any]) -> Decoded:
    """Return a tensor's array and dtype; `ProtocolError` if its bytes are not those of its shape."""
    code, shape = tensor["dtype"], shape_of(tensor)
    try:
        data = base64.b64decode(tensor["data"], validate=True)
    except KeyError:
        msg = "data is missing"
        raise ProtocolError(msg) from None
    except (binascii.Error, ValueError) as error:
        msg = f"data is not base64: {error}"
        raise ProtocolError(msg) from error
    size = math.prod(shape) * np.dtype(tensors.BITS[code]).itemsize
    if len(data) == size and math.prod(max(n, 1) for n in shape) > max(size, EMPTY_TENSOR):
        msg = f"shape must have at most {EMPTY_TENSOR} places where it has no values; got {shape}"
        raise ProtocolError(msg)
    if len(data) != size:
        msg = f"data must have the {size} bytes of {code} {shape}; got {len(data)}"
        raise ProtocolError(msg)
    bits = np.frombuffer(data, dtype=tensors.BITS[code])
    if code == "BF16":
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    return widened(bits.reshape(shape)), DTYPES[code]


def shape_of(tensor: Mapping[str, Any]) -> list[int]:
    """Return the shape that a tensor states; some languages write 3 as 3.0, which JSON Schema takes for an integer too."""
    return [int(n) for n in tensor["shape"]]


def widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return reals as float64 and integers as int64, which hold all that a tensor can."""
    return array.astype({"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int64))


def limit(call: Call) -> int:
    """Return how many bytes the reply to a call may have."""
    values = sum(v.size for v in (*call.inputs.values(), *call.expected.values()))
    return START_REPLY + BYTES_PER_VALUE * values


def write(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line, in ASCII."""
    return json.dumps(message, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"


def read(line: bytes, kind: str) -> dict[str, Any]:
    """Return the message in a line; `ProtocolError` unless it is JSON of the schema of its kind."""
    message = _json(line)
    check(message, kind)
    return message


def command(line: bytes) -> dict[str, Any]:
    """Return a message of posref: start, run or stop; `ProtocolError` if it is none."""
    message = _json(line)
    kind = message.get("cmd")
    if kind not in ("start", "run", "stop"):
        msg = f"cmd: must be start, run or stop; got {kind!r}"
        raise ProtocolError(msg)
    check(message, kind)
    return message


def _json(line: bytes) -> dict[str, Any]:
    """Return the object in a line."""
    try:
        message = safe_files.loads(line, limit=len(line), encoding="utf-8")
    except ValueError as error:
        msg = f"not valid JSON: {shown(str(error))}"
        raise ProtocolError(msg) from error
    if not isinstance(message, dict):
        msg = f"must be a JSON object; got {shown(repr(message), 60)}"
        raise ProtocolError(msg)
    return message


def check(message: Any, kind: str) -> None:
    """Raise `ProtocolError` with the first place where a message is not as the schema of its kind says."""
    for error in _validator(kind).iter_errors(message):
        place = "/".join(str(part) for part in error.absolute_path)
        msg = f"{shown(place) or 'the message'}: {shown(error.message)}"
        raise ProtocolError(msg)
    if kind == "reply" and type(message["seq"]) is not int:  # to JSON Schema 7.0 is an integer too
        msg = f"seq: must be the integer of the request; got {shown(repr(message['seq']))}"
        raise ProtocolError(msg)


@cache
def _validator(kind: str) -> Any:
    """Return the validator of one kind of message."""
    import jsonschema  # takes long to load: what is asked in this process needs none

    schema = validator("protocol").schema
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})


ROLES = {"inputs": "in", "cotangents": "ct"}


def with_files(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a request whose tensors are in a file of `folder`, which its ``files`` names, with a place for the results."""
    place = {kind: str(folder / f"{request['seq']}.{kind}.safetensors") for kind in ("inputs", "outputs")}
    stored: dict[str, Any] = {}
    left = dict(request)
    for key, role in ROLES.items():
        for name, tensor in request.get(key, {}).items():
            stored[f"{role}/{name}"] = tensor
        if key in request:
            left[key] = {n: {k: v for k, v in t.items() if k != "data"} for n, t in request[key].items()}
    folder.mkdir(parents=True, exist_ok=True)  # a program may have removed it
    safe_files.write(Path(place["inputs"]), safetensors_file(stored))
    return left | {"files": place}


def safetensors_file(stored: Mapping[str, Tensor]) -> bytes:
    """Return tensors as a safetensors file, wide ones first so that all are aligned; the library cannot write bfloat16."""
    header, body = {}, b""
    for name, tensor in sorted(stored.items(), key=lambda item: -np.dtype(tensors.BITS[item[1]["dtype"]]).itemsize):
        data = base64.b64decode(tensor["data"])
        place = [len(body), len(body) + len(data)]
        header[name] = {"dtype": tensor["dtype"], "shape": tensor["shape"], "data_offsets": place}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def outputs_in_files(reply: Mapping[str, Any], files: Mapping[str, str], limit: int) -> dict[str, Decoded]:
    """Return the outputs that a program wrote, at most `limit` bytes; `ProtocolError` unless they are as its reply says."""
    try:
        found = tensors.decode(safe_files.read(Path(files["outputs"]), limit)) if reply["outputs"] else {}
    except VectorError as error:
        raise ProtocolError(str(error)) from error
    said = {n: (t["dtype"], shape_of(t)) for n, t in reply["outputs"].items()}
    there = {n: (code, list(array.shape)) for n, (array, code) in found.items()}
    if said != there:
        msg = f"outputs: the reply says {shown(str(said))}; the file has {shown(str(there))}"
        raise ProtocolError(msg)
    return {name: (widened(array), DTYPES[code]) for name, (array, code) in found.items()}


def remove_files(files: Mapping[str, str]) -> None:
    """Remove the files of a call."""
    for path in files.values():
        try:
            Path(path).unlink(missing_ok=True)
        except OSError:  # a folder, say, that a program made there
            shutil.rmtree(path, ignore_errors=True)
