"""Server of the protocol for a Python target: it answers as a program in another language does, and judges nothing."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from posref.backends import BackendMissing
from posref.spec import REGISTRY

from ..accuracy import OF_DTYPE
from ..calls import from_json, given_dtype, returns_reals
from ..errors import Failure, PosrefError
from ..model import Call, LoadedCase
from . import invocation, protocol
from .program_process import OFFERED
from .python import PythonTarget, compiler_remarks, load_python
from .replies import Reply
from .shared_file import ALIGNED, SharedFile

NONE = np.zeros(())  # in place of the numbers of an array that is made already
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
    process = os.getpid()
    requests, replies = _channel()
    place = os.environ.pop(OFFERED, None) if shared is None else shared  # what the target starts has its own
    file = None if place is None else SharedFile.offered(place)
    server: Server | None = None
    found: Iterator[dict[str, Any]]
    try:
        for line in requests:
            request = json.loads(line)
            if request["cmd"] == "stop":
                return
            if request["cmd"] == "run" and server is not None:
                found = server.replies(request)
            else:
                len(
                    REGISTRY
                )  # definitions are imported before the target's folder is on the path, whose files may have any name
                sys.path[:] = sys.path if path is None else path
                try:
                    server = Server(load_python(target, backend=backend, dtype=dtype, device=device), file)
                    stated = server.stated()
                except (PosrefError, BackendMissing, ValueError) as error:
                    server, stated = None, {"error": invocation.text_of(error)}
                except BaseException as error:
                    server, stated = None, {"error": f"{target}: could not be loaded: {invocation.in_one_line(error)}"}
                found = iter([{"protocol": protocol.VERSION, **stated}])
            for reply in found:
                if os.getpid() != process:  # a copy of this process, which the target made
                    os._exit(1)
                replies.write(protocol.write(reply))
                replies.flush()
    except OSError as error:  # of the two streams, which the target may close
        os.write(2, f"posref: the target closed a stream of its process: {error.strerror}\n".encode())
        os._exit(1)


def _channel() -> tuple[BinaryIO, BinaryIO]:
    """Return the real standard input and output; in their places stand nothing and standard error."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing, end = os.pipe()  # as empty as the null device, which a bare container lacks
    os.close(end)
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

    def stated(self) -> dict[str, Any]:
        """Return what the target states of itself; who lends it memory must know what it overwrites."""
        shared = {} if self.shared is None else {"tensors": "memory", "in_place": list(self.target.in_place)}
        return self.target.stated() | shared

    def replies(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the reply to a request to run, and where it is for two calls the other reply too, if the first succeeds."""
        given = (t for key in protocol.ROLES for t in request.get(key, {}).values())
        end = max((sum(tensor["block"]) for tensor in given if "block" in tensor), default=0)
        end += request.get(protocol.BEHIND, 0)
        if self.shared is not None:
            self.shared.begin(-(-end // ALIGNED) * ALIGNED)
        reply = self.run(request, end)
        yield reply
        if protocol.BEHIND in request and reply["status"] == "ok":
            yield self.run(protocol.second(request), end)

    def run(self, request: Mapping[str, Any], end: int = 0) -> dict[str, Any]:
        """Return the reply to a request to make one call; up to `end` the shared file holds inputs."""
        try:
            reply = self._reply(request, end)
        except BaseException as error:  # also KeyboardInterrupt: whatever an implementation raises is its verdict
            reply = Reply("error", invocation.in_one_line(error))
        message = {"seq": request["seq"], **self._as_message(request["op"], reply)}
        if self.shared is not None:
            self.target.lent = {}
            try:
                self.shared.give_back(end)
            except MemoryError as error:
                message = {"seq": request["seq"], "status": "error", "message": invocation.in_one_line(error)}
        remarks, self._remarks = self._remarks, compiler_remarks(self.target.given_up)
        return message if remarks == self._remarks else message | {"notes": self._remarks}

    def _reply(self, request: Mapping[str, Any], end: int) -> Reply:
        """Return what one call gives."""
        op, dtype, step = request["op"], request["dtype"], request["step"]
        if op not in REGISTRY or dtype not in self.target.backend.dtypes:
            return Reply("unsupported", f"no {op} in {dtype}")
        form = next(iter(request.get("forms", ())), "")
        self.target.lent = {} if form == "broadcast-view" else self._lent(request["inputs"], op, dtype, form, end)
        inputs, cotangents = (
            {n: NONE if n in self.target.lent else protocol.decode(tensor, self.shared)[0] for n, tensor in tensors.items()}
            for tensors in (request["inputs"], request.get("cotangents", {}))
        )
        params = {name: from_json(v) for name, v in request["params"].items() if name not in request.get("defaults", ())}
        wanted = dict.fromkeys(request["outputs"], np.zeros(())) if cotangents else {}  # names alone: values are not sent
        calls = (*(Call({}, {}),) * step, Call(params, inputs, wanted, cotangents=cotangents))  # others were asked before
        case = LoadedCase(request["case"], op, "value", "core", "", (dtype,), calls, form)
        return self.target.reply(case, step, dtype, request.get("calls", 1))

    def _lent(self, inputs: Mapping[str, protocol.Tensor], op: str, dtype: str, form: str, end: int) -> dict[str, Any]:
        """Return arrays in the memory of the shared file by name, where the library has them and they need no conversion."""
        library, device = self.target.backend, str(self.target.device or "cpu")
        memory = self.shared.borrow(end) if self.shared is not None and hasattr(library, "placed") and device == "cpu" else None
        if memory is None:
            return {}
        lent = {}
        for name, tensor in inputs.items():
            kind = protocol.DTYPES[tensor["dtype"]]
            fits = kind == given_dtype(op, name, dtype, form) if kind in OF_DTYPE else kind in ("int64", "bool")
            if fits and "block" in tensor and protocol.size_of(tensor):
                start, size = tensor["block"]
                shape, steps, at = protocol.shape_of(tensor), tensor.get("strides"), tensor["at"] - start
                lent[name] = library.placed(memory[start : start + size], kind, shape, steps, at)
        return lent

    def _as_message(self, op: str, reply: Reply) -> dict[str, Any]:
        """Return a reply as the protocol has it."""
        said = {"message": reply.message} if reply.message else {}
        if reply.status != "ok":
            return {"status": reply.status, **said}
        try:
            outputs = {name: self._tensor(op, name, *result) for name, result in reply.outputs.items()}
        except Failure as failure:
            return {"status": "ok", "outputs": {}, "message": str(failure)}
        fields = {"status": "ok", "outputs": outputs, "changed": reply.changed, "overwrote": reply.overwrote, **said}
        return {name: value for name, value in fields.items() if value or name == "outputs"}

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
