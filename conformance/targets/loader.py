"""Loads a target by its kind: a Python object, a Python target by name, a program, or a folder of results."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..suite.reader import INSTALLED
from . import limits
from .base import Target
from .program import Program, Session
from .python import load_python


def load(
    target: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    outputs: str | Path | None = None,
    timeout: float = limits.TIMEOUT,
    memory: float = limits.MEMORY,
    backend: str | None = None,
    dtype: str | None = None,
    claim: str | None = None,
    trig: float | None = None,
    device: Any = None,
    suite: Path = INSTALLED,
    path: Sequence[str] | None = None,
) -> Target:
    """
    Return a target: a Python one, a program that speaks the protocol (`command`), or a folder of its results (`outputs`).

    A Python target is a module or object, which stays in this process and is trusted, or the name of a built-in adapter,
    ``module``, ``module:object`` or ``file.py``. A name is loaded in a process of its own, held to `timeout` seconds a call and
    `memory` GiB, as a program is. Its modules are looked for in `path`, by default that of this process. In place of a name
    there may be a session that was started already.

    Raises
    ------
    TargetError
        If it cannot be loaded, has no operation, or names a dtype, class or backend that does not exist.
    """
    count = sum(given is not None for given in (target, command, outputs))
    if count != 1:
        named = "the name of an adapter, module, module:object or file.py"
        msg = f"give exactly one of TARGET ({named}), --command and --outputs; got {count or 'none'}."
        raise TargetError(msg)
    stated: dict[str, Any] = {"dtype": dtype, "claim": claim, "trig": trig}
    if outputs is not None:
        from .exchange import Outputs

        return Outputs.load(Path(outputs), suite, **stated)
    if command is not None:
        words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words:
            msg = "check: --command must name a program; got nothing."
            raise TargetError(msg)
        return _started(Program, Session(words, suite, timeout, memory), stated)
    if not isinstance(target, str | Session):
        return load_python(target, backend=backend, device=device, **stated)
    from .python_process import PythonProgram, PythonSession

    options = {"backend": backend, "dtype": dtype, "device": device}
    session = (
        target if isinstance(target, Session) else PythonSession([target], suite, timeout, memory, path=path, options=options)
    )
    return _started(PythonProgram, session, stated)


def _started(kind: type[Program], session: Session, stated: dict[str, Any]) -> Program:
    """Return the target of a session that begins now; nothing is left behind if it cannot."""
    try:
        return kind.start(session, **stated)
    except BaseException:
        session.close()
        raise
