"""Deviations of RoPE inside other forms of attention: rotated values, MLA's logits, and linear attention."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import posref
from posref.types import Layout

from .compose import Deviation, Function, Real, Wrap, after, always, argument, before, narrowed, option, spread_heads

QUERIES = {"rotated_values": 2, "mla_logits": 4, "rotary_linear_attention": 3}  # the argument that holds the queries' positions


def _places(change_q: Callable[[Any], Any] | None, change_k: Callable[[Any], Any] | None) -> dict[str, Wrap]:
    """Return wraps that change the positions of queries, or of keys."""

    def of(op: str, index: int) -> Wrap:
        def change(*args: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            found = list(args)
            for at, one in ((index, change_q), (index + 1, change_k)):
                found[at] = one(args[at]) if one else args[at]
            return tuple(found), options

        return before(change)

    return {op: of(op, index) for op, index in QUERIES.items()}


def _arange(p: Any) -> Any:
    return np.broadcast_to(np.arange(p.shape[-1]), p.shape)


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape) if p.ndim > 1 and p.shape[0] else p


def _everywhere(wrap: Wrap) -> dict[str, Wrap]:
    return dict.fromkeys(QUERIES, wrap)


# ---- rotated values -------------------------------------------------------------------------------------------------------
def _values(change: Callable[..., Real]) -> Mapping[str, Wrap]:
    """Return a wrap: `change` takes the values turned forwards, a function that turns back, and the call."""

    def wrap(function: Function) -> Function:
        def deviating(weights: Real, v: Real, q: Any, k: Any, /, **options: Any) -> Real:
            def turned(x: Real, p: Any, *, inverse: bool = False, **other: Any) -> Real:
                return np.asarray(posref.rope(x, p, **(options | other), inverse=inverse))

            def mixed(values: Real) -> Real:
                return np.asarray(weights @ spread_heads(values, weights))

            return change(turned, mixed, v, q, k, options)

        return deviating

    return {"rotated_values": wrap}


def _stays_in_halves(out: Real, weights: Real, v: Real, *rest: Any, layout: str, **options: Any) -> Real:
    """The output has its lanes where the rotated values had them."""
    if layout != "interleaved_to_half":
        return out
    kept = options.get("rotary_dim") or v.shape[-1]
    start = v.shape[-1] - kept if options.get("lanes") == "trailing" else 0
    end = start + kept
    return np.concatenate([out[..., :start], out[..., start:end:2], out[..., start + 1 : end : 2], out[..., end:]], axis=-1)


def _gained(power: int) -> Wrap:
    """Return a wrap in which the table's factor has another power than 2 in the rotated lanes."""

    def change(out: Real, weights: Real, v: Real, *rest: Any, base: float, **options: Any) -> Real:
        kept = options.get("rotary_dim") or v.shape[-1]
        start = v.shape[-1] - kept if options.get("lanes") == "trailing" else 0
        scaling = {name: options.get(name) for name in ("scaling", "length")}
        out = np.array(out)
        out[..., start : start + kept] *= posref.rope_frequencies(kept, base=base, **scaling)[1] ** (power - 2)
        return out

    return after(change)


def _tiled(weights: Real, v: Real, *rest: Any, **options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Value heads one after another, and again."""
    if v.ndim < 3 or not v.shape[-3]:
        return (weights, v, *rest), options
    return (weights, np.concatenate([v] * (weights.shape[-3] // v.shape[-3]), axis=-3), *rest), options


# ---- logits of MLA --------------------------------------------------------------------------------------------------------
def _mla(change: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]) -> dict[str, Wrap]:
    return {"mla_logits": before(change)}


def _scaled(by: Callable[[int, int, float | None], float | None]) -> dict[str, Wrap]:
    """Return a wrap with another scale: `by` takes the widths without and with positions, and the scale asked for."""

    def change(q_nope: Real, q_rope: Real, *rest: Any, scale: float | None = None, **options: Any) -> Any:
        return (q_nope, q_rope, *rest), options | {"scale": by(q_nope.shape[-1], q_rope.shape[-1], scale)}

    return _mla(change)


def _root(width: int) -> float:
    return float(width) ** -0.5 if width else 1.0


def _first_head_alone(q_nope: Real, q_rope: Real, *rest: Any, **options: Any) -> Any:
    """The shared key reaches the first head."""
    first = np.arange(q_rope.shape[-3])[:, None, None] == 0
    return (q_nope, np.where(first, q_rope, 0.0), *rest), options


def _by_heads(q_nope: Real, q_rope: Real, k_nope: Real, k_rope: Real, q: Any, k: Any, /, **options: Any) -> Any:
    """Positions of queries count heads: (B, H, Q, D) is taken for (B, Q, H, D)."""
    heads, queries = q_rope.shape[-3:-1]
    places = np.broadcast_to(np.arange(heads)[:, None], (*q_rope.shape[:-3], heads, queries))
    turn = {name: value for name, value in options.items() if name != "scale"}
    there = posref.rope(q_rope, places, **turn)
    q_rope = posref.rope(there, np.zeros((), dtype=np.int64), **turn, inverse=True)
    factor = posref.rope_frequencies(q_rope.shape[-1], **{n: v for n, v in turn.items() if n != "layout"})[1]
    return (q_nope, q_rope / factor**2, k_nope, k_rope, 0 * q, k), options


def _all_lanes(function: Function) -> Function:
    """All lanes of queries and keys rotate, with frequencies of their whole number."""

    def deviating(
        q_nope: Real, q_rope: Real, k_nope: Real, k_rope: Real, q: Any, k: Any, /, *, scale: float | None = None, **turn: Any
    ) -> Real:
        shared = np.broadcast_to(k_rope[..., None, :, :], (*k_nope.shape[:-1], k_rope.shape[-1]))
        sides = (np.concatenate(pair, axis=-1) for pair in ((q_nope, q_rope), (k_nope, shared)))
        width = (q_nope.shape[-1] + q_rope.shape[-1]) // 2 * 2
        places = (p if p.ndim < 2 else p[..., None, :] for p in (q, k))
        one, other = (posref.rope(x, p, rotary_dim=width, **turn) for x, p in zip(sides, places, strict=True))
        return np.asarray(posref.attention_logits(one, other, scale=scale))

    return deviating


def _mla_gain(change: Callable[[Real, float], tuple[Real, Real]]) -> dict[str, Wrap]:
    """Return a wrap that changes both parts of the queries: `change` takes the two and the factor of the scaling."""

    def gained(q_nope: Real, q_rope: Real, *rest: Any, base: float, **options: Any) -> Any:
        scaling = {name: options.get(name) for name in ("scaling", "length")}
        factor = posref.rope_frequencies(q_rope.shape[-1], base=base, **scaling)[1]
        return (*change((q_nope, q_rope), factor), *rest), options | {"base": base}

    return _mla(gained)


# ---- linear attention -----------------------------------------------------------------------------------------------------
def elu_plus_one(x: Real) -> Real:
    """Return elu(x) + 1."""
    return np.maximum(x, 0) + np.exp(np.minimum(x, 0))


def relu(x: Real) -> Real:
    """Return max(x, 0), and a little so that nothing is divided by 0."""
    return np.maximum(x, 0) + 1e-3


def _linear(
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


def _by_index(q: Any, k: Any) -> Any:
    return np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-1])


DEVIATIONS = (
    Deviation("inside-positions-bfloat16", "positions of queries and keys are held in bfloat16",
              _places(narrowed("bfloat16"), narrowed("bfloat16")), "Every distance that is computed from them is off.", "candle#3520"),
    Deviation("inside-positions-first-row", "row 0's positions are used for all rows", _places(_first_row, _first_row), "",
              "Liger-Kernel#477"),
    Deviation("inside-queries-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)", _places(_arange, None), "",
              "mlx-vlm#1983"),
    Deviation("inside-keys-arange", "keys are at 0, 1, 2, ..., not at their positions", _places(None, _arange), "", "keras-hub#1544"),
    Deviation("inside-keys-plus-1", "keys' positions are one too large", _places(None, lambda p: p + 1), "", "fla#766"),
    Deviation("inside-turned-by-minus", "the rotation has the wrong direction",
              {op: _places(lambda p: -p, lambda p: -p)[op] for op in ("rotated_values", "mla_logits")} | _linear(sign=-1),
              "Distances have the wrong sign.", "NanoChat's convention"),
    Deviation("inside-base-10000", "the base is always 10000", _everywhere(option(base=always(10000.0))), "",
              "airllm#368"),
    Deviation("inside-layout-half", "layout is always 'half'", _everywhere(option(layout=always("half")))),
    Deviation("inside-layout-interleaved", "layout is always 'interleaved'",
              _everywhere(option(layout=always("interleaved")))),
    Deviation("inside-input-bfloat16", "values, the queries' rotated channels, or linear attention's keys are held in bfloat16",
              _everywhere(argument(1, narrowed("bfloat16")))),
    Deviation("output-not-rotated-back", "values are rotated, but the output is not rotated back",
              _values(lambda turned, mixed, v, q, k, options: mixed(turned(v, k))),
              "Rotate the sum of values back, by the query's position.", "the convention of RoFormer's rotary_value"),
    Deviation("output-rotated-forward", "the output is rotated by the query's position, not back",
              _values(lambda turned, mixed, v, q, k, options: turned(mixed(turned(v, k)), q)), "A sine is not negated."),
    Deviation("values-not-rotated", "neither values nor output are rotated",
              _values(lambda turned, mixed, v, q, k, options: mixed(v)), "This equals rotating the output back by the keys' positions."),
    Deviation("output-alone-rotated", "the output is rotated back, but the values were not rotated",
              _values(lambda turned, mixed, v, q, k, options: turned(mixed(v), q, inverse=True)), "Keys are rotated, values are not."),
    Deviation("values-all-lanes", "all channels of the values are rotated", _values(
        lambda turned, mixed, v, q, k, options: turned(mixed(turned(v, k, rotary_dim=None)), q, inverse=True, rotary_dim=None))),
    Deviation("values-leading-lanes", "the first rotary_dim channels of values are always rotated",
              {"rotated_values": before(lambda *args, **o: (args, o | {"lanes": "leading"}))}, "DeepSeek-V4 rotates the last."),
    Deviation("values-trailing-lanes", "the last rotary_dim channels of values are always rotated",
              {"rotated_values": before(lambda *args, **o: (args, o | {"lanes": "trailing"}))}),
    Deviation("values-stay-in-halves", "the output's channels stay where layout 'interleaved_to_half' writes them",
              {"rotated_values": after(_stays_in_halves)}, "The way back swaps the read and the write layout."),
    Deviation("values-gain-once", "the attention factor is applied once, on values or on the output", {"rotated_values": _gained(1)},
              hint="Apply the attention factor to values and again to the output."),
    Deviation("values-gain-dropped", "the attention factor is not applied", {"rotated_values": _gained(0)}, "",
              "DeepSeek-V4 in transformers, on purpose"),
    Deviation("values-heads-tiled", "value heads are tiled rather than repeated in blocks", {"rotated_values": before(_tiled)}, "",
              "TinyLlama#24"),
    Deviation("mla-query-at-0", "the queries' RoPE channels are not rotated", {"mla_logits": argument(4, lambda p: 0 * p)}),
    Deviation("mla-key-at-0", "the keys' RoPE channels are not rotated", {"mla_logits": argument(5, lambda p: 0 * p)}, "",
              "The cache holds keys that are not rotated yet."),
    Deviation("mla-not-rotated", "neither queries nor keys are rotated",
              _mla(lambda a, b, c, d, q, k, **o: ((a, b, c, d, 0 * q, 0 * k), o))),
    Deviation("mla-decoupled-dropped", "the RoPE channels are left out", {"mla_logits": argument(1, lambda x: 0 * x)},
              hint="Add the product of the rotated channels to the logit."),
    Deviation("mla-all-lanes", "all channels are rotated, also those without positions", {"mla_logits": _all_lanes}),
    Deviation("mla-first-head-alone", "only the first head gets the shared key", _mla(_first_head_alone)),
    Deviation("mla-turned-by-heads", "queries are rotated by their head's number, not by their position", _mla(_by_heads),
              "(B, H, Q, D) is taken for (B, Q, H, D)."),
    Deviation("mla-scale-of-content", "the default scale counts only the channels without positions",
              _scaled(lambda n, d, s: _root(n) if s is None else s), "sqrt(d_h) for sqrt(d_h + d_h^R)"),
    Deviation("mla-scale-of-rotated", "the default scale counts only the rotated channels",
              _scaled(lambda n, d, s: _root(d) if s is None else s),
              hint="The scale is 1/sqrt(N + D): both parts of the channels count."),
    Deviation("mla-scale-missing", "logits are not scaled by default", _scaled(lambda n, d, s: 1.0 if s is None else s)),
    Deviation("mla-scale-ignored", "a scale that is given is ignored", _scaled(lambda n, d, s: None),
              "YaRN's squared mscale does not reach the scale.", "mobius#548, Megatron-LM#1429"),
    Deviation("mla-gain-dropped", "the attention factor is not applied", _mla_gain(lambda q, f: (q[0], q[1] / f**2))),
    Deviation("mla-gain-once", "the attention factor is on queries alone or on keys alone", _mla_gain(lambda q, f: (q[0], q[1] / f))),
    Deviation("mla-gain-everywhere", "the attention factor is on all channels", _mla_gain(lambda q, f: (q[0] * f**2, q[1]))),
    Deviation("linear-below-rotated", "the denominator uses rotated queries and keys too", _linear(turn_below=True),
              "Equation (19) keeps the denominator."),
    Deviation("linear-rotated-first", "queries and keys are rotated before the feature map", _linear(turn_first=True),
              "The denominator then uses rotated ones too.", "performer-pytorch"),
    Deviation("linear-not-rotated", "queries and keys are not rotated", _linear(turn_above=False)),
    Deviation("linear-relu", "the feature map is relu, plus 1/1000", _linear(phi=relu), "", "performer-pytorch's generalized kernel"),
    Deviation("linear-elu", "the feature map is elu, without the 1 that is added", _linear(phi=lambda x: elu_plus_one(x) - 1)),
    Deviation("linear-exp", "the feature map is exp", _linear(phi=np.exp)),
    Deviation("linear-not-divided", "the numerator is not divided by the sum of weights", _linear(normalised=False)),
    Deviation("linear-sees-all", "causal attention sees all keys", {"rotary_linear_attention": option(causal=always(False))}),
    Deviation("linear-sees-past", "queries never see later keys",
              {"rotary_linear_attention": option(causal=always(True))}),
    Deviation("linear-below-all", "causal attention divides by the sum over all keys", _linear(below_all=True)),
    Deviation("linear-strictly-before", "causal attention leaves out the query's own position", _linear(seen=lambda q, k: q > k),
              hint="A causal query also sees its own key: <= and not <."),
    Deviation("linear-by-index", "causal attention counts queries and keys from 0, and does not look at positions",
              _linear(seen=_by_index)),
)  # fmt: skip
