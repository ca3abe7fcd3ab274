"""Server of the protocol for a Python target: it answers as a program in another language does, and judges nothing."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from posref.backends import BackendMissing
from posref.spec import REGISTRY

from ..accuracy import OF_DTYPE
from ..calls import from_json, returns_reals
from ..errors import Failure, PosrefError
from ..model import Call, LoadedCase
from . import invocation, protocol
from .invocation import Result, same_bits
from .python import PythonTarget, compiler_remarks, load_python
from .replies import Reply
from .shared_file import SharedFile

LONG = str(np.dtype(np.longdouble))  # the name of a dtype takes long to make


def main() -> None:
    """Serve what the argument says, as the process of a target that is given by name."""
    serve(**json.loads(sys.argv[1]))


def serve(
    target: str, *, backend: str | None = None, dtype: str | None = None, device: Any = None, path: Sequence[str] | None = None,
    shared: int | str | None = None,
) -> None:  # fmt: skip
    """
    Speak the protocol over standard input and output on behalf of a Python target, until told to stop.

    Its modules are looked for in `path`, by default that of this process. The bytes of tensors are in the file `shared`, a
    descriptor or a path, if there is one.
    """
    warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
    own = os.getpid()
    requests, replies = _channel()
    file = None if shared is None else SharedFile(shared)
    server: Server | None = None
    try:
        for line in requests:
            request = json.loads(line)
            if request["cmd"] == "stop":
                return
            if request["cmd"] == "run" and server is not None:
                reply = server.run(request)
            else:
                len(
                    REGISTRY
                )  # definitions are imported before the target's folder is on the path, whose files may have any name
                sys.path[:] = sys.path if path is None else path
                try:
                    server = Server(load_python(target, backend=backend, dtype=dtype, device=device), file)
                    reply = {"protocol": protocol.VERSION, **server.target.stated()}
                except (PosrefError, BackendMissing, ValueError) as error:
                    server, reply = None, {"protocol": protocol.VERSION, "error": invocation.text_of(error)}
                except BaseException as error:
                    text = f"{target}: could not be loaded: {invocation.in_one_line(error)}"
                    server, reply = None, {"protocol": protocol.VERSION, "error": text}
            if os.getpid() != own:  # a copy of this process, which the target made
                os._exit(1)
            replies.write(protocol.write(reply))
            replies.flush()
    except OSError as error:  # of the two streams, which the target may close
        os.write(2, f"posref: the target closed a stream of its process: {error.strerror}\n".encode())
        os._exit(1)


def _channel() -> tuple[BinaryIO, BinaryIO]:
    """Return the real standard input and output; in their places stand nothing and standard error."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what the target prints
    sys.stdout = sys.stderr  # which writes every line at once: this process may be killed
    os.close(nothing)
    return requests, replies


class Server:
    """A loaded target, asked by messages."""

    def __init__(self, target: PythonTarget, shared: SharedFile | None = None) -> None:
        self.target, self.shared = target, shared
        self._remarks: tuple[str, ...] = ()

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a request to run."""
        try:
            reply = self._reply(request)
        except BaseException as error:  # also KeyboardInterrupt: whatever an implementation raises is its verdict
            reply = Reply("error", invocation.in_one_line(error))
        told = {"seq": request["seq"], **self._told(request["op"], reply)}
        remarks, self._remarks = self._remarks, compiler_remarks(self.target.given_up)
        return told if remarks == self._remarks else told | {"notes": self._remarks}

    def _reply(self, request: Mapping[str, Any]) -> Reply:
        """Return what one call gives."""
        op, dtype, step = request["op"], request["dtype"], request["step"]
        if op not in REGISTRY or dtype not in self.target.backend.dtypes:
            return Reply("unsupported", f"no {op} in {dtype}")
        inputs, cotangents = (
            {name: protocol.decode(tensor, self.shared)[0] for name, tensor in request.get(key, {}).items()}
            for key in ("inputs", "cotangents")
        )
        if self.shared is not None:
            self.shared.begin()
        params = {name: from_json(v) for name, v in request["params"].items() if name not in request.get("defaults", ())}
        wanted = dict.fromkeys(request["outputs"], np.zeros(())) if cotangents else {}  # names alone: values are not sent
        calls = (*(Call({}, {}),) * step, Call(params, inputs, wanted, cotangents=cotangents))  # others were asked before
        form = next(iter(request.get("forms", ())), "")
        case = LoadedCase(request["case"], op, "value", "core", "", (dtype,), calls, form)
        return self.target.reply(case, step, dtype, request.get("calls", 1))

    def _told(
        self, op: str, reply: Reply, before: Mapping[str, tuple[Result, protocol.Tensor]] | None = None
    ) -> dict[str, Any]:
        """Return a reply as the protocol has it; a result with the bits of the one `before` is the same tensor."""
        said = {"message": reply.message} if reply.message else {}
        if reply.status != "ok":
            return {"status": reply.status, **said}
        try:
            outputs = {}
            for name, result in reply.outputs.items():
                first, tensor = (before or {}).get(name, (None, {}))
                same = first is not None and first[1] == result[1] and same_bits(first[0], result[0])
                outputs[name] = tensor if same else self._tensor(op, name, *result)
        except Failure as failure:
            return {"status": "ok", "outputs": {}, "message": str(failure)}
        told = {"status": "ok", "outputs": outputs, "changed": reply.changed, "overwrote": reply.overwrote, **said}
        if reply.second is not None:
            told["second"] = self._told(op, reply.second, {n: (reply.outputs[n], tensor) for n, tensor in outputs.items()})
        return {name: value for name, value in told.items() if value or name == "outputs"}

    def _tensor(self, op: str, name: str, host: Any, dtype: str | None) -> protocol.Tensor:
        """Return a result as a tensor; `Failure` if the protocol has none for it."""
        if dtype is None and returns_reals(op):  # a factor is a Python number
            host, dtype = host.astype(np.float64), "float64"
        if dtype == LONG:
            dtype = "float64"  # as it is judged
        put = protocol.in_message if self.shared is None else self.shared.put
        if host.dtype.kind == "f" and dtype in OF_DTYPE:
            return protocol.encode(host, dtype, put)
        if host.dtype.kind in "iub":
            return protocol.encode(host, host.dtype.name if host.dtype.name in protocol.INTEGERS else "int64", put)
        msg = f"{name} must be real and at least float32; got {dtype or host.dtype}"
        raise Failure(msg)


if __name__ == "__main__":
    main()
