"""Compilers: under each of them every definition is the same function, on every call of the sample."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Library
from sample import sample
from sampling import share

from posref import backends
from posref.conformance.calls import array_names, bind, takes_dtype
from posref.conformance.judge import compare
from posref.conformance.model import LoadedCase
from posref.spec import REGISTRY

TORCH, JAX = Library("torch", backends.load("torch")), Library("jax", backends.load("jax"))
OF_ARRAYS = [op for op in REGISTRY if array_names(op)]
NARROW = {op: ("bfloat16", "float16")[i % 2] for i, op in enumerate(OF_ARRAYS)}  # one of the two for each operation
HOST = {"inv_freq", "frequencies", "bands", "matrix"}  # may be given in float64 where the rest is narrower


def called(library: Library, case: LoadedCase, dtype: str = "float32") -> tuple[Callable[..., Any], dict[str, Any]]:
    """
    Return a case in a dtype as a function of arrays by name, and these arrays.

    Positions and what is wide have at least float32. Host float64 frequencies stay outside.
    """
    (call,) = case.calls
    arrays = {}
    for name, x in call.inputs.items():
        if name not in HOST:
            real = "float32" if REGISTRY[case.op].arrays[name].kind in ("position", "wide") else dtype
            arrays[name] = library.array(x, real if x.dtype.kind == "f" else None)
    kept = {n: np.array(x) for n, x in call.inputs.items() if n in HOST}  # Dynamo refuses a view that cannot be written
    options = {"dtype": library.dtype(dtype)} if takes_dtype(case.op) else {}

    positional, keywords = bind(case.op, {n: n for n in kept | arrays}, call.params)  # outside of what is compiled
    named = {n: x for n, x in keywords.items() if n not in call.inputs}
    given_by_name = [n for n in keywords if n in call.inputs]
    names = [isinstance(n, str) and n in call.inputs for n in positional]

    def function(given: dict[str, Any]) -> Any:
        values = kept | given
        here = {n: values[n] for n in given_by_name}
        arguments = [values[n] if is_name else n for n, is_name in zip(positional, names, strict=True)]
        return REGISTRY[case.op].function(*arguments, **here, **named, **options)

    return function, arrays


def assert_within(library: Library, case: LoadedCase, results: Any, claim: str = "angle64") -> None:
    """Assert that results are within the bounds of a class, by default of that which the reference claims."""
    results = results if isinstance(results, tuple) else (results,)
    outputs = {n: library.host(out) for n, out in zip(REGISTRY[case.op].outputs, results, strict=True)}
    worst = compare(case.op, case.calls[0], outputs, claim, "float32")
    assert worst is None, f"{case.id}: {worst}"


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize(("op", "dtype"), share([*((op, "float32") for op in OF_ARRAYS), *NARROW.items()], part=0.5))
def test_torch_compile_captures_one_graph(op: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph that Dynamo captures where nothing was called before, run as it is, gives the same bits as the call."""
    for case in sample(op):
        torch.compiler.reset()
        monkeypatch.setattr("posref.core.arrays._NAMESPACES", {})
        function, arrays = called(TORCH, case, dtype)
        pairs = zip(
            tuples(torch.compile(function, fullgraph=True, backend="eager")(arrays)), tuples(function(arrays)), strict=True
        )
        for got, expected in pairs:
            np.testing.assert_array_equal(TORCH.host(got), TORCH.host(expected), case.id)
            assert got.dtype == expected.dtype


def tuples(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", share(OF_ARRAYS, part=0.5))
def test_torch_compile_generates_code(op: str) -> None:
    """One graph of two sampled calls of an operation through Inductor: each within the bounds of its class."""
    torch.compiler.reset()
    calls = [(case, *called(TORCH, case)) for case in sample(op)[:2]]

    def everything(given: list[dict[str, Any]]) -> list[Any]:
        return [function(arrays) for (_, function, _), arrays in zip(calls, given, strict=True)]

    results = torch.compile(everything, fullgraph=True)([arrays for _, _, arrays in calls])
    for (case, _, _), found in zip(calls, results, strict=True):
        assert_within(TORCH, case, found)
