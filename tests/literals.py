"""
The literals that name an operation outside its own files: what one has to find by hand when an operation is renamed.

    python tests/literals.py      # prints file, line and name

An operation's own files are its definition, its witness, its evidence and its plain implementation. Tables of models and of
libraries name what these have: presets, readers of their files, and adapters. The export in ``posref/__init__.py`` is a step of
adding an encoding. In tests, an operation may be named where it is the one that is tested, but not where all are.
"""

import ast
from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

from posref.spec import FAMILIES, REGISTRY

ROOT = Path(__file__).parents[1]
FOLDERS = ("posref", "backends", "conformance", "docs")
OWN = (  # folders and files that name operations, since they define one, or say something of one, or of a model or a library
    *(f"posref/{family}" for family in FAMILIES), "posref/models", "posref/configs.py", "posref/gguf.py", "posref/presets.py",
    "posref/__init__.py", "conformance/witness", "conformance/evidence/shared", "conformance/adapters", "conformance/loaded",
)  # fmt: skip
OTHER = {  # names that are also something else
    "posref/spec.py": {"attention"},  # a family
    "conformance/evidence/learned_logn_scale.py": {"learned", "learned_logn_scale"},  # the name of a group
    "posref/core/checks.py": {"mrope"},  # a library's word for an arrangement
}


EVIDENCE = Path("conformance", "evidence")  # a file there may name its own operation


class Literal(NamedTuple):
    """A string in a source that is the name of an operation, or has it."""

    file: Path
    line: int
    name: str


def literals() -> Iterator[Literal]:
    """Yield every literal that names an operation outside its own files."""
    for path in (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))):
        file = path.relative_to(ROOT)
        if not is_own(file):
            text, other = (
                path.read_text(encoding="utf-8"),
                OTHER.get(file.as_posix(), {file.stem} if file.parent == EVIDENCE else set()),
            )
            yield from (Literal(file, line, name) for line, name in names_in(text) if name not in other)


def is_own(file: Path) -> bool:
    """Return whether a file is one of an operation, of a model or of a library."""
    return any(file.is_relative_to(own) for own in OWN) or file.parts[:2] in (("posref", "backends"), ("posref", "conformance"))


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield the operations that a source names: as a string, or one of a list, in an id of a case, or in an f-string."""
    tree = ast.parse(source)
    formatted = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if text in REGISTRY:
                yield node.lineno, text
            elif "\n" not in text or id(node) in formatted:
                yield from ((node.lineno, name) for name in _parts(text, in_format=id(node) in formatted))


def _parts(text: str, *, in_format: bool) -> Set[str]:
    """Return the operations whose cases a text names, and those that a formatted text names in words of code."""
    words = "".join(c if c.isalnum() or c in "_/" else " " for c in text).split()
    found = {word.partition("/")[0] for word in words if "/" in word and not word.startswith("/")}
    found |= {word for word in words if in_format and "_" in word}
    found |= {*text.split()} if set(REGISTRY).issuperset(text.split()) else set()
    return found & set(REGISTRY)


def choices(source: str) -> Iterator[tuple[int, str]]:
    """Yield the operations with which a test of all operations compares: where a statement speaks of the registry."""
    for statement in ast.parse(source).body:
        if not any(isinstance(node, ast.Name) and node.id == "REGISTRY" for node in ast.walk(statement)):
            continue
        for node in (node for node in ast.walk(statement) if isinstance(node, ast.Compare)):
            of_one = all(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops)
            of_several = all(isinstance(operator, ast.In | ast.NotIn) for operator in node.ops)
            for side in (node.left, *node.comparators):
                listed = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) and of_several else []
                yield from ((node.lineno, name) for one in (*listed, *([side] if of_one else [])) if (name := named_by(one)))


def named_by(node: ast.AST) -> str:
    """Return the operation that a part of a source is the name of, or an empty text."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in REGISTRY else ""


def choices_of_tests() -> Iterator[Literal]:
    """Yield every operation with which a test of all operations compares."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        found = choices(path.read_text(encoding="utf-8"))
        yield from (Literal(path.relative_to(ROOT), line, name) for line, name in found)


if __name__ == "__main__":
    for literal in (*literals(), *choices_of_tests()):
        print(f"{literal.file}:{literal.line}: {literal.name}")
