"""
The literals that name an operation outside its own files: what one has to find by hand when an operation is renamed.

    python tests/literals.py      # prints file, line and name

An operation's own files are its definition, its witness, its plain implementation, and its family's cases, deviations and
tests; adapters name what a library has, readers of configurations what a model has. The export in ``posref/__init__.py`` is
one of the steps of adding an encoding.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
FOLDERS = ("posref", "backends", "conformance", "docs")
OWN = ("cases", "deviations", "adapters", "witness")  # rooms of conformance, by family or by name
EXPORT = Path("posref", "__init__.py")
MODELS = (Path("posref", "models", "whole.py"), Path("posref", "models", "values.py"))


class Literal(NamedTuple):
    """A string in a source that is the name of an operation."""

    file: Path
    line: int
    name: str


def literals() -> Iterator[Literal]:
    """Yield every literal that names an operation outside its own files."""
    own = {name: Path(record.function.__code__.co_filename).stem for name, record in REGISTRY.items()}
    for path in (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))):
        file = path.relative_to(ROOT)
        if file in (EXPORT, *MODELS) or (file.parts[0] == "conformance" and file.parts[1] in OWN):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
            if name in REGISTRY and not (file.parts[0] == "posref" and path.stem == own[name]):
                yield Literal(file, node.lineno, name)


if __name__ == "__main__":
    for found in literals():
        print(f"{found.file}:{found.line}: {found.name}")
