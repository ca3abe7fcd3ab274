"""Helpers of the commands: a console for terminals and pipes, named errors as exit code 2, and progress."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from posref.backends import BackendMissing
from posref.spec import REGISTRY

from ..errors import PosrefError, TargetError
from ..suite.quoting import printable

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def operation(name: str, option: str = "NAME", hint: str = "") -> str:
    """Return the name of an operation, or raise an error that lists all operations, and may end in a hint."""
    if name not in REGISTRY:
        msg = f"{option} must be one of {', '.join(REGISTRY)}; got {name!r}.{hint}"
        raise TargetError(msg)
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


def console() -> Console:
    """Return a console, coloured in a terminal, plain and wide in a pipe."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(width=160, soft_wrap=True, highlight=False)


@contextmanager
def errors() -> Iterator[None]:
    """Turn named errors into one line and exit code 2."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("posref: interrupted", err=True)
        sys.exit(2)
    except (PosrefError, BackendMissing, OSError) as error:
        click.echo(f"posref: {printable(str(error))}", err=True)
        sys.exit(2)
    except ValueError as error:
        if not str(error).startswith("backends."):
            raise
        click.echo(f"posref: {printable(str(error))}", err=True)
        sys.exit(2)


class Show(Protocol):
    """A function that is told what is done, and of how many where that is known."""

    def __call__(self, now: str, total: int | None = None) -> None:
        """Show it."""


@contextmanager
def progress(verb: str) -> Iterator[Show | None]:
    """Yield a function that shows the present step on a terminal; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(pulse_style="dim"),
        MofNCompleteColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=None, now="")

        def show(now: str, total: int | None = None) -> None:
            bar.update(task, advance=1, total=total, now=escape(now))

        yield show
