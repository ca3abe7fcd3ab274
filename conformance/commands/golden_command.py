"""The command `posref golden`: writes proved golden data for one call."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from ..suite.safe_files import expect_writable, is_standard_output
from .console import FILE, FILE_OR_FOLDER, FiniteRange, console, errors, needs_vectors, operation, progress


@click.command()
@click.argument("name", metavar="OP")
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
@click.option("--jobs", metavar="N", type=click.IntRange(1), help="Prove in at most N processes; by default one per core.")
@click.option("--minutes", metavar="M", type=FiniteRange(0, min_open=True), default=10.0, show_default=True,
              help="Refuse a call that would take longer to prove.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["npz", "safetensors", "json", "suite", "onnx", "flashinfer"]),
              help="By default from PATH's ending, or a suite. onnx, flashinfer: folders for these.")  # fmt: skip
@click.option("-o", "--output", metavar="PATH", type=FILE_OR_FOLDER, required=True,
              help="A .npz, .safetensors or .json file, - (with --format), or a folder for check --suite.")  # fmt: skip
def golden(
    name: str, output: Path, dtype: str | None, witnesses: str, form: str | None, *, stages: bool, jobs: int | None,
    minutes: float, **asked: Any,
) -> None:  # fmt: skip
    """
    Write proved golden data for a call that you choose.

    Two independent computations, the witnesses, prove every value, as for posref's own vectors. The file has the inputs
    (in/...), the true results in float64 (out/...), with --stages also intermediate results (mid/...), the tolerances of
    every accuracy class (tolerance/CLASS/...), and the total error that a result in a dtype may have (allowed/DTYPE/...).
    Random numbers are representable in every dtype. `about` says what was asked.
    """
    with errors():
        needs_vectors()
        from ..proof.golden_data import FILES, Request, Wanted, write
        from ..proof.witnesses import Effort

        wanted = Wanted(dtype, Effort(int(witnesses), jobs, minutes, stages), form)
        if wanted.format_of(output) in FILES:
            expect_writable(output, read=(*asked["files"], asked["config"], asked["gguf"]))
        case = Request(operation(name), **asked).case()
        with progress("proving") as show:
            about = write(case, output, wanted, f"posref {shlex.join(sys.argv[1:])}", show)
    how = "proved by two witnesses" if witnesses == "2" else "proved by the definition alone: one witness"
    onnx = f"; {about['onnx']}" if "onnx" in about else ""
    onnx += f"; definition {about['flashinfer']}" if "flashinfer" in about else ""
    console(err=is_standard_output(output)).print(
        f"wrote {output}: {about['operation']}, {how}{onnx}", highlight=False, markup=False
    )
