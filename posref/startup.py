"""
The start of the program `posref`, before anything else is imported.

The current folder leaves the path of modules: nothing in it may run in the process that judges. Descriptors 0 to 2 that are
closed are opened on the null device, so that no other file gets their numbers. And while modules are being imported, a signal
to stop ends the process at once. What this module imports delays that, so it imports little.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import NoReturn

COULD_NOT_RUN = 2  # the exit code
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # ctrl-c, a time limit, a closed terminal
_BEGUN: list[None] = []  # not empty once `main` of the command line has begun
_SAID: list[None] = []  # not empty once it was said why it did not begin
_SEEN: list[None] = []  # signals to stop that this process got
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
    on_signals(_leave)
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent may ignore it, and then no child can be waited for
    sys.excepthook = _print_error
    atexit.register(_refuse_no_beginning)
    if sys.argv[0] == "-m" and not sys.flags.safe_path:
        del sys.path[0]
    open_standard_streams()
    try:
        int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    except ValueError:
        del os.environ["SOURCE_DATE_EPOCH"]  # a part of NumPy reads it, and could not be imported


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


def on_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Call `handler` on every signal to stop, except those that this process ignores, as under nohup."""
    for name in SIGNALS:
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def interrupt_on_signals(clear: Callable[[], object]) -> None:
    """
    Let the first signal to stop raise KeyboardInterrupt, as ctrl-c does, and the second end this process after `clear`.

    The first ends it too while posref imports a module: libraries catch everything there, and go on with less than they have.
    """
    process = os.getpid()
    _BEGUN.append(None)

    def handler(_: int, frame: FrameType | None) -> None:
        _SEEN.append(None)
        if len(_SEEN) == 1 and os.getpid() == process and not _is_importing(frame):
            raise KeyboardInterrupt
        leave()

    def leave() -> None:
        if os.getpid() == process:  # a copy of this process has nothing to clear
            clear()
        _leave()

    def lost(raised: sys.UnraisableHookArgs) -> None:
        if isinstance(raised.exc_value, KeyboardInterrupt):  # where Python goes on, as after an error in a destructor
            leave()
        usual(raised)

    usual, sys.unraisablehook = sys.unraisablehook, lost
    on_signals(handler)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether posref imports a module in this frame or a caller's, and not a target called by posref."""
    importer = None
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            importer = frame.f_back
        frame = frame.f_back
    return importer is not None and str(importer.f_globals.get("__name__")).partition(".")[0] == "posref"


def end(code: int) -> NoReturn:
    """End this process with an exit code that no signal changes any more."""
    on_signals(signal.SIG_IGN)
    # Python ends itself by SIGINT, though KeyboardInterrupt was caught, if it was raised within `exec` of a text; and with
    # PYTHONINSPECT it goes on after the end
    if _SEEN or sys.flags.inspect or os.environ.get("PYTHONINSPECT"):
        atexit._run_exitfuncs()
        os._exit(code)
    sys.exit(code)


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print in one line an error that nobody caught: of a module that posref imports, where another has its name."""
    _SAID.append(None)
    if os.environ.get("POSREF_TRACEBACK") == "1":
        sys.__excepthook__(kind, error, trace)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
    print(f"posref: cannot start: {kind.__name__}{place}: {' '.join(str(error).split())[:500]}", file=sys.stderr)


def _refuse_no_beginning() -> None:
    """End with the exit code for a check that could not run if the command line never began, whoever ended this process."""
    if not _BEGUN:
        if not _SAID:
            print("posref: cannot start: a module that it imports ended this process", file=sys.stderr)
        sys.stderr.flush()
        os._exit(COULD_NOT_RUN)


def _leave(*_: object) -> None:
    """End this process at once."""
    try:
        os.write(2, b"posref: interrupted\n")
    finally:
        os._exit(COULD_NOT_RUN)
