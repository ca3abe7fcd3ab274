"""The examples in docstrings run and print what they say, and every module is imported."""

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest
from sampling import few

import posref

PACKAGES = ["posref", *(module.name for module in pkgutil.walk_packages(posref.__path__, "posref.") if module.ispkg)]
ELSEWHERE = ("posref.backends.cupy", "posref.conformance.adapters.")  # need libraries that are not installed; have no examples


def runnable(package: str) -> list[str]:
    """Return a package and its modules, without those of its own packages."""
    path = import_module(package).__path__
    names = [package, *(module.name for module in pkgutil.iter_modules(path, f"{package}.") if not module.ispkg)]
    return [name for name in names if not name.endswith("__main__") and not name.startswith(ELSEWHERE)]


def examples_that_fail(names: list[str]) -> dict[str, str]:
    """Return what is wrong with the examples of each module, of those with which something is."""
    wrong: dict[str, str] = {}
    for name in names:
        try:
            done = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
        except Exception as error:
            wrong[name] = repr(error)
        else:
            if done.failed:
                wrong[name] = f"{done.failed} of {done.attempted} examples fail"
    return wrong


@few(6, "package", PACKAGES)
def test_examples_of(package: str) -> None:
    assert runnable(package)
    assert examples_that_fail(runnable(package)) == {}


def test_an_example_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_example_of_a_test.py").write_text('"""\n>>> 1 + 1\n3\n"""\n')
    (tmp_path / "not_imported_by_a_test.py").write_text("raise KeyError\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = ["wrong_example_of_a_test", "not_imported_by_a_test", "json"]
    assert examples_that_fail(names) == {names[0]: "1 of 1 examples fail", names[1]: "KeyError()"}
