"""The table of operations in the vectors' page, read off the registry."""

import inspect
import json
from typing import Any

from posref.conformance.vocabulary.axes import alternatives, is_star
from posref.spec import REGISTRY, Axes, Encoding

BEGIN, END = "<!-- table of operations: python docs/generate.py -->\n", "<!-- end of the table -->\n"
KINDS = {"integer": "integers", "mask": "mask"}


def table() -> str:
    """Return the table: a row for each operation, in the order of the registry."""
    rows = [
        f"| `{op}` | {'; '.join(_array(n, a) for n, a in r.arrays.items())} | {_options(r)} | {_outputs(r)} |"
        for op, r in REGISTRY.items()
    ]
    return "\n".join(["| op | arrays | options | outputs |", "|---|---|---|---|", *rows]) + "\n"


def renewed(page: str) -> str:
    """Return the vectors' page with the table as it is now."""
    head, rest = page.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END, maxsplit=1)[1]


def _general(shape: str) -> list[str]:
    """Return the axes of the alternative that has most."""
    return max(alternatives(shape), key=lambda way: (any(is_star(axis) for axis in way), len(way)))


def _shape(axes: list[str]) -> str:
    marks = str.maketrans({mark: f"\\{mark}" for mark in "*~_<["})
    return f"({', '.join(axis.translate(marks) for axis in axes)})"


def _array(name: str, axes: Axes) -> str:
    shape = f"as {axes.shape[1:]}" if axes.shape.startswith("=") else _shape(_general(axes.shape))
    kind = f", {KINDS[axes.kind]}" if axes.kind in KINDS else ""
    return f"{name} (null) {shape}{kind}" if axes.optional else f"{name} {shape}{kind}"


def _options(record: Encoding) -> str:
    """Return the options, with their defaults as in JSON."""
    parameters = inspect.signature(record.function).parameters

    def default(value: Any) -> str:
        if value is inspect.Parameter.empty:
            return ""
        return f" ({json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)})"

    return ", ".join(f"{n}{default(parameters[n].default)}" for n in record.domains)


def _outputs(record: Encoding) -> str:
    kind = f", {KINDS[record.returns]}" if record.returns in KINDS else ""
    shapes = [f"as {r[1:]}" if r.startswith("=") else _shape(_general(r)) for r in record.result]
    if len(set(shapes)) == 1:
        return f"{', '.join(record.outputs)} {shapes[0]}{kind}"
    return "; ".join(f"{name} {shape}" for name, shape in zip(record.outputs, shapes, strict=True))
