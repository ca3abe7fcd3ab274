"""Logits of multi-head latent attention (MLA): cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import posref
from posref.scaling import DynamicNTK, YaRN

from .shared.rotary import BASE, DEEPSEEK_V2, DEEPSEEK_V3, ROTARY, UNSORTED, in_layouts
from .shared.rotated_attention import FAR_K, FAR_Q, ROWS_K, ROWS_Q, Places, inside_forms, inside_gradient
from .tools import Case, Deviation, Function, Make, Real, Step, Wrap, argument, around, before, deviations_of, floats, seed_of
from .tools.hints import FACTOR, ROOT_OF_SIZE, SKIPPED, SLICE

USUAL: dict[str, Any] = ROTARY
UNSTORED = ("value/usual-beyond-24-bits",)
KERNEL = in_layouts()


def _mla_step(
    seed: str,
    lead: tuple[int, ...],
    widths: tuple[int, int],
    places: Places,
    *,
    bits: int = 8,
    gain: float = 0.5,
    **params: Any,
) -> Step:
    """Return a call: leading axes and heads, the width without and with positions, and positions."""
    queries, keys = (np.asarray(p).shape[-1] for p in places)
    shapes = {
        "q_nope": (*lead, queries, widths[0]),
        "q_rope": (*lead, queries, widths[1]),
        "k_nope": (*lead, keys, widths[0]),
        "k_rope": (*lead[:-1], keys, widths[1]),
    }
    arrays = {name: floats(*shape, seed=seed_of(seed + name), bits=bits) * gain for name, shape in shapes.items()}
    return Step({"base": BASE, **params}, {**arrays, "q_positions": places[0], "k_positions": places[1]})


def _case(name: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
    step = _mla_step(name, *call, **more)
    return Case(f"mla_logits/{name}", step.params, step.inputs, comment, kind, tier)


def _unfitting(name: str, change: dict[str, tuple[int, ...]], comment: str) -> Case:
    """Return a call with arrays of other shapes."""
    step = _mla_step("unfitting", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="half")
    inputs = {**step.inputs, **{name: floats(*shape, seed=1) for name, shape in change.items()}}
    return Case(f"mla_logits/refused/{name}", step.params, inputs, comment, "reject")


DEEPSEEK = {"layout": "interleaved_to_half"}


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("half/small", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="half", tier="smoke"),
        _case("half/unsorted", (2, 3), (6, 10), ((3, 8, 1, 4), UNSORTED), layout="half", base=5e5),
        _case("half/24-bits", (2, 3), (9, 6), ((0, 4, 7), UNSORTED), layout="half", bits=24),
        _case("half/far", (2,), (3, 8), (FAR_Q, FAR_K), layout="half"),
        _case("half/rows", (2, 3), (4, 6), (ROWS_Q, ROWS_K), layout="half", comment="positions (B, Q) and (B, K)"),
        _case("interleaved/rows", (2, 4), (3, 6), (ROWS_Q, ROWS_K), layout="interleaved", bits=24, base=160000.0),
        _case("mixed/small", (3,), (5, 8), ((1, 2, 9), (0, 4, 7, 6)), **DEEPSEEK),
        _case("scale/given", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="half", scale=0.3125),
        _case("scaling/dynamic", (3,), (4, 8), ((40, 3), (0, 7, 41)), layout="half", scaling=DynamicNTK(2, 16), length=42),
        _case("models/deepseek-v3", (2,), (128, 64), ((2049,), (2048, 7, 257)), gain=0.125,
              scale=0.1352337788608801, scaling=DEEPSEEK_V3, **DEEPSEEK, comment="g(1)^2 / sqrt(192)"),
        _case("models/deepseek-v2-lite", (3,), (128, 64), ((63,), (62, 7)), gain=0.125,
              layout="interleaved", scale=0.11472138679292612, scaling=DEEPSEEK_V2, comment="g(0.707)^2 / sqrt(192)"),
        _case("shapes/no-content", (3,), (0, 6), ((3, 5), (0, 1)), layout="half", comment="all lanes rotate"),
        _unfitting("heads", {"k_rope": (3, 3, 4)}, "one key for all has no axis of heads"),
        _unfitting("widths", {"k_rope": (3, 6)}, "six lanes of keys on four of queries"),
        _case("refused/layout", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="neox", kind="reject", comment="no such layout"),
        *inside_forms("mla_logits", {"q_nope": "hqe", "q_rope": "hqd", "k_nope": "hke", "k_rope": "kd"}, ROTARY, by_head=False),
        inside_gradient("mla_logits", "half", "q_nope 2,2,3;q_rope 2,2,4;k_nope 2,3,3;k_rope 3,4",
                        ((7, 1), (0, 2, 300)), (2, 2, 3), layout="half"),
        inside_gradient("mla_logits", "yarn", "q_nope 2,2,1;q_rope 2,2,4;k_nope 2,2,1;k_rope 2,4",
                        ((7, 1), (0, 2)), (2, 2, 2), layout="interleaved", scaling=YaRN(4, 64), scale=0.375),
    )  # fmt: skip


def more(make: Make) -> Iterator[Case]:
    """Yield a second call without channels that do not rotate."""
    yield make.one("no-content", N=0)


SHARED_KEY = "The shared key's and the queries' extra channels both rotate, for every head."
ROTATED_GAIN = "The attention factor is on the rotated channels of queries and keys, and on no others."


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


@around
def _all_lanes(
    function: Function,
    q_nope: Real,
    q_rope: Real,
    k_nope: Real,
    k_rope: Real,
    q: Any,
    k: Any,
    /,
    *,
    scale: float | None = None,
    **turn: Any,
) -> Real:
    """All lanes of queries and keys rotate, with frequencies of their whole number."""
    shared = np.broadcast_to(k_rope[..., None, :, :], (*k_nope.shape[:-1], k_rope.shape[-1]))
    sides = (np.concatenate(pair, axis=-1) for pair in ((q_nope, q_rope), (k_nope, shared)))
    width = (q_nope.shape[-1] + q_rope.shape[-1]) // 2 * 2
    places = (p if p.ndim < 2 else p[..., None, :] for p in (q, k))
    one, other = (posref.rope(x, p, rotary_dim=width, **turn) for x, p in zip(sides, places, strict=True))
    return np.asarray(posref.attention_logits(one, other, scale=scale))


def _mla_gain(change: Callable[[Real, float], tuple[Real, Real]]) -> dict[str, Wrap]:
    """Return a wrap that changes both parts of the queries: `change` takes the two and the factor of the scaling."""

    def gained(q_nope: Real, q_rope: Real, *rest: Any, base: float, **options: Any) -> Any:
        scaling = {name: options.get(name) for name in ("scaling", "length")}
        factor = posref.rope_frequencies(q_rope.shape[-1], base=base, **scaling)[1]
        return (*change((q_nope, q_rope), factor), *rest), options | {"base": base}

    return _mla(gained)


_deviation = deviations_of("mla_logits")

DEVIATIONS = (
    _deviation("mla-query-at-0", "the queries' RoPE channels are not rotated", argument(4, lambda p: 0 * p), hint=SHARED_KEY),
    _deviation("mla-key-at-0", "the keys' RoPE channels are not rotated", argument(5, lambda p: 0 * p), hint=SHARED_KEY,
               seen_in="The cache holds keys that are not rotated yet."),
    Deviation("mla-not-rotated", "neither queries nor keys are rotated",
              _mla(lambda a, b, c, d, q, k, **o: ((a, b, c, d, 0 * q, 0 * k), o)), hint=SKIPPED),
    _deviation("mla-decoupled-dropped", "the RoPE channels are left out", argument(1, lambda x: 0 * x),
               hint="Add the product of the rotated channels to the logit."),
    _deviation("mla-all-lanes", "all channels are rotated, also those without positions", _all_lanes, hint=SLICE),
    Deviation("mla-first-head-alone", "only the first head gets the shared key", _mla(_first_head_alone), hint=SHARED_KEY),
    Deviation("mla-turned-by-heads", "queries are rotated by their head's number, not by their position", _mla(_by_heads),
              hint="(B, H, Q, D) is taken for (B, Q, H, D)."),
    Deviation("mla-scale-of-content", "the default scale counts only the channels without positions",
              _scaled(lambda n, d, s: _root(n) if s is None else s), hint="sqrt(d_h) for sqrt(d_h + d_h^R)"),
    Deviation("mla-scale-of-rotated", "the default scale counts only the rotated channels",
              _scaled(lambda n, d, s: _root(d) if s is None else s),
              hint="The scale is 1/sqrt(N + D): both parts of the channels count."),
    Deviation("mla-scale-missing", "logits are not scaled by default", _scaled(lambda n, d, s: 1.0 if s is None else s),
              hint=ROOT_OF_SIZE),
    Deviation("mla-scale-ignored", "a scale that is given is ignored", _scaled(lambda n, d, s: None),
              hint="YaRN's squared mscale does not reach the scale.", seen_in="mobius#548, Megatron-LM#1429"),
    Deviation("mla-gain-dropped", "the attention factor is not applied", _mla_gain(lambda q, f: (q[0], q[1] / f**2)),
              hint=FACTOR),
    Deviation("mla-gain-once", "the attention factor is on queries alone or on keys alone",
              _mla_gain(lambda q, f: (q[0], q[1] / f)), hint=ROTATED_GAIN),
    Deviation("mla-gain-everywhere", "the attention factor is on all channels", _mla_gain(lambda q, f: (q[0] * f**2, q[1])),
              hint=ROTATED_GAIN),
)  # fmt: skip
