"""Rotary position embedding (RoPE): cases and known mistakes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import posref
from posref.scaling import DynamicNTK, DynamicYaRN, Linear, Llama3, NTKAware, Proportional, Scaling, YaRN

from .shared.rotary import (
    BASE,
    DEEPSEEK_V2,
    DEEPSEEK_V4,
    EXTENDED,
    FAR,
    GIVEN,
    GPT_OSS,
    KIMI,
    LAYOUTS,
    LLAMA4,
    LONGROPE_LENGTHS,
    NEAR,
    OFFSETS,
    QWEN,
    RISING,
    ROTARY,
    SMALL,
    UNEQUAL,
    UNROUNDED,
    UNSORTED,
    YARN_LENGTHS,
    Extended,
    in_layouts,
    members,
    reads_writes,
    rotations,
    usual_heads,
)
from .tools import Case, Function, Real, Step, Wrap, around, deviations_of, floats, gradient, reals, seed_of, sequence
from .tools.hints import ARANGE, EXPONENT, SLICE

USUAL: dict[str, Any] = ROTARY
WITH_OPTION = {"lanes": {"rotary_dim": 4}}
GAPS = ("yarn-mscale-one",)
KERNEL = in_layouts()
EVERY_SIZE = True


def _case(
    name: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8,
    kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of rope on an x of `shape`; the base is 10000 unless given."""
    inputs = {"x": floats(*shape, seed=seed_of(name), bits=bits), "positions": positions}
    return Case(f"rope/{name}", {"base": BASE, **params}, inputs, comment, kind, tier)


def _layout(layout: str) -> Iterator[Case]:
    """Yield the cases that every layout has."""
    group = layout.replace("_", "-")
    first = "smoke" if layout == "half" else "core"
    yield _case(f"{group}/small", (3, 8), (0, 1, 5), tier=first, layout=layout)
    yield _case(f"{group}/far", (19, 10), FAR, layout=layout)
    yield _case(
        f"{group}/tokens-first", (2, 5, 3, 8), np.asarray(OFFSETS)[1:, :, None].tolist(),
        "(B, T, H, d) with positions (B, T, 1)", layout=layout, base=2500.0,
    )  # fmt: skip
    yield _case(
        f"{group}/packed", (5, 3, 12), ((257,), (258,), (0,), (1,), (70,)),
        "(T, H, d) with positions (T, 1), as kernels for serving have them", layout=layout,
    )  # fmt: skip
    yield _case(f"{group}/packed-heads", (3, 7, 8), ((6,), (0,), (2049,)), layout=layout, base=2500.0)
    yield _case(
        f"{group}/decode", (3, 2, 1, 20), (((257,),), ((2049,),), ((6,),)),
        "one token a row, each at its own offset", layout=layout,
    )  # fmt: skip


def _steps(params: dict[str, Any], *calls: tuple[dict[str, Any], tuple[int, ...], Any]) -> tuple[Step, ...]:
    """Return calls of rope: options that change, the shape of x, and positions."""
    return tuple(
        Step({"base": BASE, **params, **change}, {"x": floats(*shape, seed=i), "positions": positions})
        for i, (change, shape, positions) in enumerate(calls)
    )


def _lengths(layout: str, scaling: DynamicNTK, longest: int) -> tuple[Step, ...]:
    """Return calls with a long sequence, a short one, exactly the limit, and a long one."""
    limit = scaling.original_length
    lengths = (longest, limit // 2, longest, limit, longest + 3)
    calls = (({"length": n}, (3, 12), (0, 1, n - 1)) for n in lengths)
    return _steps({"layout": layout, "scaling": scaling}, *calls)


def _extended_rotations(extended: Extended) -> Iterator[Case]:
    """Yield rotations of both layouts with a context extension."""
    name, dim = extended.name, extended.dim
    positions = (0, 1, 7, extended.last // 2, extended.last)[0 if dim <= 24 else 2 :]
    x = floats(*((3, 2, 5) if dim <= 24 else (3,)), dim, seed=seed_of(name), bits=24)
    y = floats(len(positions), dim, seed=seed_of(name) + 1)
    half, other = ({**extended.params, "layout": layout} for layout in ("half", extended.layout))
    yield Case(f"rope/{name}", half, {"x": x, "positions": positions}, extended.comment)
    yield Case(f"rope/{name}-{extended.layout.replace('_', '-')}", other, {"x": y, "positions": positions})


def _rising_rotations(scaling: Scaling, lengths: tuple[int, ...]) -> Case:
    """Return a sequence in which the length rises, falls and meets the original one."""
    name, options = type(scaling).__name__.lower(), {"base": BASE, "scaling": scaling, "layout": "half"}
    steps = tuple(
        Step({**options, "length": n}, {"x": floats(3, 12, seed=seed_of(f"{name}{i}")), "positions": (0, n // 3, n - 1)})
        for i, n in enumerate(lengths)
    )
    return sequence(f"rope/sequence/{name}", RISING, steps)


def _rope(name: str, shape: tuple[int, ...], positions: Any, comment: str = "", **params: Any) -> Case:
    """Return a case of rope."""
    inputs = {"x": reals(name, *shape), "positions": positions}
    return gradient("rope", name, inputs, {"out": shape}, comment, **{"base": 10000.0, **params})


def _usual(layout: str) -> Iterator[Case]:
    """Yield what even the narrowest kernels rotate: whole heads of 64 and 128 channels without scaling, and whole prompts."""
    for name, heads, x in usual_heads(layout):
        base = 500000.0 if name.endswith(("chunk", "zero")) else BASE
        inputs = {"x": x, "positions": heads.positions}
        yield Case(f"rope/usual/{name}", {"layout": layout, "base": base}, inputs)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *(case for layout in LAYOUTS for case in _layout(layout)),
        _case("shapes/single-head-interleaved", (3, 1, 2, 6), (4, 11), layout="interleaved"),
        _case("shapes/one-pair", (3, 2), (0, 1, 40), "d = 2: one frequency, which is 1", layout="half"),
        _case("positions/negative", (7, 8), (-1, -2, -63, 0, -257, -2049, 3), layout="half"),
        _case("positions/fractional", (5, 6), (0.5, 1.75, 0.25, 999.5, 2.0), layout="half"),
        _case("positions/chunk", (2, 5, 8), (100, 101, 102, 103, 104), "a chunk", layout="half"),
        _case("base/below-one", (3, 6), (1, 2, 3), "frequencies that grow", layout="half", base=0.25),
        _case("partial/40-of-72", (5, 72), NEAR, bits=24, layout="half", rotary_dim=40),
        _case("partial/72-of-80", (3, 80), (1, 7, 63), bits=24, layout="interleaved", rotary_dim=72),
        _case("partial/gpt-j", (3, 256), (1, 7, 2047), layout="interleaved", rotary_dim=64),
        _case("trailing/half", (3, 2, 5, 14), UNSORTED, layout="half", rotary_dim=8, lanes="trailing"),
        _case("trailing/interleaved", (3, 5, 22), UNSORTED, bits=24, layout="interleaved", rotary_dim=12,
              base=5e5, lanes="trailing"),
        _case("trailing/mixed", (5, 17), NEAR, "an odd head size", layout="interleaved_to_half",
              rotary_dim=6, lanes="trailing"),
        _case("trailing/deepseek-v4", (1, 512), (131071,), layout="interleaved", rotary_dim=64, lanes="trailing"),
        _case("trailing/deepseek-v4-compress", (1, 512), (65537,), "layers with a compressor",
              layout="interleaved", base=160000.0, rotary_dim=64, lanes="trailing", scaling=DEEPSEEK_V4),
        _case("trailing/inverse", (2, 5, 15), NEAR, bits=24, layout="interleaved", rotary_dim=10,
              lanes="trailing", inverse=True),
        _case("trailing/inverse-mixed", (5, 20), NEAR, layout="interleaved_to_half", rotary_dim=12,
              lanes="trailing", inverse=True, scaling=GIVEN),
        _case("trailing/all", (5, 10), NEAR, "all lanes rotate: no difference", layout="half", lanes="trailing"),
        *(_case(f"inverse/{w.replace('_', '-')}", (2, 5, 12), UNSORTED, layout=w, inverse=True) for w in LAYOUTS),
        _case("inverse/partial", (3, 5, 22), NEAR, bits=24, layout="half", rotary_dim=12, inverse=True),
        _case("inverse/partial-mixed", (3, 5, 16), NEAR, layout="interleaved_to_half", rotary_dim=10, inverse=True),
        _case("inverse/factor", (5, 12), NEAR,
              "the factor multiplies again: the transpose, not the inverse", layout="half", scaling=GIVEN, inverse=True),
        _case("inverse/factor-interleaved", (5, 20), NEAR, bits=24, layout="interleaved", base=3e4,
              scaling=YaRN(factor=4, original_length=2048), inverse=True),
        _case("linear/4", (5, 12), NEAR, layout="half", scaling=Linear(4)),
        _case("linear/2.5", (3, 5, 10), NEAR, bits=24, layout="interleaved", base=5e5, scaling=Linear(2.5)),
        _case("linear/8", (5, 20), (0, 3, 300, 4097, 8), layout="half", base=5e5, scaling=Linear(8)),
        _case("linear/6", (3, 14), (1, 63, 2049), layout="interleaved", scaling=Linear(6)),
        _case("linear/3-mixed", (5, 6), (0, 3, 300, 4097, 8), layout="interleaved_to_half", scaling=Linear(3)),
        _case("ntk/2.5", (3, 5, 12), NEAR, bits=24, layout="interleaved", base=5e5, scaling=NTKAware(2.5)),
        _case("ntk/3", (5, 6), NEAR, layout="interleaved", base=500.0, scaling=NTKAware(3)),
        _case("ntk/partial", (5, 30), NEAR, "the power has the rotated width",
              layout="interleaved", scaling=NTKAware(6), rotary_dim=12),
        _case("dynamic/below", (5, 12), (0, 1, 2, 5, 6), layout="half", scaling=DynamicNTK(2, 16), length=7),
        _case("dynamic/below-interleaved", (3, 5, 20), NEAR, layout="interleaved", scaling=DynamicNTK(4, 600), length=64),
        _case("dynamic/at", (5, 12), (0, 1, 2, 7, 15), layout="half", scaling=DynamicNTK(2, 16), length=16),
        _case("dynamic/at-interleaved", (3, 10), (0, 1, 11), layout="interleaved", scaling=DynamicNTK(3, 12), length=12),
        _case("dynamic/above", (5, 12), (0, 1, 2, 7, 39), layout="half", scaling=DynamicNTK(2, 16), length=40),
        _case("dynamic/far-above", (3, 20), (1, 7, 4097), bits=24, layout="half", base=5e5,
              scaling=DynamicNTK(4, 2048), length=5000),
        _case("dynamic/one-above", (3, 10), (1, 7, 12), layout="interleaved", scaling=DynamicNTK(3, 12), length=13),
        _case("dynamic/above-interleaved", (3, 5, 20), NEAR, bits=24, layout="interleaved",
              base=5e5, scaling=DynamicNTK(4, 24), length=70),
        _case("dynamic/length-and-positions", (3, 10), (1, 7, 20),
              "length is more than the last position + 1", layout="interleaved_to_half", scaling=DynamicNTK(2.5, 16),
              length=100),
        _case("llama3/limits", (3, 5, 20), NEAR, bits=24, layout="half", base=2e4, scaling=Llama3(6, 500, 2, 9)),
        _case("llama3/limits-interleaved", (5, 12), NEAR, layout="interleaved", scaling=Llama3(5, 300, 1.5, 24)),
        _case("llama3/llama-4", (5, 128), (0, 1, 7, 63, 8193), layout="interleaved", base=5e5, scaling=LLAMA4),
        _case("llama3/step", (5, 20), NEAR, layout="half", scaling=Llama3(4, 700, 2, 2)),
        _case("yarn/qwen-2.5", (7, 128), (0, 1, 2, 7, 63, 257, 32769), layout="half", base=1e6, scaling=QWEN),
        _case("yarn/gpt-oss", (7, 64), (0, 1, 2, 7, 63, 257, 4097), layout="half", base=150000.0, scaling=GPT_OSS),
        _case("yarn/deepseek-v2-lite", (5, 64), NEAR, layout="interleaved", scaling=DEEPSEEK_V2),
        _case("yarn/kimi-k2", (5, 64), NEAR, layout="interleaved_to_half", base=50000.0, scaling=KIMI),
        _case("yarn/interleaved", (2, 5, 20), NEAR, layout="interleaved", base=5e5, scaling=YaRN(16, 1000)),
        _case("yarn/mixed", (3, 5, 12), NEAR, bits=24, layout="interleaved_to_half", scaling=YaRN(5, 700)),
        _case("yarn/mscale", (5, 12), NEAR, layout="half", scaling=UNEQUAL),
        _case("yarn/zero-mscale", (5, 12), NEAR, "1 / (0.08 ln 9 + 1), not 0.1 ln 9 + 1", layout="half",
              scaling=YaRN(9, 800, mscale=0.0, mscale_all_dim=0.8)),
        _case("yarn/zero-mscale-all-dim", (5, 14), NEAR, layout="interleaved",
              scaling=YaRN(9, 800, mscale=0.5, mscale_all_dim=0.0)),
        _case("yarn/given-factor", (5, 12), NEAR, layout="half", scaling=GIVEN),
        _case("yarn/unrounded-partial", (5, 40), NEAR, layout="half", scaling=UNROUNDED, rotary_dim=28),
        _case("yarn/long-original", (5, 64), (0, 1, 63, 257, 4096), "high is 35, above d/2 - 1 = 31",
              layout="half", scaling=YaRN(4, 131072)),
        _case("yarn/long-original-interleaved", (3, 48), (1, 100, 300), layout="interleaved", scaling=YaRN(6, 200000)),
        _case("yarn/factor-one", (5, 12), NEAR, "no factor on cos and sin for s <= 1",
              layout="interleaved", scaling=YaRN(0.75, 2000)),
        *(sequence(f"rope/sequence/dynamic-{scaling.original_length}-{layout}",
          "long, short, long, exactly the limit, longer", _lengths(layout, scaling, longest))
          for scaling, longest in ((DynamicNTK(2, 16), 40), (DynamicNTK(3, 12), 31)) for layout in ("half", "interleaved")),
        sequence("rope/sequence/offset", "the same T at another offset",
                 _steps({"layout": "half"}, ({}, (2, 5, 8), (0, 1, 2, 3, 4)), ({}, (2, 5, 8), (7, 8, 9, 10, 11)))),
        sequence("rope/sequence/offset-interleaved", "the same T at another offset",
                 _steps({"layout": "interleaved"}, ({}, (3, 10), (9, 10, 11)), ({}, (3, 10), (0, 1, 2)))),
        sequence("rope/sequence/order", "the same T, first and last position in another order",
                 _steps({"layout": "half"}, ({}, (4, 6), (0, 1, 2, 3)), ({}, (4, 6), (0, 2, 1, 3)))),
        sequence("rope/sequence/base", "another base, then the first again",
                 _steps({"layout": "half"}, ({}, (5, 12), NEAR), ({"base": 5e5}, (5, 12), NEAR), ({}, (5, 12), NEAR))),
        sequence("rope/sequence/base-interleaved", "another base",
                 _steps({"layout": "interleaved"}, ({"base": 1e6}, (5, 6), NEAR), ({}, (5, 6), NEAR))),
        _case("refused/odd-rotary-dim", (3, 8), (0, 1, 5), "lanes rotate in pairs", kind="reject", layout="half", rotary_dim=5),
        _case("refused/wide-rotary-dim", (3, 8), (0, 1, 5), "rotary_dim is more than d", kind="reject",
              layout="interleaved", rotary_dim=10),
        _case("refused/layout", (3, 8), (0, 1, 5), "no such layout", kind="reject", layout="neox"),
        _case("refused/enlarged", (1, 8), (0, 1, 5), "three positions for one row", kind="reject", layout="half"),
        _case("refused/rows-as-heads", (3, 3, 5, 8), OFFSETS,
              "(B, T) would broadcast against (H, T), silently since B = H", kind="reject", layout="half"),
        _case("refused/base-zero", (3, 8), (0, 1, 5), "base must be above 0", kind="reject", layout="half", base=0.0),
        _case("refused/no-length", (3, 8), (0, 1, 5), "dynamic NTK without a length", kind="reject",
              layout="half", scaling=DynamicNTK(2, 16)),
        _case("refused/lanes", (3, 8), (0, 1, 5), "no such lanes", kind="reject", layout="half", rotary_dim=4, lanes="last"),
        *(case for extended in EXTENDED for case in _extended_rotations(extended)),
        _rising_rotations(SMALL, LONGROPE_LENGTHS),
        _rising_rotations(DynamicYaRN(48), YARN_LENGTHS),
        *rotations("rope"),
        _rope("strided", (2, 2, 3, 4), (7, 0, 2), layout="interleaved", view="non-contiguous"),
        _rope("half", (2, 3, 8), (0, 1, 5), layout="half"),
        _rope("interleaved", (2, 3, 6), (2, 7, 300), layout="interleaved", base=500000.0),
        _rope("mixed", (3, 6), (1, 0, 4097), layout="interleaved_to_half", scaling=YaRN(40, 4096)),
        _rope("gain", (2, 3, 9), (0, 3, 11), layout="half", rotary_dim=6, scaling=YaRN(4, 512, attention_factor=1.25)),
        _rope("partial", (3, 2, 9), (257, 4), layout="interleaved", rotary_dim=4),
        _rope("trailing", (3, 2, 9), (257, 4), layout="half", rotary_dim=4, lanes="trailing"),
        _rope("trailing-inverse", (2, 3, 7), (5, 1, 40), layout="interleaved", rotary_dim=4, inverse=True, lanes="trailing"),
        _rope("rows", (3, 2, 2, 4), (((3, 4),), ((257, 258),), ((0, 1),)), layout="half"),
        _rope("inverse", (2, 3, 6), (5, 1, 40), layout="half", inverse=True, scaling=YaRN(8, 2048)),
        *(case for layout in LAYOUTS for case in _usual(layout)),
    )  # fmt: skip


@around
def _head_exponent(
    function: Function, x: Real, positions: Any, /, *, rotary_dim: int | None = None, lanes: str = "leading", **options: Any
) -> Real:
    """The pairs of the rotated part take the frequencies that the whole head's first pairs would have."""
    half, whole = (rotary_dim or x.shape[-1]) // 2, x.shape[-1] // 2
    start = x.shape[-1] - 2 * half if lanes == "trailing" else 0
    reads, writes = reads_writes(options["layout"], options.get("inverse", False))
    spread, out = np.zeros(x.shape), np.array(x, dtype=np.float64)
    spread[..., members(whole, reads)[:, :half]] = x[..., start + members(half, reads)]
    turned = function(spread, positions, **options)
    out[..., start + members(half, writes)] = turned[..., members(whole, writes)[:, :half]]
    return out


@around
def _as_proportional(
    function: Function, x: Real, positions: Any, /, *, rotary_dim: int | None = None, scaling: Any = None, **options: Any
) -> Real:
    """The first rotary_dim/2 pairs of the whole head, with its frequencies."""
    if rotary_dim is None or scaling is not None or options.get("lanes") == "trailing" or x.shape[-1] % 2:
        return function(x, positions, rotary_dim=rotary_dim, scaling=scaling, **options)
    return function(x, positions, scaling=Proportional(rotary_dim / x.shape[-1]), **options)


def _as_partial(*, own_exponent: bool) -> Wrap:
    """Return a wrap that rotates only the first channels under Proportional, with exponents of these or of all channels."""

    def deviating(function: Function, x: Real, positions: Any, /, *, base: float, scaling: Any = None, **options: Any) -> Real:
        width = options.get("rotary_dim") or x.shape[-1]
        rotated = 2 * int(scaling.rotated * width / 2) if isinstance(scaling, Proportional) else 0
        if not rotated:
            return function(x, positions, base=base, scaling=scaling, **options)
        base_of_layer = base if own_exponent else base ** (rotated / width)
        return function(x, positions / scaling.factor, **(options | {"base": base_of_layer, "rotary_dim": rotated}))

    return around(deviating)


@around
def _partial_twice(function: Function, x: Real, positions: Any, /, *, rotary_dim: int | None = None, **options: Any) -> Real:
    if rotary_dim is not None:
        rotary_dim = max(2, rotary_dim * rotary_dim // x.shape[-1] // 2 * 2)
    return function(x, positions, rotary_dim=rotary_dim, **options)


@around
def _axis(function: Function, x: Real, positions: Any, /, **options: Any) -> Real:
    """Positions counted along the heads: before the sequence in (B, H, T, d), after it where positions are (B, T, 1)."""
    if x.ndim < 3:
        return function(x, positions, **options)
    shape = np.shape(positions)
    last = len(shape) > 1 and shape[-1] == 1 != shape[-2]
    heads = np.arange(x.shape[-2]) if last else np.arange(x.shape[-3])[:, None]
    return function(x, np.broadcast_to(heads, x.shape[:-1]), **options)


def _along_first(x: Real, p: Any) -> Any:
    """Return positions that count the first axis, unless it holds the tokens."""
    if x.ndim < 3 or (np.ndim(p) > 1 and np.shape(p)[-1] == 1):
        return p
    return np.broadcast_to(np.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 2)), x.shape[:-1])


@around
def _factor_if_not(function: Function, x: Real, positions: Any, /, *, layout: str, **options: Any) -> Real:
    """The factor reaches only one layout's path."""
    out = np.array(function(x, positions, layout=layout, **options), dtype=np.float64)
    frequency = {name: options[name] for name in ("base", "scaling", "length") if name in options}
    kept = options.get("rotary_dim") or x.shape[-1]
    start = x.shape[-1] - kept if options.get("lanes") == "trailing" else 0
    out[..., start : start + kept] /= posref.rope_frequencies(kept, **frequency)[1] if layout != "half" else 1.0
    return out


PROPORTIONAL = "Proportional zeroes the slow pairs of the whole head: pair i is still channels i and i + D/2."
_deviation = deviations_of("rope")

DEVIATIONS = (
    _deviation("rotary-dim-ignored", "rotary_dim is ignored: the whole head is rotated",
               lambda function: lambda x, positions, /, **options: function(x, positions, **(options | {"rotary_dim": None})),
               hint=SLICE, seen_in="maxtext#4616", one_of="rotary_dim"),
    _deviation("rotary-dim-twice", "the partial rotary factor is applied twice", _partial_twice,
               hint="rotary_dim already contains the partial rotary factor: apply it once.", seen_in="vLLM#41185",
               one_of="rotary_dim"),
    _deviation("exponent-over-head-size", "the exponent's denominator is the head size rather than rotary_dim", _head_exponent,
               hint=EXPONENT, seen_in="neuronx-distributed-inference#106"),
    _deviation("partial-as-proportional",
               "a part of the head is rotated as Proportional rotates it: pairs and exponents are the whole head's",
               _as_proportional, seen_in="pie-project/pie#602",
               hint="With rotary_dim, channels pair within the rotated part, and the exponent's denominator is rotary_dim."),
    _deviation("proportional-as-partial",
               "Proportional is computed as a partial rotation: pairs and exponents are the rotated part's",
               _as_partial(own_exponent=True), hint=PROPORTIONAL),
    _deviation("proportional-pairs-partial", "Proportional's channels pair within the rotated part, not across the head",
               _as_partial(own_exponent=False), hint=PROPORTIONAL, seen_in="apple/coreai-models#66"),
    _deviation("rotates-along-heads", "positions run along the head axis rather than the sequence axis", _axis,
               hint="Compare the axis of positions with the axis of tokens: (B, H, T, D) or (B, T, H, D).",
               seen_in="open_lm#4, DeepSpeed#2782"),
    _deviation("rotates-along-rows", "positions run along the first axis, the batch, rather than the sequence axis",
               lambda f: lambda x, p, /, **o: f(x, _along_first(x, p), **o),
               hint="Compare the axis of positions with the axis of tokens: (B, T, D) or (T, B, D)."),
    _deviation("factor-half-only", "the attention factor is applied in layout 'half' alone", _factor_if_not,
               hint="The attention factor is applied in one branch of the layouts alone.", seen_in="daScript#3479"),
    _deviation("positions-arange-of-x", "0, 1, 2, ... along the second-last axis of x is used in place of the positions",
               lambda f: lambda x, p, /, **o: f(x, np.arange(x.shape[-2]) if x.ndim > 1 else np.zeros(()), **o), hint=ARANGE,
               seen_in="keras-hub#1544", one_of="positions"),
)  # fmt: skip
