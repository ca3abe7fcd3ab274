"""The commands `posref check`, `fuzz` and `report`: check an implementation, draw calls that it fails, convert a report."""

from __future__ import annotations

import gc
import sys
from functools import reduce
from pathlib import Path
from secrets import randbits
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from ..errors import printable
from ..suite.safe_files import OURS, REPORT, expect_writable, is_standard_output, whole_file
from ..targets import limits
from ..targets.program_process import adopt, can_be_copied
from .console import FILE, FOLDER, MEMORY, FiniteRange, Show, console, errors, here, needs, needs_vectors, progress
from .project_command import ProjectCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..reports.report import Report

TARGET_OPTIONS = (
    click.option("--backend", metavar="B", help="The array library of TARGET, if it does not name one."),
    click.option("--dtype", metavar="D", help="Check only float64, float32, bfloat16 or float16."),
    click.option("--claim", metavar="CLASS", help="The accuracy class that results must reach, such as angle32."),
    click.option("--trig", metavar="E", type=FiniteRange(0),
                 help="Allow an extra absolute error E in sines and cosines, at most 0.0008."),
    click.option("--device", metavar="DEVICE", help="The device for arrays, as the array library names it."),
    click.option("--timeout", metavar="S", type=FiniteRange(0, min_open=True), default=limits.TIMEOUT, show_default=True,
                 help="Seconds for each call; ten times as many to start."),
    click.option("--memory", metavar="GIB", type=MEMORY, default=limits.MEMORY, show_default=True,
                 help="Memory limit of the process of TARGET or PROGRAM; 0 is no limit."),
)  # fmt: skip
RENDERINGS = (
    click.option("--html", type=FILE, help="Write the report as one HTML page that works offline."),
    click.option("--markdown", type=FILE, help="Write a summary in Markdown."),
    click.option("--junit", type=FILE, help="Write the report as JUnit XML."),
    click.option("--badge", type=FILE, help="Write a badge in SVG."),
)


def _adding(options: Iterable[Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds options to a command."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed([*options]), command)


target_options, renderings = _adding(TARGET_OPTIONS), _adding(RENDERINGS)


@click.command(cls=ProjectCommand)
@click.argument("target", required=False)
@click.option("--command", metavar="PROGRAM", help="Instead of TARGET: a program that speaks the protocol, with its arguments.")
@click.option("--outputs", metavar="DIR", type=FOLDER, help="Instead of TARGET: a folder of exported requests and results.")
@click.option("--model", "folder", metavar="DIR", type=FOLDER,
              help="Instead of TARGET: load the model in DIR and compare it with the config.json there.")  # fmt: skip
@click.option("--trust-remote-code", is_flag=True, help="With --model: let Python code in DIR run.")
@click.option("--op", multiple=True, help="Check only this operation; may be repeated.")
@click.option("--case", "case", metavar="ID", help="Check only this case, op/group/case.")
@click.option("--tier", type=click.Choice(["smoke", "core", "kernel"]), default="core", show_default=True,
              help="One case of each operation, all vectors, or also sizes where kernels often fail.")  # fmt: skip
@click.option("--suite", metavar="DIR", type=FOLDER, help="Use the vectors in DIR instead of the installed ones.")
@target_options
@click.option("--for", "model", metavar="MODEL",
              help="Check what a model's layers do: a preset, config.json or GGUF file; :LAYER_TYPE to choose.")  # fmt: skip
@click.option("--layer", metavar="N", type=click.IntRange(0),
              help="With --for: one layer, from 0. One that does not rotate must return x unchanged.")  # fmt: skip
@click.option("--layout", type=click.Choice(["half", "interleaved", "interleaved_to_half"]),
              help="With --for: this layout instead of the file's.")  # fmt: skip
@click.option(
    "--component", metavar="NAME", help="With --for: one component, such as text or indexer; posref show FILE has all."
)
@click.option(
    "--require", metavar="SCOPE", help="What TARGET must support: words such as 'layout=half scaling=YaRN', or a JSON file."
)
@click.option("--seed", metavar="S", type=click.IntRange(0, 2**63 - 1),
              help="Repeat the fresh calls of a report, which names their seed; by default they are drawn anew.")  # fmt: skip
@click.option("--experiments", metavar="N", type=click.IntRange(0), default=500, show_default=True,
              help="At most N calls of each operation, to find what it refuses or gets wrong; 0: none.")  # fmt: skip
@click.option("--batch-invariant", is_flag=True,
              help="Also say whether rows have the same bits alone as in a batch; changes no verdict.")  # fmt: skip
@click.option("--jobs", metavar="N", type=click.IntRange(1),
              help="1: use one process. By default two share a check of many cases, on two or more cores.")  # fmt: skip
@click.option("--print-scope", is_flag=True, help="Print the scope that was found as a `supports` entry to paste into TARGET.")
@click.option("--json", "json_file", type=FILE, help="Write the report as JSON.")
@renderings
@click.option("--github", is_flag=True, help="Print failures as annotations for a workflow of GitHub.")
def check(
    json_file: Path | None,
    suite: Path | None,
    folder: Path | None,
    *,
    trust_remote_code: bool,
    print_scope: bool,
    github: bool,
    **options: Any,
) -> None:
    """
    Check an implementation against the golden vectors, or a loaded model against its file.

    TARGET is an adapter (posref doctor lists them), a module, module:object, or file.py. Its functions are named like
    operations. Defaults of options are read from [tool.posref] in pyproject.toml. Exit code 0: conformant; 1: not; 2: could not
    run, or was interrupted.
    """
    if folder is not None:
        _check_model(folder, json_file, options["html"], remote_code=trust_remote_code)
    adopt()
    forms = {form: options.pop(form) for form in ("html", "markdown", "junit", "badge")}
    with errors():
        _prepare(json_file, options, **forms)
        with progress("checking") as show:
            options["seed"] = randbits(32) if options["seed"] is None else options["seed"]
            report = _checked(options | {"suite": suite or OURS, "op": options["op"] or None}, show)
        from ..reports import terminal

        aside = any(path is not None and is_standard_output(path) for path in (json_file, *forms.values()))
        if json_file is not None:
            whole_file(json_file, report.json_text())
        if any(forms.values()):
            _render(report.to_json(), **forms)  # before the text, whose reader may close the pipe
        terminal.show(report, console(err=aside))
        if print_scope:
            click.echo(terminal.supports(report), err=aside)
        if github:
            from ..reports.summaries import workflow_commands

            click.echo(workflow_commands(report.to_json()), nl=False, err=aside)
    gc.freeze()  # nothing is looked for in what a report leaves: the process ends
    sys.exit(report.exit_code)


def _check_model(folder: Path, json_file: Path | None, html: Path | None, *, remote_code: bool) -> NoReturn:
    """Compare the model in a folder with its config.json. Only --json, --html, --dtype and --device go with it."""
    context = click.get_current_context()
    used = [
        parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name is not None
        and parameter.name not in ("folder", "json_file", "html", "trust_remote_code", "dtype", "device")
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if used:
        msg = f"--model goes with --json, --html, --dtype, --device and --trust-remote-code; got {', '.join(used)}."
        raise click.UsageError(msg)
    with errors():
        expect_writable(json_file, html, read=(folder,))
        if html is not None:
            needs("html", jinja2="jinja2")
        from ..loaded.model_folder import check_folder

        report = check_folder(folder, remote_code=remote_code, dtype=context.params["dtype"], device=context.params["device"])
        aside = any(path is not None and is_standard_output(path) for path in (json_file, html))
        for line in str(report).splitlines():
            console(err=aside).print(printable(line), markup=False, highlight=False)
        if json_file is not None:
            whole_file(json_file, report.json_text())
        if html is not None:
            whole_file(html, report.html_text())
    sys.exit(report.exit_code)


def _prepare(json_file: Path | None, options: Mapping[str, Any], **forms: Path | None) -> None:
    """Raise before the check if a file could not be written after it."""
    named = (Path(options[name].partition(":")[0]) for name in ("target", "model", "require") if options[name])
    expect_writable(json_file, *forms.values(), read=named)
    if forms["html"] is not None:
        needs("html", jinja2="jinja2")


def _checked(options: dict[str, Any], show: Show | None) -> Report:
    """Return the report of a check; the process of a Python target is started before anything is read."""
    session = None
    if options["target"] is not None and options["command"] is None and options["outputs"] is None:
        copied = can_be_copied()  # before NumPy is loaded
        from ..targets.python_process import PythonSession

        session = PythonSession(
            [options["target"]], options["suite"], options["timeout"], options["memory"], path=here(), copied=copied,
            options={name: options[name] for name in ("backend", "dtype", "device")},
        )  # fmt: skip
    try:
        from ..checks.check import SELDOM, check

        gc.set_threshold(SELDOM)
        return check(progress=show, **options | {"target": session})
    finally:
        if session is not None:
            session.close()


@click.command(cls=ProjectCommand)
@click.argument("target", required=False)
@click.option("--command", metavar="PROGRAM", help="Instead of TARGET: a program that speaks the protocol, with its arguments.")
@click.option("--seconds", metavar="N", type=FiniteRange(0, min_open=True),
              help="Draw calls for so many seconds; 60 unless --examples is given.")  # fmt: skip
@click.option("--examples", metavar="N", type=click.IntRange(1), help="How many calls to draw for each operation and dtype.")
@click.option("--seed", metavar="S", type=click.IntRange(0), default=0, show_default=True, help="The seed of the draws.")
@click.option("--op", multiple=True, help="Check only this operation; may be repeated.")
@target_options
@click.option("--scheduler", metavar="ADDRESS", help="Spread the draws over a dask.distributed cluster.")
@click.option("-o", "--output", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
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
            from ..fuzzing.fuzz import show

            findings = search(seed=seed, scheduler=scheduler, output=place, progress=tell, path=here(), **options)
        show(findings, console())
    sys.exit(findings.exit_code)


@click.command()
@click.argument("file", type=FILE)
@renderings
def report(file: Path, **forms: Path | None) -> None:
    """Convert a JSON report to other forms. Without an option, print FILE as Markdown."""
    from ..errors import PosrefError, VectorError
    from ..reports.document import contradiction
    from ..suite import safe_files
    from ..suite.reader import parse
    from ..suite.schemas import validate
    from ..targets.invocation import in_one_line

    with errors():
        document = parse(file, safe_files.read_named(file, REPORT), limit=REPORT)
        listed = document.get("operations") if isinstance(document, dict) else ()
        count = len(listed) if isinstance(listed, list) else 0
        if count > safe_files.OPERATIONS:
            msg = f"{file}: operations must be at most {safe_files.OPERATIONS:,}; got {count:,}."
            raise VectorError(msg)
        validate("report", document, file)
        wrong = contradiction(document)
        if wrong:
            msg = f"{file}: contradicts itself: {wrong}."
            raise VectorError(msg)
        expect_writable(*forms.values(), read=(file,))
        try:
            _render(document, **(forms if any(forms.values()) else {"markdown": Path("-")}))
        except (PosrefError, OSError):
            raise
        except Exception as error:  # of the form of a report, with contents that no check gives
            msg = f"{file}: is not a report as posref writes it: {in_one_line(error)}"
            raise VectorError(msg) from error


def _render(document: dict[str, Any], **forms: Path | None) -> None:
    """Write a report in every requested form."""
    from ..reports.report import rendered

    for form, path in forms.items():
        if path is not None:
            whole_file(path, rendered(document, form))
