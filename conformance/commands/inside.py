"""The main program of the process in which `posref check` and `posref fuzz` work with a Python target."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from posref.backends import BackendMissing

from ..errors import PosrefError
from ..target.calling import in_one_line
from ..target.loading import load
from ..target.remote.inside import Inside

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # what a target can use up


def main() -> None:
    """Do what the first line asks for, tell of it on what was standard output, and end."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what the target prints goes to standard error
    os.close(nothing)
    asked = json.loads(requests.readline())
    sys.path.insert(0, "")
    warnings.simplefilter("ignore")  # an implementation's warnings are its own affair
    inside = Inside(asked["secret"], replies)
    task = {"check": _check, "fuzz": _fuzz}[asked["task"]]
    inside.work(lambda: _told(inside, task, asked["options"]))


def _told(inside: Inside, task: Any, options: dict[str, Any]) -> None:
    """Do a task and tell its result, or the named error that ended it."""
    try:
        inside.tell("done", task(inside, options))
    except KeyboardInterrupt:
        inside.tell("interrupted")
    except BaseException as error:
        of_files = isinstance(error, OSError) and error.errno not in EXHAUSTED
        named = of_files or isinstance(error, PosrefError | BackendMissing) or str(error).startswith("backends.")
        if named:
            inside.tell("error", {"class": type(error).__name__, "message": str(error)})
        else:  # a fault of posref, or of what the target did to this process
            inside.tell("broken", f"the check itself raised {in_one_line(error)} ({_place(error)})")
            raise SystemExit(1) from None


def _place(error: BaseException) -> str:
    """Return where an exception was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


def _check(inside: Inside, options: dict[str, Any]) -> Any:
    from ..checking import checker

    return checker.checked(suite=Path(options.pop("suite")), loading=partial(inside.load, load), watch=inside.tell, **options)


def _fuzz(inside: Inside, options: dict[str, Any]) -> dict[str, Any]:
    from rich.console import Console

    from ..fuzzing.found import show
    from ..fuzzing.fuzz import fuzz

    def progress(now: str, total: int | None = None) -> None:
        inside.tell("asking", [now, total])

    terminal = options.pop("console")
    findings = fuzz(
        output=Path(options.pop("output")),
        progress=progress,
        loading=partial(inside.load, load),
        **options,
    )
    text = io.StringIO()
    show(findings, Console(file=text, highlight=False, **terminal))
    return {"text": text.getvalue(), "exit_code": findings.exit_code}


if __name__ == "__main__":
    main()
