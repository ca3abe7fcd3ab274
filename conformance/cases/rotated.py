"""Cases of RoPE inside other forms of attention: rotated_values, mla_logits and rotary_linear_attention."""

from typing import Any

import numpy as np

from posref.scaling import DynamicNTK, Linear, YaRN

from ..model import Case, Flag, Step
from .numbers import floats
from .rope import BASE, DEEPSEEK_V2, DEEPSEEK_V3, DEEPSEEK_V4, GIVEN, UNSORTED, seed_of

FLAGS = {
    "values-back": Flag("the output not rotated back, or by the keys' positions", "RoFormer's rotary_value"),
    "values-lanes": Flag("values rotated over all channels, or over the first where the last are asked for", "DeepSeek-V4"),
    "values-layout": Flag("values rotated in another layout, or written back in the one that they were rotated to"),
    "values-gain": Flag("the table's factor applied once, or not at all", "DeepSeek-V4 in transformers sets it to 1"),
    "mla-rotated": Flag("the decoupled part of queries or keys left unrotated, or the other part rotated", "MLA from scratch"),
    "mla-shared": Flag("the keys' rotated channels given to one head alone, or rotated by the heads' order"),
    "mla-scale": Flag("the scale of one part's width alone, or YaRN's square of it left out", "Megatron-LM #1429, mobius #548"),
    "mla-layout": Flag("pairs of the decoupled part taken in the other layout", "vllm-ascend #12820"),
    "mla-gain": Flag("the factor of a scaling left off the rotated part, or put on all channels", "sglang #33558"),
    "linear-below": Flag("the denominator rotated like the numerator", "performer-pytorch"),
    "linear-order": Flag("queries and keys rotated before the feature map", "performer-pytorch"),
    "linear-map": Flag("relu, or elu without its 1, for the feature map"),
    "linear-causal": Flag("later keys seen by causal attention, or left out of one of the two sums"),
    "linear-layout": Flag("pairs taken in the other layout"),
    "rotated-base": Flag("the base always 10000"),
    "rotated-ids": Flag("a count from 0 in place of the caller's positions"),
    "rotated-rows": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "rotated-heads": Flag("value heads tiled where they repeat in blocks", "TinyLlama #24"),
    "rotated-far": Flag("positions held in bfloat16 or float16"),
    "rotated-downcast": Flag("24-bit inputs narrowed on the way"),
    "rotated-decode": Flag("one query that is not the row of the whole"),
    "rotated-true-size": Flag("a model's own parameters not reproduced"),
    "rotated-empty": Flag("no query or no key: a crash or a wrong shape"),
    "rotated-refuse": Flag("shapes that do not fit, or an unknown word, accepted"),
}

FAR_Q, FAR_K = (131071, 257, 2049), (131070, 256, 2048, 65537, 7)
ROWS_Q, ROWS_K = ((4, 5, 6), (260, 261, 262)), ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260))
NONE = np.zeros(0, dtype=np.int64)
Places = tuple[Any, Any]


def inside_case(op: str, own: str, name: str, flags: str, step: Step, comment: str, kind: str, tier: str) -> Case:
    """Return a case of one call; a flag that begins with a plus is of all three operations, another one has the prefix `own`."""
    flagged = tuple(f"rotated-{flag[1:]}" if flag.startswith("+") else f"{own}-{flag}" for flag in flags.split())
    return Case(f"{op}/{name}", step.params, step.inputs, flagged, comment, kind, tier)


# ---- rotated_values -------------------------------------------------------------------------------------------------------
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


def _values(name: str, flags: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
    return inside_case("rotated_values", "values", name, flags, _values_step(name, *call, **more), comment, kind, tier)


def _with_heads(rows: Any) -> Any:
    """Return positions (B, T) as (B, 1, T)."""
    return np.asarray(rows)[:, None, :].tolist()


VALUES = (
    _values("half/small", "back layout", (), 6, ((1, 4), (0, 1, 5)), layout="half"),
    _values("half/unsorted", "back +ids +base", (3,), 10, ((3, 8, 1, 4), UNSORTED), layout="half", base=5e5),
    _values("half/24-bits", "back +downcast", (2, 3), 14, ((0, 4, 7), UNSORTED), layout="half", bits=24),
    _values("half/far", "+far back", (2,), 6, (FAR_Q, FAR_K), layout="half"),
    _values("half/rows", "+rows +ids", (2, 3), 8, (_with_heads(ROWS_Q), _with_heads(ROWS_K)), layout="half",
            comment="positions (B, 1, Q) and (B, 1, K)"),
    _values("half/partial", "lanes back", (2,), 13, ((3, 9), (0, 7, 3, 300)), layout="half", rotary_dim=6),
    _values("half/yarn", "gain back", (2,), 12, ((40, 3), (0, 7, 41)), layout="half", scaling=GIVEN),
    _values("half/dynamic", "back +base", (3,), 8, ((40, 3), (0, 7, 41)), layout="half", scaling=DynamicNTK(2, 16), length=42),
    _values("interleaved/small", "back layout", (2,), 6, ((1, 4), (0, 1, 5)), layout="interleaved", tier="smoke"),
    _values("interleaved/trailing", "lanes layout", (3,), 11, ((9, 2), (0, 7, 3, 300)), layout="interleaved", rotary_dim=4,
            lanes="trailing"),
    _values("interleaved/trailing-rows", "lanes +rows +downcast", (2, 4), 9, (_with_heads(ROWS_Q), _with_heads(ROWS_K)),
            layout="interleaved", rotary_dim=6, lanes="trailing", heads=2, bits=24),
    _values("interleaved/far", "+far +base", (3,), 10, (FAR_Q, FAR_K), layout="interleaved", base=160000.0),
    _values("interleaved/yarn", "gain lanes", (3,), 13, ((40, 3), (0, 7, 41)), layout="interleaved", scaling=YaRN(4, 64),
            rotary_dim=8, lanes="trailing"),
    _values("interleaved/linear", "lanes back", (2,), 9, ((40, 3), (0, 7, 41)), layout="interleaved", rotary_dim=4,
            scaling=Linear(2.5)),
    _values("mixed/small", "layout back", (2,), 10, ((1, 4, 2), (0, 1, 5)), layout="interleaved_to_half"),
    _values("mixed/trailing", "layout lanes", (3,), 15, ((9, 2), (0, 7, 3, 300)), layout="interleaved_to_half", rotary_dim=10,
            lanes="trailing"),
    _values("heads/6-and-2", "+heads back", (6,), 8, ((9, 2), (0, 7, 3)), layout="half", heads=2),
    _values("heads/6-and-3", "+heads +downcast", (2, 6), 6, ((9, 2, 5, 1), (0, 7, 3)), layout="interleaved", heads=3, bits=24),
    _values("heads/one", "+heads back", (5,), 6, ((9, 2), (0, 7, 3, 4)), layout="half", heads=1, comment="one for all"),
    _values("models/deepseek-v4", "+true-size lanes", (2,), 512, ((131071,), (131070, 65537)), layout="interleaved",
            rotary_dim=64, lanes="trailing", heads=1, comment="sliding layers; one key and value head"),
    _values("models/deepseek-v4-compress", "+true-size lanes +base", (1,), 512, ((1001,), (1000, 511)),
            layout="interleaved", base=160000.0, rotary_dim=64, lanes="trailing", heads=1, scaling=DEEPSEEK_V4),
    Case("rotated_values/sequence/decode", flags=("rotated-decode", "rotated-ids"), kind="sequence",
         comment="a row of the whole, then at another offset", steps=(
             _values_step("prefill", (3,), 6, ((0, 1, 2, 3), (0, 1, 2, 3)), layout="half"),
             _values_step("decode", (3,), 6, ((4,), (0, 1, 2, 3, 4)), layout="half"),
             _values_step("elsewhere", (3,), 6, ((5, 6, 7, 8), (9, 5, 7, 6)), layout="half"))),
    _values("shapes/one-query", "+decode +ids", (3,), 6, ((257,), (256, 257, 3)), layout="interleaved"),
    _values("shapes/no-query", "+empty", (3,), 6, (NONE, (0, 1)), layout="half"),
    _values("refused/lanes", "+refuse", (), 6, ((1, 4), (0, 1, 5)), layout="half", lanes="last", comment="no such lanes",
            kind="reject"),
    _values("refused/heads", "+refuse", (5,), 6, ((1, 4), (0, 1, 5)), layout="half", heads=2, kind="reject",
            comment="5 query heads on 2 value heads"),
    _values("refused/odd", "+refuse", (2,), 7, ((1, 4), (0, 1, 5)), layout="half", kind="reject",
            comment="lanes rotate in pairs"),
)  # fmt: skip


# ---- mla_logits -----------------------------------------------------------------------------------------------------------
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


def _mla(name: str, flags: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
    return inside_case("mla_logits", "mla", name, flags, _mla_step(name, *call, **more), comment, kind, tier)


def _unfitting(name: str, change: dict[str, tuple[int, ...]], comment: str) -> Case:
    """Return a call with arrays of other shapes."""
    step = _mla_step("unfitting", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="half")
    inputs = {**step.inputs, **{name: floats(*shape, seed=1) for name, shape in change.items()}}
    return Case(f"mla_logits/refused/{name}", step.params, inputs, ("rotated-refuse",), comment, "reject")


DEEPSEEK = {"layout": "interleaved_to_half"}
MLA = (
    _mla("half/small", "rotated scale layout", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="half", tier="smoke"),
    _mla("half/unsorted", "rotated shared +ids +base", (2, 3), (6, 10), ((3, 8, 1, 4), UNSORTED), layout="half", base=5e5),
    _mla("half/24-bits", "+downcast shared", (2, 3), (9, 6), ((0, 4, 7), UNSORTED), layout="half", bits=24),
    _mla("half/far", "+far rotated", (2,), (3, 8), (FAR_Q, FAR_K), layout="half"),
    _mla("half/rows", "+rows shared", (2, 3), (4, 6), (ROWS_Q, ROWS_K), layout="half", comment="positions (B, Q) and (B, K)"),
    _mla("half/equal-widths", "rotated scale", (3,), (6, 6), ((3, 9), (0, 7, 3, 300)), layout="half"),
    _mla("interleaved/small", "layout rotated", (2,), (5, 6), ((1, 2), (0, 4, 7)), layout="interleaved"),
    _mla("interleaved/rows", "+rows +far", (2, 4), (3, 6), (ROWS_Q, ROWS_K), layout="interleaved", bits=24, base=160000.0),
    _mla("interleaved/far", "+far layout", (3,), (5, 10), (FAR_Q, FAR_K), layout="interleaved"),
    _mla("mixed/small", "layout shared", (3,), (5, 8), ((1, 2, 9), (0, 4, 7, 6)), **DEEPSEEK),
    _mla("scale/given", "scale", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="half", scale=0.3125),
    _mla("scale/given-24-bits", "scale +downcast", (2,), (7, 6), ((1, 2), (0, 4, 7)), layout="interleaved", scale=0.75,
         bits=24),
    _mla("scaling/yarn", "gain rotated", (3,), (5, 12), ((40, 3), (0, 7, 41)), layout="half", scaling=GIVEN),
    _mla("scaling/yarn-interleaved", "gain layout", (2,), (3, 8), ((40, 3), (0, 7, 41)), layout="interleaved",
         scaling=YaRN(4, 64)),
    _mla("scaling/linear", "rotated", (2,), (3, 6), ((40, 3), (0, 7, 41)), layout="half", scaling=Linear(2.5)),
    _mla("scaling/dynamic", "rotated +base", (3,), (4, 8), ((40, 3), (0, 7, 41)), layout="half", scaling=DynamicNTK(2, 16),
         length=42),
    _mla("models/deepseek-v3", "+true-size scale", (2,), (128, 64), ((2049,), (2048, 7, 257)), gain=0.125,
         scale=0.1352337788608801, scaling=DEEPSEEK_V3, **DEEPSEEK, comment="g(1)^2 / sqrt(192)"),
    _mla("models/deepseek-v2-lite", "+true-size scale", (3,), (128, 64), ((63,), (62, 7)), gain=0.125, layout="interleaved",
         scale=0.11472138679292612, scaling=DEEPSEEK_V2, comment="g(0.707)^2 / sqrt(192)"),
    Case("mla_logits/sequence/decode", flags=("rotated-decode", "rotated-ids"), kind="sequence",
         comment="a row of the whole, then at another offset", steps=(
             _mla_step("prefill", (3,), (5, 4), ((0, 1, 2, 3), (0, 1, 2, 3)), layout="half"),
             _mla_step("decode", (3,), (5, 4), ((4,), (0, 1, 2, 3, 4)), layout="half"),
             _mla_step("elsewhere", (3,), (5, 4), ((5, 6, 7, 8), (9, 5, 7, 6)), layout="half"))),
    _mla("shapes/one-head", "shared rotated", (2, 1), (5, 4), ((1, 2), (0, 4, 7)), layout="half"),
    _mla("shapes/one-query", "+decode +ids", (3,), (5, 6), ((257,), (256, 257, 3)), layout="interleaved"),
    _mla("shapes/no-query", "+empty", (3,), (5, 6), (NONE, (0, 1)), layout="half"),
    _mla("shapes/no-content", "rotated scale", (3,), (0, 6), ((3, 5), (0, 1)), layout="half", comment="all lanes rotate"),
    _unfitting("heads", {"k_rope": (3, 3, 4)}, "one key for all has no axis of heads"),
    _unfitting("widths", {"k_rope": (3, 6)}, "six lanes of keys on four of queries"),
    _mla("refused/layout", "+refuse", (3,), (5, 4), ((1, 2), (0, 4, 7)), layout="neox", kind="reject",
         comment="no such layout"),
)  # fmt: skip


# ---- rotary_linear_attention ----------------------------------------------------------------------------------------------
def _linear_step(
    seed: str, lead: tuple[int, ...], width: int, places: Places, *, out: int = 3, bits: int = 8, **params: Any
) -> Step:
    """Return a call: leading axes, the width of queries and keys, positions, and the width of values."""
    queries, keys = (np.asarray(p).shape[-1] for p in places)
    shapes = {"q": (*lead, queries, width), "k": (*lead, keys, width), "v": (*lead, keys, out)}
    arrays = {name: floats(*shape, seed=seed_of(seed + name), bits=bits) / 2 for name, shape in shapes.items()}
    inputs = {**arrays, "q_positions": places[0], "k_positions": places[1]}
    return Step({"base": BASE, "causal": False, **params}, inputs)


def _linear(name: str, flags: str, *call: Any, comment: str = "", kind: str = "value", tier: str = "core", **more: Any) -> Case:
    return inside_case("rotary_linear_attention", "linear", name, flags, _linear_step(name, *call, **more), comment, kind, tier)


LINEAR = (
    _linear("half/small", "below order map", (2,), 6, ((1, 4), (0, 1, 5)), layout="half", tier="smoke"),
    _linear("half/unsorted", "below +ids +base", (3,), 10, ((3, 8, 1, 4), UNSORTED), layout="half", base=5e5),
    _linear("half/24-bits", "order +downcast map", (2, 3), 14, ((0, 4, 7), UNSORTED), layout="half", bits=24),
    _linear("half/far", "+far below", (2,), 8, (FAR_Q, FAR_K), layout="half"),
    _linear("half/rows", "+rows +ids", (2,), 6, (ROWS_Q, ROWS_K), layout="half", comment="positions (B, Q) and (B, K)"),
    _linear("half/head-64", "+true-size below", (2,), 64, ((900, 7), (3, 511, 900)), layout="half", out=5,
            comment="Performer's heads in the paper's experiment"),
    _linear("interleaved/small", "layout below", (2,), 6, ((1, 4), (0, 1, 5)), layout="interleaved"),
    _linear("interleaved/rows", "+rows layout", (2, 3), 8, (_with_heads(ROWS_Q), _with_heads(ROWS_K)), layout="interleaved",
            bits=24, comment="positions (B, 1, Q) and (B, 1, K)"),
    _linear("interleaved/base", "+base order", (3,), 10, ((31, 5), (7, 0, 12)), layout="interleaved", base=500.0),
    _linear("interleaved/far", "+far map", (3,), 10, (FAR_Q, FAR_K), layout="interleaved", base=1e6),
    _linear("mixed/small", "layout order", (3,), 10, ((1, 4, 2), (0, 1, 5, 9)), layout="interleaved_to_half"),
    _linear("causal/half", "causal below", (2,), 6, ((0, 1, 2, 3), (0, 1, 2, 3)), layout="half", causal=True),
    _linear("causal/interleaved", "causal layout", (3,), 10, ((0, 1, 2, 3, 4), (0, 1, 2, 3, 4)), layout="interleaved",
            causal=True, bits=24),
    _linear("causal/cached", "causal +ids", (2, 3), 8, ((3, 4), (0, 1, 2, 3, 4)), layout="half", causal=True,
            comment="queries after three cached keys"),
    _linear("causal/rows", "causal +rows", (2,), 6, (ROWS_Q, ROWS_K), layout="half", causal=True,
            comment="keys in no order: what counts is their position"),
    _linear("causal/unseen", "causal", (2,), 6, ((1, 5, 0), (2, 3, 7, 1)), layout="interleaved", causal=True,
            comment="the last query sees no key, the first its own"),
    _linear("causal/fractional", "causal +ids", (3,), 6, ((0.5, 2.25), (0.25, 0.5, 1.75)), layout="half", causal=True),
    Case("rotary_linear_attention/sequence/decode", flags=("rotated-decode", "rotated-ids"), kind="sequence",
         comment="a row of the whole, then at another offset", steps=(
             _linear_step("prefill", (3,), 6, ((0, 1, 2, 3), (0, 1, 2, 3)), layout="half", causal=True),
             _linear_step("decode", (3,), 6, ((4,), (0, 1, 2, 3, 4)), layout="half", causal=True),
             _linear_step("elsewhere", (3,), 6, ((5, 6, 7, 8), (9, 5, 7, 6)), layout="half", causal=True))),
    _linear("shapes/one-query", "+decode +ids", (3,), 6, ((257,), (256, 257, 3)), layout="interleaved"),
    _linear("shapes/no-query", "+empty", (3,), 6, (NONE, (0, 1)), layout="half"),
    _linear("refused/layout", "+refuse", (2,), 6, ((1, 4), (0, 1, 5)), layout="neox", comment="no such layout", kind="reject"),
    _linear("refused/odd", "+refuse", (2,), 7, ((1, 4), (0, 1, 5)), layout="half", kind="reject",
            comment="lanes rotate in pairs"),
)  # fmt: skip

CASES: tuple[Case, ...] = (*VALUES, *MLA, *LINEAR)
