"""Server of the protocol for a Python target: it answers as a program in another language does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends import BackendMissing
from posref.spec import REGISTRY

from ..accuracy import OF_DTYPE
from ..calls import from_json
from ..errors import Failure, PosrefError, Unsupported
from ..model import Call, LoadedCase
from . import invocation, protocol
from .child_process import channel
from .python import PythonTarget, load_python


def serve(target: str, *, backend: str | None = None, dtype: str | None = None, device: str | None = None) -> None:
    """Speak the protocol over standard input and output on behalf of a Python target, until told to stop."""
    warnings.simplefilter("ignore")
    requests, replies = channel()
    server: Server | None = None
    for line in requests:
        command = protocol.command(line)
        if command["cmd"] == "stop":
            return
        if command["cmd"] == "run" and server is not None:
            reply = server.run(command)
        else:
            try:
                server = Server(load_python(target, backend=backend, dtype=dtype, device=device))
                reply = {"protocol": protocol.VERSION, **server.target.stated()}
            except (PosrefError, BackendMissing, ValueError) as error:
                server, reply = None, {"protocol": protocol.VERSION, "error": str(error)}
        replies.write(protocol.write(reply))
        replies.flush()


@dataclass
class Server:
    """A loaded target, asked by messages."""

    target: PythonTarget
    asked: tuple[str, str] = ("", "")  # case and dtype of the last request

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request to run."""
        try:
            reply = self._outcome(request)
        except (Unsupported, NotImplementedError) as error:
            reply = {"status": "unsupported", "message": str(error) or "not implemented"}
        except Failure as failure:
            reply = {"status": "ok", "outputs": {}, "message": str(failure)}
        except BaseException as error:  # also SystemExit: whatever an implementation raises is its verdict
            reply = {"status": "error", "message": invocation.in_one_line(error)}
        return {"seq": request["seq"], **reply}

    def _outcome(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what one call gives."""
        op, dtype = request["op"], request["dtype"]
        function = self.target.function(op) if op in REGISTRY else None
        if function is None or dtype not in self.target.backend.dtypes:
            msg = f"no {op} in {dtype}"
            raise Unsupported(msg)
        call = _call(request)
        form = next(iter(request.get("forms", ())), "")
        case = LoadedCase(request["case"], op, "value", "core", "", (dtype,), (call,), form)
        if request["step"] == 0 and self.asked != (request["case"], dtype):
            self.target.begin(case)
        self.asked = (request["case"], dtype)
        asked = invocation.call_of(self.target, case, call, dtype)
        outputs = {name: _tensor(name, *result) for name, result in asked.collected().items()}
        return {"status": "ok", "outputs": outputs, "changed": asked.changed()}


def _call(request: Mapping[str, Any]) -> Call:
    """Return what is asked, as the suite has it: without the options that it leaves to their defaults."""
    params = {name: from_json(v) for name, v in request["params"].items() if name not in request.get("defaults", ())}
    inputs, cotangents = (
        {name: protocol.decode(tensor)[0] for name, tensor in request.get(key, {}).items()} for key in ("inputs", "cotangents")
    )
    wanted = dict.fromkeys(request["outputs"], np.zeros(())) if cotangents else {}  # names alone: values are not sent
    return Call(params, inputs, wanted, cotangents=cotangents)


def _tensor(name: str, host: npt.NDArray[Any], dtype: str | None) -> protocol.Tensor:
    """Return a result as a tensor; `Failure` if the protocol has none for it."""
    if dtype == str(np.dtype(np.longdouble)):
        dtype = "float64"  # as it is judged
    if host.dtype.kind == "f" and (dtype is None or dtype in OF_DTYPE):
        return protocol.encode(host, dtype or "float64")
    if host.dtype.kind in "iu":
        return protocol.encode(host, "int64")
    if host.dtype.kind == "b":
        return protocol.encode(host, "bool")
    msg = f"{name} must be an array of numbers; got {dtype or host.dtype}"
    raise Failure(msg)
