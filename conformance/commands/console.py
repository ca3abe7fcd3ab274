"""Helpers of the commands: a console for terminals and pipes, named errors as exit code 2, and progress."""

from __future__ import annotations

import errno
import math
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from posref.backends import BackendMissing
from posref.spec import REGISTRY
from posref.startup import COULD_NOT_RUN

from ..errors import PosrefError, TargetError, no_operation, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


class FiniteRange(click.FloatRange):
    """A range of finite numbers."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the number, or fail with a sentence."""
        result = super().convert(value, param, context)
        if not math.isfinite(result):
            self.fail(f"{result} is not a finite number.", param, context)
        return result


MEMORY = FiniteRange(0, 1 << 20)  # GiB: no system has more, and larger limits are none that can be set
FILE_ENDINGS = (".npz", ".safetensors", ".json", ".svg", ".png", ".pdf")


class FilePath(click.Path):
    """A file's name: it does not end as a folder's does, which a `Path` forgets. With `folders` only one that has an ending."""

    def __init__(self, *, folders: bool = False) -> None:
        super().__init__(dir_okay=folders, allow_dash=True, path_type=Path)
        self.folders = folders

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or fail."""
        path: Any = super().convert(value, param, ctx)
        is_file = not self.folders or path.suffix in FILE_ENDINGS
        if is_file and os.path.basename(os.fspath(value)) in ("", ".") and os.fspath(value):
            self.fail(f"{os.fspath(value)!r} names a folder, and must name a file.", param, ctx)
        return path


FILE, FILE_OR_FOLDER = FilePath(), FilePath(folders=True)
LONGEST = 4000  # characters of an error
FOLDER = click.Path(file_okay=False, path_type=Path)


def operation(name: str, option: str = "NAME", hint: str = "") -> str:
    """Return the name of an operation, or raise an error that suggests near names, and may end in a hint."""
    if name not in REGISTRY:
        raise TargetError(no_operation(option, name, hint=hint))
    return name


def needs(extra: str, **packages: str) -> None:
    """Raise if a module that a command needs is missing: ``needs("vectors", flint="python-flint")``."""
    missing = [package for name, package in packages.items() if find_spec(name) is None]
    if missing:
        msg = f"this needs {' and '.join(missing)}: pip install 'posref[{extra}]'"
        raise PosrefError(msg)


def needs_vectors() -> None:
    """Raise if the libraries that prove values are missing."""
    needs("vectors", flint="python-flint", mpmath="mpmath")


def here() -> list[str]:
    """Return where a target's modules are looked for, in its own process: the current folder first, as with ``python -m``."""
    return ["", *sys.path]


def console(*, err: bool = False) -> Console:
    """Return a console, coloured in a terminal, plain and wide in a pipe; for standard error with `err`."""
    from rich.console import Console  # takes long to load

    class Plain(Console):
        def on_broken_pipe(self) -> None:  # where rich ends the program with exit code 1
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    if (sys.stderr if err else sys.stdout).isatty():
        return Plain(highlight=False, stderr=err)
    return Plain(width=160, soft_wrap=True, highlight=False, stderr=err)


@contextmanager
def errors() -> Iterator[None]:
    """Turn named errors into one line and exit code 2."""
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(COULD_NOT_RUN)
    except (PosrefError, BackendMissing, OSError) as error:
        say_error(error)
        sys.exit(COULD_NOT_RUN)
    except ValueError as error:
        if not str(error).startswith("backends."):
            raise
        say_error(error)
        sys.exit(COULD_NOT_RUN)


def say(text: str) -> None:
    """Print one line to standard error, if anybody can read it."""
    with suppress(OSError):
        click.echo(f"posref: {text}", err=True)


def say_error(error: BaseException) -> None:
    """Print an error in one line, and where it was raised if POSREF_TRACEBACK is 1; nothing where the reader has gone."""
    if isinstance(error, BrokenPipeError):
        return
    say(_sentence(error))
    if os.environ.get("POSREF_TRACEBACK") == "1":
        with suppress(OSError):
            traceback.print_exception(error)


def _sentence(error: BaseException) -> str:
    """Return an error's text in one line that a terminal holds, whatever it quotes."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        place = "standard output" if error.filename is None else error.filename
        text = f"{place}: cannot be {'written' if error.filename is None else 'opened'}: {error.strerror}."
    elif not isinstance(error, PosrefError | BackendMissing | ValueError):
        text = f"this is a fault of posref: {type(error).__name__}: {text}. POSREF_TRACEBACK=1 prints where it was raised."
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}"


class Show(Protocol):
    """A function that is called with the current step and, where known, the number of steps."""

    def __call__(self, now: str, total: int | None = None) -> None:
        """Show it."""

    def expect(self, total: int) -> None:
        """Show from now on of how many."""


class _Bar:
    """A bar on a terminal. It begins with the first step: it has a thread, and processes must be copied before."""

    def __init__(self, verb: str, until_the_end: ExitStack) -> None:
        self.verb, self.until_the_end = verb, until_the_end
        self.total: int | None = None
        self.bar: Progress | None = None

    def __call__(self, now: str, total: int | None = None) -> None:
        from rich.markup import escape

        if self.bar is None:
            self.bar = self._begun()
        task = self.bar.tasks[0]
        total = total or self.total
        task.total = total if total and task.completed < total else None  # experiments make more calls than the suite has
        self.bar.update(task.id, advance=1, now=escape(now))

    def _begun(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = TextColumn(self.verb), BarColumn(pulse_style="dim"), MofNCompleteColumn(), TextColumn("{task.fields[now]}")
        bar = self.until_the_end.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        bar.add_task(self.verb, total=self.total, now="")
        return bar

    def expect(self, total: int) -> None:
        self.total = total


@contextmanager
def progress(verb: str) -> Iterator[Show | None]:
    """Yield a function that shows the present step on a terminal; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as until_the_end:
        yield _Bar(verb, until_the_end)
