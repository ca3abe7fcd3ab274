"""The commands about the protocol: lint a program that speaks it, or serve a Python target with it."""

from __future__ import annotations

import sys

import click

from .console import errors


@click.group()
def protocol() -> None:
    """Check programs in other languages that speak the protocol, and serve Python targets with it."""


@protocol.command("lint", context_settings={"ignore_unknown_options": True})
@click.argument("command", metavar="-- PROGRAM [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--timeout", metavar="S", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True,
              help="Seconds for a reply; ten times as many to start.")  # fmt: skip
@click.option("--memory", metavar="GIB", type=click.FloatRange(0), default=8.0, show_default=True, help="0 is no limit.")
def lint_command(command: tuple[str, ...], timeout: float, memory: float) -> None:
    """
    Say whether PROGRAM speaks the protocol: every message is checked, and one that is wrong is printed.

    Exit code 0: it does; 1: it does not; 2: it could not be run.
    """
    from ..target.remote.lint import lint

    with errors():
        problems = lint(command, timeout=timeout, memory=memory, say=click.echo)
    sys.exit(1 if problems else 0)


@protocol.command("serve")
@click.argument("target")
@click.option("--backend", metavar="B", help="The target's array library, if it does not say.")
@click.option("--dtype", metavar="D", help="Only float64, float32, bfloat16 or float16.")
@click.option("--device", metavar="DEVICE", help="Where its arrays go, as its library names devices.")
def serve_command(target: str, backend: str | None, dtype: str | None, device: str | None) -> None:
    """Speak the protocol over standard input and output on behalf of the Python TARGET; check --isolate uses this."""
    from ..target.remote.serve import serve

    sys.path.insert(0, "")
    with errors():
        serve(target, backend=backend, dtype=dtype, device=device)


if __name__ == "__main__":  # what an isolated target runs in
    serve_command(prog_name="posref protocol serve")
