"""Stick-breaking attention: cases and known mistakes."""

from typing import Any

import numpy as np

from .tools import Case, Function, Real, after, around, cases_of, deviations_of, form_case, gradient, held, narrowed, reals
from .tools.hints import KEEP_FLOAT32

OP = "stick_breaking"
KERNEL: tuple[dict[str, Any], ...] = ({},)

_cases = cases_of(OP)


def _inputs(
    name: str, lead: tuple[int, ...], queries: int, keys: int, bits: int = 8, by: float = 0.5, own: bool = False
) -> Any:
    ahead = np.arange(keys - queries, keys)[:, None] - np.arange(keys)  # of the last queries of a text
    return {"logits": reals(OP + name, *lead, queries, keys, bits=bits) * by, "mask": ahead >= 0 if own else ahead > 0}


def _case(
    name: str, lead: tuple[int, ...], queries: int, keys: int, comment: str = "", *, bits: int = 8, by: float = 0.5,
    own: bool = False, **rest: Any,
) -> Case:  # fmt: skip
    """Return a case of stick_breaking, of keys before the query unless another mask is given."""
    inputs = _inputs(name, lead, queries, keys, bits, by, own) | rest.pop("given", {})
    return _cases(name if "/" in name else f"before/{name}", {}, inputs, comment, **rest)


def _form(name: str, lead: tuple[int, ...], queries: int, keys: int, comment: str = "", form: str = "") -> Case:
    return form_case(OP, name, _inputs(name, lead, queries, keys, own=True), {}, comment, form=form)


def _gradient(name: str, lead: tuple[int, ...], queries: int, keys: int, own: bool = True, view: str = "") -> Case:
    inputs = _inputs(f"gradient {name}", lead, queries, keys, own=own)
    outputs = {"weights": (*lead, queries, keys), "remainder": (*lead, queries)}
    return gradient(OP, name, inputs, outputs, view=view)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("small", (), 3, 4, tier="smoke"),
        _case("whole", (2,), 5, 5, "the first query sees no key: its remainder is 1"),
        _case("24-bits-large", (2,), 2, 6, bits=24, by=3.0),
        _case("32-heads", (32,), 1, 16),
        _case("open", (), 1, 8, "every key takes nearly all that is left", by=4.0,
              given={"logits": np.abs(reals("stick open", 1, 8)) * 4 + 8}),
        _form("batch-one", (1, 2), 3, 4),
        _form("length-one", (2,), 1, 1),
        _case("refused/mask", (), 2, 3, "a mask is boolean", kind="reject", given={"mask": np.zeros((2, 3))}),
        _case("refused/shape", (), 2, 3, "the mask does not fit", kind="reject", given={"mask": np.ones((2, 4), dtype=bool)}),
        _gradient("small", (), 3, 4),
        _gradient("before", (), 3, 4, own=False),
        _gradient("rows", (2,), 2, 3),
        _gradient("strided", (2,), 2, 3, view="non-contiguous"),
    )  # fmt: skip


def _weights(change: Any, *, remainder: Any = None) -> Any:
    """Return a wrap that computes weights from the shares and the mask in another way, and the remainder from the shares."""

    def deviating(function: Function, logits: Real, mask: Any, /) -> Any:
        shares = np.where(mask, 1 / (1 + np.exp(-logits)), 0.0)
        weights = np.where(mask, change(shares, logits, np.broadcast_to(mask, logits.shape)), 0.0)
        return weights, 1 - np.sum(weights, axis=-1) if remainder is None else remainder(shares)

    return around(deviating)


def _from_the_start(shares: Real, logits: Real, mask: Any) -> Real:
    left = np.cumprod(1 - shares, axis=-1)
    return shares * np.concatenate([np.ones_like(left[..., :1]), left[..., :-1]], axis=-1)


def _softmax(logits: Real, mask: Any) -> Real:
    exps = np.where(mask, np.exp(logits), 0.0)
    return exps / np.maximum(np.sum(exps, axis=-1, keepdims=True), 1e-300)


_deviation = deviations_of(OP)
_taken = deviations_of("sticks_taken")
NEAREST = "Multiply by what all later keys leave, not the key itself: reverse, cumulative sum less its own term, reverse."

DEVIATIONS = (
    _deviation("stick-from-the-start", "the first key takes its share first",
               _weights(_from_the_start, remainder=lambda shares: np.prod(1 - shares, axis=-1)), hint=NEAREST),
    _deviation("stick-own-counted", "what the key itself leaves counts too",
               _weights(lambda shares, logits, mask: shares * np.flip(np.cumprod(np.flip(1 - shares, -1), axis=-1), -1)),
               hint=NEAREST),
    _deviation("stick-sigmoids", "every key takes its share of the whole", _weights(lambda s, z, m: s), hint=NEAREST),
    _deviation("stick-softmax", "the weights are those of a softmax", _weights(lambda s, z, m: _softmax(z, m)),
               hint="There is no softmax: the weights come from sigmoids alone."),
    _deviation("stick-normalized", "the weights are divided by their sum",
               after(lambda out, *a: (out[0] / np.maximum(np.sum(out[0], -1, keepdims=True), 1e-300), 0 * out[1])),
               hint="The weights need not add up to 1: what is left is the remainder."),
    _deviation("stick-unmasked", "masked keys take their share too",
               lambda f: lambda z, m, /: tuple(f(z, np.ones_like(m))), hint="A masked key leaves the whole stick: log 1 = 0."),
    _deviation("stick-no-remainder", "the remainder is 0", after(lambda out, *a: (out[0], 0 * out[1])),
               hint="Return 1 less the sum of the weights."),
    _deviation("stick-logits-bfloat16", "logits are held in bfloat16", held("bfloat16", 0), hint=KEEP_FLOAT32),
    _taken("stick-next-left-out", "the key right after does not count",
           lambda f: lambda taken, left, /: f(taken, np.concatenate([left[..., 1:], 0 * left[..., :1]], axis=-1)),
           hint=NEAREST),
    _taken("stick-sums-bfloat16", "sums of logarithms are held in bfloat16",
           lambda f: lambda *a: narrowed("bfloat16")(f(*a)), hint=KEEP_FLOAT32,
           seen_in="shawntan/stickbreaking-attention@3147a38"),
)  # fmt: skip
