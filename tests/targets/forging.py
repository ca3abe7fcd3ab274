"""A target that answers in place of the process that computes for it, as its environment says: ``FORGED=deep``."""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

Reply = dict[str, Any]
DEEP = b"[" * 100_000 + b"]" * 100_000


def told(place: int, value: Any) -> Callable[[Reply], bytes]:
    """Return what changes what is told of a tensor: the name of its dtype, that of its bytes, its shape, its place."""

    def forged(reply: Reply) -> bytes:
        reply["outputs"]["out"][place] = value
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
    "other outputs": with_(outputs={"cos": [None, "<f8", [8], 0]}),
    "output is short": with_(outputs={"out": [None, "<f8"]}),
    "changed is a number": with_(changed=7),
    "changed is a dict": with_(changed=[{"a": 1}]),
    "no second": without("second"),
    "second is a list": with_(second=[]),
    "second status": with_(second={"status": "fine", "other": []}),
    "second others": with_(second={"status": "ok", "other": 0}),
    "dtype with escapes": told(0, "\x1b[31mfloat32"),
    "long dtype": told(0, "float32" * 1000),
    "dtype is a list": told(0, ["float32"]),
    "bytes of objects": told(1, "|O8"),
    "bytes of nothing": told(1, "<f0"),
    "bytes are a record": told(1, [["a", "<f8"]]),
    "huge shape": told(2, [10**30]),
    "huge empty shape": told(2, [0, 10**30]),
    "many axes": told(2, [1] * 100),
    "negative shape": told(2, [-1]),
    "true shape": told(2, [True]),
    "real shape": told(2, [8.0]),
    "shape is text": told(2, "8"),
    "far place": told(3, 10**12),
    "very far place": told(3, 10**30),
    "negative place": told(3, -8),
    "emptied file": emptied,
}


class Forger:
    """What stands for the module `json` in that process."""

    @staticmethod
    def dumps(reply: Reply) -> Any:
        if "outputs" not in reply:
            return json.dumps(reply)

        class Line(str):
            __slots__ = ()

            def encode(self, *_: Any) -> bytes:
                return FORGED[os.environ["FORGED"]](reply)

        return Line()


for name in ("__main__", "posref.conformance.targets.child_process"):
    if hasattr(sys.modules.get(name), "load_python"):
        sys.modules[name].json = Forger  # type: ignore[union-attr]


def alibi_slopes(heads: int, /, **options: Any) -> Any:
    """Return the right slopes, as far as the reply is right."""
    import posref

    return np.asarray(posref.alibi_slopes(heads, **options))
