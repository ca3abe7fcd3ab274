"""What an implementation does to memory: around its inputs nothing may change, and in place only what it states."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sampling import few

from posref.conformance import check
from posref.conformance.checks import choice
from posref.conformance.checks.case_run import ask
from posref.conformance.errors import TargetError
from posref.conformance.model import CaseResult, LoadedCase
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.targets.invocation import PIECE, same_bits
from posref.conformance.targets.python import load_python

CORE = {c.id: c for group in load_groups(INSTALLED, ops=["rope"]) for c in group.cases}


def case_of(name: str) -> LoadedCase:
    return CORE[name] if name in CORE else next(iter(choice.load(["rope"], name)))


def asked(name: str, rope: Any, **stated: Any) -> CaseResult:
    return ask(load_python(SimpleNamespace(rope=rope, **stated)), case_of(name), "float32")


def turned(x: Any, positions: Any, base: float) -> Any:
    """Return the two halves, rotated."""
    d = x.shape[-1]
    frequencies = np.float32(1) / np.float32(base) ** (np.arange(0, d, 2, dtype=np.float32) / np.float32(d))
    angles = np.asarray(positions)[..., None].astype(np.float32) * frequencies
    a, b, c, s = x[..., : d // 2], x[..., d // 2 :], np.cos(angles), np.sin(angles)
    return a * c - b * s, b * c + a * s


def in_place(x: Any, positions: Any, *, layout: str, base: float) -> None:
    x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :] = turned(x, positions, base)


def in_place_torch(x: torch.Tensor, positions: torch.Tensor, *, layout: str, base: float) -> torch.Tensor:
    return x.copy_(torch.from_numpy(copying(x.detach().numpy(), positions.numpy(), layout=layout, base=base)))


def half_of_it(x: Any, positions: Any, *, layout: str, base: float) -> None:
    x[..., : x.shape[-1] // 2], _ = turned(x, positions, base)


def copying(x: Any, positions: Any, *, layout: str, base: float) -> Any:
    return np.concatenate(turned(x, positions, base), axis=-1)


def widened(x: Any) -> Any:
    """Return a view with one lane past every row, which a kernel reaches whose tiles are wider than a row."""
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:-1], x.shape[-1] + 1), x.strides)


def into_the_buffer(x: Any, positions: Any, *, layout: str, base: float) -> Any:
    y = copying(x, positions, layout=layout, base=base)
    widened(x)[..., -1] = 0
    return y


def past_the_end(x: Any, positions: Any, *, layout: str, base: float) -> Any:
    y = copying(x, positions, layout=layout, base=base)
    widened(x)[(-1,) * x.ndim] = 7
    return y


def into_the_buffer_of_torch(x: torch.Tensor, positions: torch.Tensor, *, layout: str, base: float) -> torch.Tensor:
    y = torch.from_numpy(copying(x.numpy(), positions.numpy(), layout=layout, base=base))
    x.as_strided((*x.shape[:-1], x.shape[-1] + 1), x.stride(), x.storage_offset())[..., -1] = 0
    return y


STRIDED = "rope/kernel/half-tokens-257"
PLAIN = "rope/kernel/half-tokens-65"


@few(1, "name", [STRIDED, PLAIN])
def test_an_implementation_in_place_is_judged_by_what_it_leaves(name: str) -> None:
    assert asked(name, in_place, in_place=("x",)).verdict == "pass"
    assert asked(name, in_place_torch, in_place=("x",), backend="torch").verdict == "pass"
    assert asked(name, half_of_it, in_place=("x",)).verdict == "fail"
    assert asked(name, copying, in_place=("x",)).verdict == "fail"  # nothing is left there


def test_a_view_of_one_row_is_copied_where_it_is_overwritten() -> None:
    """Its rows share memory: torch and NumPy refuse to write there."""
    for function, backend in ((in_place, "numpy"), (in_place_torch, "torch")):
        assert asked("rope/forms/expanded", function, in_place=("x",), backend=backend).verdict == "pass"


def test_without_a_word_an_input_stays_as_it_is() -> None:
    result = asked(PLAIN, in_place_torch, backend="torch")
    assert (result.verdict, result.message) == ("fail", "changed its input x")


@few(
    2,
    ("name", "wrong", "backend"),
    [
        (STRIDED, into_the_buffer, "numpy"),
        (STRIDED, past_the_end, "numpy"),
        (PLAIN, past_the_end, "numpy"),
        (STRIDED, into_the_buffer_of_torch, "torch"),
    ],
)
def test_the_memory_around_an_input_is_watched(name: str, wrong: Any, backend: str) -> None:
    assert asked(name, copying).verdict == "pass"
    for stated in ({}, {"in_place": ("x",)}):
        result = asked(name, wrong, backend=backend, **stated)
        assert (result.verdict, result.message) == ("fail", "wrote to the memory around its input x")


def test_what_cannot_be_overwritten_is_refused() -> None:
    with pytest.raises(TargetError, match=r"in_place must name arguments that a result has the shape of: .*skew, .*x; got"):
        check(SimpleNamespace(rope=copying, in_place=("positions",)), op="rope", tier="smoke")


@pytest.mark.parametrize("shape", [(5, 7), (3, PIECE + 1), (2 * PIECE,)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_bits_are_compared_one_by_one_however_many(shape: tuple[int, ...], order: Any) -> None:
    x = np.zeros(shape)
    x[0] = np.nan
    assert same_bits(x, x.copy(order))
    for place in {0, min(PIECE, x.size) - 1, min(PIECE, x.size - 1), x.size - 1}:
        other = x.copy(order)
        other[np.unravel_index(place, shape)] = -0.0
        assert not same_bits(x, other)
    assert not same_bits(x, x.astype(np.float32))
    assert not same_bits(x, x[..., None])
