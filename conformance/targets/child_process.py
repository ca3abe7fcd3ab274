"""Main program of the process that computes for a Python target. It returns tensors and judges nothing."""

from __future__ import annotations

import json
import os
import pickle
import sys
import warnings
from typing import Any, BinaryIO

import numpy as np

from posref.backends import BackendMissing
from posref.spec import REGISTRY

from ..errors import Failure, PosrefError, Stopped, Unsupported, shown
from ..suite.safe_files import Exchange
from . import invocation
from .invocation import Collected, same_bits
from .python import PythonTarget, load_python

LONGEST = 2000  # characters of a message
LARGE = 1 << 24  # bytes of results after which memory is given back
ALIGNED = 16


def main() -> None:
    """Load the target that the first request names, and answer requests until there are no more."""
    warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
    own = os.getpid()
    target: PythonTarget | None = None
    requests, replies = channel()
    while (request := _read(requests)) is not None:
        if request["do"] == "load":
            reply, target = _loaded(request)
        else:
            assert target is not None
            reply = _answered(target, request)
        if os.getpid() != own:  # a copy of this process, which the target made
            os._exit(1)
        replies.write(json.dumps({**reply, "seq": request["seq"]}).encode("ascii") + b"\n")
        replies.flush()


def channel() -> tuple[BinaryIO, BinaryIO]:
    """Return the real standard input and output; in their places stand nothing and standard error."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what the target prints
    sys.stdout = sys.stderr  # which writes every line at once: this process may be killed
    os.close(nothing)
    return requests, replies


def _read(requests: BinaryIO) -> dict[str, Any] | None:
    """Return the next request, or None after the last one."""
    size = requests.readline().strip()
    return pickle.loads(requests.read(int(size))) if size else None


def _loaded(request: dict[str, Any]) -> tuple[dict[str, Any], PythonTarget | None]:
    """Return what a target states of itself, and the target; or why it cannot be loaded."""
    len(REGISTRY)  # all definitions are imported before the target's folder is on the path, whose files may have any name
    sys.path[:] = request["path"]
    try:
        target = load_python(request["target"], **request["options"])
        return {"status": "ok", "stated": target.stated()}, target
    except (PosrefError, BackendMissing) as error:
        return {"status": "refused", "class": invocation.kind_of(error), "message": invocation.text_of(error)}, None
    except BaseException as error:
        message = f"{request['target']}: could not be loaded: {invocation.in_one_line(error)}"
        return {"status": "refused", "class": "TargetError", "message": message}, None


def _answered(target: PythonTarget, request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request; whatever a target raises is a status."""
    try:
        if request["do"] == "remarks":
            return {"status": "ok", "remarks": list(target.remarks())}
        if request["begin"]:
            target.begin(request["case"])
        if request["do"] == "refuse":
            return {"status": "ok", "message": target.refuse(request["case"], request["dtype"])}
        return _computed(target, request)
    except BaseException as error:
        return _raised(error)


def _raised(error: BaseException) -> dict[str, Any]:
    """Return an exception as a reply."""
    if isinstance(error, Unsupported | NotImplementedError):
        return {"status": "unsupported", "message": _text(error) or "not implemented"}
    if isinstance(error, Failure):
        return {"status": "fail", "message": _text(error)}
    said = shown(invocation.text_of(error), LONGEST) if isinstance(error, Stopped) else invocation.in_one_line(error)
    return {"status": "error", "message": said}


def _text(error: BaseException) -> str:
    """Return what an exception says: one of posref's own in its words, and another also where asking for them raises."""
    return shown(str(error) if type(error) in (Unsupported, Failure) else invocation.text_of(error), LONGEST)


def _computed(target: PythonTarget, request: dict[str, Any]) -> dict[str, Any]:
    """Return what a call gives, which inputs it changes, and whether it gives the same bits the second time."""
    case, dtype = request["case"], request["dtype"]
    [call] = case.calls
    asked = invocation.call_of(target, case, call, dtype)
    first = asked.collected()
    changed = asked.changed()
    second: dict[str, Any] = {"status": "ok", "other": []}
    if not changed:
        try:
            found = asked.again().collected()
            second["other"] = [name for name, (host, _) in first.items() if not same_bits(host, found[name][0])]
            invocation.call_with_others(target, case, call, dtype)
        except BaseException as error:
            second = _raised(error)
    return {"status": "ok", "outputs": _written(first, request["file"]), "changed": changed, "second": second}


def _written(results: Collected, shared: int | str) -> dict[str, Any]:
    """Write results to the shared file; return of each its dtype, that of its bytes, its shape and its place there."""
    told: dict[str, Any] = {}
    at = 0
    with Exchange.reopen(shared) as file:
        if os.fstat(file.fileno()).st_size > LARGE:
            file.truncate(0)
        for name, (host, dtype) in results.items():
            array = np.ascontiguousarray(host, host.dtype.newbyteorder("<")).reshape(host.shape)
            told[name] = [dtype, array.dtype.str, list(array.shape), at]
            if array.dtype.kind in "biuf":
                data = memoryview(array.reshape(-1).view(np.uint8).data)
                file.seek(at)
                while data:
                    data = data[file.write(data) :]
                at += -(-array.nbytes // ALIGNED) * ALIGNED
    return told


if __name__ == "__main__":
    main()
