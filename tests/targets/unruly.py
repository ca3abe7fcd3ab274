"""A target that misbehaves as its environment says, when it is imported or in a call: ``UNRULY=call:exit``."""

import atexit
import os
import signal
import subprocess
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


def lock_later() -> None:
    import threading

    def lock() -> None:
        time.sleep(0.002)
        stop_threads_of_python()

    threading.Thread(target=lock, daemon=True).start()


def write() -> None:
    print('{"word": "done", "value": {"plain": 0}}', flush=True)
    os.write(1, b'{"seq": 1, "status": "ok"}\n')
    subprocess.run(["echo", "{"], check=True)
    sys.stdin.read()


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
    "lock_later": lock_later,
    "allocate": lambda: np.ones(2**28) + np.ones(2**28),
    "print": write,
    "at_exit": lambda: atexit.register(os._exit, 0),
    "hang_at_exit": lambda: atexit.register(hang),
}
WHEN, _, HOW = os.environ["UNRULY"].partition(":")
if WHEN == "import":
    WAYS[HOW]()


def alibi_slopes(heads: int, /, **options: Any) -> Any:
    """Return the right slopes, unless it does what it should not, or returns what is none."""
    if WHEN == "call" and HOW in WAYS:
        WAYS[HOW]()
    slopes = posref.alibi_slopes(heads, **({"max_bias": 4.0} if HOW == "default" else {}) | options)
    return {"list": list, "complex": np.complex64}.get(HOW, np.asarray)(slopes)
