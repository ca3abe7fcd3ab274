"""Reader of safetensors files: checks the hash and every claim of the header, and raises a named error."""

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import VectorError
from . import safe_files
from .safe_files import EMPTY_TENSOR, TENSOR_AXES, TENSOR_HEADER, TENSOR_NAME

Tensors = dict[str, npt.NDArray[Any]]
BITS = {  # how the bytes of a dtype are read; bfloat16, which NumPy lacks, as the upper half of a float32
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?",
}  # fmt: skip
DTYPES = {name: np.dtype(code) for name, code in BITS.items()}
FIELDS = {"dtype", "shape", "data_offsets"}
VECTORS = ("F64", "F32", "I64", "BOOL")
NAME = re.compile(r"[a-z0-9_][a-z0-9_.@-]*(/[a-z0-9_][a-z0-9_.@-]*){0,7}")


def write(path: Path, tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Write `tensors` and return ``{"sha256", "bytes"}``."""
    data = to_bytes(tensors)
    safe_files.write(path, data)
    return digest(data)


def to_bytes(tensors: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return `tensors` as a file; without metadata the bytes are a function of the tensors."""
    from safetensors.numpy import save  # not needed to read

    data: bytes = save({name: np.ascontiguousarray(tensor).reshape(tensor.shape) for name, tensor in tensors.items()})
    return data


def read(path: Path, recorded: Mapping[str, Any], *, root: Path | None = None) -> Tensors:
    """
    Return the tensors of a vector file whose size and hash are as `recorded`.

    `VectorError` if the file is missing, altered, truncated or malformed, or a value is not finite; nothing of it is used then.
    """
    data = read_bytes(path, recorded, root=root)
    try:
        tensors = {name: tensor for name, (tensor, _) in decode(data, VECTORS, canonical=True).items()}
    except VectorError as error:
        msg = f"{path}: {error}"
        raise VectorError(msg) from error
    reals = {name: tensor for name, tensor in tensors.items() if tensor.dtype.kind == "f"}
    if reals and not np.isfinite(np.concatenate([tensor.reshape(-1) for tensor in reals.values()])).all():
        raise _infinite(path, reals)
    return tensors


def read_own(path: Path, recorded: Mapping[str, Any], *, root: Path) -> Tensors:
    """Return the tensors of a file of the installed suite, whose size and hash are as `recorded`; of it no more is checked."""
    data = read_bytes(path, recorded, root=root)
    body = 8 + int.from_bytes(data[:8], "little")
    return {name: _array(name, entry, data, body) for name, entry in json.loads(data[8:body]).items()}


def _infinite(path: Path, reals: Tensors) -> VectorError:
    """Return the error that names the first value of a file that is not finite."""
    name, tensor = next((name, tensor) for name, tensor in reals.items() if not np.isfinite(tensor).all())
    index = [int(i) for i in np.argwhere(~np.isfinite(tensor))[0]]
    return VectorError(f"{path}: tensor {name}{index} must be finite; got {tensor[tuple(index)]}.")


def decode(
    data: bytes, dtypes: Collection[str] = tuple(BITS), *, canonical: bool = False
) -> dict[str, tuple[npt.NDArray[Any], str]]:
    """
    Return the tensors of a safetensors file by name, each with the name of its dtype there; BF16 is widened to float32.

    They are views of `data`, which cannot be written to.

    The format leaves room that memory, paths and readers can be attacked through; what is not needed of it is refused.
    Whatever is accepted has the contents that the official reader gives it. Values are as they are: NaN is not looked for.

    Parameters
    ----------
    data : bytes
        The whole file.
    dtypes : collection of str
        Those of F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL that may occur.
    canonical : bool
        Whether it must be as vectors are written: aligned, and without ``__metadata__``.

    Raises
    ------
    VectorError
        If it is anything else; the message does not know the file's name.
    """
    try:
        body, entries = _check(data, dtypes, canonical=canonical)
        return {name: (_array(name, entry, data, body), entry["dtype"]) for name, entry in entries.items()}
    except (ValueError, RecursionError) as error:
        msg = f"not a safetensors file that can be trusted: {error}."
        raise VectorError(msg) from error


def _array(name: str, entry: Mapping[str, Any], data: bytes, body: int) -> npt.NDArray[Any]:
    """Return a tensor of a file whose header was found right; its values begin at `body`."""
    dtype, (begin, stop) = DTYPES[entry["dtype"]], entry["data_offsets"]
    bits = np.frombuffer(data, dtype, (stop - begin) // dtype.itemsize, body + begin)
    if entry["dtype"] == "BOOL" and np.any(bits.view(np.uint8) > 1):
        msg = f"tensor {name}: a BOOL must be 0 or 1"
        raise ValueError(msg)
    if entry["dtype"] == "BF16":
        bits = (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.reshape(entry["shape"])


def _check(data: bytes, dtypes: Collection[str], *, canonical: bool) -> tuple[int, dict[str, Any]]:
    """
    Return where values begin, and the header's entries.

    `ValueError` unless the header describes the file, all of it, and can do no harm.
    """
    size = int.from_bytes(data[:8], "little")
    if not 2 <= size <= min(TENSOR_HEADER, len(data) - 8) or data[8:9] != b"{":
        msg = (
            f"its header must begin with {{ and have 2 to {TENSOR_HEADER} bytes, within the file's {len(data)}; it says {size}"
        )
        raise ValueError(msg)
    entries: dict[str, Any] = safe_files.loads(data[8 : 8 + size], limit=TENSOR_HEADER, encoding="utf-8")
    metadata = entries.pop("__metadata__", None)
    texts = isinstance(metadata, dict) and all(isinstance(text, str) for text in metadata.values())
    if metadata is not None and (canonical or not texts):
        msg = "__metadata__ must not be there" if canonical else "__metadata__ must map words to words"
        raise ValueError(msg)
    if canonical and size % 8:
        msg = f"its header must be padded to a multiple of 8 bytes; it has {size}"
        raise ValueError(msg)
    body, end = len(data) - 8 - size, 0
    for begin, stop, name, width in sorted(_span(name, entry, dtypes, body) for name, entry in entries.items()):
        if begin != end or (canonical and begin % width):
            msg = f"tensor {name}: must begin where the one before ends, at {end}, aligned to {width}; it begins at {begin}"
            raise ValueError(msg)
        end = stop
    if end != body:
        msg = f"its tensors must be all that follows the header: {body} bytes; they are {end}"
        raise ValueError(msg)
    return 8 + size, entries


def _span(name: str, entry: Any, dtypes: Collection[str], body: int) -> tuple[int, int, str, int]:
    """Return where a tensor begins and ends, its name and the bytes of a value; `ValueError` for a lie about them."""
    if len(name) > TENSOR_NAME or not NAME.fullmatch(name):
        msg = f"the name of a tensor must be of a-z, 0-9 and _.@-/, and no path that leaves its folder; got {name[:80]!r}"
        raise ValueError(msg)
    if not isinstance(entry, dict) or entry.keys() != FIELDS:
        msg = f"tensor {name}: must have dtype, shape and data_offsets, and nothing else"
        raise ValueError(msg)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in dtypes:
        msg = f"tensor {name}: dtype must be one of {', '.join(dtypes)}; got {str(dtype)[:80]!r}"
        raise ValueError(msg)
    if not _counts(shape) or len(shape) > TENSOR_AXES or math.prod([n or 1 for n in shape]) > max(body, EMPTY_TENSOR):
        msg = f"tensor {name}: shape must be at most {TENSOR_AXES} counts that fit the file; got {str(shape)[:80]}"
        raise ValueError(msg)
    width = DTYPES[dtype].itemsize
    if not _counts(offsets) or len(offsets) != 2 or offsets[1] > body or offsets[1] - offsets[0] != math.prod(shape) * width:
        msg = f"tensor {name}: data_offsets must span the {dtype} of shape {shape} in {body} bytes; got {str(offsets)[:80]}"
        raise ValueError(msg)
    return offsets[0], offsets[1], name, width


def _counts(value: Any) -> bool:
    """Return whether a JSON value is a list of integers from 0; true and false are none."""
    return isinstance(value, list) and set(map(type, value)) <= {int} and min(value, default=0) >= 0


def read_bytes(path: Path, recorded: Mapping[str, Any], *, root: Path | None = None) -> bytes:
    """Return a file's bytes if its size and hash are as `recorded`, else raise `VectorError`."""
    data = safe_files.read(path, recorded["bytes"], root=root)
    if len(data) != recorded["bytes"]:
        raise safe_files.refusal(
            path, f"must have {recorded['bytes']} bytes; got {len(data)}. The file is truncated or altered: fetch it again"
        )
    sha256 = digest(data)["sha256"]
    if sha256 != recorded["sha256"]:
        raise safe_files.refusal(
            path, f"must have sha256 {recorded['sha256']}; got {sha256}. The file is altered: fetch it again"
        )
    return data


def digest(data: bytes) -> dict[str, Any]:
    """Return the hash and size of `data` as manifests record them."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
