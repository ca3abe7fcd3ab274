"""The command line: commands that show what posref has. The others are in `posref.conformance.commands`."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

import posref
from posref import startup
from posref.cli.plot_command import plot
from posref.conformance.commands.check_command import check, fuzz, report
from posref.conformance.commands.console import console as _console
from posref.conformance.commands.console import errors as _errors
from posref.conformance.commands.console import operation as _operation
from posref.conformance.commands.console import say, say_error
from posref.conformance.commands.target_command import adapter, protocol
from posref.conformance.commands.vectors_command import golden, vectors
from posref.conformance.errors import TargetError
from posref.conformance.suite import safe_files
from posref.scaling import RECORDS, LongRoPE, Scaling
from posref.spec import FAMILIES, REGISTRY

if TYPE_CHECKING:
    from rich.table import Table

    from posref.about import Words
    from posref.presets import Preset

COMPLETE = "_POSREF_COMPLETE"  # set by a shell that completes words: eval "$(_POSREF_COMPLETE=bash_source posref)"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
WIDE = 110  # columns of a terminal that a table of presets with notes needs


START = """\
posref is a reference for positional encodings. There are three things to do with it.

Use the reference. Read what an encoding does, then call it on NumPy, PyTorch or JAX arrays:
  posref show rope

Check an implementation. A file with a function `rope` is compared with proved values:
  posref check my_code.py --op rope

Get golden data. Inputs and proved outputs, as JSON and safetensors, for tests in any language:
  posref vectors copy golden

All operations: posref list. All commands: posref --help."""


@click.group(context_settings=CONTEXT, invoke_without_command=True)
@click.version_option(posref.__version__, prog_name="posref")
@click.pass_context
def cli(context: click.Context) -> None:
    """Look up positional encodings, check implementations of them, and copy or build golden vectors."""
    if context.invoked_subcommand is None:
        click.echo(START)


@cli.command("list")
@click.argument("word", required=False)
@click.option("--family", type=click.Choice(FAMILIES), help="Only one family.")
@click.option("--cases", "op", metavar="OP", help="List the cases of one operation instead.")
@click.option(
    "--tier", type=click.Choice(["core", "kernel"]), default="core", show_default=True, help="With --cases: which tier to list."
)
@click.option("--presets", is_flag=True, help="List the named parameters of released models instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the encodings with all facts, as JSON.")
def list_command(word: str | None, family: str | None, op: str | None, tier: str, presets: bool, as_json: bool) -> None:
    """
    List the operations, the cases of one, or the presets.

    Encodings that most model types use come first, each with its parts. With WORD, list the encodings that have it in their
    name, idea, models or facts ("mask", "graph", "Swin"). Facts are computed: whether only offsets count, whether before
    differs from after, and so on. Other operations follow, then variants that papers name ("VideoRoPE", "GRAPE"), each with
    the code that computes it, then context extensions ("YaRN").
    """
    if word is not None or as_json:
        _list_encodings(word or "", family, as_json=as_json)
        return
    if presets:
        _list_presets()
        return
    if op is not None:
        _list_cases(op, tier)
        return
    from posref.conformance.comparison.table import operations

    _console().print(_operations([name for name in operations() if family in (None, REGISTRY[name].family)]))


def _operations(names: Sequence[str]) -> Table:
    table = _table("operation", "family", "source", "models")
    for record in map(REGISTRY.__getitem__, names):
        table.add_row(record.name, record.family, record.source, ", ".join(record.models))
    return table


def _list_encodings(word: str, family: str | None, *, as_json: bool) -> None:
    from posref.conformance.comparison.table import matching, parts_matching
    from posref.conformance.comparison.variants import PAGE, named

    rows = [row for row in matching(word) if family in (None, row["family"])]
    variants = named(word) if word and family is None else []
    if as_json:
        click.echo(json.dumps([*rows, *variants], indent=1))
        return
    records = _records(word) if family is None else []
    parts = [name for name in parts_matching(word) if family in (None, REGISTRY[name].family)]
    if not rows and not parts and not variants and not records:
        with _errors():
            msg = f"list: nothing has the word {word!r}; posref list prints all operations."
            raise TargetError(msg)
    columns = ("acts on", "relative", "direction", "bounded", "decays", "axes", "weights")
    table = _table("encoding", "title", *columns)
    for row in rows:
        table.add_row(*(_escape(str(row[name]) or "-") for name in ("name", "title", *columns)))
    if rows:
        _console().print(table)
    if parts:
        click.echo("\n" * bool(rows), nl=False)
        _console().print(_operations(parts))
    for variant in variants:
        click.echo("\n" * bool(rows or parts or variant is not variants[0]) + f"{variant['variant']}. {variant['source']}")
        click.echo(str(variant["code"]), nl=False)
    if variants:
        click.echo(f"\nNames, equations and where code differs: {PAGE}")
    for line in records:
        click.echo(line)


def _records(word: str) -> list[str]:
    """Return a line for each context extension that has the word in its name: a record for the option `scaling`."""
    from dataclasses import fields

    from posref.scaling import RECORDS

    lines = []
    for kind in (kind for kind in RECORDS if word and word.lower() in kind.__name__.lower()):
        names = ", ".join(part.name for part in fields(kind))
        idea = next(filter(None, map(str.strip, str(kind.__doc__).splitlines())))
        lines.append(f"An option of rope and others, scaling={kind.__name__}({names}). {idea}")
    return lines


def _list_cases(op: str, tier: str) -> None:
    from posref.conformance.checks.choice import Choice

    with _errors():
        cases = Choice(tier=tier).cases([_operation(op)])
        table = _table("case", "kind", "dtypes", "flags")
        for case in cases:
            table.add_row(case.id, case.kind, " ".join(case.dtypes), " ".join(case.flags))
        _console().print(table)


def _list_presets() -> None:
    from posref.presets import MARKS  # a check does not need them

    console = _console()
    columns = ("preset", "function", "arguments", "factors", "verified", "note")[: 6 if console.width >= WIDE else 3]
    table = _table(*columns)
    for preset in posref.presets.values():
        function, arguments = preset.op, preset.options
        text = ", ".join(f"{name}={_brief(value)}" for name, value in arguments.items() if value is not None)
        gains = " ".join(f"{place} {factor:.6g}" for place, factor in preset.factors.items() if factor != 1)
        row = preset.name, function, _escape(text), gains, preset.verified, _escape(preset.note)
        table.add_row(*row[: len(columns)])
    console.print(table)
    marks = "Verified: " + "; ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items())
    rest = f"For factors, notes and sources: posref show PRESET, or a terminal of {WIDE} columns."
    console.print(f"\n{marks if len(columns) == 6 else rest}", highlight=False)


def _table(*columns: str) -> Table:
    """Return a table without lines. Its first column never wraps, so that names can be copied."""
    from rich.table import Column, Table  # slow to load, and checks in a pipe do not need it

    shown = [Column(name, no_wrap=n == 0, overflow="fold") for n, name in enumerate(columns)]
    return Table(*shown, box=None, pad_edge=False, header_style="bold")


def _escape(text: str) -> str:
    """Return text with its brackets escaped, since rich reads them as markup."""
    from rich.markup import escape

    return escape(text)


def _brief(value: object) -> str:
    """Return an argument in one line: a record without default fields, a long tuple by its first and last numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        settings = ((f.name, getattr(value, f.name)) for f in fields(value) if getattr(value, f.name) != f.default)
        return f"{type(value).__name__}({', '.join(f'{name}={_brief(inner)}' for name, inner in settings)})"
    if isinstance(value, tuple) and len(value) > 4:
        return f"({value[0]}, ..., {value[-1]})"
    return str(value)


@cli.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="For a config.json: print JSON.")
def show(name: str, *, as_json: bool) -> None:
    """Show an operation (specification, options, sources), a preset, a scaling such as YaRN, or all that a config.json says."""
    if name.endswith(".json"):
        _show_config(name, as_json=as_json)
        return
    if as_json:
        msg = f"--json works only with a config.json; got {name!r}."
        raise click.UsageError(msg)
    if name in posref.presets:
        _show_preset(posref.presets[name])
        return
    scaling = next((kind for kind in RECORDS if kind.__name__.lower() == name.lower()), None)
    if scaling is not None:
        _show_scaling(scaling)
        return
    from posref.about import ABOUT, About, without_words  # a check does not need them
    from posref.core.composition import stages

    with _errors():
        record = REGISTRY[_operation(name, hint=_others(name))]
    console = _console()
    signature = re.sub(r"typing\.|posref\.(types|scaling)\.|~", "", str(inspect.signature(record.function)))
    console.print(f"[bold]posref.{record.name}[/bold]{_escape(signature)}\n")
    about = ABOUT.get(record.name, About("", ""))  # an operation of your own package may have none
    if about.title:
        console.print(f"[bold]{_escape(about.title)}[/bold]")
        console.print(_escape(_folded(about.idea)) + "\n", highlight=False)
    docstring = inspect.getdoc(record.function) or ""  # the words of options are printed below it
    console.print(without_words(docstring) if about.words else docstring, markup=False, highlight=False)
    console.print()
    facts = {"Family": record.family, "Source": record.source, "Models": ", ".join(record.models)}
    facts |= {"Stages": ", ".join(stages(record.name)), "Invariants": ", ".join(record.invariants)}
    facts |= {f"Array {n}": str(axes) for n, axes in record.arrays.items()}
    facts |= {f"Option {n}": str(domain) + _meanings(about.words.get(n, {})) for n, domain in record.domains.items()}
    facts |= {"Requires": "; ".join(record.requires)}
    for title, text in facts.items():
        if text:
            console.print(f"[bold]{title}[/bold]: {_escape(text)}", highlight=False)


def _folded(text: str, indent: str = "") -> str:
    """Return text in lines that a narrow terminal or a pipe can show, all but the first indented."""
    width = min(get_terminal_size().columns, 100)
    return "\n".join(wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def _meanings(words: Words) -> str:
    """Return a line for every word of an option: what it means, and who uses it."""
    lines = [f"  {name}: {word.meaning}" + (f" Used by {word.told}." if word.users else "") for name, word in words.items()]
    return "".join("\n" + _folded(line, "    ") for line in lines)


def _others(name: str) -> str:
    """Return presets and scalings with a name like `name`, as the end of an error."""
    names = {kind.__name__.lower(): kind.__name__ for kind in RECORDS} | {preset: preset for preset in posref.presets}
    near = [names[match] for match in get_close_matches(name.lower(), names, n=3)]
    return f" There is also {', '.join(near)}." if near else ""


def _show_scaling(kind: type[Scaling]) -> None:
    """Print a record of posref.scaling: its fields, what it does, its requirements, and the presets that have it."""
    console = _console()
    console.print(f"[bold]posref.scaling.{kind.__name__}[/bold]{_escape(str(inspect.signature(kind)))}\n")
    console.print(inspect.getdoc(kind) or "", markup=False, highlight=False)
    console.print()
    presets = [preset.name for preset in posref.presets.values() if type(preset.options["scaling"]) is kind]
    facts = {"Requires": "; ".join(getattr(kind, "requires", ())), "Presets": ", ".join(presets)}
    facts["Formula"] = "posref show rope_frequencies"
    for title, text in facts.items():
        if text:
            console.print(f"[bold]{title}[/bold]: {_escape(text)}", highlight=False)


def _show_config(path: str, *, as_json: bool) -> None:
    """Print the encodings of a model, by component and layer."""
    import json

    from posref.conformance.calls import to_json
    from posref.conformance.evidence.every.for_model import ranges

    with _errors():
        try:
            components = posref.from_config(path)
        except ValueError as error:
            raise TargetError(str(error)) from error
    if as_json:
        document = {
            name: [
                entry
                and {
                    "operation": entry.operation,
                    "options": None if entry.options is None else {n: to_json(value) for n, value in entry.options.items()},
                    "conventions": dict(entry.conventions),
                }
                for entry in entries
            ]
            for name, entries in components.items()
        }
        click.echo(json.dumps(document, indent=1))
        return
    table = _table("component", "layers", "operation", "options")
    for name, entries in components.items():
        for entry in {repr(entry): entry for entry in entries}.values():
            layers = (
                "all"
                if len(entries) == 1
                else ranges(tuple(n for n, other in enumerate(entries) if repr(other) == repr(entry)))
            )
            options = {} if entry is None else entry.options
            text = (
                "not told by the file" if options is None else ", ".join(f"{n}={_brief(value)}" for n, value in options.items())
            )
            text += "".join(f"; {what}: {words}" for what, words in (() if entry is None else entry.conventions.items()))
            table.add_row(name, layers, "none" if entry is None else entry.operation, _escape(text))
    _console().print(table)


def _show_preset(preset: Preset) -> None:
    function, arguments = preset.op, preset.options
    facts = {f"Option {name}": str(value) for name, value in arguments.items()}
    facts |= {f"Factor on the {place}": f"{factor!r}" for place, factor in preset.factors.items()}
    facts |= {"Read in": preset.source, "Note": preset.note}
    console = _console()
    length = ", length=tokens" if isinstance(arguments["scaling"], LongRoPE) else ""
    console.print(f'[bold]posref.{function}[/bold](x, positions, **posref.presets["{preset.name}"].{function}{length})\n')
    for title, text in facts.items():
        if text:
            console.print(f"[bold]{title}[/bold]: {_escape(text)}", highlight=False)


@cli.command()
def doctor() -> None:
    """Show what is installed here. For each array library: its dtypes, and whether its float64 is real."""
    from posref import backends
    from posref.conformance.suite.reader import INSTALLED, load_manifest
    from posref.conformance.targets.python import ADAPTERS

    table = _table("backend", "state", "dtypes", "float64")
    for name in backends.names():
        try:
            library = backends.load(name)
        except backends.BackendMissing as error:
            table.add_row(name, _escape(str(error)), "", "")
            continue
        except Exception as error:  # report a broken library: that is what doctor is for
            table.add_row(name, _escape(f"broken: {type(error).__name__}: {error}"[:100]), "", "")
            continue
        real = "float64" in library.dtypes and library.float64_trigonometry
        table.add_row(name, "ready", " ".join(library.dtypes), "yes" if real else "no: angles as int32 turns")
    console = _console()
    console.print(f"posref {posref.__version__}, Python {sys.version.split()[0]}", highlight=False)
    console.print(table)
    console.print(f"adapters (posref check NAME): {', '.join(ADAPTERS)}", highlight=False)
    with _errors():
        manifest = load_manifest(INSTALLED)
        cases = sum(len(entry["cases"]) for entry in manifest["groups"])
        console.print(
            f"vectors {manifest['suite']}: {len(manifest['groups'])} groups, {cases} cases, {INSTALLED}",
            highlight=False,
        )


for command in (check, report, golden, plot, vectors, protocol, fuzz, adapter):
    cli.add_command(command)


def main() -> NoReturn:
    """Run the command line. Exit code 0: conformant or done; 1: not conformant; 2: could not run, whatever the reason."""
    try:
        startup.interrupt_on_signals(safe_files.clear)
        startup.end(_run())
    except KeyboardInterrupt:  # between two steps of `_run`, or after it; a second signal ends this process
        say("interrupted")
        startup.end(startup.COULD_NOT_RUN)


def _run() -> int:
    """Run the command line and return the exit code."""
    code = startup.COULD_NOT_RUN
    try:
        if os.environ.get(COMPLETE):
            from click.shell_completion import shell_complete  # a command need not load it

            try:
                failed = shell_complete(cli, {}, "posref", COMPLETE, os.environ[COMPLETE])
            except (KeyError, ValueError):  # a shell that completes a word says also which
                failed = 1
            if failed:
                say(f"{COMPLETE} must be bash_source, zsh_source or fish_source; got {os.environ[COMPLETE]!r}")
            return _finished(startup.COULD_NOT_RUN if failed else 0)
        with cli.make_context("posref", sys.argv[1:]) as context:
            cli.invoke(context)
        code = 0
    except (SystemExit, click.exceptions.Exit) as end:
        code = _code(end.code if isinstance(end, SystemExit) else end.exit_code)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
    except BaseException as error:  # whatever it is, it is no verdict
        say_error(error)
    return _finished(code)


def _code(code: object) -> int:
    """Return the exit code of a command; what is none of ours says that it could not run."""
    return code if code in (0, 1) and isinstance(code, int) else 0 if code is None else startup.COULD_NOT_RUN


def _finished(code: int) -> int:
    """Return the exit code after everything was printed, which may fail: the reader has gone, or a disk is full."""
    try:
        sys.stdout.flush()
    except OSError as error:
        say_error(error)
        _discard(sys.stdout)
        code = startup.COULD_NOT_RUN
    try:
        sys.stderr.flush()
    except OSError:  # nobody can be told
        _discard(sys.stderr)
    return code


def _discard(stream: TextIO) -> None:
    """Let a stream take what is left in it: Python writes that when it ends, and fails if it cannot."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
