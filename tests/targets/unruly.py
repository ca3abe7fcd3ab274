"""A target that misbehaves as its environment says, when it is imported or in a call: ``UNRULY=call:exit``."""

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import posref


def hang() -> None:
    while True:
        try:
            time.sleep(100)
        except BaseException:
            continue


def stop_threads_of_python() -> None:
    import ctypes

    ctypes.PyDLL(None).sleep(100)  # with the lock of the interpreter held


def leave_daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(100)"], {})


def interrupt() -> None:
    raise KeyboardInterrupt


def generator_exit() -> None:
    raise GeneratorExit


class Mute(Exception):
    def __str__(self) -> str:
        raise self


def mute() -> None:
    raise Mute


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name == "__name__":
            raise LookupError
        return super().__getattribute__(name)


class Unnamed(Exception, metaclass=Nameless):
    pass


def unnamed() -> None:
    raise Unnamed


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(100)


def patch() -> None:
    from posref.conformance import judge

    judge.compare = lambda *_: None


def patch_code() -> None:
    from posref.conformance import judge

    judge.compare.__code__ = (lambda op, call, outputs, accuracy, dtype: None).__code__


def patch_zip() -> None:
    import builtins

    builtins.zip = lambda *_, **__: iter(())  # type: ignore[assignment,misc]


def lock_later() -> None:
    import threading

    def lock() -> None:
        time.sleep(0.002)
        stop_threads_of_python()

    threading.Thread(target=lock, daemon=True).start()


def widen() -> None:
    import gc

    from posref.conformance.model import Call

    for widths in [w for call in gc.get_objects() if isinstance(call, Call) for w in call.widths.values()]:
        widths.update({name: np.full_like(width, 1e9) for name, width in widths.items()})


def peeked() -> Any:
    """Return what is expected, where it stands on the stack."""
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            calls = (value, *(getattr(value, "calls", None) or ()))
            for call in calls:
                if isinstance(getattr(call, "expected", None), dict) and "out" in call.expected:
                    return np.array(call.expected["out"])
        frame = frame.f_back
    raise LookupError


WAYS: dict[str, Callable[[], Any]] = {
    "exit": sys.exit,
    "exit_now": lambda: os._exit(0),
    "hang": hang,
    "hang_with_lock": stop_threads_of_python,
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "kill_group": lambda: os.killpg(0, signal.SIGKILL),
    "kill_parent": lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(100)),
    "stop": stop,
    "close_all": lambda: os.closerange(0, 256),
    "fork": os.fork,
    "daemon": leave_daemon,
    "interrupt": interrupt,
    "generator_exit": generator_exit,
    "mute": mute,
    "unnamed": unnamed,
    "patch": patch,
    "patch_code": patch_code,
    "patch_zip": patch_zip,
    "lock_later": lock_later,
    "widen": widen,
    "print": lambda: print('{"word": "done", "value": {"plain": 0}}', flush=True),
    "at_exit": lambda: atexit.register(os._exit, 0),
    "hang_at_exit": lambda: atexit.register(hang),
}
WHEN, _, HOW = os.environ["UNRULY"].partition(":")
if WHEN == "import":
    WAYS[HOW]()


def alibi_slopes(heads: int, /, **options: Any) -> Any:
    if WHEN == "call" or (WHEN == "wrong" and HOW in WAYS):
        WAYS[HOW]()
    if WHEN == "wrong":
        return peeked() if HOW == "peek" else np.zeros(heads)
    return posref.alibi_slopes(heads, **options)
