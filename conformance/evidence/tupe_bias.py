"""Untied positional encoding: cases and known mistakes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .every.drawn_cases import drawn_cases_of
from .tools import Case, Function, Real, Wrap, after, argument, deviations_of, narrowed, option, tf32
from .tools.hints import EACH_HEAD, IGNORED, ROUND_ONCE, TENSOR_CORES

OP = __name__.rpartition(".")[2]
USUAL: dict[str, Any] = {"cls": True}
SIZES: dict[str, Any] = {"N": 5, "R": (2,)}
KERNEL: Any = ({"cls": True}, {"cls": False})
KERNEL_SIZES: dict[str, Any] = {"N": 130, "D": 24, "R": (3,)}

_case, _deviation = drawn_cases_of(OP), deviations_of(OP)
_reset = deviations_of("reset")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", R=(2,), N=4, D=2, tier="smoke"),
        _case("without-cls", {"cls": False}, N=5, D=3),
        _case("24-bits", bits=24, N=6, D=5, R=(3,)),
        _case("24-bits-without-cls", {"cls": False}, bits=24, R=(3,)),
        _case("64-channels", R=(12,), N=4, D=64, comment="as many heads and channels as BERT base"),
        _case("40-rows", R=(1,), N=40, D=3),
        _case("one-token", R=(2,), N=2, D=3, comment="the class token alone"),
        _case("forms/strided", form="non-contiguous", R=(2, 3), rows=True),
        _case("forms/one-head", R=()),
        _case("forms/one-head-24-bits", {"cls": False}, R=(), bits=24),
        _case("small", kind="vjp", R=(2,), N=4, D=2),
        _case("one-head", {"cls": False}, kind="vjp", R=(), N=4, D=3, bits=24),
        _case("strided", kind="vjp", form="non-contiguous", R=(2,), N=3, D=2),
        _case("refused/one-row", {}, {"p_q": np.ones((2, 1, 4)), "p_k": np.ones((2, 1, 4))}, "no token", kind="reject"),
        _case("refused/shapes", {}, {"p_q": np.ones((2, 4, 4)), "p_k": np.ones((2, 5, 4))}, "other numbers of rows",
              kind="reject"),
    )  # fmt: skip


def _products(change: Callable[[Real], Real]) -> Wrap:
    """Return a wrap with another reset of all products of rows, (..., T + 1, T + 1)."""

    def wrap(function: Function) -> Function:
        return lambda products, /: change(np.array(products))

    return wrap


def _column_last(products: Real) -> Real:
    out = products[..., 1:, 1:].copy()
    out[..., 0, :] = products[..., :1, 0]
    out[..., :, 0] = products[..., 1:2, 1]
    return out


def _exchanged(products: Real) -> Real:
    out = products[..., 1:, 1:].copy()
    out[..., :, 0] = products[..., :1, 0]
    out[..., 0, :] = products[..., 1:2, 1]
    return out


def _zeros(products: Real) -> Real:
    out = products[..., 1:, 1:].copy()
    out[..., :, 0] = out[..., 0, :] = 0.0
    return out


def _after_offset(products: Real) -> Real:
    """Take the numbers of the class token from the rows of tokens."""
    out = products[..., 1:, 1:].copy()
    first, second = out[..., :1, 0].copy(), np.array(products)[..., -1:, -1] if out.shape[-1] < 2 else out[..., 1:2, 1].copy()
    out[..., :, 0] = second
    out[..., 0, :] = first
    return out


CLS = "First set the column of the class token to the product of row 1, then its row to that of row 0."

DEVIATIONS = (
    _deviation("tupe-root-of-d", "products are over the root of D, not of 2 D",
               after(lambda out, *a, **options: out * np.sqrt(2)), hint="Two sums of D products are added."),
    _deviation("tupe-scale-missing", "products are not scaled",
               after(lambda out, p_q, *a, **options: out * np.sqrt(2 * p_q.shape[-1])), hint="Divide by sqrt(2 D)."),
    _deviation("tupe-scale-of-all-heads", "products are over the root of all heads' size",
               after(lambda out, p_q, *a, **options: out / np.sqrt(p_q.shape[-3] if p_q.ndim > 2 else 1)),
               hint="D is the size of one head."),
    _deviation("tupe-cls-ignored", "the class token has no numbers of its own", option(cls=lambda _: False), hint=IGNORED),
    _deviation("tupe-cls-always", "the first token is always a class token", option(cls=lambda _: True), hint=IGNORED),
    _deviation("tupe-transposed", "queries and keys are exchanged",
               lambda f: lambda p_q, p_k, /, **options: f(p_k, p_q, **options), hint="Rows are queries."),
    _deviation("tupe-first-rows", "token n has row n, and the last row is left",
               lambda f: lambda p_q, p_k, /, **options: f(np.roll(p_q, 1, -2), np.roll(p_k, 1, -2), **options),
               hint="Tokens begin at row 1."),
    _deviation("tupe-first-head", "every head has the positions of the first",
               argument(0, lambda p: np.broadcast_to(p[..., :1, :, :], p.shape) if p.ndim > 2 else p), hint=EACH_HEAD),
    _deviation("tupe-tf32", "products are computed in TensorFloat-32",
               lambda f: lambda p_q, p_k, /, **options: f(tf32(p_q), tf32(p_k), **options), hint=TENSOR_CORES),
    _deviation("tupe-bfloat16", "projected positions are held in bfloat16", argument(0, narrowed("bfloat16")), hint=ROUND_ONCE),
    _reset("tupe-column-last", "the class token itself has the number of its column", _products(_column_last), hint=CLS),
    _reset("tupe-exchanged", "the row has the number of the column, and the column that of the row", _products(_exchanged),
           hint=CLS),
    _reset("tupe-zeros", "the row and the column of the class token are 0", _products(_zeros), hint=CLS),
    _reset("tupe-token-rows", "the numbers are the products of the first two tokens", _products(_after_offset),
           hint="Rows 0 and 1 of the table: token 0 has row 1."),
)  # fmt: skip
