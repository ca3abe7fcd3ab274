"""RoPE on values, rotated back: cases and known mistakes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import posref
from posref.scaling import DynamicNTK, YaRN

from .shared.rotary import BASE, DEEPSEEK_V4, ROTARY, UNSORTED, in_layouts
from .shared.rotated_attention import ROWS_K, ROWS_Q, Places, inside_forms, inside_gradient, with_heads
from .tools import Case, Step, floats, seed_of
from .tools.deviation import Deviation, Function, Real, Wrap, after, around, before, deviations_of, spread_heads
from .tools.hints import BRANCH, FACTOR, HEAD_BLOCKS, SLICE

USUAL: dict[str, Any] = ROTARY
WITH_OPTION = {"lanes": {"rotary_dim": 4}}
KERNEL = in_layouts()


def _values_step(
    seed: str, lead: tuple[int, ...], width: int, places: Places, *, heads: int | None = None, bits: int = 8, **params: Any
) -> Step:
    """Return a call: leading axes of the weights, the values' width, positions; `heads` of the values where they are fewer."""
    queries, keys = (np.asarray(p).shape[-1] for p in places)
    of_values = lead if heads is None else (*lead[:-1], heads)
    weights = np.abs(floats(*lead, queries, keys, seed=seed_of(seed + "weights"), bits=bits)) / 16
    v = floats(*of_values, keys, width, seed=seed_of(seed + "v"), bits=bits)
    inputs = {"weights": weights, "v": v, "q_positions": places[0], "k_positions": places[1]}
    return Step({"base": BASE, **params}, inputs)


def _case(name: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
    step = _values_step(name, *call, **more)
    return Case(f"rotated_values/{name}", step.params, step.inputs, comment, kind, tier)


_gradient = partial(inside_gradient, "rotated_values")


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("half/small", (), 6, ((1, 4), (0, 1, 5)), layout="half"),
        _case("half/unsorted", (3,), 10, ((3, 8, 1, 4), UNSORTED), layout="half", base=5e5),
        _case("half/rows", (2, 3), 8, (with_heads(ROWS_Q), with_heads(ROWS_K)), layout="half",
              comment="positions (B, 1, Q) and (B, 1, K)"),
        _case("half/dynamic", (3,), 8, ((40, 3), (0, 7, 41)), layout="half", scaling=DynamicNTK(2, 16), length=42),
        _case("interleaved/small", (2,), 6, ((1, 4), (0, 1, 5)), layout="interleaved", tier="smoke"),
        _case("interleaved/trailing-rows", (2, 4), 9, (with_heads(ROWS_Q), with_heads(ROWS_K)),
              layout="interleaved", rotary_dim=6, lanes="trailing", heads=2, bits=24),
        _case("mixed/small", (2,), 10, ((1, 4, 2), (0, 1, 5)), layout="interleaved_to_half"),
        _case("mixed/trailing", (3,), 15, ((9, 2), (0, 7, 3, 300)), layout="interleaved_to_half",
              rotary_dim=10, lanes="trailing"),
        _case("models/deepseek-v4", (2,), 512, ((131071,), (131070, 65537)), layout="interleaved",
              rotary_dim=64, lanes="trailing", heads=1, comment="sliding layers; one key and value head"),
        _case("models/deepseek-v4-compress", (1,), 512, ((1001,), (1000, 511)), layout="interleaved",
              base=160000.0, rotary_dim=64, lanes="trailing", heads=1, scaling=DEEPSEEK_V4),
        _case("refused/lanes", (), 6, ((1, 4), (0, 1, 5)), layout="half", lanes="last", comment="no such lanes", kind="reject"),
        _case("refused/heads", (5,), 6, ((1, 4), (0, 1, 5)), layout="half", heads=2, kind="reject",
              comment="5 query heads on 2 value heads"),
        _case("refused/odd", (2,), 7, ((1, 4), (0, 1, 5)), layout="half", kind="reject", comment="lanes rotate in pairs"),
        *inside_forms("rotated_values", {"weights": "hqk", "v": "hkd"}, ROTARY),
        _gradient("half", "weights 2,3;v 3,4", ((7, 1), (0, 2, 300)), (2, 4), layout="half"),
        _gradient("trailing", "weights 2,2,3;v 1,3,5", ((7, 1), (0, 2, 9)), (2, 2, 5),
                  layout="interleaved", rotary_dim=2, lanes="trailing", scaling=YaRN(4, 64)),
        _gradient("strided", "weights 2,2,3;v 2,3,4", ((7, 1), (0, 2, 9)), (2, 2, 4),
                  layout="interleaved_to_half", view="non-contiguous"),
    )  # fmt: skip


def _values(change: Callable[..., Real]) -> Mapping[str, Wrap]:
    """Return a wrap: `change` takes the values turned forwards, a function that turns back, and the call."""

    def deviating(function: Function, weights: Real, v: Real, q: Any, k: Any, /, **options: Any) -> Real:
        def turned(x: Real, p: Any, *, inverse: bool = False, **other: Any) -> Real:
            return np.asarray(posref.rope(x, p, **(options | other), inverse=inverse))

        def mixed(values: Real) -> Real:
            return np.asarray(weights @ spread_heads(values, weights))

        return change(turned, mixed, v, q, k, options)

    return {"rotated_values": around(deviating)}


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


_deviation = deviations_of("rotated_values")

DEVIATIONS = (
    Deviation("output-not-rotated-back", "values are rotated, but the output is not rotated back",
              _values(lambda turned, mixed, v, q, k, options: mixed(turned(v, k))),
              hint="Rotate the sum of values back, by the query's position.",
              seen_in="the convention of RoFormer's rotary_value"),
    Deviation("output-rotated-forward", "the output is rotated by the query's position, not back",
              _values(lambda turned, mixed, v, q, k, options: turned(mixed(turned(v, k)), q)), hint="A sine is not negated."),
    Deviation("values-not-rotated", "neither values nor output are rotated",
              _values(lambda turned, mixed, v, q, k, options: mixed(v)),
              hint="This equals rotating the output back by the keys' positions."),
    Deviation("output-alone-rotated", "the output is rotated back, but the values were not rotated",
              _values(lambda turned, mixed, v, q, k, options: turned(mixed(v), q, inverse=True)),
              hint="Keys are rotated, values are not."),
    Deviation("values-all-lanes", "all channels of the values are rotated",
              _values(lambda turned, mixed, v, q, k, options: turned(mixed(turned(v, k, rotary_dim=None)), q, inverse=True,
              rotary_dim=None)), hint=SLICE),
    _deviation("values-leading-lanes", "the first rotary_dim channels of values are always rotated",
               before(lambda *args, **o: (args, o | {"lanes": "leading"})), hint="DeepSeek-V4 rotates the last.",
               one_of="rotated channels of values"),
    _deviation("values-trailing-lanes", "the last rotary_dim channels of values are always rotated",
               before(lambda *args, **o: (args, o | {"lanes": "trailing"})), hint=BRANCH, one_of="rotated channels of values"),
    _deviation("values-stay-in-halves", "the output's channels stay where layout 'interleaved_to_half' writes them",
               after(_stays_in_halves), hint="The way back swaps the read and the write layout."),
    _deviation("values-gain-once", "the attention factor is applied once, on values or on the output", _gained(1),
               hint="Apply the attention factor to values and again to the output."),
    _deviation("values-gain-dropped", "the attention factor is not applied", _gained(0), hint=FACTOR,
               seen_in="DeepSeek-V4 in transformers, on purpose"),
    _deviation("values-heads-tiled", "value heads are tiled rather than repeated in blocks", before(_tiled), hint=HEAD_BLOCKS,
               seen_in="TinyLlama#24"),
)  # fmt: skip
