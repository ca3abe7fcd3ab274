"""What importing posref loads, and which way imports point."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARRAY_LIBRARIES = {"numpy", "torch", "jax", "dask", "cupy", "mlx", "array_api_strict", "flint", "mpmath"}
DOWNWARD = {"cli.py", "__main__.py", "testing.py"}  # the only modules of posref that import backends and conformance


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path, *, at_top: bool = False) -> set[str]:
    """Return the dotted names that a file imports, relative ones resolved; only those that run on import if `at_top`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ["posref" if path.parts[len(ROOT.parts)] == "posref" else f"posref.{path.parts[len(ROOT.parts)]}"]
    package += path.parent.relative_to(ROOT).parts[1:]
    found: set[str] = set()
    nodes = [node for node in tree.body if not is_type_checking(node)] if at_top else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def tops(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def below(names: set[str], package: str) -> set[str]:
    return {name for name in names if name == package or name.startswith(f"{package}.")}


def may_look_down(path: Path) -> bool:
    """Return whether a module is of the command line, or draws: pictures show the first cases of a suite."""
    return path.name in DOWNWARD or path.parent.name == "plots"


@pytest.mark.parametrize("module", ["posref", "posref.spec", "posref.scaling", "posref.configs", "posref.backends"])
def test_import_loads_no_array_library(module: str) -> None:
    code = f"import sys, {module}; print(sorted({ARRAY_LIBRARIES!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", files("posref"), ids=lambda p: str(p.relative_to(ROOT)))
def test_definitions_import_nothing_above_them(path: Path) -> None:
    names = imported(path)
    if not may_look_down(path):
        assert not below(names, "posref.backends") | below(names, "posref.conformance")


@pytest.mark.parametrize("path", files("posref"), ids=lambda p: str(p.relative_to(ROOT)))
def test_definitions_import_the_standard_only(path: Path) -> None:
    """NumPy and torch inside functions of arrays.py, matplotlib inside those of plots; types.py is for checkers."""
    allowed = set(sys.stdlib_module_names) | {"array_api_compat", "posref"}
    inside = {"arrays.py": {"numpy", "torch"}, "types.py": {"numpy", "typing_extensions"}, "drawing.py": {"matplotlib"}}
    at_top = {"cli.py": {"click", "rich"}, "__main__.py": {"click", "rich"}}.get(path.name, set())
    at_top |= {"numpy"} if path.parent.name == "plots" else set()
    assert tops(imported(path, at_top=True)) <= allowed | at_top
    if not may_look_down(path) or path.parent.name == "plots":
        assert tops(imported(path)) <= allowed | at_top | inside.get(path.name, set())


@pytest.mark.parametrize("path", files("backends"), ids=lambda p: str(p.relative_to(ROOT)))
def test_backends_do_not_import_conformance(path: Path) -> None:
    assert not below(imported(path), "posref.conformance")


@pytest.mark.parametrize("path", [*files("posref"), *files("backends"), *files("conformance")], ids=str)
def test_the_installed_names_are_used(path: Path) -> None:
    """`posref.backends`, never `backends`: in a checkout both would load, as two modules."""
    assert not tops(imported(path)) & {"backends", "conformance", "tests"}


def test_a_backend_loads_only_its_own_library() -> None:
    code = (
        "import sys; from posref import backends; backends.load('numpy');"
        "print(sorted({'torch', 'jax', 'dask', 'array_api_strict'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["posref.backends.bounds", "posref.conformance.proof.running"])
def test_error_bounds_load_what_proves_only_where_it_is_needed(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'flint', 'mpmath'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.strip() == "[]"


def test_dir_shows_what_a_user_calls() -> None:
    import posref
    from posref.spec import REGISTRY

    rest = {"configs", "positions", "presets", "scaling"}
    rest |= {"from_config", "mrope_from_config", "rope_from_config", "rope_from_gguf"}
    assert set(dir(posref)) == set(posref.__all__) == {*REGISTRY} | rest
    assert len(posref.__all__) == len(set(posref.__all__))


@pytest.mark.parametrize(
    "module", ["posref.rotary.rope", "posref.bias.alibi", "posref.backends", "posref.conformance", "posref.spec"]
)
def test_what_dir_does_not_show_is_imported_as_ever(module: str) -> None:
    code = f"import {module}, posref; print(type(posref.rope).__name__, {module}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.split() == ["function", module]
