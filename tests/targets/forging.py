"""A target that answers in place of the process that computes for it, as its environment says: ``FORGED=deep``."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from posref.conformance.targets import protocol

Reply = dict[str, Any]
DEEP = b"[" * 100_000 + b"]" * 100_000


def told(part: str, value: Any) -> Callable[[Reply], bytes]:
    """Return what changes what is told of a tensor: its dtype, its shape, or its place."""

    def forged(reply: Reply) -> bytes:
        reply["outputs"]["out"][part] = value
        return right(reply)

    return forged


def with_(**parts: Any) -> Callable[[Reply], bytes]:
    return lambda reply: right({**reply, **parts})


def without(part: str) -> Callable[[Reply], bytes]:
    return lambda reply: right({name: value for name, value in reply.items() if name != part})


def right(reply: Reply) -> bytes:
    return json.dumps(reply).encode()


def emptied(reply: Reply) -> bytes:
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if "memfd:posref" in os.readlink(entry):
                os.truncate(entry, 0)
    return right(reply)


FORGED: dict[str, Callable[[Reply], bytes]] = {
    "deep": lambda reply: b'{"seq":%d,"status":"ok","outputs":%b}' % (reply["seq"], DEEP),
    "deep list": lambda _: b"{" + DEEP,
    "status": with_(status="fine"),
    "status of a start": with_(status="refused"),
    "status is a dict": with_(status={}),
    "status is NaN": lambda reply: right({**reply, "status": float("nan")}),
    "no status": without("status"),
    "message is no text": with_(status="error", message=[1]),
    "other number": lambda reply: right({**reply, "seq": reply["seq"] + 1}),
    "number is true": with_(seq=True),
    "number is text": lambda reply: right({**reply, "seq": str(reply["seq"])}),
    "number is long": lambda _: b'{"seq":' + b"9" * 5000 + b"}",
    "nothing": lambda _: b"{}",
    "no text": lambda _: b'{"\xff"}',
    "long line": lambda _: b"{" + b"x" * (1 << 23),
    "two replies": lambda reply: right(reply) + b"\n" + right({**reply, "seq": reply["seq"] + 1}),
    "early reply": lambda reply: right(reply) + b'\n{"seq":1',
    "no outputs": without("outputs"),
    "outputs are a list": with_(outputs=[[1]]),
    "other outputs": with_(outputs={"cos": {"dtype": "F64", "shape": [8], "at": 0}}),
    "output is short": with_(outputs={"out": {"dtype": "F64", "shape": [8]}}),
    "changed is a number": with_(changed=7),
    "changed is a dict": with_(changed=[{"a": 1}]),
    "second is a list": with_(second=[]),
    "second status": with_(second={"status": "fine"}),
    "second has a number": with_(second={"status": "error", "seq": 1}),
    "second without outputs": with_(second={"status": "ok"}),
    "overwritten is a number": with_(overwrote=0),
    "dtype with escapes": told("dtype", "\x1b[31mF32"),
    "dtype is a list": told("dtype", ["F32"]),
    "dtype of objects": told("dtype", "O8"),
    "huge shape": told("shape", [10**30]),
    "huge empty shape": told("shape", [0, 10**30]),
    "many axes": told("shape", [1] * 100),
    "negative shape": told("shape", [-1]),
    "true shape": told("shape", [True]),
    "real shape": told("shape", [8.5]),
    "shape is text": told("shape", "8"),
    "far place": told("at", 10**12),
    "very far place": told("at", 10**30),
    "negative place": told("at", -8),
    "emptied file": emptied,
}


def forge(reply: Reply) -> bytes:
    """Return the line that takes the place of a reply."""
    return FORGED[os.environ["FORGED"]](reply) + b"\n" if "outputs" in reply else protocol_write(reply)


protocol_write = protocol.write
if "FORGED" in os.environ:  # where this is a target
    protocol.write = forge


def alibi_slopes(heads: int, /, **options: Any) -> Any:
    """Return the right slopes, as far as the reply is right."""
    import posref

    return np.asarray(posref.alibi_slopes(heads, **options))
