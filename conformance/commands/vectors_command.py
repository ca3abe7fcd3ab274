"""The commands `posref vectors` and `golden`: build, verify, copy, export and measure vectors, and prove one call."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from ..errors import printable
from ..suite.safe_files import expect_writable, is_standard_output
from .console import FILE, FILE_OR_FOLDER, FOLDER, FiniteRange, console, errors, needs_vectors, operation, progress

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
        from ..proof.build import verify
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
        from ..targets.exchange import export

        count = export(INSTALLED, directory, ops, tier=tier)
    click.echo(f"exported {count} groups to {directory}")


@vectors.command("strength")
@click.option("--op", "ops", metavar="NAME", multiple=True, help="Only cases of this operation; may be repeated.")
@click.option("--suite", metavar="DIR", type=FOLDER, help="Measure the suite in DIR; by default the installed one.")
@click.option("--json", "json_file", type=FILE, help="Write the counts as JSON.")
def vectors_strength(ops: tuple[str, ...], suite: Path | None, json_file: Path | None) -> None:
    """Count the core cases that catch each known mistake. Exit code 1 if fewer than two catch one."""
    from ..diagnosis import strength
    from ..suite.reader import INSTALLED
    from ..suite.safe_files import whole_file

    with errors(), progress("measuring") as show:
        names = [operation(name, "--op") for name in ops]
        measured = strength.measure(progress=show, suite=suite or INSTALLED, ops=names)
    if json_file is not None:
        whole_file(json_file, json.dumps(measured.to_json(), indent=1, sort_keys=True) + "\n")
    strength.show(measured, console())
    sys.exit(measured.exit_code)


@click.command()
@click.argument("name", metavar="[OP]", required=False)
@click.option("--model", "folder", metavar="DIR", type=FOLDER,
              help="Instead of OP: small calls of all that each layer of the model in DIR does, a suite.")  # fmt: skip
@click.option("--preset", metavar="NAME", help="Options of a released model: posref list --presets.")
@click.option("--config", metavar="FILE", type=FILE, help="Options of a model's config.json: of the part that has OP.")
@click.option("--gguf", metavar="FILE", type=FILE, help="Options of a model's GGUF file; the weights are not read.")
@click.option("--layer-type", metavar="WORD", help="Which layers of --config or --gguf, if layers differ: sliding_attention.")
@click.option("--component", metavar="NAME", help="Which component of --config: text, vision, indexer. See posref show FILE.")
@click.option("--layer", metavar="N", type=click.IntRange(0), help="Which layer of --config, from 0, if layers differ.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True,
              help='One option: a word, a number or JSON, as scaling={"type":"Linear","factor":4}.')  # fmt: skip
@click.option("--positions", metavar="NUMBERS", help="The positions: 0,8191,131071 or 0:4096:64.")
@click.option("--prompt", metavar="SEGMENTS",
              help="Positions along time, height and width: 'text 5, image 4x6, video 2x4x6 every 1, text 3'.")  # fmt: skip
@click.option("--after", type=click.Choice(["max", "spatial"]), help="Where text goes on after a video of --prompt.")
@click.option("--grid", metavar="SIZES", help="Positions of the cells of an image, row by row, on every axis: 4x6.")
@click.option("--shape", "shapes", metavar="[NAME=]SIZES", multiple=True,
              help="The shape of an array of random numbers, such as 4,8,128; of x unless named.")  # fmt: skip
@click.option("--array", "arrays", metavar="NAME=NUMBERS", multiple=True, help="A 1-D array, given by its numbers.")
@click.option("--input", "files", metavar="FILE", type=FILE, multiple=True, help="Arrays by name from .npz or .safetensors.")
@click.option(
    "--seed", metavar="S", type=click.IntRange(0), default=0, show_default=True, help="The seed of the random numbers."
)
@click.option("--dtype", metavar="D", help="Write tolerances only for this one: float64, float32, bfloat16 or float16.")
@click.option("--stages", is_flag=True, help="Also write proved intermediate results, such as frequencies and tables.")
@click.option("--witnesses", type=click.Choice(["1", "2"]), default="2", show_default=True,
              help="1 uses the definition alone, for large data. The file says so, and check --suite refuses it.")  # fmt: skip
@JOBS
@click.option("--minutes", metavar="M", type=FiniteRange(0, min_open=True), default=10.0, show_default=True,
              help="Refuse a call that would take longer to prove.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["npz", "safetensors", "json", "suite", "onnx", "flashinfer"]),
              help="By default from PATH's ending, or a suite. onnx, flashinfer: folders for these.")  # fmt: skip
@click.option("-o", "--output", metavar="PATH", type=FILE_OR_FOLDER, required=True,
              help="A .npz, .safetensors or .json file, - (with --format), or a folder for check --suite.")  # fmt: skip
def golden(
    name: str | None, folder: Path | None, output: Path, dtype: str | None, witnesses: str, form: str | None, *, stages: bool,
    jobs: int | None, minutes: float, **asked: Any,
) -> None:  # fmt: skip
    """
    Write proved golden data for a call that you choose.

    Two independent computations, the witnesses, prove every value, as for posref's own vectors. The file has the inputs
    (in/...), the true results in float64 (out/...), with --stages also intermediate results (mid/...), the tolerances of
    every accuracy class (tolerance/CLASS/...), and the total error that a result in a dtype may have (allowed/DTYPE/...).
    Random numbers are representable in every dtype. `about` says what was asked.
    """
    if (name is None) == (folder is None):
        msg = f"golden takes OP or --model DIR; got {'neither' if name is None else 'both'}."
        raise click.UsageError(msg)
    if folder is not None:
        _golden_layers(folder, output, asked, witnesses=int(witnesses), jobs=jobs, minutes=minutes)
        return
    with errors():
        needs_vectors()
        from ..proof.golden_data import FILES, Request, Wanted, write
        from ..proof.witnesses import Effort

        wanted = Wanted(dtype, Effort(int(witnesses), jobs, minutes, stages), form)
        if wanted.format_of(output) in FILES:
            expect_writable(output, read=(*asked["files"], asked["config"], asked["gguf"]))
        case = Request(operation(str(name)), **asked).case()
        with progress("proving") as show:
            about = write(case, output, wanted, f"posref {shlex.join(sys.argv[1:])}", show)
    how = "proved by two witnesses" if witnesses == "2" else "proved by the definition alone: one witness"
    onnx = f"; {about['onnx']}" if "onnx" in about else ""
    onnx += f"; definition {about['flashinfer']}" if "flashinfer" in about else ""
    console(err=is_standard_output(output)).print(
        f"wrote {output}: {about['operation']}, {how}{onnx}", highlight=False, markup=False
    )


def _golden_layers(
    folder: Path, output: Path, asked: dict[str, Any], *, witnesses: int, jobs: int | None, minutes: float
) -> None:
    """Write what each layer of a model must do. Only --component and --layer go with --model, and how to prove."""
    of_a_model = ("component", "layer")
    others = [name for name, value in asked.items() if value not in (None, ()) and name not in (*of_a_model, "seed")]
    if others:
        msg = f"--model goes with --component and --layer; got --{others[0].replace('_', '-')}."
        raise click.UsageError(msg)
    with errors():
        needs_vectors()
        from ..proof.golden_data import write_layers
        from ..proof.witnesses import Effort

        with progress("proving") as show:
            effort = Effort(witnesses, jobs, minutes, stages=False)
            lines = write_layers(folder, output, effort, show, **{name: asked[name] for name in of_a_model})
    for line in (*lines, f"wrote {output}: posref check TARGET --suite {output}"):
        console().print(printable(line), highlight=False, markup=False)
