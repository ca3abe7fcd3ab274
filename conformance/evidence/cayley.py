"""Cayley transform: cases and known mistakes."""

from typing import Any

import numpy as np

from posref.core.matrices import skew_exponential

from .shared.lie import learned, skew_symmetric, transposed
from .tools import Case, after, argument, deviations_of, form_case, gradient, held, reals
from .tools.hints import EACH_HEAD, KEEP_FLOAT32, TRIANGLE

KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"n": 4}


def _case(
    name: str, shape: tuple[int, ...], comment: str = "", *, bits: int = 8, over: float = 8, kind: str = "value",
    tier: str = "core",
) -> Case:  # fmt: skip
    inputs = {"skew": learned("cayley" + name, *shape, bits=bits, over=over)}
    return Case(f"cayley/{name}", {}, inputs, comment, kind, tier)


def _cayley_forms() -> tuple[Case, ...]:
    """Return the forms of its parameter."""

    def case(name: str, *shape: int, form: str = "") -> Case:
        return form_case("cayley", name, {"skew": reals("cayley" + name, *shape) / 8}, {}, form=form)

    return (case("batch-one", 1, 3, 3), case("length-zero", 2, 0, 3, 3))


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (3, 3), tier="smoke"),
        _case("plain/large", (4, 4), "entries near 1", over=3),
        _case("plain/small-entries", (6, 6), bits=24, over=64),
        _case("again/no-head", (3, 0, 2, 2)),
        _case("refused/square", (3, 4), "no square matrix", kind="reject"),
        *_cayley_forms(),
        gradient("cayley", "plain", {"skew": reals("cayley-plain", 3, 3) / 8}, {"out": (3, 3)}),
        gradient("cayley", "heads", {"skew": reals("cayley-heads", 2, 2, 2, bits=24) / 8}, {"out": (2, 2, 2)}, bits=24),
    )


BASIS = "The basis is a Cayley transform, (I - S)(I + S)^-1: both factors, and no exponential."


_deviation = deviations_of("cayley")

DEVIATIONS = (
    _deviation("string-transposed", "the basis is transposed: (I + S)(I - S)^-1", argument(0, lambda s: -s),
               hint="PyTorch's orthogonal() takes the lower triangle, with the other sign."),
    _deviation("string-halved", "the parameter is halved", argument(0, lambda s: s / 2),
               hint="PyTorch's orthogonal() has (I - A/2)^-1 (I + A/2)."),
    _deviation("string-full", "the transpose of the whole matrix is subtracted, not of its upper triangle",
               argument(0, lambda s: s - transposed(s)), hint=TRIANGLE),
    _deviation("string-exponential", "the basis is an exponential, equal to second order",
               after(lambda out, skew, /, **rest: skew_exponential(-2 * skew_symmetric(np.asarray(skew, dtype=np.float64)))),
               hint=BASIS),
    _deviation("string-one-factor", "the inverse factor is left out: the basis is I - S",
               after(lambda out, s, /, **rest: np.eye(s.shape[-1]) - skew_symmetric(s)), hint=BASIS),
    _deviation("string-unlearned", "the basis is left out: only RoPE-Mixed remains", argument(0, lambda s: 0 * s),
               hint="Multiply by the learned basis before the rotation."),
    _deviation("string-first-head", "the basis of the first head is used for every head",
               argument(0, lambda x: np.broadcast_to(x[(slice(0, 1),) * (x.ndim - 2)], x.shape) if x.size else x),
               hint=EACH_HEAD),
    _deviation("string-bfloat16", "the basis's parameter is held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
)  # fmt: skip
