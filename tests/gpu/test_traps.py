"""What deceives a judge on a GPU: memory that still holds an answer, inputs that change, results that are not there yet."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from machine import DEVICE, SMALL, cp, on_another_stream, on_another_stream_of_cupy

import posref
from posref.conformance import check

ONE = "rope/half/small"
ONLY = [{"case": ONE}, {"tier": "smoke"}, *([] if SMALL else [{"tier": "core"}])]
OPTIONS: dict[str, Any] = {"op": "rope", "dtype": "float32"}


def right(x: Any, positions: Any, *, layout: Any, base: float) -> Any:
    return posref.rope(x, positions, layout=layout, base=base)


def nothing_is_written(x: torch.Tensor, positions: torch.Tensor, *, layout: str, base: float) -> torch.Tensor:
    """Return memory as the allocator gives it, which may hold the result of an earlier call."""
    return torch.empty_like(x)


def last_token_is_not_written(x: torch.Tensor, positions: torch.Tensor, *, layout: str, base: float) -> torch.Tensor:
    """As a kernel whose grid is too small."""
    out, whole = torch.empty_like(x), right(x, positions, layout=layout, base=base)
    out[..., :-1, :] = whole[..., :-1, :]
    return out


def input_is_zeroed(x: torch.Tensor, positions: torch.Tensor, *, layout: str, base: float) -> torch.Tensor:
    out = right(x, positions, layout=layout, base=base)
    x.zero_()
    return out


def nothing_is_written_in_cupy(x: Any, positions: Any, *, layout: str, base: float) -> Any:
    return cp.empty(x.shape, dtype=x.dtype)


def input_is_zeroed_in_cupy(x: Any, positions: Any, *, layout: str, base: float) -> Any:
    out = right(x, positions, layout=layout, base=base)
    x[...] = 0.0
    return out


def late(x: torch.Tensor, positions: torch.Tensor, *, layout: str, base: float) -> torch.Tensor:
    return on_another_stream(lambda: right(x, positions, layout=layout, base=base))


def late_in_cupy(x: Any, positions: Any, *, layout: str, base: float) -> Any:
    if SMALL:
        return right(x, positions, layout=layout, base=base)
    return on_another_stream_of_cupy(lambda: right(x, positions, layout=layout, base=base))


def checked(function: Any, backend: str, **options: Any) -> Any:
    device = {"device": DEVICE} if backend == "torch" else {}
    return check(SimpleNamespace(rope=function), backend=backend, **OPTIONS, **device, **options)


@pytest.mark.parametrize("only", ONLY, ids=str)
@pytest.mark.parametrize(
    ("wrong", "backend"),
    [
        (nothing_is_written, "torch"), (last_token_is_not_written, "torch"), (input_is_zeroed, "torch"),
        (nothing_is_written_in_cupy, "cupy"), (input_is_zeroed_in_cupy, "cupy"),
    ],
)  # fmt: skip
def test_a_trap_is_seen_after_a_right_answer(wrong: Any, backend: str, only: dict[str, str]) -> None:
    """The right implementation runs first, on the same calls: its results are in the allocator's blocks."""
    assert not checked(right, backend, **only).failures
    tries = 5 if SMALL else 1  # on a CPU it is chance which block an allocation gets
    assert any(checked(wrong, backend, **only).failures for _ in range(tries))


@pytest.mark.parametrize(("function", "backend"), [(late, "torch"), (late_in_cupy, "cupy")])
def test_results_of_another_stream_are_waited_for(function: Any, backend: str) -> None:
    report = checked(function, backend, tier="core")
    assert not report.failures, report.failures[0].message


@pytest.mark.parametrize("backend", ["torch", "cupy"])
def test_a_changed_input_is_named(backend: str) -> None:
    wrong = input_is_zeroed if backend == "torch" else input_is_zeroed_in_cupy
    assert {case.message for case in checked(wrong, backend, tier="smoke").failures} == {"changed its input x"}
