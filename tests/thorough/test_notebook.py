"""The notebook of the examples: its code runs as it stands, and prints what the file shows."""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "sinusoids.ipynb"
# After a change of its code: jupyter nbconvert --execute --inplace examples/sinusoids.ipynb


@pytest.mark.thorough
def test_the_notebook_prints_what_it_shows() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    printed, drawn = 0, 0
    for cell in cells:
        if cell["cell_type"] == "code":
            out, value = run("".join(cell["source"]), names)
            shown = {o["output_type"]: o for o in cell["outputs"]}
            assert out == "".join(shown.get("stream", {"text": []})["text"])
            data = shown.get("execute_result", {"data": {}})["data"]
            assert repr(value) == "".join(data.get("text/plain", ["None"]))
            if "image/png" in data:
                assert value._repr_png_().startswith(b"\x89PNG")
                drawn += 1
            printed += bool(out)
    assert printed >= 9
    assert drawn >= 7


def run(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell as a notebook does: what it prints, and the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    return out.getvalue(), value
