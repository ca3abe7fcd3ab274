"""The commands `posref vectors`: build, verify, copy, export and measure vectors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ..errors import printable
from .console import FILE, FOLDER, console, errors, needs_vectors, operation, progress

JOBS = click.option(
    "--jobs", metavar="N", type=click.IntRange(1), help="Prove in at most N processes; by default one per core."
)


@click.group()
def vectors() -> None:
    """Build, verify, copy, export or measure vectors."""


@vectors.command("build")
@click.argument("directory", metavar="DIR", type=FOLDER)
@click.option("--tier", type=click.Choice(["smoke", "core"]), default="core", show_default=True)
@click.option("--op", "ops", metavar="NAME", multiple=True, help="Build only this operation; may be repeated.")
@JOBS
@click.option("--no-reuse", is_flag=True, help="Prove every group again.")
def vectors_build(directory: Path, tier: str, ops: tuple[str, ...], jobs: int | None, no_reuse: bool) -> None:
    """
    Build the vectors in DIR from their sources. Two witnesses prove every value.

    DIR must be new, empty, or hold a suite and nothing else, which is replaced. A suite that is replaced keeps its own
    README.md, LICENSE, ERRATA.json and schema/; delete one to get the installed one. With --op it also keeps the groups of all
    other operations.

    A group is taken from the cache, and not proved again, if its cases, the code of posref and the versions of Python, NumPy,
    python-flint, mpmath and gmpy2 are all as they were when it was proved. The cache is $XDG_CACHE_HOME/posref/proofs or
    ~/.cache/posref/proofs. It takes at most 256 MiB and may be deleted at any time. Its entries are sealed with a secret of
    yours beside it; a folder that others may change is not used. One in sixteen groups that are taken is proved all the same.
    """
    with errors(), progress("building") as show:
        needs_vectors()
        from ..proof.build import build
        from ..proof.proof_cache import default_folder

        names = [operation(name, "--op", " A new one must be imported in posref/__init__.py.") for name in ops]
        reuse = None if no_reuse else default_folder()
        built = build(directory, tier=tier, ops=names, jobs=jobs, reuse=reuse, progress=show)
    console().print(f"built {directory}: {built}", highlight=False)


@vectors.command("verify")
@click.argument("directory", metavar="[DIR]", required=False, type=FOLDER)
@JOBS
def vectors_verify(directory: Path | None, jobs: int | None) -> None:
    """Prove every value again. The suite is in DIR, or is the installed one. Nothing is taken from the cache."""
    with errors():
        needs_vectors()
        from ..proof.verification import verify
        from ..suite.reader import INSTALLED

        with progress("proving") as show:
            problems = verify(directory or INSTALLED, jobs=jobs, progress=show)
    for problem in problems:
        click.echo(printable(problem))
    click.echo(f"{directory or INSTALLED}: " + (f"{len(problems)} problems" if problems else "every value is proved"))
    sys.exit(1 if problems else 0)


@vectors.command("copy")
@click.argument("directory", metavar="DIR", type=FOLDER)
@click.option("--op", "ops", multiple=True, help="Copy only this operation; may be repeated.")
def vectors_copy(directory: Path, ops: tuple[str, ...]) -> None:
    """Copy the installed vectors to DIR, with licence and hashes."""
    with errors():
        from ..suite.reader import INSTALLED
        from ..suite.writer import copy

        count = copy(INSTALLED, directory, ops)
    click.echo(f"copied {count} groups to {directory}")


@vectors.command("export")
@click.argument("directory", metavar="DIR", type=FOLDER)
@click.option("--op", "ops", multiple=True, help="Export only this operation; may be repeated.")
@click.option("--tier", type=click.Choice(["smoke", "core"]), default="core", show_default=True)
def vectors_export(directory: Path, ops: tuple[str, ...], tier: str) -> None:
    """Write requests without expected values to DIR. Compute them anywhere, then run posref check --outputs DIR."""
    with errors():
        from ..suite.reader import INSTALLED
        from ..targets.remote.exchange import export

        count = export(INSTALLED, directory, ops, tier=tier)
    click.echo(f"exported {count} groups to {directory}")


@vectors.command("strength")
@click.option("--op", "ops", metavar="NAME", multiple=True, help="Only deviations that touch this operation; may be repeated.")
@click.option("--json", "json_file", type=FILE, help="Write the counts as JSON.")
def vectors_strength(ops: tuple[str, ...], json_file: Path | None) -> None:
    """Count the core cases that catch each known deviation. Exit code 1 if fewer than two catch one."""
    from ..diagnosis import strength
    from ..suite.safe_files import whole_file

    with errors(), progress("trying") as show:
        names = [operation(name, "--op") for name in ops]
        measured = strength.measure(progress=show, ops=names)
    if json_file is not None:
        whole_file(json_file, json.dumps(measured.to_json(), indent=1, sort_keys=True) + "\n")
    strength.show(measured, console())
    sys.exit(measured.exit_code)
