"""The command that draws pictures."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

import posref
from posref.conformance.commands.console import FILE, FILE_OR_FOLDER, FiniteRange, console, errors, needs, operation
from posref.conformance.errors import TargetError
from posref.conformance.suite.safe_files import expect_writable, whole_directory, whole_file

ENDINGS = (".svg", ".png", ".pdf")
DATA = (".npz", ".json")
LARGEST = 4096  # of an option that is a size


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--kind", metavar="KIND", help="What to draw; all draws every kind. An unknown word lists the operation's kinds.")
@click.option("--compare", metavar="A B", nargs=2, multiple=True, help="Two operations or presets, side by side.")
@click.option("--base", "bases", type=FiniteRange(0, min_open=True), multiple=True,
              help="The base; repeat it to compare several side by side.")  # fmt: skip
@click.option("--dim", type=click.IntRange(1, LARGEST), help="The number of channels.")
@click.option("--heads", type=click.IntRange(1, LARGEST), help="The number of heads.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True,
              help='One option: a word, a number or JSON, as scaling={"type":"Linear","factor":4}.')  # fmt: skip
@click.option("--tokens", metavar="N", type=click.IntRange(2, 4096), default=128, show_default=True, help="Rows of a table.")
@click.option("--dark", is_flag=True, help="Light lines on a dark background.")
@click.option("--save-data", "data", metavar="FILE", type=FILE, help="Also write every number that is drawn: .npz or .json.")
@click.option("-o", "--out", metavar="PATH", type=FILE_OR_FOLDER,
              help="A .svg, .png or .pdf file, by default NAME-KIND.svg; a folder for --kind all.")  # fmt: skip
def plot(
    names: tuple[str, ...], kind: str | None, compare: tuple[tuple[str, str], ...], bases: tuple[float, ...], dim: int | None,
    heads: int | None, options: tuple[str, ...], tokens: int, dark: bool, data: Path | None, out: Path | None,
) -> None:  # fmt: skip
    """
    Draw operations, or presets of released models: tables, distances, wavelengths, decay, biases, masks.

    Options that are not given have the values of the operation's first case. `posref.analysis` computes the numbers.
    """
    with errors():
        needs("plots", matplotlib="matplotlib")
        asked = [*names, *(name for both in compare for name in both)]
        if not asked:
            msg = "plot: NAME must be an operation (posref list) or a preset (posref list --presets); got none."
            raise TargetError(msg)
        texts = [*options, *(f"dim={dim}" for _ in (dim,) if dim is not None), *(f"heads={heads}" for _ in (heads,) if heads)]
        panels = [
            _panel(name, [*texts, *([f"base={base!r}"] if base is not None else [])])
            for name in asked
            for base in bases or (None,)
        ]
        if kind == "all":
            _every(panels, out, data, tokens, dark=dark)
            return
        _draw(panels, kind, out, data, tokens, dark=dark)


def _panel(name: str, texts: list[str]) -> tuple[str, str, dict[str, Any]]:
    """Return the name that was given, its operation, and the options."""
    from posref.conformance.vocabulary.axes import size_options

    name, op, options = _parsed(name, texts)
    large = [n for n in size_options(op) if isinstance(options.get(n), int) and options[n] > LARGEST]
    if large:
        msg = f"plot: {large[0]} must be at most {LARGEST} in a picture; got {options[large[0]]}."
        raise TargetError(msg)
    return name, op, options


def _parsed(name: str, texts: list[str]) -> tuple[str, str, dict[str, Any]]:
    """Return the name that was given, its operation, and the options."""
    from posref.conformance.proof.golden_data import options_of

    preset = posref.presets.get(name)
    if preset is None:
        near = get_close_matches(name.lower(), posref.presets, n=3)
        op = operation(name, hint=f" There is also {', '.join(near)}." if near else "")
        return name, op, options_of("plot", op, texts)
    op = preset.op
    options = {n: value for n, value in preset.options.items() if n in posref.spec.REGISTRY[op].domains}
    return name, op, options | options_of("plot", op, texts)


def _draw(
    panels: list[tuple[str, str, dict[str, Any]]],
    kind: str | None,
    out: Path | None,
    data: Path | None,
    tokens: int,
    *,
    dark: bool,
) -> None:
    from posref import plots

    chosen = kind or plots.kinds_of(panels[0][1])[0].name
    path = out or Path(f"{'-'.join(dict.fromkeys(name for name, _, _ in panels))}-{chosen}.svg")
    _check_endings(path, data)
    expect_writable(path, data)
    charts = _charts(panels, chosen, tokens)
    plots.save(charts, path, dark=dark)
    if data is not None:
        _write(data, [(name, chart) for (name, _, _), chart in zip(panels, charts, strict=True)])
    _say(path, chosen, charts)


def _charts(panels: list[tuple[str, str, dict[str, Any]]], kind: str, tokens: int) -> list[Any]:
    """Return what is drawn of each operation."""
    from posref import plots

    try:
        return [
            plots.chart(op, kind, tokens=tokens, title="" if name == op else name, **options) for name, op, options in panels
        ]
    except ValueError as error:
        raise TargetError(str(error).replace("chart:", "plot:", 1)) from error


def _say(path: Path, kind: str, charts: list[Any]) -> None:
    console().print(f"wrote {path}: {kind}. {charts[0].seen}", highlight=False, markup=False)


def _every(
    panels: list[tuple[str, str, dict[str, Any]]], out: Path | None, data: Path | None, tokens: int, *, dark: bool
) -> None:
    """Draw every kind that all operations have, into a folder: all, or none where the folder is new."""
    from posref import plots

    if data is not None:
        msg = "plot: --save-data takes one kind; got --kind all."
        raise TargetError(msg)
    folder = out or Path("-".join(dict.fromkeys(name for name, _, _ in panels)))
    of_each = [[kind.name for kind in plots.kinds_of(op)] for _, op, _ in panels]
    shared = [kind for kind in of_each[0] if all(kind in of_one for of_one in of_each)]
    charts = {kind: _charts(panels, kind, tokens) for kind in shared}
    holds = folder.exists() and any(folder.iterdir())
    with nullcontext(folder) if holds else whole_directory(folder) as place:
        for kind in shared:
            plots.save(charts[kind], place / f"{kind}.svg", dark=dark)
    for kind in shared:
        _say(folder / f"{kind}.svg", kind, charts[kind])


def _check_endings(path: Path, data: Path | None) -> None:
    if path.suffix not in ENDINGS:
        msg = f"plot: --out must end in {', '.join(ENDINGS)}; got {str(path)!r}."
        raise TargetError(msg)
    if data is not None and data.suffix not in DATA:
        msg = f"plot: --save-data must end in {' or '.join(DATA)}; got {str(data)!r}."
        raise TargetError(msg)


def _write(path: Path, charts: list[tuple[str, Any]]) -> None:
    """Write every array that is drawn, by panel, curve and coordinate."""
    import numpy as np

    names = [f"{n}/{name}/" if len(charts) > 1 else "" for n, (name, _) in enumerate(charts)]
    arrays = {f"{first}{key}": a for first, (_, chart) in zip(names, charts, strict=True) for key, a in chart.arrays().items()}
    if path.suffix == ".npz":
        file = io.BytesIO()
        np.savez(file, **arrays)
        whole_file(path, file.getvalue())
        return
    whole_file(path, json.dumps({key: array.tolist() for key, array in arrays.items()}))
