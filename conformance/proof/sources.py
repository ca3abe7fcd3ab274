"""Hashes of everything that a proof depends on beside its cases: the code that proves, and the versions of its libraries."""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import array_api_compat
import flint
import mpmath
import numpy as np
import safetensors

import posref
from posref import backends

CODE = Path(__file__).parents[1]
ROOMS = ("suite", "witness", "proof")  # of conformance/, beside the files at its root; cases are told by their values
WORDS = ("title", "idea", "longer")  # of `encoding`: for people only
Stamp = tuple[tuple[str, int, int, int], ...]


def identity() -> dict[str, Any]:
    """Return the hash of all code that proves and the versions that it runs on: the same proof, if both are the same."""
    found = hashlib.sha256()
    for name, path in _files():
        found.update(f"{name}\0{hashlib.sha256(_computing(path.read_bytes())).hexdigest()}\n".encode())
    return {"code": found.hexdigest(), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that proved values and their files come from."""
    return {
        "python": sys.version,
        "numpy": np.__version__,
        "python-flint": f"{flint.__version__} with FLINT {flint.__FLINT_VERSION__}",
        "mpmath": mpmath.__version__,
        "gmpy2": _gmpy2(),
        "array-api-compat": array_api_compat.__version__,
        "safetensors": safetensors.__version__,
    }


def stamp() -> Stamp | None:
    """Return sizes and times of that code, which change when a file is edited; None while one is being replaced."""
    try:
        return tuple((name, s.st_mtime_ns, s.st_size, s.st_ino) for name, path in _files() for s in (path.stat(),))
    except OSError:
        return None


def _gmpy2() -> str:
    """Return the version of gmpy2 and of its library if mpmath computes with it."""
    if mpmath.libmp.BACKEND != "gmpy":
        return "not used"
    import gmpy2

    return f"{gmpy2.version()} with {gmpy2.mp_version()}"


def _computing(source: bytes) -> bytes:
    """Return a file as it is, but a definition without docstring, title and idea: a changed sentence needs no new proof."""
    if b"\n@encoding(" not in source:
        return source
    starts = [0, 0]  # of each line, which are counted from 1
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in reversed(_said(ast.parse(source))):
        begin, end = starts[node.lineno] + node.col_offset, starts[node.end_lineno or 0] + (node.end_col_offset or 0)
        source = source[:begin] + source[end:]
    return source


def _said(tree: ast.Module) -> list[ast.expr | ast.keyword]:
    """Return the sentences of definitions, in the order of the file."""
    found: list[ast.expr | ast.keyword] = []
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        made = [call for call in function.decorator_list if isinstance(call, ast.Call) and ast.unparse(call.func) == "encoding"]
        found += [word for call in made for word in call.keywords if word.arg in WORDS]
        if made and isinstance(first := function.body[0], ast.Expr) and ast.get_docstring(function, clean=False):
            found.append(first.value)
    return found


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the files of that code with names that are the same in a checkout and in an installed package."""
    definitions, numbers = (Path(str(package.__file__)).parent for package in (posref, backends))
    yield from _below("posref", definitions, numbers, CODE)
    yield from _below("backends", numbers)
    yield from ((f"conformance/{path.name}", path) for path in sorted(CODE.glob("*.py")))
    for room in ROOMS:
        yield from _below(f"conformance/{room}", CODE / room)


def _below(name: str, root: Path, *others: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file below `root`, except hidden ones, compiled ones and those of the packages `others`."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f[0] != "." and f != "__pycache__" and Path(folder, f) not in others)
        for file in sorted(n for n in names if n[0] != "."):
            path = Path(folder, file)
            yield f"{name}/{path.relative_to(root).as_posix()}", path
