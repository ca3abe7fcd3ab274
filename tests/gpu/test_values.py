"""Every operation on a GPU, in CuPy and PyTorch, is right within its class: the values are those that are proved."""

import functools
from typing import Any

import pytest
import torch
from conftest import opened
from every_encoding.libraries import asked_dtypes, assert_right
from machine import DEVICE, SMALL, cp
from sample import cases, sample

import posref
from posref.conformance import check
from posref.spec import REGISTRY

ONE = {
    "core": {"op": ("apply_rope", "alibi")},
    "kernel": {"case": "apply_rope/kernel/half-tokens-65"},
}  # what is checked on a CPU


def asked(op: str) -> Any:
    """Return the cases of an operation: all on a GPU."""
    return sample(op) if SMALL else cases(op)


def without_reading(function: Any) -> Any:
    """Return a function that may not read a value: the host would wait for the GPU. Only the stand-in counts."""
    if not SMALL:
        return function
    import standin

    @functools.wraps(function)
    def watched(*arrays: Any, **options: Any) -> Any:
        before = standin.HOST["reads"]
        result = function(*arrays, **options)
        assert standin.HOST["reads"] == before, "the host read a value"
        return result

    return watched


@pytest.mark.parametrize("op", REGISTRY)
def test_cupy(op: str) -> None:
    with opened("cupy") as library:
        for case in asked(op):
            for dtype in asked_dtypes(library, op):
                assert_right(library, case, dtype, without_reading(REGISTRY[op].function))


@pytest.mark.parametrize("op", list(REGISTRY)[:: 10 if SMALL else 1])  # on a CPU the tests of every encoding ask them all
def test_pytorch(op: str) -> None:
    with opened("torch", torch.device(DEVICE, 0) if not SMALL else None) as library:
        for case in asked(op):
            for dtype in asked_dtypes(library, op):
                assert_right(library, case, dtype)


@pytest.mark.parametrize("tier", ["core", "kernel"])
@pytest.mark.parametrize("backend", ["cupy", "torch"])
def test_the_check(backend: str, tier: str) -> None:
    device = {"device": DEVICE} if backend == "torch" else {}
    few: dict[str, Any] = {"dtype": "float32", **ONE[tier]} if SMALL else {"tier": tier}
    report = check(posref, backend=backend, **device, **few)
    assert report.conformant, [(c.id, c.dtype, c.message) for c in report.failures][:5]
    assert report.operations
    assert all(operation.achieved in ("float64", "angle64") for operation in report.operations)


def test_both_are_what_was_asked_for() -> None:
    assert cp.__name__ == "cupy"
    assert ("stand-in" in cp.__version__) == SMALL
    assert type(cp.asarray([1.0])).__module__.partition(".")[0] == "cupy"
    assert torch.zeros(1, device=DEVICE).device.type == DEVICE
