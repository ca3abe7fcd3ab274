"""Linear attention with RoPE: cases and known mistakes."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .shared.rotary import BASE, ROTARY, UNSORTED, in_layouts
from .shared.rotated_attention import (
    FAR_K,
    FAR_Q,
    NONE,
    ROWS_K,
    ROWS_Q,
    Places,
    elu_plus_one,
    inside_forms,
    inside_gradient,
    linear_attention,
    with_heads,
)
from .tools import Case, Deviation, Make, Real, Step, always, deviations_of, floats, option, seed_of
from .tools.hints import ARANGE, BRANCH, SKIPPED

USUAL: dict[str, Any] = {**ROTARY, "causal": False}
SIZES: dict[str, Any] = {"H": 2}
KERNEL = in_layouts(causal=True)


def _linear_step(
    seed: str, lead: tuple[int, ...], width: int, places: Places, *, out: int = 3, bits: int = 8, **params: Any
) -> Step:
    """Return a call: leading axes, the width of queries and keys, positions, and the width of values."""
    queries, keys = (np.asarray(p).shape[-1] for p in places)
    shapes = {"q": (*lead, queries, width), "k": (*lead, keys, width), "v": (*lead, keys, out)}
    arrays = {name: floats(*shape, seed=seed_of(seed + name), bits=bits) / 2 for name, shape in shapes.items()}
    inputs = {**arrays, "q_positions": places[0], "k_positions": places[1]}
    return Step({"base": BASE, "causal": False, **params}, inputs)


def _case(name: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
    step = _linear_step(name, *call, **more)
    return Case(f"rotary_linear_attention/{name}", step.params, step.inputs, comment, kind, tier)


_gradient = partial(inside_gradient, "rotary_linear_attention")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("half/small", (2,), 6, ((1, 4), (0, 1, 5)), layout="half", tier="smoke"),
        _case("half/unsorted", (3,), 10, ((3, 8, 1, 4), UNSORTED), layout="half", base=5e5),
        _case("half/rows", (2,), 6, (ROWS_Q, ROWS_K), layout="half", comment="positions (B, Q) and (B, K)"),
        _case("half/head-64", (2,), 64, ((900, 7), (3, 511, 900)), layout="half", out=5,
              comment="Performer's heads in the paper's experiment"),
        _case("interleaved/rows", (2, 3), 8, (with_heads(ROWS_Q), with_heads(ROWS_K)), layout="interleaved",
              bits=24, comment="positions (B, 1, Q) and (B, 1, K)"),
        _case("interleaved/base", (3,), 10, ((31, 5), (7, 0, 12)), layout="interleaved", base=500.0),
        _case("interleaved/far", (3,), 10, (FAR_Q, FAR_K), layout="interleaved", base=1e6),
        _case("mixed/small", (3,), 10, ((1, 4, 2), (0, 1, 5, 9)), layout="interleaved_to_half"),
        _case("causal/interleaved", (3,), 10, ((0, 1, 2, 3, 4), (0, 1, 2, 3, 4)), layout="interleaved", causal=True, bits=24),
        _case("causal/fractional", (3,), 6, ((0.5, 2.25), (0.25, 0.5, 1.75)), layout="half", causal=True),
        _case("shapes/no-query", (3,), 6, (NONE, (0, 1)), layout="half"),
        _case("refused/layout", (2,), 6, ((1, 4), (0, 1, 5)), layout="neox", comment="no such layout", kind="reject"),
        _case("refused/odd", (2,), 7, ((1, 4), (0, 1, 5)), layout="half", kind="reject", comment="lanes rotate in pairs"),
        *inside_forms("rotary_linear_attention", {"q": "hqd", "k": "hkd", "v": "hke"}, USUAL),
        _gradient("all", "q 2,4;k 3,4;v 3,2", ((7, 1), (0, 2, 9)), (2, 2), layout="half", causal=False),
        _gradient("causal", "q 3,2;k 3,2;v 3,3", ((2, 0, 1), (0, 1, 5)), (3, 3), layout="interleaved", causal=True),
        _gradient("unseen", "q 2,4;k 3,4;v 3,2", ((7, 0), (1, 2, 9)), (2, 2), layout="half", causal=True),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield a second call in the mixed layout."""
    yield make.one("mixed-layout", params={**USUAL, "layout": "interleaved_to_half"})


FEATURE_MAP = "The feature map is elu(x) + 1."
SUM_OF_WEIGHTS = "Divide by the sum of weights over the keys that the query sees."


def relu(x: Real) -> Real:
    """Return max(x, 0), and a little so that nothing is divided by 0."""
    return np.maximum(x, 0) + 1e-3


_deviation = deviations_of("rotary_linear_attention")

DEVIATIONS = (
    Deviation("linear-below-rotated", "the denominator uses rotated queries and keys too", linear_attention(turn_below=True),
              hint="Equation (19) keeps the denominator."),
    Deviation("linear-rotated-first", "queries and keys are rotated before the feature map", linear_attention(turn_first=True),
              hint="The denominator then uses rotated ones too.", seen_in="performer-pytorch"),
    Deviation("linear-not-rotated", "queries and keys are not rotated", linear_attention(turn_above=False), hint=SKIPPED),
    Deviation("linear-relu", "the feature map is relu, plus 1/1000", linear_attention(phi=relu), hint=FEATURE_MAP,
              seen_in="performer-pytorch's generalized kernel"),
    Deviation("linear-elu", "the feature map is elu, without the 1 that is added",
              linear_attention(phi=lambda x: elu_plus_one(x) - 1), hint=FEATURE_MAP),
    Deviation("linear-exp", "the feature map is exp", linear_attention(phi=np.exp), hint=FEATURE_MAP),
    Deviation("linear-not-divided", "the numerator is not divided by the sum of weights", linear_attention(normalised=False),
              hint=SUM_OF_WEIGHTS),
    _deviation("linear-sees-all", "causal attention sees all keys", option(causal=always(False)), hint=BRANCH),
    _deviation("linear-sees-past", "queries never see later keys", option(causal=always(True)), hint=BRANCH),
    Deviation("linear-below-all", "causal attention divides by the sum over all keys", linear_attention(below_all=True),
              hint=SUM_OF_WEIGHTS),
    Deviation("linear-strictly-before", "causal attention leaves out the query's own position",
              linear_attention(seen=lambda q, k: q > k), hint="A causal query also sees its own key: <= and not <."),
    Deviation("linear-by-index", "causal attention counts queries and keys from 0, and does not look at positions",
              linear_attention(seen=lambda q, k: np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-1])), hint=ARANGE),
)  # fmt: skip
