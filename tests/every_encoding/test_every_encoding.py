"""
The test of every operation: each part judges what was found, and those that fail are named.

A plain run asks the dear parts of one operation in `TURNS`, by its seed, and of those that are named; a thorough run asks them
of a share of the others.
"""

import functools
from collections.abc import Iterable
from typing import Any

import pytest
from sample import stored
from sampling import BY_NAME, QUARTER, SEED, share

from posref.spec import REGISTRY

from . import calls, cases, composed, evidence, invariants, judging, libraries, proofs, words, written
from .encoding import DEAR, PARTS, Encoding, part

MODULES = (calls, cases, evidence, words, libraries, judging, proofs, composed, invariants, written)  # their parts are in PARTS
TURNS = 4
IN_TURN = [op for k, op in enumerate(REGISTRY) if BY_NAME or (k + SEED) % TURNS == 0]


def ask(op: str, parts: Iterable[str]) -> None:
    """Ask parts of one operation."""
    assert stored(op), f"{op} is not in the suite: posref vectors build conformance/vectors --op {op}"
    encoding = Encoding(op)
    for name in parts:
        encoding.run(name)
    encoding.finish()


@pytest.mark.parametrize("op", REGISTRY)
def test_every_encoding(op: str) -> None:
    """All that is asked of one operation in a plain run."""
    written.assert_written(op)
    ask(op, [name for name in PARTS if op in IN_TURN or name not in DEAR])


@pytest.mark.thorough
@pytest.mark.parametrize("op", share([op for op in REGISTRY if op not in IN_TURN], QUARTER))
def test_the_dear_parts_of_every_encoding(op: str) -> None:
    ask(op, [name for name in PARTS if name in DEAR])


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
