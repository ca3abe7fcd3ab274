"""Loader of targets: a Python object, a Python target by name, a program, or a folder of results."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..suite.reader import INSTALLED
from . import limits
from .base import Target
from .connection import Connection
from .python import load_python


def load(
    target: Any = None,
    *,
    command: str | Sequence[str] | None = None,
    outputs: str | Path | None = None,
    isolate: bool = False,
    timeout: float = limits.TIMEOUT,
    memory: float = limits.MEMORY,
    backend: str | None = None,
    dtype: str | None = None,
    claim: str | None = None,
    trig: float | None = None,
    device: Any = None,
    suite: Path = INSTALLED,
    ahead: Connection | None = None,
    path: Sequence[str] | None = None,
) -> Target:
    """
    Return a target: a Python one, a program that speaks the protocol (`command`), or a folder of its results (`outputs`).

    A Python target is a module or object, which stays in this process and is trusted, or the name of a built-in adapter,
    ``module``, ``module:object`` or ``file.py``. A name is loaded in a process of its own (in `ahead`, if
    that was started already), held to `timeout` seconds a call and `memory` GiB, as a program is. Its modules are looked for in
    `path`, by default that of this process. `isolate` demands a name.

    Raises
    ------
    TargetError
        If it cannot be loaded, has no operation, or names a dtype, class or backend that does not exist.
    """
    if sum(given is not None for given in (target, command, outputs)) != 1:
        msg = "check: give one of TARGET, --command and --outputs."
        raise TargetError(msg)
    stated: dict[str, Any] = {"dtype": dtype, "claim": claim, "trig": trig}
    if outputs is not None:
        from .exchange import Outputs

        return Outputs.load(Path(outputs), suite, **stated)
    if command is not None:
        from .program import Program, Session

        words = shlex.split(command) if isinstance(command, str) else list(command)
        if not words:
            msg = "check: --command must name a program; got nothing."
            raise TargetError(msg)
        session = Session(words, suite, timeout, memory)
        try:
            return Program.start(session, **stated)
        except TargetError:
            session.close()
            raise
    if isinstance(target, str):
        from .process import ProcessTarget

        return ProcessTarget.start(
            target, timeout=timeout, memory=memory, ahead=ahead, path=path, backend=backend, device=device, **stated
        )
    if isolate:
        msg = f"check: isolate needs a target by name (module, module:object or file.py); got {type(target).__name__}."
        raise TargetError(msg)
    return load_python(target, backend=backend, device=device, **stated)
