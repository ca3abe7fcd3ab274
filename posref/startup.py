"""
The start of the program `posref`, before anything else is imported.

The current folder leaves the path of modules: nothing in it may run in the process that judges. Descriptors 0 to 2 that are
closed are opened on the null device, so that no other file gets their numbers. And while modules are being imported, a signal
to stop ends the process at once.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

COULD_NOT_RUN = 2  # the exit code
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # ctrl-c, a time limit, a closed terminal
_STREAMS = ("stdin", "stdout", "stderr")


def is_program() -> bool:
    """Return whether this process runs `posref` or ``python -m posref``, rather than a program that imports it."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    if name != "-m":  # while Python looks for the module
        return name.removesuffix(".exe") == "posref"
    options = [option for option, of in pairwise(sys.orig_argv) if of == "posref"]
    return any(option.startswith("-") and option.endswith("m") for option in options)


def prepare() -> None:
    """Prepare this process to be the program."""
    if sys.argv[0] == "-m" and not sys.flags.safe_path:
        del sys.path[0]
    open_standard_streams()
    on_signals(_leave)


def open_standard_streams() -> None:
    """Open what is closed of descriptors 0 to 2 on the null device, and let no character stop what is printed."""
    for number, name in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def on_signals(handler: Callable[[int, Any], object]) -> None:
    """Call `handler` on every signal to stop, but for those that this process was told to ignore, as by nohup."""
    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def interrupt_on_signals(clear: Callable[[], object]) -> None:
    """Let the first signal to stop raise KeyboardInterrupt, as ctrl-c does, and the second end this process after `clear`."""
    seen: list[None] = []
    own = os.getpid()

    def handler(*_: object) -> None:
        seen.append(None)
        if len(seen) == 1 and os.getpid() == own:
            raise KeyboardInterrupt
        if os.getpid() == own:  # a copy of this process has nothing to clear
            clear()
        _leave()

    on_signals(handler)


def _leave(*_: object) -> None:
    """End this process at once."""
    try:
        os.write(2, b"posref: interrupted\n")
    finally:
        os._exit(COULD_NOT_RUN)
