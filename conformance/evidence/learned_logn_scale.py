"""Learned log-n attention scaling (SSMax): cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.factors import EDGES, TEXTS
from .shared.masks import BEYOND
from .tools import Case, argument, deviations_of, floats, gradient, narrowed, reals
from .tools.hints import EACH_HEAD, KEEP_FLOAT32

KERNEL: tuple[dict[str, Any], ...] = ({},)
KERNEL_SIZES: dict[str, Any] = {"H": 33}


def _case(name: str, positions: Any, heads: int, comment: str = "", **more: Any) -> Case:
    """Return a case of learned_logn_scale with a scale and a bias for each head."""
    bits = more.pop("bits", 8)
    learned = {n: floats(heads, seed=len(name) * 31 + k, bits=bits) for k, n in enumerate(("scale", "bias"))}
    inputs = {"positions": positions, **learned, **more.pop("given", {})}
    return Case(f"learned_logn_scale/{name}", {}, inputs, comment, **more)


def _given(positions: Any, scale: Any, bias: Any) -> dict[str, Any]:
    return {"positions": positions, "scale": np.asarray(scale), "bias": np.asarray(bias)}


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("heads/small", (0, 1, 9, 99), 3, tier="smoke"),
        _case("heads/mistral-large-4", EDGES, 64, "as many heads"),
        _case("heads/rows", TEXTS, 2),
        _case("heads/more-axes", np.asarray(TEXTS)[:, None, :3], 5, "two axes before the tokens"),
        _case("heads/beyond-float32", (BEYOND, BEYOND + 1, 2**30), 3, bits=24),
        _case("heads/decode", (5000,), 4),
        _case("learned/ssmax", (), 0, "no bias; the first factors are 0",
              given=_given((0, 1, 2, 511, 4095), (0.43, 1.0), (0.0, 0.0))),
        _case("learned/neutral", (), 0, "nothing changes", given=_given((0, 7, 100), (0.0,) * 2, (1.0,) * 2)),
        _case("refused/fractions", (1.5, 2.0), 2, "positions are integers", kind="reject"),
        _case("refused/shapes", (), 0, "a bias for each head", given=_given((1, 2), (0.5, 1.0), (1.0,)), kind="reject"),
        _case("refused/no-axis", 3, 2, "queries have an axis", kind="reject"),
        gradient("learned_logn_scale", "heads",
                 {"positions": (0, 4, 90), "scale": reals("learned logn", 2), "bias": reals("learned logn bias", 2)},
                 {"out": (2, 3)}),
        gradient("learned_logn_scale", "rows",
                 {"positions": ((1, 4, 0, 7), (300, 2, 5, 9)), "scale": reals("logn rows", 3),
                 "bias": reals("logn rows bias", 3)}, {"out": (2, 3, 4)}),
    )  # fmt: skip


_deviation = deviations_of("learned_logn_scale")

DEVIATIONS = (
    _deviation("learned-logn-position", "the logarithm is taken of the position, not of the number of keys",
               argument(0, lambda p: np.maximum(p - 1, 0)), hint="A causal query at p sees p + 1 keys."),
    _deviation("learned-logn-no-bias", "the bias is left out", argument(2, lambda c: 0 * c),
               hint="Add the bias to scale times logarithm."),
    _deviation("learned-logn-no-scale", "the logarithm is not scaled", argument(1, lambda a: 0 * a + 1),
               hint="Every head has a scale of its own."),
    _deviation("learned-logn-first-head", "every head has the scale and bias of the first",
               lambda f: lambda p, a, c, /, **o: f(p, *(np.broadcast_to(x[:1], x.shape) for x in (a, c)), **o), hint=EACH_HEAD),
    _deviation("learned-logn-exchanged", "scale and bias are exchanged", lambda f: lambda p, a, c, /, **o: f(p, c, a, **o),
               hint="The scale multiplies the logarithm, the bias does not."),
    _deviation("learned-logn-bfloat16", "the logarithm is held in bfloat16",
               lambda f: lambda p, a, c, /, **o: a[:, None] * narrowed("bfloat16")(np.log(np.maximum(p + 1, 1)))[..., None,
               :] + c[:, None], hint=KEEP_FLOAT32, seen_in="transformers' Mistral Large 4"),
)  # fmt: skip
