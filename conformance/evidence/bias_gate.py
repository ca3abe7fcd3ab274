"""The gate of WavLM's relative position bias: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Real, after, argument, cases_of, deviations_of, gradient, held, reals
from .tools.hints import EACH_HEAD, ROUND_ONCE

OP = "bias_gate"
SATURATES = True  # sums beyond 100 leave a gate of 0 or 1
KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"H": 33, "Q": 129, "D": 64, "B": (2,)}

_gate = cases_of(OP)


def _arrays(name: str, shape: tuple[int, ...], bits: int = 8, scale: float = 0.5) -> dict[str, Any]:
    """Return the arrays for a state of this shape, (*B, H, Q, D)."""
    heads, width = shape[-3], shape[-1]
    return {
        "x": reals(f"{OP} {name} x", *shape, bits=bits) * scale,
        "weight": reals(f"{OP} {name} w", 8, width, bits=bits) / 2.0 ** max(width - 1, 1).bit_length(),  # exact in float32
        "offset": reals(f"{OP} {name} b", 8, bits=bits) / 4,
        "constant": reals(f"{OP} {name} c", heads, bits=bits),
    }


def _case(name: str, shape: tuple[int, ...], comment: str = "", *, bits: int = 8, scale: float = 0.5, **rest: Any) -> Case:
    return _gate(name, {}, _arrays(name, shape, bits, scale) | rest.pop("given", {}), comment, **rest)


def _gradient(name: str, shape: tuple[int, ...]) -> Case:
    return gradient(OP, name, _arrays(f"gradient {name}", shape), {"out": shape[:-1]})


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("plain/small", (3, 4, 2), tier="smoke"),
        _case("plain/two-batches", (2, 3, 2, 4, 3)),
        _case("plain/one-channel", (5, 3, 1)),
        _case("plain/24-bits", (4, 3, 6), bits=24),
        _case("plain/saturated", (3, 6, 4), "sums of more than 100 in size", scale=256.0),
        _case("plain/saturated-batch", (2, 2, 3, 5), scale=512.0),
        _case("plain/wavlm-base", (12, 3, 64), "12 heads of 64 channels"),
        _case("plain/wavlm-large", (16, 2, 64), "16 heads of 64 channels"),
        _case("plain/129-queries", (2, 129, 2)),
        _case("forms/batch-one-wide", (1, 2, 5, 8)),
        _case("refused/weight", (3, 2, 4), "a weight of four rows", given={"weight": reals("four", 4, 4)}, kind="reject"),
        _case("refused/offset", (3, 2, 4), "an offset for each channel", given={"offset": reals("off", 4)}, kind="reject"),
        _case("refused/constant", (3, 2, 4), "constants with all axes of the model's parameter",
              given={"constant": reals("all", 1, 3, 1, 1)}, kind="reject"),
        _gradient("small", (2, 2, 3)),
        _gradient("batch", (2, 2, 2, 2)),
        _gradient("one-query", (3, 1, 2)),
        _gradient("one-head", (1, 3, 2)),
    )  # fmt: skip


def _sigmoid(x: Real) -> Real:
    return np.exp(np.minimum(x, 0.0)) / (1 + np.exp(-np.abs(x)))


def _computed(change: Any) -> Any:
    """Return a wrap that computes the gate in another way, of the eight numbers and the constants."""
    return lambda function: change


def _summed_after(states: Real, c: Real) -> Real:
    a, b = _sigmoid(states)[..., :4].sum(-1), _sigmoid(states)[..., 4:].sum(-1)
    return a * (b * c - 1) + 2


def _alternating(states: Real, c: Real) -> Real:
    a, b = _sigmoid(states[..., ::2].sum(-1)), _sigmoid(states[..., 1::2].sum(-1))
    return a * (b * c - 1) + 2


def _formula(change: Any) -> Any:
    return _computed(lambda states, c: change(_sigmoid(states[..., :4].sum(-1)), _sigmoid(states[..., 4:].sum(-1)), c))


def _overflowing(states: Real, c: Real) -> Real:
    """Let sums above 88 overflow, as exp(x) / (1 + exp(x)) does in float32."""
    sums = [s.sum(-1) for s in (states[..., :4], states[..., 4:])]
    a, b = (np.where(s > 88.0, np.nan, _sigmoid(s)) for s in sums)
    return a * (b * c - 1) + 2


_deviation = deviations_of(OP)
_of_gate = deviations_of("gate_of")
GATES = "g = a (b c - 1) + 2: a is of the first four numbers, b of the last four."
SUM_FIRST = "Add four numbers first, then take the sigmoid."

DEVIATIONS = (
    _of_gate("gate-sigmoid-first", "the sigmoid is taken before the sum of four", _computed(_summed_after), hint=SUM_FIRST),
    _of_gate("gate-mean", "the mean of four numbers is taken, not their sum", argument(0, lambda s: s / 4), hint=SUM_FIRST),
    _of_gate("gate-alternating", "every second number belongs to the other gate", _computed(_alternating), hint=GATES),
    _of_gate("gate-exchanged", "the two gates are exchanged", _formula(lambda a, b, c: b * (a * c - 1) + 2), hint=GATES),
    _of_gate("gate-no-minus", "the 1 is not subtracted", _formula(lambda a, b, c: a * b * c + 2), hint=GATES),
    _of_gate("gate-plus-one", "1 is added at the end, not 2", after(lambda out, *a: out - 1), hint=GATES),
    _of_gate("gate-constant-outside", "the constant multiplies both gates",
             _formula(lambda a, b, c: a * c * (b - 1) + 2), hint=GATES),
    _of_gate("gate-overflow", "a sum above 88 gives NaN", _computed(_overflowing),
             hint="Use a sigmoid that is made for large arguments."),
    _deviation("gate-no-offset", "the linear map has no offset", argument(2, lambda b: 0 * b), hint="The map has a bias."),
    _deviation("gate-no-constant", "the constant is 1", argument(3, np.ones_like), hint="Each head has a learned constant."),
    _deviation("gate-first-constant", "all heads have the constant of the first",
               argument(3, lambda c: np.broadcast_to(c[:1], c.shape)), hint=EACH_HEAD),
    _deviation("gate-first-part", "all heads read the first head's part of the state",
               argument(0, lambda x: np.broadcast_to(x[..., :1, :, :], x.shape)), hint=EACH_HEAD),
    _deviation("gate-weight-bfloat16", "the weight is narrowed to bfloat16", held("bfloat16", 1), hint=ROUND_ONCE),
)  # fmt: skip
