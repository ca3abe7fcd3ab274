"""
The literals that name an operation outside its own files: what one has to find by hand when an operation is renamed.

    python tests/literals.py      # prints file, line and name

An operation's own files are its definition, its witness, its evidence and what its family's evidence shares, its plain
implementation, and its family's texts and tests. General cases ask some operations alone, adapters name what a library has,
readers of configurations what a model has. The export in ``posref/__init__.py`` is
one of the steps of adding an encoding.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
FOLDERS = ("posref", "backends", "conformance", "docs")
OWN = ("cases", "adapters", "witness")  # rooms of conformance, by family or by name
EVIDENCE = Path("conformance", "evidence")
SHARED = EVIDENCE / "shared"  # a file for each family
EXPORT = Path("posref", "__init__.py")
TEXTS = Path("posref", "about")  # a file for each family
MODELS = (Path("posref", "model_readers.py"), Path("posref", "model_table.py"))


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
        if (
            file in (EXPORT, *MODELS)
            or file.parent in (TEXTS, SHARED)
            or (file.parts[0] == "conformance" and file.parts[1] in OWN)
        ):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
            its_own = file.parts[0] == "posref" and path.stem == own.get(str(name))
            if name in REGISTRY and not its_own and file != EVIDENCE / f"{name}.py":
                yield Literal(file, node.lineno, name)


if __name__ == "__main__":
    for found in literals():
        print(f"{found.file}:{found.line}: {found.name}")
