"""The command `posref fuzz`: looks for failures with random calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..targets import limits
from ..targets.remote.program_process import adopt
from .console import MEMORY, FiniteRange, console, errors, here, needs, needs_vectors, progress


@click.command()
@click.argument("target", required=False)
@click.option("--command", metavar="PROGRAM", help="Instead of TARGET: a program that speaks the protocol, with its arguments.")
@click.option("--seconds", metavar="N", type=FiniteRange(0, min_open=True),
              help="Draw calls for so many seconds; 60 unless --examples is given.")  # fmt: skip
@click.option("--examples", metavar="N", type=click.IntRange(1), help="How many calls to draw for each operation and dtype.")
@click.option("--seed", metavar="S", type=click.IntRange(0), default=0, show_default=True, help="The seed of the draws.")
@click.option("--op", multiple=True, help="Check only this operation; may be repeated.")
@click.option("--backend", metavar="B", help="The array library of TARGET, if it does not name one.")
@click.option("--dtype", metavar="D", help="Check only float64, float32, bfloat16 or float16.")
@click.option("--claim", metavar="CLASS", help="The accuracy class that results must reach, such as angle32.")
@click.option(
    "--trig", metavar="E", type=FiniteRange(0), help="Allow an extra absolute error E in sines and cosines, at most 0.0008."
)
@click.option("--device", metavar="DEVICE", help="The device for arrays, as the array library names it.")
@click.option("--isolate", is_flag=True, help="Kept for scripts: TARGET always has a process without expected values.")
@click.option("--timeout", metavar="S", type=FiniteRange(0, min_open=True), default=limits.TIMEOUT, show_default=True,
              help="Seconds for each call; ten times as many to start.")  # fmt: skip
@click.option("--memory", metavar="GIB", type=MEMORY, default=limits.MEMORY, show_default=True,
              help="Memory limit of the process of TARGET or PROGRAM; 0 is no limit.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS", help="Spread the draws over a dask.distributed cluster.")
@click.option("--output", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="Where to write failures as vectors  [default: posref-fuzz-S].")  # fmt: skip
def fuzz(output: Path | None, seed: int, scheduler: str | None, **options: Any) -> None:
    """
    Find calls on which an implementation fails.

    TARGET is as for posref check. Calls are drawn at random from everything that an operation allows, and their true values
    are proved on the spot. Each failing call is reduced to the smallest one that still fails. The same seed finds the same
    failures. Failures are written to DIR as vectors; to try them again, run posref check TARGET --suite DIR. Exit code 0:
    nothing found; 1: failures found; 2: could not run.
    """
    options["op"] = options["op"] or None
    adopt()
    with errors():
        needs_vectors()
        needs("fuzz", hypothesis="hypothesis")
        if scheduler is not None:
            needs("fuzz", distributed="distributed")
        place = output or Path(f"posref-fuzz-{seed}")
        with progress("drawing") as tell:
            from ..fuzzing.fuzz import fuzz as search

            findings = search(seed=seed, scheduler=scheduler, output=place, progress=tell, path=here(), **options)
        from ..fuzzing.findings import show

        show(findings, console())
    sys.exit(findings.exit_code)
