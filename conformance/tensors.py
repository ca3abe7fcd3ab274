"""Reading and writing safetensors files: hashes first, and a named error for everything that is not as it should be."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from .errors import VectorError

DTYPES = ("float64", "float32", "int64", "bool")
Tensors = dict[str, npt.NDArray[Any]]


def write(path: Path, tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Write `tensors` and return ``{"sha256", "bytes"}``; without metadata the bytes are a function of the tensors."""
    data = save({name: np.ascontiguousarray(tensor).reshape(tensor.shape) for name, tensor in tensors.items()})
    path.write_bytes(data)
    return digest(data)


def read(path: Path, recorded: Mapping[str, Any]) -> Tensors:
    """
    Return the tensors of a file whose size and hash are as `recorded`.

    Raises
    ------
    VectorError
        If the file is missing, altered, truncated or malformed; nothing of it is used then.
    """
    data = read_bytes(path, recorded)
    try:
        tensors = load(data)
    except Exception as error:  # safetensors raises several kinds
        msg = f"{path}: not a safetensors file: {error}"
        raise VectorError(msg) from error
    for name, tensor in tensors.items():
        if tensor.dtype.name not in DTYPES:
            msg = f"{path}: tensor {name!r} must be one of {DTYPES}; got {tensor.dtype}."
            raise VectorError(msg)
    return dict(tensors)


def read_bytes(path: Path, recorded: Mapping[str, Any]) -> bytes:
    """Return a file's bytes if its size and hash are as `recorded`, else raise `VectorError`."""
    try:
        size = path.stat().st_size
        if size != recorded["bytes"]:
            msg = f"{path}: must have {recorded['bytes']} bytes; got {size}. The file is truncated or altered: fetch it again."
            raise VectorError(msg)
        data = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror}. Fetch the suite again."
        raise VectorError(msg) from error
    found = digest(data)["sha256"]
    if found != recorded["sha256"]:
        msg = f"{path}: must have sha256 {recorded['sha256']}; got {found}. The file is altered: fetch it again."
        raise VectorError(msg)
    return data


def digest(data: bytes) -> dict[str, Any]:
    """Return the hash and size of `data` as manifests record them."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
