"""What the hand-written implementations have in common: a docstring, and nothing of posref."""

import ast
from pathlib import Path


def assert_stands_alone(file: Path) -> None:
    """Fail where an implementation that the suite is tried on imports posref or does not say what it is."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.split(".")[0] == "posref"]
    assert ast.get_docstring(tree)
