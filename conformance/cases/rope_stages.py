"""Cases of rope's stages, rope_frequencies, rope_table and apply_rope, and of rotation_matrix."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from posref.scaling import DynamicNTK, Linear, Llama3, NTKAware, YaRN

from ..model import Case, Step
from .numbers import floats
from .rope import (
    BASE,
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    FAR,
    GIVEN,
    GPT_OSS,
    KIMI,
    LAYOUTS,
    LLAMA3,
    LLAMA4,
    LLAMA32,
    NEAR,
    OFFSETS,
    QWEN,
    UNEQUAL,
    UNROUNDED,
    UNSORTED,
    seed_of,
    sequence,
)
from .rope_flags import FLAGS

__all__ = ["CASES", "FLAGS"]


def _frequencies(
    name: str, flags: str, dim: int, comment: str = "", *, base: float = BASE, kind: str = "value", tier: str = "core",
    **params: Any,
) -> Case:  # fmt: skip
    """Return a case of rope_frequencies."""
    params = {"dim": dim, "base": base, **params}
    return Case(f"rope_frequencies/{name}", params, {}, tuple(flags.split()), comment, kind, tier)


def _frequency_lengths(dim: int, base: float, scaling: DynamicNTK, lengths: tuple[int, ...]) -> tuple[Step, ...]:
    """Return calls of rope_frequencies with these lengths."""
    return tuple(Step({"dim": dim, "base": base, "scaling": scaling, "length": n}) for n in lengths)


FREQUENCIES = (
    _frequencies("plain/small", "exponent", 8, tier="smoke"),
    _frequencies("plain/128", "base half-precision exponent true-size", 128, base=5e5),
    _frequencies("plain/96", "half-precision exponent", 96),
    _frequencies("plain/20", "base exponent", 20, base=1e6),
    _frequencies("plain/one-pair", "exponent", 2, "the one frequency is 1", base=500.0),
    _frequencies("linear/4", "linear", 20, scaling=Linear(4)),
    _frequencies("linear/2.5", "linear base", 48, base=5e5, scaling=Linear(2.5)),
    _frequencies("ntk/4", "ntk-exponent", 96, scaling=NTKAware(4)),
    _frequencies("ntk/2.5", "ntk-exponent base", 20, base=5e5, scaling=NTKAware(2.5)),
    _frequencies("ntk/two-pairs", "ntk-exponent", 4, "the power is 2", base=300.0, scaling=NTKAware(3)),
    _frequencies("dynamic/below", "dynamic-below", 20, scaling=DynamicNTK(2, 16), length=7),
    _frequencies("dynamic/none", "dynamic-below", 12, "no token yet", base=5e5, scaling=DynamicNTK(4, 600), length=0),
    _frequencies("dynamic/at", "dynamic-below", 20, scaling=DynamicNTK(2, 16), length=16),
    _frequencies("dynamic/one-above", "dynamic-above", 20, scaling=DynamicNTK(2, 16), length=17),
    _frequencies("dynamic/above", "dynamic-above ntk-exponent", 96, base=5e5, scaling=DynamicNTK(4, 2048), length=5000),
    _frequencies("llama3/llama-3.1", "llama3-bands true-size", 128, base=5e5, scaling=LLAMA3),
    _frequencies("llama3/llama-3.2", "llama3-factor true-size", 64, "bands 0-14, 15-17 and 18-31", base=5e5,
                 scaling=LLAMA32),
    _frequencies("llama3/limits", "llama3-factor llama3-bands", 20, base=2e4, scaling=Llama3(6, 500, 2, 9)),
    _frequencies("llama3/llama-4", "llama3-step true-size", 128, base=5e5, scaling=LLAMA4),
    _frequencies("llama3/step", "llama3-step", 20, scaling=Llama3(4, 700, 2, 2)),
    _frequencies("yarn/qwen-2.5", "yarn-factor yarn-gain true-size", 128, base=1e6, scaling=QWEN),
    _frequencies("yarn/gpt-oss", "yarn-truncate true-size", 64, base=150000.0, scaling=GPT_OSS),
    _frequencies("yarn/deepseek-v3", "yarn-mscale true-size", 64, "both mscales: a factor of 1", scaling=DEEPSEEK_V3),
    _frequencies("yarn/deepseek-v2-lite", "yarn-mscale true-size", 64, scaling=DEEPSEEK_V2),
    _frequencies("yarn/kimi-k2", "yarn-singular yarn-betas true-size", 64, base=50000.0, scaling=KIMI),
    _frequencies("yarn/mscale", "yarn-mscale", 20, scaling=UNEQUAL),
    _frequencies("yarn/mscale-alone", "yarn-mscale", 12, "mscale without mscale_all_dim does nothing",
                 scaling=YaRN(6, 512, mscale=1.5)),
    _frequencies("yarn/mscale-all-dim-alone", "yarn-mscale", 14, "nor the reverse",
                 scaling=YaRN(6, 512, mscale_all_dim=0.5)),
    _frequencies("yarn/mscale-all-dim-only", "yarn-mscale", 10, "mscale is not 1 where it is not given",
                 scaling=YaRN(12, 700, mscale_all_dim=1.25)),
    _frequencies("yarn/zero-mscale", "yarn-zero", 12, scaling=YaRN(9, 800, mscale=0.0, mscale_all_dim=0.8)),
    _frequencies("yarn/zero-mscale-all-dim", "yarn-zero", 14, scaling=YaRN(9, 800, mscale=0.5, mscale_all_dim=0.0)),
    _frequencies("yarn/given-factor", "yarn-gain yarn-betas", 12, scaling=GIVEN),
    _frequencies("yarn/given-over-mscale", "yarn-gain yarn-mscale", 20, "attention_factor wins", base=3e4,
                 scaling=YaRN(5, 700, attention_factor=0.875, mscale=1.5, mscale_all_dim=0.25)),
    _frequencies("yarn/unrounded", "yarn-truncate yarn-betas", 24, scaling=UNROUNDED),
    _frequencies("yarn/long-original", "yarn-range", 64, "high is 35, above d/2 - 1 = 31", scaling=YaRN(4, 131072)),
    _frequencies("yarn/long-original-48", "yarn-range", 48, scaling=YaRN(6, 200000)),
    _frequencies("yarn/high-clamped", "yarn-range", 10, "high is d - 1", base=100.0, scaling=YaRN(4, 2000000)),
    _frequencies("yarn/low-clamped", "yarn-range", 12, "low is below 0", scaling=YaRN(4, 100)),
    _frequencies("yarn/both-zero", "yarn-singular", 12, "low and high are 0: the ramp is 1/1000 wide",
                 scaling=YaRN(4, 6)),
    _frequencies("yarn/equal-betas-inside", "yarn-singular", 20, "low is 3.9996: pair 4 lies inside the ramp of 1/1000",
                 scaling=YaRN(4, 600, beta_fast=2.39955872, beta_slow=2.39955872, truncate=False)),
    _frequencies("yarn/equal-betas", "yarn-singular yarn-truncate", 20,
                 scaling=YaRN(4, 900, beta_fast=3, beta_slow=3, truncate=False)),
    _frequencies("yarn/factor-one", "yarn-gain", 12, "no factor for s <= 1", scaling=YaRN(1, 2000)),
    _frequencies("yarn/factor-below-one", "yarn-gain", 14, scaling=YaRN(0.75, 2000)),
    sequence("rope_frequencies/sequence/dynamic", "dynamic-stale dynamic-limit",
              "long, short, long, the limit, longer", _frequency_lengths(12, BASE, DynamicNTK(2, 16),
              (40, 8, 40, 16, 41))),
    sequence("rope_frequencies/sequence/dynamic-limit", "dynamic-stale dynamic-limit", "long, then exactly the limit",
              _frequency_lengths(20, 5e5, DynamicNTK(4, 2048), (5000, 2048, 3000))),
    _frequencies("refused/odd", "refuse-width", 7, "lanes rotate in pairs", kind="reject"),
    _frequencies("refused/base", "refuse-option", 8, "base must be above 0", base=-1.0, kind="reject"),
    _frequencies("refused/no-length", "refuse-option", 8, "dynamic NTK without a length", kind="reject",
                 scaling=DynamicNTK(2, 16)),
    _frequencies("refused/betas", "refuse-option", 8, "fast pairs turn more often: beta_fast is at least beta_slow",
                 kind="reject", scaling=YaRN(4, 2048, beta_fast=1, beta_slow=32)),
    _frequencies("refused/ntk-pair", "refuse-width", 2, "the power d/(d - 2) divides by zero", kind="reject",
                 scaling=NTKAware(2)),
)  # fmt: skip

EIGHT_BITS = tuple(n / 2**k for n, k in ((1, 0), (205, 9), (165, 10), (133, 11), (215, 13), (171, 14)))  # falling by about 2.5
WIDE = tuple(n / 2**24 for n in (16777215, 6675213, 2657431, 1057921, 421177, 167647, 66751))  # 24 bits each
HEAD_128 = tuple(float(np.float32(13347**i / 16384**i)) for i in range(64))  # within 1% of base 500000's; 24 bits each
PAIRS = (1.0, 0.1171875, 0.013671875)  # 3 pairs


def _table(
    name: str, flags: str, positions: Any, inv_freq: Any, comment: str = "", *, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of rope_table."""
    inputs = {"positions": positions, "inv_freq": inv_freq}
    return Case(f"rope_table/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _tables(name: str, *calls: tuple[Any, tuple[float, ...]]) -> Case:
    """Return a case of several calls of rope_table."""
    steps = tuple(Step({}, {"positions": positions, "inv_freq": inv_freq}) for positions, inv_freq in calls)
    return sequence(f"rope_table/sequence/{name}", "cache-key", "the same number of positions, elsewhere", steps)


TABLES = (
    _table("plain/small", "sign one-based", (0, 1, 5, 2), PAIRS, tier="smoke"),
    _table("plain/far", "far-position table-end quantised-angle", FAR, EIGHT_BITS),
    _table("plain/far-24-bits", "far-position half-precision table-end", FAR, WIDE,
           "frequencies that bfloat16 does not hold"),
    _table("plain/near-24-bits", "half-precision quantised-angle aliasing", tuple(range(9)), WIDE),
    _table("plain/unsorted", "position-ids", UNSORTED, EIGHT_BITS),
    _table("plain/rows", "row-offsets position-ids", OFFSETS, WIDE, "(B, T)"),
    _table("plain/rows-and-heads", "row-offsets rank", np.asarray(OFFSETS)[:2, None, :4].tolist(), PAIRS, "(B, 1, T)"),
    _table("plain/tokens-first", "rank token-axis", np.asarray(OFFSETS)[1:, :, None].tolist(), WIDE, "(B, T, 1)"),
    _table("plain/scalar", "decode rank", 300, EIGHT_BITS, "a position without axes"),
    _table("plain/decode", "decode position-ids", (257,), WIDE),
    _table("plain/negative", "negative sign", (-1, -2, -63, 3, -257, -4096), EIGHT_BITS[:4]),
    _table("plain/negative-rows", "negative", ((-5, -4, 0), (-300, 2, -1)), WIDE),
    _table("plain/fractional", "fractional", (0.5, 1.75, 999.5, 0.25), EIGHT_BITS),
    _table("plain/fractional-24-bits", "fractional", (63.125, 2.5, 0.375), WIDE),
    _table("plain/empty", "empty", np.zeros(0, dtype=np.int64), PAIRS),
    _table("plain/head-128", "true-size half-precision", (0, 1, 7, 63, 8191), HEAD_128),
    _table("factor/1.25", "yarn-gain", NEAR, EIGHT_BITS, attention_factor=1.25),
    _table("factor/qwen-2.5", "yarn-gain", NEAR, WIDE, "0.1 ln 4 + 1", attention_factor=1.1386294361119891),
    _table("factor/below-one", "yarn-gain", NEAR, PAIRS, attention_factor=0.6875),
    _table("refused/frequency-rows", "refuse-width", (0, 1, 5), ((1.0, 0.5), (0.25, 0.125)),
           "frequencies have one axis", kind="reject"),
    _tables("offset", (NEAR, EIGHT_BITS), ((64, 65, 66, 67, 68), EIGHT_BITS)),
    _tables("offset-decode", ((8,), WIDE), ((9,), WIDE), ((300,), WIDE)),
    _tables("frequencies", (NEAR, PAIRS), (NEAR, EIGHT_BITS[1:4]), (NEAR, PAIRS)),
)  # fmt: skip


def _apply(
    name: str, flags: str, shape: tuple[int, ...], rows: tuple[int, ...], comment: str = "", *,
    pairs: int | None = None,
    bits: int = 8, kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of apply_rope on an x of `shape`, with tables of `rows`, in (-1, 1), that are no unit circle."""
    pairs = shape[-1] // 2 if pairs is None else pairs
    arrays = {"x": shape, "cos": (*rows, pairs), "sin": (*rows, pairs)}
    inputs = {
        key: floats(*size, seed=seed_of(name + key), bits=bits) / (1 if key == "x" else 4) for key, size in arrays.items()
    }
    return Case(f"apply_rope/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _apply_layout(layout: str) -> Iterator[Case]:
    """Yield what every layout is asked of apply_rope."""
    group = layout.replace("_", "-")
    first = "smoke" if layout == "half" else "core"
    yield _apply(f"{group}/small", "layout sign", (3, 8), (3,), tier=first, layout=layout)
    yield _apply(f"{group}/24-bits", "downcast table-layout mixed-layout", (3, 2, 5, 12), (5,), bits=24, layout=layout)
    yield _apply(f"{group}/53-bits", "downcast mixed-layout", (2, 3, 6), (3,), bits=53, layout=layout)
    yield _apply(f"{group}/rows", "row-offsets every-head", (3, 2, 5, 14), (3, 1, 5), layout=layout)
    yield _apply(f"{group}/tokens-first", "token-axis rank", (2, 5, 3, 10), (2, 5, 1), bits=24, layout=layout)
    yield _apply(f"{group}/partial", "partial partial-tail", (2, 5, 22), (5,), pairs=7, bits=24, layout=layout)
    yield _apply(f"{group}/inverse", "inverse sign", (5, 12), (5,), bits=24, layout=layout, inverse=True)
    yield _apply(f"{group}/inverse-partial", "inverse partial-tail", (3, 5, 17), (3, 5), pairs=5, layout=layout, inverse=True)


ROTATIONS = (
    _apply("shapes/vector", "rank", (6,), (), layout="half"),
    _apply("shapes/odd-rows", "odd-size aliasing", (7, 10), (7,), bits=24, layout="half"),
    _apply("shapes/odd-rows-interleaved", "odd-size aliasing", (3, 5, 18), (5,), bits=24, layout="interleaved"),
    _apply("shapes/single-head", "single-head", (2, 1, 5, 12), (5,), layout="half"),
    _apply("shapes/single-head-interleaved", "single-head", (3, 1, 2, 6), (3, 1, 2), layout="interleaved"),
    _apply("shapes/one-row", "decode", (3, 2, 1, 20), (3, 1, 1), layout="half"),
    _apply("shapes/one-row-interleaved", "decode", (5, 1, 14), (1,), layout="interleaved"),
    _apply("shapes/no-token", "empty", (2, 0, 8), (0,), layout="half"),
    _apply("shapes/20-of-72", "odd-size partial-tail", (5, 72), (5,), pairs=20, layout="interleaved"),
    _apply("shapes/36-of-80", "odd-size partial-tail", (3, 80), (3,), pairs=36, layout="half"),
    _apply("shapes/head-128", "true-size", (3, 5, 128), (5,), bits=24, layout="half"),
    _apply("trailing/half", "lanes layout", (3, 2, 5, 14), (5,), pairs=4, layout="half", lanes="trailing"),
    _apply("trailing/interleaved", "lanes layout", (5, 22), (5,), pairs=6, bits=24, layout="interleaved", lanes="trailing"),
    _apply("trailing/inverse", "lanes inverse", (3, 5, 17), (3, 5), pairs=5, layout="interleaved_to_half", inverse=True,
           lanes="trailing"),
    _apply("trailing/deepseek-v4", "lanes true-size", (1, 512), (1,), pairs=32, layout="interleaved", lanes="trailing"),
    _apply("refused/layout", "refuse-option", (3, 8), (3,), "no such layout", kind="reject", layout="neox"),
    _apply("refused/lanes", "refuse-option", (3, 8), (3,), "no such lanes", pairs=2, kind="reject", layout="half",
           lanes="last"),
    _apply("refused/wide-table", "refuse-width", (3, 8), (3,), "more pairs than x has", pairs=5, kind="reject",
           layout="half"),
    _apply("refused/rows-as-heads", "refuse-positions", (3, 3, 5, 8), (3, 5), "(B, T) would be taken for (H, T)",
           kind="reject", layout="half"),
    Case("apply_rope/refused/two-widths", {"layout": "half"}, {"x": floats(3, 8, seed=1),
         "cos": floats(3, 4, seed=2) / 4, "sin": floats(3, 3,
         seed=3) / 4}, ("refuse-width",), "cos and sin of different widths", "reject"),
)  # fmt: skip


def _matrix(
    name: str,
    flags: str,
    position: Any,
    dim: int,
    comment: str = "",
    *,
    kind: str = "value",
    tier: str = "core",
    **params: Any,
) -> Case:
    """Return a case of rotation_matrix."""
    params = {"dim": dim, "base": BASE, **params}
    return Case(f"rotation_matrix/{name}", params, {"position": position}, tuple(flags.split()), comment, kind, tier)


def _matrices(name: str, *calls: tuple[dict[str, Any], int]) -> Case:
    """Return a case of several calls of rotation_matrix: options and a position."""
    steps = tuple(Step({"dim": 10, "base": BASE, **options}, {"position": position}) for options, position in calls)
    return sequence(f"rotation_matrix/sequence/{name}", "cache-key dynamic-stale", "on one instance", steps)


MATRICES = (
    _matrix("half/small", "layout sign", 3, 6, tier="smoke", layout="half"),
    _matrix("half/zero", "one-based", 0, 10, layout="half", base=5e5),
    _matrix("half/far", "far-position base", 2049, 20, layout="half", base=5e5),
    _matrix("half/very-far", "far-position table-end", 65537, 10, layout="half"),
    _matrix("interleaved/very-far", "far-position table-end", 40001, 6, layout="interleaved"),
    _matrix("half/negative", "negative sign", -7, 12, layout="half", base=500.0),
    _matrix("interleaved/small", "layout sign", 5, 6, layout="interleaved"),
    _matrix("interleaved/far", "far-position base", 257, 14, layout="interleaved", base=1e6),
    _matrix("interleaved/negative", "negative", -300, 10, layout="interleaved", base=500.0),
    _matrix("interleaved-to-half/small", "mixed-layout", 2, 10, layout="interleaved_to_half", base=3e4),
    _matrix("interleaved-to-half/fractional", "mixed-layout fractional", 12.25, 6, layout="interleaved_to_half"),
    _matrix("scaling/linear", "linear", 9, 12, layout="half", scaling=Linear(3)),
    _matrix("scaling/linear-interleaved", "linear", 4, 10, layout="interleaved", scaling=Linear(2.5)),
    _matrix("scaling/ntk", "ntk-exponent", 9, 12, layout="interleaved", scaling=NTKAware(4)),
    _matrix("scaling/ntk-half", "ntk-exponent", 5, 6, layout="half", base=5e5, scaling=NTKAware(2.5)),
    _matrix("scaling/dynamic", "dynamic-above", 39, 10, layout="half", scaling=DynamicNTK(2, 16), length=40),
    _matrix("scaling/dynamic-interleaved", "dynamic-above", 3, 6, layout="interleaved", scaling=DynamicNTK(3, 12), length=31),
    _matrix("scaling/dynamic-below", "dynamic-below", 9, 6, layout="interleaved", scaling=DynamicNTK(2, 16), length=10),
    _matrix("scaling/llama3", "llama3-bands", 50, 20, layout="half", base=2e4, scaling=Llama3(6, 500, 2, 9)),
    _matrix("scaling/llama3-interleaved", "llama3-bands", 7, 12, layout="interleaved", scaling=Llama3(5, 300, 1.5, 24)),
    _matrix("scaling/yarn", "yarn-gain", 5, 12, layout="half", scaling=GIVEN),
    _matrix("scaling/yarn-mixed", "yarn-gain-layout yarn-mscale", 8, 10, layout="interleaved_to_half", scaling=UNEQUAL),
    _matrix("scaling/deepseek-v3", "yarn-mscale true-size", 63, 64, layout="interleaved", scaling=DEEPSEEK_V3),
    _matrix("scaling/dynamic-at", "dynamic-below", 15, 10, layout="half", scaling=DynamicNTK(3, 16), length=16),
    _matrix("half/fractional", "fractional", 40.75, 10, layout="half", base=500.0),
    _matrix("yarn/gpt-oss", "yarn-truncate true-size", 31, 64, layout="half", base=150_000.0, scaling=GPT_OSS),
    _matrix("yarn/unrounded", "yarn-truncate yarn-betas", 12, 20, layout="interleaved", scaling=UNROUNDED),
    _matrix("yarn/kimi", "yarn-betas yarn-singular", 255, 64, layout="interleaved_to_half", base=50_000.0, scaling=KIMI),
    _matrix("yarn/long-original", "yarn-range", 257, 64, layout="half", scaling=YaRN(4, 131072)),
    _matrix("yarn/long-original-interleaved", "yarn-range", 100, 48, layout="interleaved", scaling=YaRN(8, 200_000)),
    _matrix("yarn/zero-mscale", "yarn-zero", 5, 12, layout="half", scaling=YaRN(9, 256, mscale=0.0, mscale_all_dim=0.75)),
    _matrix(
        "yarn/zero-mscale-all-dim",
        "yarn-zero",
        9,
        14,
        layout="interleaved",
        scaling=YaRN(7, 256, mscale=1.25, mscale_all_dim=0.0),
    ),
    _matrices("cache", ({"layout": "half"}, 3), ({"layout": "half"}, 11), ({"layout": "half", "base": 500.0}, 11)),
    _matrices("cache-interleaved", ({"layout": "interleaved"}, 300), ({"layout": "interleaved"}, 2)),
    _matrices("dynamic", *(({"layout": "half", "scaling": DynamicNTK(2, 16), "length": n}, n - 1) for n in (40, 16, 8, 33))),
    _matrices(
        "dynamic-interleaved",
        *(({"layout": "interleaved", "scaling": DynamicNTK(3, 12), "length": n}, n - 1) for n in (31, 12, 9)),
    ),
    _matrix("refused/odd", "refuse-width", 3, 5, "lanes rotate in pairs", kind="reject", layout="half"),
)

CASES: tuple[Case, ...] = (
    *FREQUENCIES,
    *TABLES,
    *(case for layout in LAYOUTS for case in _apply_layout(layout)),
    *ROTATIONS,
    *MATRICES,
)
