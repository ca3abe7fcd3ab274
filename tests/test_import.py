"""What importing posref loads, and which way imports point."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import pytest
from sampling import few
from sources import absolute_imports

from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
ARRAY_LIBRARIES = {"numpy", "torch", "jax", "dask", "cupy", "mlx", "array_api_strict", "flint", "mpmath"}
DOWNWARD = {"cli", "plots", "__main__.py", "testing.py"}  # alone in posref import downward


@cache
def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path, *, at_top: bool = False) -> set[str]:
    """Return the dotted names that a file imports, relative ones resolved; only those that run on import if `at_top`."""
    package = ["posref" if path.parts[len(ROOT.parts)] == "posref" else f"posref.{path.parts[len(ROOT.parts)]}"]
    package += path.parent.relative_to(ROOT).parts[1:]
    found = tree(path)
    if at_top:
        found = ast.Module([node for node in found.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    return absolute_imports(found, ".".join(package))


def tops(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def below(names: set[str], package: str) -> set[str]:
    return {name for name in names if name == package or name.startswith(f"{package}.")}


def may_look_down(path: Path) -> bool:
    """Return whether a module is of the command line, or draws: pictures show the first cases of a suite."""
    return not DOWNWARD.isdisjoint({path.name, path.parent.name, path.parent.parent.name})


def printed(code: str) -> list[str]:
    """Return the words that code prints in a new process, away from the checkout."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/", timeout=60).stdout.split()


def loaded(code: str, modules: set[str]) -> list[str]:
    """Return which of some modules are loaded once code has run."""
    return printed(f"import sys, {code}; print(*sorted({modules!r} & {{name.split('.')[0] for name in sys.modules}}))")


@few(4, "module", [f"posref{m}" for m in ("", ".spec", ".scaling", ".configs", ".backends", ".cli")])
def test_import_loads_no_array_library(module: str) -> None:
    assert loaded(module, ARRAY_LIBRARIES) == []


def named(paths: Iterable[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_definitions_import_nothing_above_them() -> None:
    below_them = [path for path in files("posref") if not may_look_down(path)]
    assert len(below_them) > len(REGISTRY)
    up = [p for p in below_them if below(imported(p), "posref.backends") | below(imported(p), "posref.conformance")]
    assert not named(up)


def test_definitions_import_the_standard_only() -> None:
    """Others inside functions alone, as NumPy and torch in files of core, but for a file that is imported for PyTorch alone."""
    others = [path for path in files("posref") if foreign(path)]
    assert not {str(path.relative_to(ROOT)): sorted(foreign(path)) for path in others}


def foreign(path: Path) -> set[str]:
    """Return what a module of posref imports that it may not."""
    allowed = set(sys.stdlib_module_names) | {"array_api_compat", "posref"}
    inside = {
        "arrays.py": {"numpy", "torch"},
        "blocks.py": {"numpy", "torch"},
        "addition.py": {"numpy", "torch"},
        "pairs.py": {"numpy", "torch"},
        "strips.py": {"numpy", "torch"},
        "surroundings.py": {"numpy", "jax", "torch"},
        "types.py": {"numpy", "typing_extensions"},
        "charts.py": {"matplotlib"},
    }
    top = {"plots": {"numpy"}, "pictures": {"numpy"}, "cli": {"click", "rich"}, "__main__.py": {"click", "rich"}}
    top["torch_products.py"] = {"torch"}
    at_top = top.get(path.parent.name, top.get(path.name, set()))
    found = tops(imported(path, at_top=True)) - allowed - at_top
    if not may_look_down(path) or path.parent.name in ("plots", "pictures"):
        found |= tops(imported(path)) - allowed - at_top - inside.get(path.name, set())
    return found


def test_backends_do_not_import_conformance() -> None:
    assert files("backends")
    assert not named(path for path in files("backends") if below(imported(path), "posref.conformance"))


@pytest.mark.thorough
def test_the_installed_names_are_used() -> None:
    """`posref.backends`, never `backends`: in a checkout both would load, as two modules."""
    every = [path for folder in ("posref", "backends", "conformance") for path in files(folder)]
    assert not named(path for path in every if tops(imported(path)) & {"backends", "conformance", "tests"})


@pytest.mark.parametrize(
    ("folder", "line", "test"),
    [
        ("posref", "def f() -> None:\n    from posref.backends import load", test_definitions_import_nothing_above_them),
        ("posref", "import numpy", test_definitions_import_the_standard_only),
        ("posref", "def f() -> None:\n    import torch", test_definitions_import_the_standard_only),
        ("backends", "from posref.conformance.model import Case", test_backends_do_not_import_conformance),
        ("conformance", "import backends", test_the_installed_names_are_used),
    ],
)
def test_a_wrong_import_is_named(
    folder: str, line: str, test: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    for name in ("posref", "backends", "conformance"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "right.py").write_text("import json\n")
    (tmp_path / folder / "wrong.py").write_text(f"{line}\n")
    monkeypatch.setitem(globals(), "REGISTRY", ())
    files.cache_clear()
    with pytest.raises(AssertionError, match=rf"{folder}/wrong\.py"):
        test()
    files.cache_clear()


def test_a_backend_loads_only_its_own_library() -> None:
    assert loaded("posref.backends; posref.backends.load('numpy')", {"torch", "jax", "dask", "array_api_strict"}) == []


@pytest.mark.parametrize("module", ["posref.backends.bounds", "posref.conformance.proof.evaluation"])
def test_error_bounds_load_what_proves_only_where_it_is_needed(module: str) -> None:
    assert loaded(module, {"flint", "mpmath"}) == []


PARTS = """
import sys
import numpy as np
import posref
posref.rope(np.ones((3, 4)), np.arange(3), layout="half", base=1e4)
parts = {"ctypeslib", "f2py", "ma", "polynomial", "testing"}
print(sorted(name for name in parts if f"numpy.{name}" in sys.modules))
import array_api_compat.numpy as xp
from array_api_compat.numpy import *
print(all(getattr(xp, name) is getattr(np, name) is globals()[name] for name in parts), hasattr(xp, "nothing"))
"""


def test_parts_of_numpy_that_are_not_used_are_not_loaded() -> None:
    """The array API's copy of NumPy has them all the same."""
    assert printed(PARTS) == ["[]", "True", "False"]


def test_dir_shows_what_a_user_calls() -> None:
    import posref

    rest = {"configs", "positions", "presets", "scaling"}
    rest |= {"from_config", "from_gguf", "mrope_from_config", "rope_from_config", "rope_from_gguf"}
    rest |= {"laplacian_eigenvalues", "laplacian_projectors"}
    assert set(dir(posref)) == set(posref.__all__) == {*REGISTRY} | rest
    assert len(posref.__all__) == len(set(posref.__all__))
    for name in ("analysis", "plots", "positions", "scaling", "testing"):
        module = import_module(f"posref.{name}")
        assert dir(module) == sorted(module.__all__), name
        defined = {n for n, value in vars(module).items() if isfunction(value) and value.__module__ == f"posref.{name}"}
        assert {n for n in defined if not n.startswith("_")} <= set(module.__all__), name


def test_type_checkers_see_what_dir_shows() -> None:
    """The names that `posref` imports for type checkers, and those that it finds when they are used, are the same."""
    import posref

    (seen,) = (node for node in ast.parse(Path(posref.__file__).read_text(encoding="utf-8")).body if isinstance(node, ast.If)
               and ast.unparse(node.test) == "TYPE_CHECKING")  # fmt: skip
    names = {alias.name: node.module for node in seen.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    shorter = [ast.unparse(node).split(" = ") for node in seen.body if isinstance(node, ast.Assign)]
    assert {*names, *(name for name, _ in shorter)} == set(dir(posref))
    for name, module in names.items():
        assert getattr(posref, name) is getattr(import_module(module or ""), name), name
    for name, value in shorter:
        assert getattr(posref, name) is eval(value, {"positions": posref.positions}), name


def test_posref_imports_nothing_before_it_is_used() -> None:
    assert loaded("posref", {"numpy", "array_api_compat", "inspect"}) == []


FIRST_USES = """
import sys, threading
import posref, posref.spec
found, begin = [], threading.Barrier(8)
def use(number):
    begin.wait()
    found.append((len(posref.spec.REGISTRY), posref.rope, posref.attention, len(posref.presets), len(dir(posref))))
threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(found), len(set(found)), list(posref.spec.REGISTRY) == list(dict(posref.spec.REGISTRY)))
"""


def test_eight_threads_may_use_it_first() -> None:
    assert printed(FIRST_USES) == ["8", "1", "True"]


@few(3, "first", ["posref; posref.rope", "posref.bias.alibi", "posref.positions", "posref.testing", "posref.conformance"])
def test_the_registry_has_everything_whatever_was_imported_first(first: str) -> None:
    assert printed(f"import {first}\nfrom posref.spec import REGISTRY; print(*REGISTRY)") == list(REGISTRY)


@pytest.mark.parametrize(
    "module", ["posref.rotary.rope", "posref.bias.alibi", "posref.backends", "posref.conformance", "posref.spec"]
)
def test_what_dir_does_not_show_is_imported_as_ever(module: str) -> None:
    assert printed(f"import {module}, posref; print(type(posref.rope).__name__, {module}.__name__)") == ["function", module]


INTERRUPTED = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "posref.bias.alibi":
            sys.meta_path.remove(self)
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from posref.spec import REGISTRY
try:
    len(REGISTRY)
except KeyboardInterrupt:
    print(*REGISTRY)
"""


def test_an_interruption_of_the_first_use_leaves_nothing_out() -> None:
    assert printed(INTERRUPTED) == list(REGISTRY)


MEANT = [("yarn", "scaling.YaRN"), ("RotaryEmbedding", "posref.rope"), ("rotate_half", "apply_rope"),
         ("PositionalEncoding", "sinusoidal")]  # fmt: skip


@pytest.mark.parametrize(("name", "meant"), MEANT)
def test_a_name_of_another_library_gets_a_hint(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=meant):
        getattr(import_module("posref"), name)
