"""The notebooks of the examples: their code runs as it stands, and prints what the files show."""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# After a change of their code: jupyter nbconvert --execute --inplace examples/*.ipynb


@pytest.mark.parametrize(("name", "pictures"), [("sinusoids", 7), ("rope", 3)])
def test_the_notebook_prints_what_it_shows(name: str, pictures: int) -> None:
    cells = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
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
    assert drawn >= pictures


def run(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell as a notebook does: what it prints, and the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    return out.getvalue(), value
