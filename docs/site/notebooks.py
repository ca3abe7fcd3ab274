"""The notebooks of the examples as pages: their text, their code, what it prints, and their pictures."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from posref import plots

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = tuple(sorted(path.stem for path in EXAMPLES.glob("*.ipynb")))


@cache
def page(name: str) -> str:
    """Return the page of a notebook."""
    lines: list[str] = []
    for number, cell in enumerate(_cells(name)):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                lines += ["```text", "".join(output["text"]).rstrip(), "```", ""]
            elif "image/png" in output["data"]:
                picture = _of_operation(source) or f"{name}-{number}"
                lines += [f"![{chart(source).seen}](../pictures/{picture}.svg){{.picture loading=lazy}}", ""]
            else:
                lines += ["```text", "".join(output["data"]["text/plain"]), "```", ""]
        if number == 1:
            lines += [f"The notebook of this page is `examples/{name}.ipynb`.", ""]
    return "\n".join(lines)


def charts(name: str) -> Iterator[tuple[str, plots.Chart]]:
    """Yield the name and the chart of each picture that is no operation's own."""
    for number, cell in enumerate(_cells(name)):
        source = "".join(cell["source"])
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])) and not _of_operation(source):
            yield f"{name}-{number}", chart(source)


def chart(source: str) -> plots.Chart:
    """Return the chart of a cell: a call of `plots.chart` and nothing else."""
    result: plots.Chart = eval(source, {"plots": plots})
    return result


def _of_operation(source: str) -> str | None:
    """Return the operation whose page already shows a cell's picture."""
    match = re.fullmatch(r'plots\.chart\("(\w+)"(?:, "(\w+)")?\)', source)
    return match[1] if match and match[2] in (None, plots.kinds_of(match[1])[0].name) else None


def _cells(name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return cells
