"""The plain test of every operation: each part judges what was found, and those that fail are named."""

import functools
from typing import Any

import pytest
from sample import stored

from posref.spec import REGISTRY

from . import calls, cases, composed, evidence, invariants, judging, libraries, proofs, words, written
from .encoding import PARTS, Encoding, part

MODULES = (calls, cases, evidence, words, libraries, judging, proofs, composed, invariants, written)  # their parts are in PARTS


@pytest.mark.parametrize("op", REGISTRY)
def test_every_encoding(op: str) -> None:
    """All that is asked of one operation in a plain run."""
    written.assert_written(op)
    assert stored(op), f"{op} is not in the suite: posref vectors build conformance/vectors --op {op}"
    encoding = Encoding(op)
    for name in PARTS:
        encoding.run(name)
    encoding.finish()


def test_parts_that_fail_are_named_with_their_places_and_the_others_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    run = []

    def values(encoding: Encoding) -> None:
        for dtype in ("float32", "bfloat16", "float16"):
            with encoding.at(f"torch | {dtype}"):
                assert dtype == "bfloat16", f"off by 3 in {dtype}"

    def crashes(encoding: Encoding) -> None:
        raise KeyError(encoding.op)

    def passes(encoding: Encoding) -> None:
        run.append(encoding.op)

    monkeypatch.setattr("every_encoding.encoding.PARTS", {})
    for function in (values, crashes, passes):
        part()(function)
    part(of=lambda op: False)(lambda encoding: run.append("of no operation"))
    encoding = Encoding(next(iter(REGISTRY)))
    for name in ("values", "crashes", "passes", "<lambda>"):
        encoding.run(name)
    assert run == [encoding.op]
    with pytest.raises(ExceptionGroup) as caught:
        encoding.finish()
    assert caught.value.message == f"{encoding.op}: values, crashes (3 failures)"
    assert [str(error).splitlines()[0] for error in caught.value.exceptions] == [
        "values | torch | float32: off by 3 in float32",
        "values | torch | float16: off by 3 in float16",
        f"crashes: KeyError('{encoding.op}')",
    ]


def test_a_wrong_definition_fails_on_every_library() -> None:
    """Its values by the name of the library, the dtype and the case."""
    op = "alibi"
    encoding = Encoding(op)
    right = encoding.function

    @functools.wraps(right)
    def wrong(*arrays: Any, **options: Any) -> Any:
        return right(*arrays, **options) + 1

    encoding.function = wrong
    encoding.run("values_on_every_library")
    encoding.run("results_stay_on_the_device")
    places = {tuple(str(failure).split(" | ")[1:3]) for _, failure in encoding.failures}
    assert {("numpy", "float32"), ("numpy", "float16"), ("torch", "bfloat16"), ("array_api_strict", "float64")} <= places
    assert {("device1", "float32"), ("no_float64", "float32")} <= places


def test_every_module_has_parts() -> None:
    of_module = {function.__module__ for function, _ in PARTS.values()}
    assert of_module == {module.__name__ for module in MODULES}
    assert all(any(holds(op) for op in REGISTRY) for _, holds in PARTS.values())
