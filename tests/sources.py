"""What the hand-written implementations have in common: a docstring, and nothing of posref. What plain ones have besides."""

import ast
import inspect
import re
from pathlib import Path

from posref.backends import BUILT_IN
from posref.spec import REGISTRY

SOURCE = re.compile(r"\b(lines?\s+\d+|equations?\s+\(\d+\)|theorem\s+\d+)")
STANDARD = {"math"}
BACK_DOORS = {"__import__", "eval", "exec", "compile", "globals"}


def modules_of(tree: ast.Module) -> list[str]:
    """Return the modules that a file imports."""
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return modules + [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def absolute_imports(tree: ast.Module, package: str) -> set[str]:
    """Return the dotted names that a module of a package imports anywhere, relative ones resolved."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def assert_stands_alone(file: Path) -> None:
    """Fail where an implementation that the suite is tried on imports posref or does not say what it is."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert not [module for module in modules_of(tree) if module.split(".")[0] == "posref"]
    assert ast.get_docstring(tree)


def assert_plain(file: Path, op: str) -> None:
    """Fail unless a file computes an operation itself, with one array library, and cites whom it follows."""
    where = f"tests/plain/{file.name}"
    assert_stands_alone(file)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert SOURCE.search(ast.get_docstring(tree) or ""), (
        f"{where} must say in its docstring whom it follows: library, version or commit, file and lines ('lines 10-25'), "
        "or paper and equation ('equation (10)')"
    )
    imported = {module.split(".")[0] for module in modules_of(tree)} - STANDARD
    assert len(imported) <= 1, f"{where} must import NumPy or one array library alone; it imports {', '.join(sorted(imported))}"
    assert imported <= set(BUILT_IN), f"{where} must import NumPy or an array library; it imports {', '.join(imported)}"
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & BACK_DOORS
    assert not used, f"{where} must be plain code; it uses {', '.join(sorted(used))}"
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert op in functions, f"{where} must define {op}"
    _assert_signature(where, functions[op], op)
    assert any(isinstance(node, ast.BinOp) for node in ast.walk(tree)), (
        f"{where} computes nothing itself: write the arithmetic out, do not call a function that has it"
    )


def _assert_signature(where: str, function: ast.FunctionDef, op: str) -> None:
    """Fail unless a function takes the operation's arrays in their order, and no option that it does not have."""
    reference = inspect.signature(REGISTRY[op].function).parameters.values()
    arrays = [p.name for p in reference if p.kind is p.POSITIONAL_ONLY]
    options = {p.name for p in reference if p.kind is p.KEYWORD_ONLY}
    given = [a.arg for a in function.args.posonlyargs]
    assert given == arrays, f"{where} must take {', '.join(arrays)} as positional arguments; it takes {', '.join(given)}"
    unknown = {a.arg for a in function.args.kwonlyargs} - options
    assert not unknown, f"{where} has options that {op} does not have: {', '.join(sorted(unknown))}"
