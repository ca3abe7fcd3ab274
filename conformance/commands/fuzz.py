"""The command that looks for failures with calls drawn at random."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .console import console, errors, needs, needs_vectors, progress


@click.command()
@click.argument("target", required=False)
@click.option("--command", metavar="PROGRAM", help="Instead of TARGET: a program that speaks the protocol, with its arguments.")
@click.option("--seconds", metavar="N", type=click.FloatRange(0, min_open=True),
              help="How long to draw; 60 unless --examples is given.")  # fmt: skip
@click.option("--examples", metavar="N", type=click.IntRange(1), help="How many draws for every operation and dtype.")
@click.option("--seed", metavar="S", type=click.IntRange(0), default=0, show_default=True, help="Where the draws begin.")
@click.option("--op", help="Only this operation.")
@click.option("--backend", metavar="B", help="The target's array library, if it does not say.")
@click.option("--dtype", metavar="D", help="Only float64, float32, bfloat16 or float16.")
@click.option("--claim", metavar="CLASS", help="The accuracy class to hold it to.")
@click.option("--trig", metavar="E", type=float, help="The absolute error that its sines and cosines may have besides.")
@click.option("--device", metavar="DEVICE", help="Where its arrays go, as its library names devices.")
@click.option("--isolate", is_flag=True, help="Run TARGET in a process of its own.")
@click.option("--timeout", metavar="S", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True,
              help="Seconds for a call of a program or isolated target.")  # fmt: skip
@click.option("--memory", metavar="GIB", type=click.FloatRange(0), default=8.0, show_default=True,
              help="Memory of a program or isolated target; 0 is no limit.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS", help="Spread the draws over a dask.distributed cluster.")
@click.option("--output", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
              help="Where failures are written as vectors [default: posref-fuzz-S].")  # fmt: skip
def fuzz(output: Path | None, seed: int, scheduler: str | None, **options: Any) -> None:
    """
    Look for calls on which an implementation fails, and shrink what is found to the smallest.

    TARGET is what posref check takes. Calls are drawn at random from what every operation allows, and judged against values
    that are proved on the spot. The same seed finds the same failures. They are written to DIR as vectors: posref check
    TARGET --suite DIR asks them again. Exit code 0: nothing found; 1: found; 2: could not run.
    """
    sys.path.insert(0, "")
    with errors():
        needs_vectors()
        needs("fuzz", hypothesis="hypothesis")
        if scheduler is not None:
            needs("fuzz", distributed="distributed")
        from ..fuzzing.found import show
        from ..fuzzing.fuzz import fuzz as search

        place = output or Path(f"posref-fuzz-{seed}")
        with progress("drawing") as tell:
            findings = search(seed=seed, scheduler=scheduler, output=place, progress=tell, **options)
        show(findings, console())
    sys.exit(findings.exit_code)
