"""The command line: list, show, doctor, check, and the vectors' build, verify and copy; it alone imports downward."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import posref
from posref.spec import FAMILIES, REGISTRY

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(context_settings=CONTEXT)
@click.version_option(posref.__version__, prog_name="posref")
def cli() -> None:
    """The reference for positional encodings: what they are, golden vectors, and a check of implementations."""


@cli.command("list")
@click.option("--family", type=click.Choice(FAMILIES), help="Only one family.")
@click.option("--cases", "op", metavar="OP", help="The core cases of one operation instead.")
def list_command(family: str | None, op: str | None) -> None:
    """List the operations, or the cases of one."""
    if op is not None:
        _list_cases(op)
        return
    table = Table("operation", "family", "source", "models", box=None, pad_edge=False, header_style="bold")
    for record in sorted(REGISTRY.values(), key=lambda r: FAMILIES.index(r.family)):
        if family is None or record.family == family:
            table.add_row(record.name, record.family, record.source, ", ".join(record.models))
    _console().print(table)


def _list_cases(op: str) -> None:
    from posref.conformance.suite import INSTALLED, load_groups

    with _errors():
        table = Table("case", "kind", "dtypes", "flags", box=None, pad_edge=False, header_style="bold")
        for group in load_groups(INSTALLED, op=_operation(op)):
            for case in group.cases:
                table.add_row(case.id, case.kind, " ".join(case.dtypes), " ".join(case.flags))
        _console().print(table)


@cli.command()
@click.argument("name")
def show(name: str) -> None:
    """Show what an operation is: its signature, specification, options and sources."""
    with _errors():
        record = REGISTRY[_operation(name)]
    console = _console()
    signature = str(inspect.signature(record.function)).replace("typing.", "")
    console.print(f"[bold]posref.{record.name}[/bold]{escape(signature)}\n")
    console.print(inspect.getdoc(record.function) or "", markup=False, highlight=False)
    console.print()
    facts = {"Family": record.family, "Source": record.source, "Models": ", ".join(record.models)}
    facts |= {"Stages": ", ".join(record.stages), "Invariants": ", ".join(record.invariants)}
    facts |= {f"Option {n}": str(domain) for n, domain in record.domains.items()}
    for title, text in facts.items():
        if text:
            console.print(f"[bold]{title}[/bold]: {escape(text)}", highlight=False)


@cli.command()
def doctor() -> None:
    """Say what is installed here: array libraries, their dtypes, whether their float64 is real, and the vectors."""
    from posref import backends
    from posref.conformance.suite import INSTALLED, load_manifest

    table = Table("backend", "state", "dtypes", "float64", box=None, pad_edge=False, header_style="bold")
    for name in backends.names():
        try:
            library = backends.load(name)
        except backends.BackendMissing as error:
            table.add_row(name, escape(str(error)), "", "")
            continue
        except Exception as error:  # a library that is installed and broken is what one asks a doctor about
            table.add_row(name, escape(f"broken: {type(error).__name__}: {error}"[:100]), "", "")
            continue
        real = "float64" in library.dtypes and library.float64_trigonometry
        table.add_row(name, "ready", " ".join(library.dtypes), "yes" if real else "no: angles as int32 turns")
    console = _console()
    console.print(f"posref {posref.__version__}, Python {sys.version.split()[0]}", highlight=False)
    console.print(table)
    with _errors():
        manifest = load_manifest(INSTALLED)
        cases = sum(len(entry["cases"]) for entry in manifest["groups"])
        console.print(
            f"vectors {manifest['suite']}: {len(manifest['groups'])} groups, {cases} cases, {INSTALLED}",
            highlight=False,
        )


@cli.command()
@click.argument("target")
@click.option("--op", help="Only this operation.")
@click.option("--case", "case", metavar="ID", help="Only this case, op/group/case.")
@click.option("--tier", type=click.Choice(["smoke", "core"]), default="core", show_default=True)
@click.option("--backend", metavar="B", help="The target's array library, if it does not say.")
@click.option("--dtype", metavar="D", help="Only float64, float32, bfloat16 or float16.")
@click.option("--claim", metavar="CLASS", help="The accuracy class to hold it to.")
@click.option("--device", metavar="DEVICE", help="Where its arrays go, as its library names devices.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as JSON.")
def check(target: str, json_file: Path | None, **options: Any) -> None:
    """
    Check an implementation against the golden vectors.

    TARGET is an adapter's name (transformers, onnxruntime), a module, module:object, or file.py, with functions named as the
    operations. Exit code 0: conformant; 1: not; 2: could not run.
    """
    from posref.conformance import checker, terminal

    sys.path.insert(0, "")
    with _errors():
        with _progress("asking") as progress:
            report = checker.check(target, progress=progress, **options)
        if json_file is not None:
            report.write_json(json_file)
        terminal.show(report, _console())
    sys.exit(report.exit_code)


@cli.group()
def vectors() -> None:
    """Build, verify and copy golden vectors."""


@vectors.command("build")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--tier", type=click.Choice(["smoke", "core"]), default="core", show_default=True)
def vectors_build(directory: Path, tier: str) -> None:
    """Build the vectors from their sources into DIR, every value proved by two witnesses."""
    with _errors(), _progress("building") as progress:
        _needs_vectors()
        from posref.conformance.build import build

        build(directory, tier=tier, progress=progress)
    _console().print(f"built {directory}", highlight=False)


@vectors.command("verify")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False, path_type=Path))
def vectors_verify(directory: Path | None) -> None:
    """Prove every value of the suite in DIR (by default the installed one) again."""
    with _errors():
        _needs_vectors()
        from posref.conformance.suite import INSTALLED
        from posref.conformance.verify import verify

        with _progress("proving") as progress:
            problems = verify(directory or INSTALLED, progress=progress)
    for problem in problems:
        click.echo(problem)
    click.echo(f"{directory or INSTALLED}: " + (f"{len(problems)} problems" if problems else "every value is proved"))
    sys.exit(1 if problems else 0)


@vectors.command("copy")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--op", "ops", multiple=True, help="Only this operation; may be repeated.")
def vectors_copy(directory: Path, ops: tuple[str, ...]) -> None:
    """Copy the installed vectors, with licence and hashes, into DIR."""
    with _errors():
        from posref.conformance.copying import copy
        from posref.conformance.suite import INSTALLED

        count = copy(INSTALLED, directory, ops)
    click.echo(f"copied {count} groups to {directory}")


def _operation(name: str) -> str:
    """Return the name of an operation, or raise with those there are."""
    from posref.conformance.errors import TargetError

    if name not in REGISTRY:
        msg = f"NAME must be one of {', '.join(REGISTRY)}; got {name!r}."
        raise TargetError(msg)
    return name


def _needs_vectors() -> None:
    """Raise if the libraries that prove values are missing."""
    from importlib.util import find_spec

    from posref.conformance.errors import PosrefError

    missing = [package for name, package in {"flint": "python-flint", "mpmath": "mpmath"}.items() if find_spec(name) is None]
    if missing:
        msg = f"proving values needs {' and '.join(missing)}: pip install 'posref[vectors]'"
        raise PosrefError(msg)


def _console() -> Console:
    """Return a console: coloured in a terminal, plain and wide in a pipe."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(width=160, soft_wrap=True, highlight=False)


@contextmanager
def _errors() -> Iterator[None]:
    """Turn named errors into one line and exit code 2."""
    from posref.backends import BackendMissing
    from posref.conformance.errors import PosrefError

    try:
        yield
    except (PosrefError, BackendMissing, OSError) as error:
        click.echo(f"posref: {error}", err=True)
        sys.exit(2)
    except ValueError as error:
        if not str(error).startswith("backends."):
            raise
        click.echo(f"posref: {error}", err=True)
        sys.exit(2)


@contextmanager
def _progress(verb: str) -> Iterator[Callable[[str], None] | None]:
    """Yield a function that shows what is being done, on a terminal; None in a pipe."""
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
        yield lambda now: bar.update(task, advance=1, now=escape(now))


def main() -> None:
    """Run the command line; exit codes: 0 conformant or done, 1 not, 2 could not run."""
    cli(prog_name="posref")
