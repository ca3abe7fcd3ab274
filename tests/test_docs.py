"""The examples in docstrings run and print what they say."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import posref

MODULES = ["posref", *(module.name for module in pkgutil.walk_packages(posref.__path__, "posref."))]
ELSEWHERE = ("posref.backends.cupy", "posref.conformance.adapters.")  # need libraries that are not installed; have no examples
RUNNABLE = [name for name in MODULES if not name.endswith("__main__") and not name.startswith(ELSEWHERE)]
PAGES = ("Examples", "Returns", "Parameters")


@pytest.mark.parametrize("name", RUNNABLE)
def test_examples_of(name: str) -> None:
    module = import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
