"""Tensors of a call in safetensors files, for programs that ask for it: large ones need no base64 then."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import VectorError
from ...suite import safe_files, tensors
from ...suite.quotation import shown
from . import protocol
from .protocol import Decoded, ProtocolError

ROLES = {"inputs": "in", "cotangents": "ct"}


def send(request: dict[str, Any], folder: Path) -> dict[str, Any]:
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
    Path(place["inputs"]).write_bytes(written(stored))
    return left | {"files": place}


def written(stored: Mapping[str, protocol.Tensor]) -> bytes:
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


def receive(reply: Mapping[str, Any], files: Mapping[str, str], limit: int) -> dict[str, Decoded]:
    """Return the outputs that a program wrote, at most `limit` bytes; `ProtocolError` unless they are as its reply says."""
    try:
        found = tensors.decode(safe_files.read(Path(files["outputs"]), limit)) if reply["outputs"] else {}
    except VectorError as error:
        raise ProtocolError(str(error)) from error
    said = {n: (t["dtype"], protocol.shape_of(t)) for n, t in reply["outputs"].items()}
    there = {n: (code, list(array.shape)) for n, (array, code) in found.items()}
    if said != there:
        msg = f"outputs: the reply says {shown(str(said))}; the file has {shown(str(there))}"
        raise ProtocolError(msg)
    return {name: (protocol.widened(array), protocol.DTYPES[code]) for name, (array, code) in found.items()}


def discard(files: Mapping[str, str]) -> None:
    """Remove the files of a call."""
    for path in files.values():
        try:
            Path(path).unlink(missing_ok=True)
        except OSError:  # a folder, say, that a program made there
            shutil.rmtree(path, ignore_errors=True)
