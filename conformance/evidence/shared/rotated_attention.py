"""Cases and mistakes that other forms of attention with RoPE inside share."""

from collections.abc import Callable
from typing import Any

import numpy as np

import posref
from posref.types import Layout

from ..tools import Case, Deviation, Real, Wrap, always, before, form_case, gradient, held, narrowed, option, reals
from ..tools.hints import ARANGE, BRANCH, DEFAULT, EACH_ROW, FROM_ZERO, ROUND_ONCE

FAR_Q, FAR_K = (131071, 257, 2049), (131070, 256, 2048, 65537, 7)
ROWS_Q, ROWS_K = ((4, 5, 6), (260, 261, 262)), ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260))
NONE = np.zeros(0, dtype=np.int64)
Places = tuple[Any, Any]


def with_heads(rows: Any) -> Any:
    """Return positions (B, T) as (B, 1, T)."""
    return np.asarray(rows)[:, None, :].tolist()


ROWS = ((4, 1, 7), (260, 257, 258)), ((0, 3, 5, 2), (256, 260, 255, 257))


def inside_forms(op: str, axes: dict[str, str], options: dict[str, Any], *, by_head: bool = True) -> tuple[Case, ...]:
    """Return the forms of arrays that have these axes: heads, queries, keys, widths; positions have one for heads, or not."""

    def case(
        name: str, lead: tuple[int, ...], places: tuple[Any, Any], comment: str = "", *, heads: int = 2, form: str = ""
    ) -> Case:
        sizes = {"h": heads, "q": np.shape(places[0])[-1], "k": np.shape(places[1])[-1], "d": 6, "e": 5}
        arrays = {n: reals(op + name + n, *lead, *(sizes[a] for a in letters)) / 8 for n, letters in axes.items()}
        if "weights" in arrays:
            arrays["weights"] = np.abs(arrays["weights"])
        q, k = (np.asarray(p)[:, None] if np.ndim(p) > 1 and by_head else np.asarray(p) for p in places)
        return form_case(op, name, {**arrays, "q_positions": q, "k_positions": k}, options, comment, form=form)

    return (
        case("batch-one", (1,), ((4, 1, 7), (0, 3, 5, 2))),
        case("length-one", (2,), ((5,), (4,)), "one query and one key", heads=3),
    )


def inside_gradient(op: str, name: str, shapes: str, places: tuple[Any, Any], out: tuple[int, ...], **params: Any) -> Case:
    """Return a case of RoPE inside another form of attention; `shapes` are of its arrays, as in "q 2,6"."""
    inputs: dict[str, Any] = {
        n: reals(op + name + n, *map(int, sizes.split(","))) / 4 for n, sizes in (part.split() for part in shapes.split(";"))
    }
    inputs |= {"q_positions": places[0], "k_positions": places[1]}
    return gradient(op, name, inputs, {"out": out}, **{"base": 10000.0, **params})


QUERIES = {"rotated_values": 2, "mla_logits": 4, "rotary_linear_attention": 3}  # the argument that holds the queries' positions


def _places(change_q: Callable[[Any], Any] | None, change_k: Callable[[Any], Any] | None) -> dict[str, Wrap]:
    """Return wraps that change the positions of queries, or of keys."""

    def of(op: str, index: int) -> Wrap:
        def change(*args: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            changed_args = list(args)
            for at, one in ((index, change_q), (index + 1, change_k)):
                changed_args[at] = one(args[at]) if one else args[at]
            return tuple(changed_args), options

        return before(change)

    return {op: of(op, index) for op, index in QUERIES.items()}


def _arange(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape)


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape) if p.ndim > 1 and p.shape[0] else p


def _everywhere(wrap: Wrap) -> dict[str, Wrap]:
    return dict.fromkeys(QUERIES, wrap)


def elu_plus_one(x: Real) -> Real:
    """Return elu(x) + 1."""
    return np.maximum(x, 0) + np.exp(np.minimum(x, 0))


def linear_attention(
    *, phi: Callable[[Real], Real] = elu_plus_one, turn_first: bool = False, turn_below: bool = False, turn_above: bool = True,
    below_all: bool = False, normalised: bool = True, seen: Callable[[Any, Any], Any] | None = None, sign: int = 1,
) -> dict[str, Wrap]:  # fmt: skip
    """Return linear attention with one of its parts done in another way."""

    def deviating(
        q: Real, k: Real, v: Real, q_positions: Any, k_positions: Any, /, *, layout: Layout, base: float, causal: bool
    ) -> Real:
        def turned(x: Real, p: Any) -> Real:
            return np.asarray(posref.rope(x, sign * p, layout=layout, base=base))

        sides = ((q, q_positions), (k, k_positions))
        if turn_first:
            plain = [phi(turned(x, p)) for x, p in sides]
            rotated = plain
        else:
            plain = [phi(x) for x, _ in sides]
            rotated = [turned(x, p) for x, (_, p) in zip(plain, sides, strict=True)] if turn_above else plain
        above = rotated[0] @ np.swapaxes(rotated[1], -1, -2)
        below = above if turn_below else plain[0] @ np.swapaxes(plain[1], -1, -2)
        mask = np.broadcast_to(q_positions[..., :, None] >= k_positions[..., None, :] if causal else True, above.shape)
        if seen:
            mask = np.broadcast_to(seen(q_positions[..., :, None], k_positions[..., None, :]) if causal else True, above.shape)
        above, below = np.where(mask, above, 0.0), below if below_all else np.where(mask, below, 0.0)
        total = np.sum(below, axis=-1, keepdims=True)
        total = np.where(np.any(mask, axis=-1, keepdims=True), total, 1.0)
        return above @ v / (total if normalised else 1.0)

    return {"rotary_linear_attention": lambda function: deviating}


DEVIATIONS = (
    Deviation("inside-positions-bfloat16", "positions of queries and keys are held in bfloat16",
              _places(narrowed("bfloat16"), narrowed("bfloat16")), hint="Every distance that is computed from them is off.",
              seen_in="candle#3520"),
    Deviation("inside-positions-first-row", "row 0's positions are used for all rows", _places(_first_row, _first_row),
              hint=EACH_ROW, seen_in="Liger-Kernel#477"),
    Deviation("inside-queries-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)", _places(_arange, None),
              hint=ARANGE, seen_in="mlx-vlm#1983"),
    Deviation("inside-keys-arange", "keys are at 0, 1, 2, ..., not at their positions", _places(None, _arange), hint=ARANGE,
              seen_in="keras-hub#1544"),
    Deviation("inside-keys-plus-1", "keys' positions are one too large", _places(None, lambda p: p + 1), hint=FROM_ZERO,
              seen_in="fla#766"),
    Deviation("inside-turned-by-minus", "the rotation has the wrong direction",
              _places(lambda p: -p, lambda p: -p) | linear_attention(sign=-1), hint="Distances have the wrong sign.",
              seen_in="NanoChat's convention"),
    Deviation("inside-base-10000", "the base is always 10000", _everywhere(option(base=always(10000.0))), hint=DEFAULT,
              seen_in="airllm#368"),
    Deviation("inside-layout-half", "layout is always 'half'", _everywhere(option(layout=always("half"))), hint=BRANCH,
              one_of="layout inside"),
    Deviation("inside-layout-interleaved", "layout is always 'interleaved'", _everywhere(option(layout=always("interleaved"))),
              hint=BRANCH, one_of="layout inside"),
    Deviation("inside-input-bfloat16", "values, the queries' rotated channels, or linear attention's keys are held in bfloat16",
              _everywhere(held("bfloat16", 1)), hint=ROUND_ONCE),
)  # fmt: skip
