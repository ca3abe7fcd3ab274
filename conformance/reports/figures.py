"""The two SVG figures of a report: error against position with the bounds of each class, and a map of the worst case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from ..errors import printable

WIDTH, TOP, LEFT, RIGHT = 560, 28, 84, 96  # of a figure, in its own units; the margins hold labels
PLOT = WIDTH - LEFT - RIGHT
HEIGHT, MAP, LANE, LINE = 220, 300, 22, 15  # of the axes, a map, a lane for 0 or infinity (which have no logarithm), a line
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SCALE = ((0.0, "exact"), (0.01, "≤ 1/100"), (0.1, "≤ 1/10"), (0.5, "≤ 1/2"), (1.0, "≤ 1"),
         (10.0, "≤ 10"), (1000.0, "≤ 1000"), (math.inf, "> 1000"))  # fmt: skip
ROWS = {"position": "position", "row": "index on the axes before the last"}
MARKS = (("point", "within the bound"), ("beyond", "beyond it; the stem starts at the bound"),
         ("allowed", "what the class claimed allows"), ("others", "what other classes allow"),
         ("from", "first failing position"))  # fmt: skip
DRAWN = {
    "point": '<g class="within"><circle cx="8" cy="5"/></g>', "beyond": '<path class="over" d="M8 1l4 4l-4 4l-4 -4z"/>',
    "allowed": '<g class="bound claim"><path d="M0 5h16"/></g>', "others": '<g class="bound"><path d="M0 5h16"/></g>',
    "from": '<line class="first" x1="8" x2="8" y1="0" y2="10"/>',
}  # fmt: skip
LEGEND = (*(name for _, name in SCALE), "not finite or must be exact")


def curve(points: Sequence[Mapping[str, Any]], claim: str, first: float | None) -> str:
    """Return error against position, both logarithmic. Zero and values that are not finite have lanes of their own."""
    axes = _Axes(points)
    parts = [*axes.ticks(), *_bounds(points, claim, axes)]
    if first is not None:
        x = axes.x(abs(first))
        anchor, at = ("end", x - 4) if x > LEFT + PLOT / 2 else ("start", x + 4)
        parts.append(f'<line class="first" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{TOP + HEIGHT}"/>')
        parts.append(_text(at, TOP - 8, f"first fails at {plain(first)}", "first", anchor))
    parts.append(f'<g class="within">{"".join(_mark(p, axes) for p in points if _value(p["ratio"]) <= 1)}</g>')
    parts += [_beyond(p, claim, axes) for p in points if _value(p["ratio"]) > 1]
    label = f"Error against position, {len(points)} positions, with the bounds of the accuracy classes"
    return _svg("curve", label, TOP + HEIGHT + 36, parts)


def heat(table: Mapping[str, Any]) -> str:
    """Return a map of error over tolerance, with one shape for each step of the scale, so that a large map is a small file."""
    rows = table["values"]
    wide, high = min(PLOT / len(rows[0]), 40), min(MAP / len(rows), 20)
    shapes: dict[int, list[str]] = {}
    for i, row in enumerate(rows):
        start = 0
        steps = [step(_value(v)) for v in row]
        for j in range(1, len(row) + 1):
            if j == len(row) or steps[j] != steps[start]:
                shapes.setdefault(steps[start], []).append(f"M{start} {i}h{j - start}v1h{start - j}z")
                start = j
    scale = f'transform="translate({LEFT} {TOP - 12}) scale({wide:.4g} {high:.4g})"'
    drawn = [f'<path class="s{k}" d="{"".join(d)}"><title>{LEGEND[k]}</title></path>' for k, d in sorted(shapes.items())]
    parts = [f'<g class="cells" {scale}>{"".join(drawn)}</g>']
    base = TOP - 12
    parts += [
        _text(LEFT - 5, base + (i + 0.5) * high + 4, table["row_labels"][i], "tick", "end") for i in _spread(len(rows), high)
    ]
    bottom = base + high * len(rows)
    columns = table["column_labels"]
    widest = 7 * max(map(len, columns)) + 10
    parts += [
        _text(LEFT + (j + 0.5) * wide, bottom + 14, columns[j], "tick", "middle") for j in _spread(len(columns), wide, widest)
    ]
    parts.append(_text(LEFT, bottom + 30, f"rows: {ROWS[table['rows']]}; columns: {table['columns']}", "axis", "start"))
    return _svg("heat", f"Error over bound in {table['case']}", bottom + 36, parts)


def step(ratio: float) -> int:
    """Return the step of the scale for a ratio; the last step is for infinite ones."""
    if math.isinf(ratio):
        return len(SCALE)
    return next(k for k, (limit, _) in enumerate(SCALE) if ratio <= limit)


def plain(value: float) -> str:
    """Return a number in short form: integers whole, others with few digits."""
    value = float(value)
    if math.isinf(value):
        return "\N{INFINITY}"
    if value.is_integer() and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.2g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


class _Axes:
    """Where to draw positions and errors: log2(1 + position), and log10 of the error, with lanes for 0 and infinity."""

    def __init__(self, points: Sequence[Mapping[str, Any]]) -> None:
        errors = [_value(p["error"]) for p in points]
        allowed = [b for p in points for b in p["bounds"].values() if b > 0]
        finite = [e for e in errors if 0 < e < math.inf]
        high = math.log10(max([*finite, *allowed], default=1.0))
        low = math.log10(min([*finite, *allowed], default=1e-3))
        self.high = math.ceil(high + 0.1)
        self.low = max(math.floor(low - 0.1), self.high - 24)
        self.far = math.log2(1 + max(1.0, *(p["position"] for p in points)))
        self.zero = any(e < 10.0**self.low for e in errors)
        self.infinite = any(math.isinf(e) for e in errors)
        self.top = TOP + (LANE if self.infinite else 0)
        self.bottom = TOP + HEIGHT - (LANE if self.zero else 0)

    def x(self, position: float) -> float:
        return LEFT + PLOT * math.log2(1 + position) / self.far

    def y(self, error: float) -> float:
        if math.isinf(error):
            return self.top - LANE / 2
        if error < 10.0**self.low:
            return self.bottom + LANE / 2
        return self.bottom - (self.bottom - self.top) * (math.log10(error) - self.low) / (self.high - self.low)

    def ticks(self) -> list[str]:
        """Return the frame, with powers of ten on the vertical axis and powers of two on the horizontal one."""
        end = TOP + HEIGHT
        parts = [f'<path class="frame" d="M{LEFT} {TOP}V{end}H{LEFT + PLOT}"/>']
        stride = math.ceil((self.high - self.low) / 7)
        for power in range(self.high - (1 if self.infinite else 0), self.low, -stride):
            y = self.y(10.0**power)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + PLOT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_text(LEFT - 6, y + 4, f"10{str(power).translate(SUPERSCRIPT)}" if power else "1", "tick", "end"))
        for lane, there, edge, value in (("0", self.zero, self.bottom, 0.0), ("not finite", self.infinite, self.top, math.inf)):
            if there:
                parts.append(f'<line class="edge" x1="{LEFT}" x2="{LEFT + PLOT}" y1="{edge:.1f}" y2="{edge:.1f}"/>')
                parts.append(_text(LEFT - 6, self.y(value) + 4, lane, "tick", "end"))
        octaves = math.ceil(self.far / 6)
        for position in (0, *(2**k for k in range(0, int(self.far) + 1, octaves))):
            x = self.x(position)
            parts.append(f'<line class="frame" x1="{x:.1f}" x2="{x:.1f}" y1="{end}" y2="{end + 4}"/>')
            parts.append(_text(x, end + 16, str(position), "tick", "middle"))
        parts.append(_text(LEFT, end + 32, "position", "axis", "start"))
        parts.append(_text(LEFT - 6, TOP - 8, "error", "axis", "end"))
        return parts


def _bounds(points: Sequence[Mapping[str, Any]], claim: str, axes: _Axes) -> list[str]:
    """Return a line for every class with a dash at every value and a label at its end; the claimed class is bolder."""
    parts, labels = [], []
    for name in sorted(points[0]["bounds"], key=lambda name: name == claim):
        seen = [p for p in points if p["bounds"][name] >= 10.0**axes.low]
        places = [(round(axes.x(p["position"]), 1), round(axes.y(p["bounds"][name]), 1)) for p in seen]
        if places:
            look = "bound claim" if name == claim else "bound"
            (left, first), steps = places[0], [(round(x - a, 1), round(y - b, 1)) for (a, b), (x, y) in pairwise(places)]
            line = f"{left:g} {first:g}" + "".join(f"l{x:g} {y:g}" for x, y in steps)  # relative, since a page has many
            dashes = f"M{left - 3:g} {first:g}h6" + "".join(f"m{round(x - 6, 1):g} {y:g}h6" for x, y in steps)
            title = escape(f"what {printable(name)} allows" + (", the class claimed" if name == claim else ""), quote=False)
            parts.append(f'<g class="{look}"><title>{title}</title><path class="join" d="M{line}"/><path d="{dashes}"/></g>')
            labels.append((places[-1][1], name, look))
    height = -math.inf
    for y, name, look in sorted(labels):
        height = max(y, height + LINE)
        parts.append(_text(LEFT + PLOT + 8, height + 4, name.partition("(")[0], look, "start"))
    if not labels:
        parts.append(_text(LEFT + PLOT + 8, TOP + HEIGHT, "must be exact", "bound claim", "start"))
    return parts


def _mark(point: Mapping[str, Any], axes: _Axes) -> str:
    """Return the mark of a value within its bound."""
    x, y = _place(point, axes)
    return f'<circle cx="{x:.1f}" cy="{y:.1f}"><title>{_title(point)}</title></circle>'


def _beyond(point: Mapping[str, Any], claim: str, axes: _Axes) -> str:
    """Return the mark of a value beyond its bound, with a stem from there."""
    x, y = _place(point, axes)
    stem = f"M{x:.1f} {min(axes.y(point['bounds'][claim]), TOP + HEIGHT):.1f}V{y:.1f}"
    mark = f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z"
    return f'<path class="stem" d="{stem}"/><path class="over" d="{mark}"><title>{_title(point)}</title></path>'


def _place(point: Mapping[str, Any], axes: _Axes) -> tuple[float, float]:
    return axes.x(point["position"]), axes.y(_value(point["error"]))


def _title(point: Mapping[str, Any]) -> str:
    ratio = _value(point["ratio"])
    beyond = "must be exact or finite" if math.isinf(ratio) else f"{plain(ratio)} times the bound"
    error = "not finite" if isinstance(point["error"], str) else plain(point["error"])
    return escape(printable(f"position {plain(point['position'])}: error {error}, {beyond}; {point['case']}"), quote=False)


def _spread(count: int, size: float, needed: float = LINE) -> range:
    """Return which of `count` things of a given size get a label, when a label takes `needed`."""
    return range(0, count, max(1, math.ceil(needed / size)))


def _value(number: float | str) -> float:
    """Return a number from a report's JSON. NaN, which a report writes as a word, counts as infinite."""
    return math.inf if isinstance(number, str) else float(number)


def _text(x: float, y: float, text: str, look: str, anchor: str) -> str:
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(printable(text), quote=False)}</text>'


def _svg(look: str, label: str, height: float, parts: Sequence[str]) -> str:
    name = escape(printable(label))
    head = f'<svg class="{look}" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{name}">'
    return "\n".join([head, *parts, "</svg>"])
