"""Charts as data: lines, maps and points, with the names and units of the axes; and their drawing with matplotlib."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.conformance.suite.safe_files import whole_file

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Chart:
    """What every chart has: a title, the names of its axes with units, and a caption (`seen`)."""

    title: str
    x_label: str
    y_label: str
    seen: str

    def arrays(self) -> dict[str, Numbers]:
        """Return every number in the chart, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Name the chart, without its numbers."""
        return f"<{type(self).__name__}: {self.title}>"

    def _repr_png_(self) -> bytes:
        """Draw the chart where a notebook shows it."""
        return png([self])


@dataclass(frozen=True, repr=False)
class Lines(Chart):
    """Curves, each with its x values. `marks` are vertical lines by name, `ranges` are bands around curves."""

    series: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Numbers, Numbers]] = field(default_factory=dict)
    marks: Mapping[str, float] = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    steps: bool = False
    points: bool = False
    equal: bool = False  # a unit is as long on both axes, so that a circle is round

    def arrays(self) -> dict[str, Numbers]:
        """Return x and y of every curve, and the bands."""
        result: dict[str, Numbers] = {}
        for name, (x, y) in self.series.items():
            result |= {f"{name}/x": x, f"{name}/y": y}
        for name, (low, high) in self.ranges.items():
            result |= {f"{name}/low": low, f"{name}/high": high}
        return result


@dataclass(frozen=True, repr=False)
class Map(Chart):
    """
    A heat map with row 0 at the top. NaN in `values` is left blank.

    A map of several panels has their sizes in `columns` and `rows`, with one blank cell between neighbours: in each panel the
    numbers of the axis begin again at 0.
    """

    values: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    unit: str = ""
    first: tuple[float, float] = (0.0, 0.0)  # the x of column 0 and the y of row 0
    square: bool = False
    columns: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()

    def arrays(self) -> dict[str, Numbers]:
        """Return the values."""
        return {"values": self.values}


@dataclass(frozen=True, repr=False)
class Points(Chart):
    """One dot for each pair of numbers. `colour` holds a number for each dot, in `unit`."""

    x: Numbers = field(default_factory=lambda: np.zeros(0))
    y: Numbers = field(default_factory=lambda: np.zeros(0))
    colour: Numbers = field(default_factory=lambda: np.zeros(0))
    unit: str = ""

    def arrays(self) -> dict[str, Numbers]:
        """Return the coordinates and the colours."""
        return {"x": self.x, "y": self.y, "colour": self.colour}


# ---- drawing: readable when small, in grey and by colour-blind readers ----
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # of Okabe and Ito
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))  # to tell curves apart in grey
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MOST_IN_LEGEND = 6  # beyond, curves are labelled at their ends
WIDTH, HEIGHT = 5.2, 3.6  # inches
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "image.cmap": "cividis",
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "posref",
    "svg.fonttype": "path",
    "savefig.dpi": 150,
}
DARK: dict[Any, Any] = {
    "figure.facecolor": "#131416", "axes.facecolor": "#131416", "savefig.facecolor": "#131416", "text.color": "#e8e8e8",
    "axes.labelcolor": "#e8e8e8", "axes.edgecolor": "#9a9a9a", "xtick.color": "#e8e8e8", "ytick.color": "#e8e8e8",
    "grid.color": "#9a9a9a",
}  # fmt: skip
DARK_COLOURS = ("#56B4E9", "#E69F00", "#3fc79a", "#CC79A7", "#F0E442", "#8fa8ff", "#e8e8e8")


def save(charts: Sequence[Chart], path: Path, *, dark: bool = False) -> None:
    """Write charts side by side as .png, .svg or .pdf. The same numbers and matplotlib give the same bytes."""
    whole_file(path, _drawn(charts, path.suffix[1:], dark=dark))


def png(charts: Sequence[Chart]) -> bytes:
    """Return charts side by side as the bytes of a .png file."""
    return _drawn(charts, "png", dark=False)


def _drawn(charts: Sequence[Chart], form: str, *, dark: bool) -> bytes:
    with _style(dark=dark) as plt:
        figure, places = plt.subplots(
            1, len(charts), figsize=(WIDTH * len(charts), HEIGHT), squeeze=False, sharey=_alike(charts)
        )
        for place, chart in zip(places[0], charts, strict=True):
            _draw(place, chart, DARK_COLOURS if dark else COLOURS)
        about = {"Description": " ".join(chart.seen for chart in charts)}
        metadata = {"svg": {**about, "Date": None}, "pdf": {"CreationDate": None}, "png": about}[form]
        file = io.BytesIO()
        figure.savefig(file, format=form, metadata=metadata)
        plt.close(figure)
    return file.getvalue()


def _alike(charts: Sequence[Chart]) -> bool:
    """Return whether charts can share a y axis: all are curves of the same quantity."""
    return all(isinstance(chart, Lines) for chart in charts) and len({chart.y_label for chart in charts}) == 1


@contextlib.contextmanager
def _style(*, dark: bool) -> Iterator[Any]:
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        msg = "posref plot needs matplotlib: pip install 'posref[plots]'"
        raise ModuleNotFoundError(msg, name="matplotlib") from error
    mpl.use("agg", force=False)
    import matplotlib.pyplot as plt

    with mpl.rc_context({**STYLE, **(DARK if dark else {})}):
        yield plt


def _draw(place: Any, chart: Chart, colours: Sequence[str]) -> None:
    place.set_title(chart.title, loc="left")
    place.set_xlabel(chart.x_label)
    place.set_ylabel(chart.y_label)
    if isinstance(chart, Lines):
        _lines(place, chart, colours)
    elif isinstance(chart, Map):
        _map(place, chart)
    elif isinstance(chart, Points):
        dots = place.scatter(chart.x, chart.y, c=chart.colour, s=3, linewidths=0, rasterized=True)
        place.figure.colorbar(dots, ax=place, label=chart.unit, pad=0.02)


def _lines(place: Any, chart: Lines, colours: Sequence[str]) -> None:
    many = len(chart.series) > MOST_IN_LEGEND
    for n, (name, (x, y)) in enumerate(chart.series.items()):
        colour, dash = colours[n % len(colours)], DASHES[n % len(DASHES)]
        if chart.points:
            place.plot(x, y, MARKERS[n % len(MARKERS)], color=colour, markersize=4, label=name)
        elif chart.steps:
            place.step(x, y, where="mid", color=colour, label=name)
        else:
            place.plot(x, y, linestyle=dash, color=colour, label=name)
        if name in chart.ranges:
            place.fill_between(x, *chart.ranges[name], color=colour, alpha=0.2, linewidth=0)
    for name, at in chart.marks.items():
        place.axvline(at, color=place.xaxis.label.get_color(), linewidth=1, linestyle=":")
        place.annotate(
            name, (at, 1), xycoords=("data", "axes fraction"), xytext=(3, -11), textcoords="offset points", fontsize=9
        )
    place.set_aspect("equal" if chart.equal else "auto")
    for axis, log, n in ((place.xaxis, chart.log_x, 0), (place.yaxis, chart.log_y, 1)):
        values = [curve[n] for curve in chart.series.values() if len(curve[n])]
        if log and values and all(np.any(v > 0) for v in values):
            _log(axis, values)
    if many:
        _name_ends(place, chart)
    if len(chart.series) > 1 and not many:
        columns = 2 if len(chart.series) in {2, 4} else 3
        place.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns, columnspacing=1.2)  # hides no curve


def _log(axis: Any, values: Sequence[Numbers]) -> None:
    """Set a logarithmic axis. One of less than two decades has powers of 2. No number has an exponent, too small to read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    drawn = np.concatenate([v[v > 0] for v in values])
    if drawn.max() < 100 * drawn.min():
        axis.set_major_locator(LogLocator(base=2))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written_out(value)))
    axis.set_minor_formatter(NullFormatter())


def written_out(value: float) -> str:
    """Return a number as text without leading zeros in its exponent: 0.001, 100000, 1e-7."""
    digits, _, exponent = f"{value:g}".partition("e")
    return f"{digits}e{int(exponent)}" if exponent else digits


def _name_ends(place: Any, chart: Lines) -> None:
    """Write the name of every curve at its end, at least a line's height apart."""
    low, high = place.get_ylim()
    ends = sorted((y[-1], x[-1], name) for name, (x, y) in chart.series.items() if len(x))
    for (y, x, name), at in zip(ends, spread([y for y, _, _ in ends], (high - low) / 18, low, high), strict=True):
        place.annotate(
            name, (x, y), xytext=(18, (at - y) / (high - low) * place.bbox.height * 72 / place.figure.dpi),
            textcoords="offset points", va="center", fontsize=9, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "lw": 0.6, "color": place.xaxis.label.get_color(), "shrinkA": 1, "shrinkB": 1},
        )  # fmt: skip


def spread(places: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Return places in the same order, at least `apart` from each other, as near to the given ones as that allows."""
    groups: list[list[float]] = []  # places of labels that touch, as they were
    for place in sorted(places):
        groups.append([place])
        while len(groups) > 1 and _first(groups[-1], apart, low, high) < _last(groups[-2], apart, low, high) + apart:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_first(group, apart, low, high) + n * apart for group in groups for n in range(len(group))]


def _first(group: Sequence[float], apart: float, low: float, high: float) -> float:
    wide = (len(group) - 1) * apart
    return max(low, min(sum(group) / len(group) - wide / 2, high - wide))


def _last(group: Sequence[float], apart: float, low: float, high: float) -> float:
    return _first(group, apart, low, high) + (len(group) - 1) * apart


def _map(place: Any, chart: Map) -> None:
    shape = chart.values.shape
    (left, top), (rows, columns) = chart.first, shape
    box = (left - 0.5, left + columns - 0.5, top + rows - 0.5, top - 0.5)
    image = place.imshow(
        chart.values, extent=box, aspect="equal" if chart.square else "auto", interpolation="none"
    )  # "none" keeps one pixel for each number in a .svg: the reader's program enlarges it, with sharp edges
    place.grid(visible=False)
    for axis, panels in ((place.xaxis, chart.columns), (place.yaxis, chart.rows)):
        if panels:
            axis.set_ticks(*ticks_of_panels(panels))
        else:
            axis.get_major_locator().set_params(integer=True)
    whole = bool(np.isin(chart.values, (0, 1)).all())
    wide = chart.square and columns > 1.2 * rows  # the bar is as high as the map
    beside: dict[str, Any] = {"cax": place.inset_axes((1.02, 0, 0.03, 1))} if wide else {"ax": place, "pad": 0.02}
    place.figure.colorbar(image, label=chart.unit, ticks=[0, 1] if whole else None, **beside)


def ticks_of_panels(panels: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return where the ticks of panels of these sizes lie, and their numbers: at most four in a panel, from 0."""
    places, numbers = [], []
    begin = 0
    for size in panels:
        step = next(10**n * m for n in range(5) for m in (1, 2, 5) if size <= 4 * 10**n * m)
        in_panel = [n for n in range(0, size, step) if n == 0 or 10 * n < 9 * size]  # the next panel's 0 is not touched
        places += [begin + n for n in in_panel]
        numbers += in_panel
        begin += size + 1
    return places, numbers
