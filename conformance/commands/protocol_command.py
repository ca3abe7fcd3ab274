"""The commands `posref protocol lint` and `serve`: check a program's messages, or let a Python target answer."""

from __future__ import annotations

import sys

import click

from ..targets import limits
from .console import MEMORY, FiniteRange, errors


@click.group()
def protocol() -> None:
    """Lint or serve the protocol that lets posref check programs in other languages."""


@protocol.command("lint", context_settings={"ignore_unknown_options": True})
@click.argument("command", metavar="-- PROGRAM [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--timeout", metavar="S", type=FiniteRange(0, min_open=True), default=limits.TIMEOUT, show_default=True,
              help="Seconds for each reply; ten times as many to start.")  # fmt: skip
@click.option("--memory", metavar="GIB", type=MEMORY, default=limits.MEMORY, show_default=True,
              help="Memory limit of the program; 0 is no limit.")  # fmt: skip
def lint_command(command: tuple[str, ...], timeout: float, memory: float) -> None:
    """
    Check every message of PROGRAM, and print each wrong one with what was expected.

    Exit code 0: it speaks the protocol; 1: it does not; 2: it could not be run.
    """
    from ..targets.remote.lint import lint

    with errors():
        problems = lint(command, timeout=timeout, memory=memory, say=click.echo)
    sys.exit(1 if problems else 0)


@protocol.command("serve")
@click.argument("target")
@click.option("--backend", metavar="B", help="The array library of TARGET, if it does not name one.")
@click.option("--dtype", metavar="D", help="Offer only float64, float32, bfloat16 or float16.")
@click.option("--device", metavar="DEVICE", help="The device for arrays, as the array library names it.")
def serve_command(target: str, backend: str | None, dtype: str | None, device: str | None) -> None:
    """Answer the protocol on standard input and output for the Python TARGET, as a program in another language does."""
    from ..targets.remote.server import serve

    sys.path.insert(0, "")
    with errors():
        serve(target, backend=backend, dtype=dtype, device=device)
