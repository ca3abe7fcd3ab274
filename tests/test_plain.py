"""Every operation has a plain implementation, written as a library writes it, and it stays inside the bounds."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from sources import assert_plain

from posref.conformance import check
from posref.conformance.model import BAD
from posref.conformance.suite import INSTALLED
from posref.conformance.target.python import load_python
from posref.spec import REGISTRY

FOLDER = Path(__file__).parent / "plain"
ENOUGH = 3  # value cases with elements that must pass


def plain_file(op: str) -> Path:
    """Return the file of an operation's plain implementation; fail where there is none."""
    file = FOLDER / f"{op}.py"
    assert file.is_file(), (
        f"tests/plain/{op}.py is missing: write the operation as a library does, in NumPy or that library alone, "
        "cite file and lines in its docstring; see CONTRIBUTING.md"
    )
    return file


def value_cases(op: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the cases of values of an operation, and whether they have elements, as the suite's files say."""
    for path in sorted((INSTALLED / op).glob("*/group.json")):
        cases = [c for c in json.loads(path.read_text(encoding="utf-8"))["cases"] if c["kind"] not in ("reject", "vjp")]
        with safe_open(path.with_name("data.safetensors"), "np") as data:
            for case in cases:
                names = [name for call in case.get("steps", [case]) for name in call["expected"].values()]
                yield case, any(0 not in data.get_slice(name).get_shape() for name in names)


def assert_inside(file: Path, op: str) -> None:
    """Fail unless no case is outside the bounds, and enough is asked: values, and inputs that need float32."""
    where = f"tests/plain/{file.name}"
    cases = [case for operation in check(load_python(str(file)).implementation, op=op).operations for case in operation.cases]
    failing = [f"{c.id}: {c.message}" for c in cases if c.kind != "reject" and c.verdict in BAD and c.verdict != "selective"]
    assert not failing, f"{where} is outside the bounds in {len(failing)} cases: {'; '.join(failing[:3])}"
    passed = {case.id for case in cases if case.verdict == "pass" and case.dtype == "float32"}
    full = [case for case, has_elements in value_cases(op) if has_elements]
    found = sum(case["id"] in passed for case in full)
    assert found >= ENOUGH, f"{where} passes {found} cases of values in float32; it must pass {ENOUGH}"
    exact = [case["id"] for case in full if "float32" in case["dtypes"] and "bfloat16" not in case["dtypes"]]
    assert not exact or passed & set(exact), f"{where} answers none of the cases that need float32: {', '.join(exact[:3])}"


@pytest.mark.parametrize("op", REGISTRY)
def test_a_plain_implementation_is_inside_the_bounds(op: str) -> None:
    file = plain_file(op)
    assert_plain(file, op)
    assert_inside(file, op)


def test_every_file_is_of_an_operation() -> None:
    strays = {file.stem for file in FOLDER.glob("*.py")} - set(REGISTRY)
    assert not strays, f"tests/plain/ has files of no operation: {', '.join(sorted(strays))}"


def test_one_that_is_missing_is_named() -> None:
    with pytest.raises(AssertionError, match=r"tests/plain/kerple_log\.py is missing: write the operation as a library does"):
        plain_file("kerple_log")


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
        and any("bfloat16" not in case["dtypes"] and "float32" in case["dtypes"] for case, _ in value_cases(op))
    )
    file = tmp_path / f"{op}.py"
    text = plain_file(op).read_text(encoding="utf-8") + WRONG.format(op=op, refuses=refuses, more=more)
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=message):
        assert_inside(file, op)
