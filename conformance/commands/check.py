"""The commands that check implementations, render reports, and build, verify, copy and export vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .console import FILE, FOLDER, console, errors, progress

REPORT_LIMIT = 1 << 26  # bytes
RENDERINGS = (
    click.option("--html", type=FILE, help="Write the report as one HTML page that works offline."),
    click.option("--markdown", type=FILE, help="Write a summary in Markdown."),
    click.option("--junit", type=FILE, help="Write the report as JUnit XML."),
    click.option("--badge", type=FILE, help="Write a badge in SVG."),
)


def renderings(command: Any) -> Any:
    """Add the options that write a report in other forms."""
    for option in reversed(RENDERINGS):
        command = option(command)
    return command


@click.command()
@click.argument("target", required=False)
@click.option("--command", metavar="PROGRAM", help="Instead of TARGET: a program that speaks the protocol, with its arguments.")
@click.option("--outputs", metavar="DIR", type=FOLDER, help="Instead of TARGET: a folder of exported requests and results.")
@click.option("--op", help="Check only this operation.")
@click.option("--case", "case", metavar="ID", help="Check only this case, op/group/case.")
@click.option("--tier", type=click.Choice(["smoke", "core"]), default="core", show_default=True)
@click.option("--suite", metavar="DIR", type=FOLDER, help="Use the vectors in DIR instead of the installed ones.")
@click.option("--backend", metavar="B", help="The target's array library, if it does not name one.")
@click.option("--dtype", metavar="D", help="Check only float64, float32, bfloat16 or float16.")
@click.option("--claim", metavar="CLASS", help="The accuracy class that it must reach.")
@click.option("--trig", metavar="E", type=float, help="Allow its sines and cosines an additional absolute error E.")
@click.option("--device", metavar="DEVICE", help="The device for its arrays, by its library's name for it.")
@click.option("--isolate", is_flag=True, help="Run TARGET in its own process.")
@click.option("--timeout", metavar="S", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True,
              help="Seconds for each call of a program or isolated target; ten times as many to start.")  # fmt: skip
@click.option("--memory", metavar="GIB", type=click.FloatRange(0), default=8.0, show_default=True,
              help="Memory limit of a program or isolated target; 0 is no limit.")  # fmt: skip
@click.option("--json", "json_file", type=FILE, help="Write the report as JSON.")
@renderings
def check(json_file: Path | None, suite: Path | None, **options: Any) -> None:
    """
    Check an implementation against the golden vectors.

    TARGET is an adapter (posref doctor lists them), a module, module:object, or file.py. Its functions have the names of
    operations. Exit code 0: conformant; 1: not; 2: could not run.
    """
    from ..checking import checker
    from ..reports import terminal
    from ..suite.reading import INSTALLED

    sys.path.insert(0, "")
    forms = {form: options.pop(form) for form in ("html", "markdown", "junit", "badge")}
    with errors():
        with progress("asking") as show:
            report = checker.check(suite=suite or INSTALLED, progress=show, **options)
        if json_file is not None:
            report.write_json(json_file)
        _render(report.to_json(), **forms)
        terminal.show(report, console())
    sys.exit(report.exit_code)


@click.command()
@click.argument("file", type=FILE)
@renderings
def report(file: Path, **forms: Path | None) -> None:
    """Convert a JSON report to other forms. Without an option, print FILE as Markdown."""
    from ..suite import safe_reading
    from ..suite.reading import parse
    from ..suite.schemas import validate

    with errors():
        document = parse(file, safe_reading.read(file, REPORT_LIMIT))
        validate("report", document, file)
        _render(document, **forms)
        if not any(forms.values()):
            from ..reports import summaries

            click.echo(summaries.markdown(document), nl=False)


def _render(document: dict[str, Any], **forms: Path | None) -> None:
    """Write a report in every requested form."""
    from ..suite.atomic import whole_file

    for form, path in forms.items():
        if path is None:
            continue
        if form == "html":
            from ..reports.html import render

            whole_file(path, render(document))
        else:
            from ..reports import summaries

            whole_file(path, getattr(summaries, form)(document))
