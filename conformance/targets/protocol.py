"""Messages between posref and a program in any language, with tensors in the message or in files."""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import math
import re
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from .shared_file import SharedFile

VERSION = 1
BEHIND = "behind"  # in a request for two calls: how many bytes behind the inputs of the first those of the second lie
CODES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
DTYPES = {code: name for name, code in CODES.items()}
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
Tensor = dict[str, Any]
NONE = inspect.Parameter.empty  # of an option that has no default
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")  # of an output
MANY, AXES = 100, 8  # words of a list, their letters, and axes of a tensor, of which nobody need doubt
USUAL = {"ok": {"seq", "status", "message", "outputs", "changed", "overwrote"}, "other": {"seq", "status", "message"}}  # keys
STATUSES = ("ok", "unsupported", "rejected", "error")
ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
Put = Callable[[npt.NDArray[Any]], dict[str, Any]]  # puts a tensor's bits somewhere, and returns how the tensor says where
Decoded = tuple[npt.NDArray[Any], str]  # reals widened to float64, with the name of the dtype they came in


class ProtocolError(PosrefError):
    """A message that is not as the protocol says."""


def start(suite: Path) -> dict[str, Any]:
    """Return the message that begins a session on a suite."""
    sums = tensors.digest((suite / "SUITE.json").read_bytes())
    return {"cmd": "start", "protocol": VERSION, "suite": load_manifest(suite)["suite"], "sha256": sums["sha256"]}


def in_message(bits: npt.NDArray[Any]) -> dict[str, Any]:
    """Put bits into the tensor itself."""
    return {"data": base64.b64encode(bits.tobytes()).decode("ascii")}


def run(seq: int, case: LoadedCase, step: int, dtype: str, put: Put = in_message) -> dict[str, Any]:
    """Return the request for one call of a case, with its inputs; what is expected of it stays here."""
    call = case.calls[step]
    message = {
        "cmd": "run", "seq": seq, "case": case.id, "step": step, "op": case.op, "dtype": dtype,
        "params": options(case.op, call.params), "defaults": defaults(case.op, call.params),
        "inputs": {n: given(case.op, n, v, dtype, case.form, put) for n, v in call.inputs.items()},
        "outputs": outputs(case, call),
    }  # fmt: skip
    cotangents = {n: given(case.op, "", v, dtype, "", put) for n, v in call.cotangents.items()}
    return message | forms(case) | ({"cotangents": cotangents} if cotangents else {})


def second(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second of two requests in one message: for the same call, with inputs that lie behind those of the first."""
    left = {key: value for key, value in request.items() if key != BEHIND}
    moved = {key: {n: _moved(t, request[BEHIND]) for n, t in request[key].items()} for key in ROLES if key in request}
    return left | moved | {"seq": request["seq"] + 1, "calls": 2}


def _moved(tensor: Tensor, by: int) -> Tensor:
    """Return a tensor that lies farther behind in a file, if it lies there."""
    if "block" not in tensor:
        return tensor
    start, size = tensor["block"]
    return tensor | {"at": tensor["at"] + by, "block": [start + by, size]}


def forms(case: LoadedCase) -> dict[str, list[str]]:
    """Return what a request says of the form in which a library with strides should make its arrays, if anything."""
    return {"forms": [case.form]} if case.form else {}


def outputs(case: LoadedCase, call: Call) -> list[str]:
    """Return the names of a call's results: the operation's outputs, or the inputs in which it differentiates."""
    return list(call.expected if call.cotangents else REGISTRY[case.op].outputs)


def options(op: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return every option of an operation as JSON, those that are not given with their defaults."""
    return {n: to_json(params.get(n, default)) for n, default in _options_of(op).items() if n in params or default is not NONE}


def defaults(op: str, params: Mapping[str, Any]) -> list[str]:
    """Return the options of an operation that are not given, and have a default."""
    return [n for n, default in _options_of(op).items() if n not in params and default is not NONE]


@cache
def _options_of(op: str) -> dict[str, Any]:
    """Return the options of an operation with their defaults, in the order of its arguments."""
    domains = REGISTRY[op].domains
    return {n: p.default for n, p in parameters_of(REGISTRY[op].function).items() if n in domains}


def given(op: str, name: str, value: npt.NDArray[Any], dtype: str, form: str = "", put: Put = in_message) -> Tensor:
    """Return an input as a tensor, reals rounded to the dtype that it is given in."""
    if value.dtype.kind != "f":
        return encode(value, value.dtype.name, put)
    return encode(value, given_dtype(op, name, dtype, form), put)


def encode(value: npt.NDArray[Any], dtype: str, put: Put = in_message) -> Tensor:
    """Return an array as a tensor of `dtype`: its code, its shape, and where its little-endian bytes are."""
    bits = bits_of(value, dtype) if value.dtype.kind == "f" else value.astype(dtype)
    return {"dtype": CODES[dtype], "shape": list(value.shape), **put(bits.astype(tensors.DTYPES[CODES[dtype]], copy=False))}


def decode(tensor: Mapping[str, Any], shared: SharedFile | None = None, most: int | None = None) -> Decoded:
    """
    Return a tensor's array and dtype; `ProtocolError` if its bytes are not those of its shape.

    Of one in a file with more than `most` numbers there are only shape and dtype.
    """
    if shared is not None and most is not None and math.prod(shape_of(tensor)) > most:
        return np.broadcast_to(np.zeros(()), shape_of(tensor)), DTYPES[tensor["dtype"]]
    return unpacked(tensor, data_of(tensor, shared))


def data_of(tensor: Mapping[str, Any], shared: SharedFile | None = None) -> bytes:
    """Return a tensor's bytes, from its message or from a file; `ProtocolError` if there are none."""
    if shared is not None and "strides" in tensor:
        start, size = tensor["block"]
        kind, block = tensors.DTYPES[tensor["dtype"]], shared.get(start, size)
        return np.ndarray(shape_of(tensor), f"V{kind.itemsize}", block, tensor["at"] - start, tensor["strides"]).tobytes()
    if shared is not None and "at" in tensor:
        return shared.get(tensor["at"], size_of(tensor))
    try:
        return base64.b64decode(tensor["data"], validate=True)
    except KeyError:
        msg = "data is missing"
        raise ProtocolError(msg) from None
    except (binascii.Error, ValueError) as error:
        msg = f"data is not base64: {error}"
        raise ProtocolError(msg) from error


def size_of(tensor: Mapping[str, Any]) -> int:
    """Return how many bytes a tensor of its shape has."""
    return math.prod(shape_of(tensor)) * tensors.DTYPES[tensor["dtype"]].itemsize


def unpacked(tensor: Mapping[str, Any], data: bytes) -> Decoded:
    """Return the array and dtype of a tensor with these bytes; `ProtocolError` if they are not those of its shape."""
    code, shape, size = tensor["dtype"], shape_of(tensor), size_of(tensor)
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
    return ENCODER.encode(message).encode("ascii") + b"\n"


def read(line: bytes, kind: str) -> dict[str, Any]:
    """Return the message in a line; `ProtocolError` unless it is JSON of the schema of its kind."""
    message = object_in(line)
    if not (kind == "reply" and _is_plain_reply(message)):
        check(message, kind)
    return message


def _is_plain_reply(message: Any) -> bool:
    """Return whether a reply is of the usual form, and so of the schema, whose library takes long to load."""
    if not isinstance(message, dict) or type(message.get("seq")) is not int:
        return False
    status, outputs = message.get("status"), message.get("outputs", {})
    return (
        USUAL["ok" if status == "ok" else "other"] >= message.keys() and status in STATUSES
        and isinstance(message.get("message", ""), str) and isinstance(outputs, dict)
        and all(map(_is_plain_tensor, outputs.values())) and all(map(NAME.fullmatch, outputs))
        and all(_are_words(message[name]) for name in ("changed", "overwrote") if name in message)
        and (status != "ok" or "outputs" in message)
    )  # fmt: skip


def _is_plain_tensor(tensor: Any) -> bool:
    """Return whether a tensor of a reply is of the usual form, but for its bytes."""
    if not isinstance(tensor, dict) or [*tensor] not in (["dtype", "shape", "at"], ["dtype", "shape", "data"]):
        return False
    dtype, shape, place = tensor.values()
    whole = isinstance(shape, list) and len(shape) <= AXES and all(type(n) is int and n >= 0 for n in shape)
    placed = isinstance(place, str) if "data" in tensor else type(place) is int and place >= 0
    return whole and placed and isinstance(dtype, str) and dtype in DTYPES


def _are_words(words: Any) -> bool:
    """Return whether there is a list of different words, neither long nor many."""
    short = (
        isinstance(words, list) and len(words) <= MANY and all(isinstance(word, str) and len(word) <= MANY for word in words)
    )
    return short and len(set(words)) == len(words)


def object_in(line: bytes) -> dict[str, Any]:
    """Return the object in a line."""
    try:
        message = safe_files.loads(line, limit=len(line), encoding="utf-8")
    except ValueError as error:
        got = shown(repr(line[:60].decode(errors="replace").strip()), 60)
        msg = f"not valid JSON: {shown(str(error))}; got {got}"
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


def outputs_in_files(given: Mapping[str, Tensor], files: Mapping[str, str], limit: int) -> dict[str, Decoded]:
    """Return the outputs that a program wrote, at most `limit` bytes; `ProtocolError` unless they are as its reply says."""
    try:
        decoded = tensors.decode(safe_files.read(Path(files["outputs"]), limit)) if given else {}
    except VectorError as error:
        raise ProtocolError(str(error)) from error
    said = {n: (t["dtype"], shape_of(t)) for n, t in given.items()}
    there = {n: (code, list(array.shape)) for n, (array, code) in decoded.items()}
    if said != there:
        msg = f"outputs: the reply says {shown(str(said))}; the file has {shown(str(there))}"
        raise ProtocolError(msg)
    return {name: (widened(array), DTYPES[code]) for name, (array, code) in decoded.items()}


def remove_files(files: Mapping[str, str]) -> None:
    """Remove the files of a call."""
    for path in files.values():
        try:
            Path(path).unlink(missing_ok=True)
        except OSError:  # a folder, say, that a program made there
            shutil.rmtree(path, ignore_errors=True)
