"""Plain implementations: each is of an operation, and one that is not plain, or is wrong, fails."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from every_encoding.written import FOLDER, assert_inside, plain_file, value_cases
from sampling import share
from sources import assert_plain

from posref.spec import REGISTRY


def test_every_file_is_of_an_operation() -> None:
    strays = {file.stem for file in FOLDER.glob("*.py")} - set(REGISTRY)
    assert not strays, f"tests/plain/ has files of no operation: {', '.join(sorted(strays))}"


def test_one_that_is_missing_is_named() -> None:
    with pytest.raises(
        AssertionError, match=r"tests/plain/no_such_encoding\.py is missing: write the operation as a library does"
    ):
        plain_file("no_such_encoding")


DOCSTRING = '"""As a library computes it: file.py, lines 1-2."""\n'


def calling_another(op: str) -> str:
    """Return an implementation that a library already has."""
    arrays = ", ".join(
        p.name for p in inspect.signature(REGISTRY[op].function).parameters.values() if p.kind is p.POSITIONAL_ONLY
    )
    return f"{DOCSTRING}import torch\n\ndef {op}({arrays}, /):\n    return torch.{op}({arrays})\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text, op: text.replace(" line", " part").replace(" equation", " formula"), "whom it follows"),
        (lambda text, op: text + "\nimport torch\nimport numpy\n", "one array library alone; it imports numpy, torch"),
        (lambda text, op: f"{DOCSTRING}import transformers\n", "it imports transformers"),
        (lambda text, op: text + "\neval('1')\n", "it uses eval"),
        (lambda text, op: f"{DOCSTRING}from torch import nn as {op}\n", "must define"),
        (lambda text, op: f"{DOCSTRING}def {op}(x, /):\n    return x + 1\n", "as positional arguments"),
        (lambda text, op: text.replace(" /, *, ", " /, *, interleaved=False, "), "options that .* does not have: interleaved"),
        (lambda text, op: calling_another(op), "computes nothing itself"),
    ],
)
def test_one_that_is_not_plain_fails(change: Any, message: str, tmp_path: Path) -> None:
    op = min(REGISTRY)
    file = tmp_path / f"{op}.py"
    file.write_text(change(plain_file(op).read_text(encoding="utf-8"), op), encoding="utf-8")
    with pytest.raises(AssertionError, match=message):
        assert_plain(file, op)


WRONG = """

right = {op}


def {op}(*args, **options):
    if {refuses}:
        raise NotImplementedError
    return right(*args, **options) {more}


{op}.__wrapped__ = right
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("refuses", "more", "message"),
    [
        ("False", "+ 1", "outside the bounds"),
        ("True", "", "it must pass 3"),
        ("any(a.is_floating_point() and bool((a != a.bfloat16().to(a.dtype)).any()) for a in args)", "", "that need float32"),
    ],
)
def test_one_that_is_wrong_or_answers_too_little_fails(refuses: str, more: str, message: str, tmp_path: Path) -> None:
    """On the first operation in PyTorch that has cases for float32 alone."""
    op = next(
        op
        for op in sorted(REGISTRY)
        if 'backend = "torch"' in plain_file(op).read_text(encoding="utf-8")
        and any("bfloat16" not in case.dtypes and "float32" in case.dtypes for case in value_cases(op))
    )
    file = tmp_path / f"{op}.py"
    text = plain_file(op).read_text(encoding="utf-8") + WRONG.format(op=op, refuses=refuses, more=more)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=message):
        assert_inside(file, op)


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_each_is_inside_the_bounds_in_all_its_dtypes(op: str) -> None:
    assert_inside(plain_file(op), op)
