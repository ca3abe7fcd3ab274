"""The examples in docstrings run and print what they say."""

import doctest
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import posref

ROOT = Path(str(posref.__file__)).parent
MODULES = ["posref", *(module.name for module in pkgutil.walk_packages(posref.__path__, "posref."))]
ELSEWHERE = ("posref.backends.cupy", "posref.conformance.adapters.")  # need libraries that are not installed; have no examples
RUNNABLE = [name for name in MODULES if not name.endswith("__main__") and not name.startswith(ELSEWHERE)]
PAGES = ("Examples", "Returns", "Parameters")


@pytest.mark.parametrize("name", RUNNABLE)
def test_examples_of(name: str) -> None:
    module = import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


@pytest.mark.parametrize("name", posref.spec.REGISTRY)
def test_a_definition_has_a_runnable_example_and_its_sections(name: str) -> None:
    function = posref.spec.REGISTRY[name].function
    assert doctest.DocTestFinder().find(function, name)[0].examples
    for section in PAGES:
        assert f"    {section}\n    {'-' * len(section)}\n" in function.__doc__, section


@pytest.mark.parametrize("name", posref.spec.REGISTRY)
def test_a_definition_has_one_name(name: str) -> None:
    """Function, `posref.<name>`, record and file agree; arrays are positional-only and options keyword-only."""
    record = posref.spec.REGISTRY[name]
    assert Path(record.function.__code__.co_filename).relative_to(ROOT) == Path(record.family, f"{name}.py")
    assert getattr(posref, name) is record.function
    assert name in posref.__all__
    parameters = inspect.signature(record.function).parameters.values()
    assert {p.kind for p in parameters} <= {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY}
    assert set(record.domains) <= {p.name for p in parameters}
