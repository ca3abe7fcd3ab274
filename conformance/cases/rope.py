"""Cases of RoPE: rope, its stages rope_frequencies, rope_table and apply_rope, and rotation_matrix."""

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np

from posref.scaling import DynamicNTK, Linear, Llama3, NTKAware, YaRN

from ..case import Case, Flag, Step, floats

FLAGS = {
    # layout and sign
    "layout": Flag("pairs of lanes taken in the other layout", "vllm-ascend #12820, LLMs-from-scratch #747"),
    "table-layout": Flag(
        "a table laid out for other pairs than the rotation's", "ark-nlp #47, how-to-train-your-gpt #6"
    ),
    "mixed-layout": Flag("pairs read in one layout and written in another", "vllm-metal #44"),
    "sign": Flag("a rotation by -p, or half of one", "lalamo #268"),
    "inverse": Flag(
        "a backward pass that rotates forward, or drops the tail or the factor", "flash-attention #569, apex #1750"
    ),
    # positions
    "one-based": Flag("positions counted from one, or no identity at position 0", "fairseq's padding offset"),
    "far-position": Flag(
        "positions held in bfloat16 or float16", "transformers #29285, Megatron-LM #744, candle #3520"
    ),
    "table-end": Flag(
        "positions past a table clamped, wrapped, or packed in 16 bits", "pegainfer #220, vllm-ascend #1266"
    ),
    "position-ids": Flag(
        "a count from 0, or from the first token, in place of the caller's positions", "keras-hub #1544"
    ),
    "row-offsets": Flag("row 0's positions used for every row of the batch", "Liger-Kernel #477"),
    "decode": Flag("one token at an offset handled as if it were the first", "MLX d40e76809, flashinfer #847"),
    "negative": Flag("positions without a sign, where a cache is shifted back", "llama.cpp #13870"),
    "fractional": Flag("positions truncated to integers"),
    "cache-key": Flag("a table kept from another call with other positions or base", "rotary-embedding-torch #11"),
    # shapes
    "token-axis": Flag("heads taken for tokens, or tokens for heads", "open_lm #4, DeepSpeed #2782"),
    "rank": Flag("an axis counted from the wrong end at another rank", "burn 0aecba362"),
    "single-head": Flag("one head returned unrotated", "Liger-Kernel #342"),
    "every-head": Flag("some heads left unrotated", "transformers #47403"),
    "odd-size": Flag("a vectorised loop without its tail, or a bound off by one", "flashinfer #2470"),
    "empty": Flag("an input without tokens that crashes or comes back in another shape"),
    "aliasing": Flag("the input overwritten while or after it is read", "unsloth #5001, transformers #11725"),
    # numbers
    "half-precision": Flag(
        "exponents, frequencies, angles or tables rounded to half precision",
        "keras-hub #1508, MLX #2791, tt-metal #54516",
    ),
    "downcast": Flag("24-bit x, cosines or sines narrowed on the way", "sglang #3134, flashinfer #585"),
    "quantised-angle": Flag("angles looked up among a few thousand steps of a turn"),
    "base": Flag("base 10000 whatever the model says", "airllm #368, llama.cpp #2773, penzai #102"),
    "exponent": Flag("another exponent than 2i/d", "labml #313"),
    "true-size": Flag("a model's own parameters not applied as they are written", "mlx-vlm #1710"),
    # partial rotation
    "partial": Flag("rotary_dim ignored, applied twice, or taken from the end", "maxtext #4616, vLLM #41185"),
    "partial-exponent": Flag(
        "the exponent divided by the head size, not by rotary_dim", "neuronx-distributed-inference #106"
    ),
    "partial-tail": Flag("lanes past rotary_dim zeroed, rounded or rotated", "apex #1750, labml #215"),
    # context extensions
    "linear": Flag("scaling ignored, or positions multiplied by the factor", "mlx-vlm #1710, mlxcel #1324"),
    "ntk-exponent": Flag("the base multiplied by the factor without the power d/(d-2)"),
    "dynamic-below": Flag("dynamic NTK applied at or below the original length", "mlxcel #1389"),
    "dynamic-above": Flag("dynamic NTK not applied, or with the static factor", "mlxcel #1324, Megatron-LM #2902"),
    "dynamic-stale": Flag("dynamic NTK that keeps the longest length of earlier calls", "transformers #25308, #27226"),
    "dynamic-limit": Flag("a stale base at exactly the original length", "transformers 5.23 (seq_len < original)"),
    "llama3-bands": Flag("Llama 3's bands moved (no 2 pi), or its ramp inverted", "TransformerLens #910"),
    "llama3-factor": Flag("Llama 3's factor or limits fixed at 8, 1 and 4", "foundation-model-stack #385"),
    "llama3-step": Flag("low_freq_factor equal to high_freq_factor divides by zero (Llama 4)"),
    "yarn-gain": Flag(
        "the attention factor dropped, squared, or on one of cos and sin", "exllamav3 #259, sglang #33558"
    ),
    "yarn-gain-layout": Flag("the attention factor applied in one layout alone", "daScript #3479, Megatron-LM #3900"),
    "yarn-mscale": Flag("mscale and mscale_all_dim ignored, or their ratio inverted", "mobius #548, Megatron-LM #1429"),
    "yarn-zero": Flag("a zero taken for a parameter that is not given", "MLX #4098"),
    "yarn-truncate": Flag("the correction range always rounded to integers, or never", "TVM #18576, keras-hub #2981"),
    "yarn-range": Flag(
        "the correction range clamped to d/2 - 1, or not clamped at all", "keras-hub #2981, minimind #602"
    ),
    "yarn-betas": Flag("beta_fast and beta_slow swapped, or fixed at 32 and 1"),
    "yarn-singular": Flag("a ramp of width 0 that divides by zero (Kimi K2)"),
    "yarn-factor": Flag(
        "the factor inside the power, fixed, or derived from lengths", "TVM #18576, transformers #38224"
    ),
    # must be refused
    "refuse-width": Flag("an odd, oversized or mismatched width accepted"),
    "refuse-positions": Flag("positions that broadcast to a silent mistake", "sglang #15984, sgl-kernel-xpu #202"),
    "refuse-option": Flag("an unknown word, or a number outside its domain, accepted", "nntrainer #3982"),
}

LAYOUTS = ("half", "interleaved", "interleaved_to_half")
NEAR = (0, 1, 2, 7, 63)
# 257 and 2049 are the first integers that bfloat16 and float16 miss; the others end a usual table, or pass its end.
FAR = (0, 1, 2, 7, 63, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 65535, 65536, 65537, 131071, 1048575)
UNSORTED = (5, 0, 0, 9, 2)
OFFSETS = ((3, 4, 5, 6, 7), (257, 258, 259, 260, 261), (0, 1, 2, 3, 4))  # a row each; none is row 0's
BASE = 10000.0

LLAMA3 = Llama3(factor=8, original_length=8192)  # Llama 3.1, head 128
LLAMA32 = Llama3(factor=32, original_length=8192)  # Llama 3.2 1B, head 64
LLAMA4 = Llama3(factor=16, original_length=8192, low_freq_factor=1, high_freq_factor=1)
QWEN = YaRN(factor=4, original_length=32768)  # Qwen2.5, base 1e6
GPT_OSS = YaRN(factor=32, original_length=4096, truncate=False)  # base 150000, head 64
DEEPSEEK_V3 = YaRN(factor=40, original_length=4096, mscale=1.0, mscale_all_dim=1.0)
DEEPSEEK_V2 = YaRN(factor=40, original_length=4096, mscale=0.707, mscale_all_dim=0.707)
KIMI = YaRN(factor=32, original_length=4096, beta_fast=1, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)  # base 50000
UNEQUAL = YaRN(factor=6, original_length=512, mscale=1.5, mscale_all_dim=0.25)  # a ratio that is not 1
GIVEN = YaRN(factor=3, original_length=300, beta_fast=20, beta_slow=2, attention_factor=1.25)
UNROUNDED = YaRN(factor=8, original_length=600, beta_fast=24, beta_slow=1.5, truncate=False)


def _seed(name: str) -> int:
    """Return a seed of the case's own."""
    return crc32(name.encode())


def _rope(
    name: str, flags: str, shape: tuple[int, ...], positions: Any, comment: str = "", *, bits: int = 8,
    kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of rope on an x of `shape`; the base is 10000 unless given."""
    inputs = {"x": floats(*shape, seed=_seed(name), bits=bits), "positions": positions}
    return Case(f"rope/{name}", {"base": BASE, **params}, inputs, tuple(flags.split()), comment, kind, tier)


def _layout(layout: str) -> Iterator[Case]:
    """Yield what every layout is asked."""
    group = layout.replace("_", "-")
    first = "smoke" if layout == "half" else "core"
    yield _rope(f"{group}/small", "layout sign one-based", (3, 8), (0, 1, 5), tier=first, layout=layout)
    yield _rope(f"{group}/far", "far-position table-end quantised-angle", (19, 10), FAR, layout=layout)
    yield _rope(
        f"{group}/unsorted", "position-ids token-axis mixed-layout base", (2, 3, 5, 12), UNSORTED,
        "gaps, repeats and no order; sizes that all differ", layout=layout, base=500000.0,
    )  # fmt: skip
    yield _rope(
        f"{group}/rows", "row-offsets position-ids every-head", (3, 2, 5, 14), np.asarray(OFFSETS)[:, None, :].tolist(),
        "another offset in every row", layout=layout, base=1e6,
    )  # fmt: skip
    yield _rope(
        f"{group}/24-bits", "downcast half-precision table-layout exponent", (7, 18), (0, 1, 2, 3, 5, 8, 13),
        "no number of x is representable in half precision", bits=24, layout=layout,
    )  # fmt: skip
    yield _rope(
        f"{group}/tokens-first", "token-axis rank every-head", (2, 5, 3, 8), np.asarray(OFFSETS)[1:, :, None].tolist(),
        "(B, T, H, d) with positions (B, T, 1)", layout=layout, base=2500.0,
    )  # fmt: skip
    yield _rope(
        f"{group}/decode", "decode row-offsets far-position", (3, 2, 1, 20), (((257,),), ((2049,),), ((6,),)),
        "one token a row, each at its own offset", layout=layout,
    )  # fmt: skip


SHAPES = (
    _rope("shapes/vector", "rank decode", (6,), 5, "one axis, and a position without axes", layout="half"),
    _rope("shapes/vector-interleaved", "rank decode", (10,), 258, layout="interleaved"),
    _rope("shapes/three-axes", "rank token-axis odd-size", (5, 3, 20), (1, 6, 4), "(H, T, d)", layout="half"),
    _rope("shapes/three-axes-interleaved", "rank token-axis odd-size", (2, 5, 22), (1, 6, 4, 300, 0),
          layout="interleaved"),
    _rope("shapes/tokens-first-shared", "rank token-axis", (2, 5, 3, 8), (tuple((p,) for p in UNSORTED),),
          "(B, T, H, d) with positions (1, T, 1)", layout="half"),
    _rope("shapes/single-head", "single-head", (2, 1, 5, 12), UNSORTED, "multi-query keys", layout="half"),
    _rope("shapes/single-head-rows", "single-head row-offsets", (3, 1, 5, 14), np.asarray(OFFSETS)[:, None].tolist(),
          layout="half"),
    _rope("shapes/single-head-three-axes", "single-head", (1, 5, 10), NEAR, layout="interleaved"),
    _rope("shapes/single-head-interleaved", "single-head", (3, 1, 2, 6), (4, 11), layout="interleaved"),
    _rope("shapes/odd-rows", "odd-size aliasing", (7, 12), (3, 1, 4, 15, 9, 2, 6), bits=24, layout="half"),
    _rope("shapes/odd-rows-interleaved", "odd-size aliasing", (3, 14), (3, 1, 4), bits=24, layout="interleaved"),
    _rope("shapes/one-pair", "odd-size exponent", (3, 2), (0, 1, 40), "d = 2: one frequency, which is 1",
          layout="half"),
    _rope("shapes/one-token", "decode one-based", (1, 6), (9,), layout="interleaved"),
    _rope("shapes/no-token", "empty", (2, 3, 0, 8), np.zeros(0, dtype=np.int64), layout="half"),
    _rope("shapes/no-row", "empty", (0, 3, 8), (1, 0, 4), layout="interleaved"),
)  # fmt: skip

POSITIONS = (
    _rope(
        "positions/shift-back", "negative", (2, 3, 12), (-100, -100, -100), "re-rotates a cache", bits=24, layout="half"
    ),
    _rope("positions/shift-back-interleaved", "negative", (5, 3, 6), (-31, -31, -31), bits=24, layout="interleaved"),
    _rope("positions/negative", "negative sign", (7, 8), (-1, -2, -63, 0, -257, -2049, 3), layout="half"),
    _rope(
        "positions/negative-interleaved", "negative sign", (3, 5, 10), (-7, -1, -4096, 5, -300), layout="interleaved"
    ),
    _rope("positions/fractional", "fractional", (5, 6), (0.5, 1.75, 0.25, 999.5, 2.0), layout="half"),
    _rope("positions/fractional-interleaved", "fractional", (3, 4, 10), (0.5, 7.375, 63.25, 3.0), layout="interleaved"),
    _rope("positions/chunk", "position-ids", (2, 5, 8), (100, 101, 102, 103, 104), "a chunk", layout="half"),
    _rope("positions/chunk-interleaved", "position-ids", (3, 4, 6), (31, 32, 33, 34), layout="interleaved"),
)

BASES = (
    _rope("base/500", "base exponent", (5, 12), NEAR, layout="half", base=500.0),
    _rope("base/500-interleaved", "base exponent", (5, 6), NEAR, layout="interleaved", base=500.0),
    _rope("base/150000", "base exponent", (3, 5, 20), NEAR, bits=24, layout="half", base=150000.0),
    _rope("base/1e6-interleaved", "base exponent", (2, 5, 18), NEAR, bits=24, layout="interleaved", base=1e6),
    _rope("base/below-one", "base", (3, 6), (1, 2, 3), "frequencies that grow", layout="half", base=0.25),
)

PARTIAL = (
    _rope("partial/20-of-48", "partial partial-exponent", (3, 2, 5, 48), UNSORTED, layout="half", rotary_dim=20),
    _rope("partial/20-of-34", "partial partial-exponent", (3, 5, 34), UNSORTED, layout="interleaved", rotary_dim=20),
    _rope("partial/40-of-72", "partial partial-tail", (5, 72), NEAR, bits=24, layout="half", rotary_dim=40),
    _rope("partial/72-of-80", "partial partial-tail", (3, 80), (1, 7, 63), bits=24, layout="interleaved",
          rotary_dim=72),
    _rope("partial/10-of-14", "partial mixed-layout", (5, 14), NEAR, layout="interleaved_to_half", rotary_dim=10),
    _rope("partial/12-of-21", "partial partial-tail", (2, 5, 21), NEAR, "an odd head size",
          layout="interleaved_to_half", base=3e4, rotary_dim=12),
    _rope("partial/all", "partial", (5, 12), NEAR, "rotary_dim given, and all of d", layout="half", rotary_dim=12),
    _rope("partial/gpt-j", "true-size partial", (3, 256), (1, 7, 2047), layout="interleaved", rotary_dim=64),
    _rope("partial/gpt-neox-20b", "true-size partial", (5, 96), (0, 1, 7, 63, 2047), layout="half", rotary_dim=24),
)  # fmt: skip

INVERSE = (
    *(_rope(f"inverse/{w.replace('_', '-')}", "inverse sign", (2, 5, 12), UNSORTED, layout=w,
      inverse=True) for w in LAYOUTS),
    _rope("inverse/partial", "inverse partial-tail", (3, 5, 22), NEAR, bits=24, layout="half", rotary_dim=12,
          inverse=True),
    _rope("inverse/partial-mixed", "inverse partial-tail", (3, 5, 16), NEAR, layout="interleaved_to_half",
          rotary_dim=10, inverse=True),
    _rope("inverse/factor", "inverse yarn-gain", (5, 12), NEAR,
          "the factor multiplies again: the transpose, not the inverse", layout="half", scaling=GIVEN, inverse=True),
    _rope("inverse/factor-interleaved", "inverse yarn-gain", (5, 20), NEAR, bits=24, layout="interleaved", base=3e4,
          scaling=YaRN(factor=4, original_length=2048), inverse=True),
)  # fmt: skip

SCALED = (
    _rope("linear/4", "linear", (5, 12), NEAR, layout="half", scaling=Linear(4)),
    _rope("linear/2.5", "linear", (3, 5, 10), NEAR, bits=24, layout="interleaved", base=5e5, scaling=Linear(2.5)),
    _rope("linear/8", "linear", (5, 20), (0, 3, 300, 4097, 8), layout="half", base=5e5, scaling=Linear(8)),
    _rope("linear/6", "linear", (3, 14), (1, 63, 2049), layout="interleaved", scaling=Linear(6)),
    _rope("linear/3-mixed", "linear", (5, 6), (0, 3, 300, 4097, 8), layout="interleaved_to_half", scaling=Linear(3)),
    _rope("ntk/4", "ntk-exponent", (5, 20), NEAR, layout="half", scaling=NTKAware(4)),
    _rope("ntk/2.5", "ntk-exponent", (3, 5, 12), NEAR, bits=24, layout="interleaved", base=5e5, scaling=NTKAware(2.5)),
    _rope("ntk/3", "ntk-exponent", (5, 6), NEAR, layout="interleaved", base=500.0, scaling=NTKAware(3)),
    _rope("ntk/96", "ntk-exponent", (5, 96), NEAR, layout="half", base=1e6, scaling=NTKAware(8)),
    _rope("ntk/partial", "ntk-exponent partial-exponent", (5, 30), NEAR, "the power has the rotated width",
          layout="interleaved", scaling=NTKAware(6), rotary_dim=12),
    _rope("dynamic/below", "dynamic-below", (5, 12), (0, 1, 2, 5, 6), layout="half", scaling=DynamicNTK(2, 16),
          length=7),
    _rope("dynamic/below-interleaved", "dynamic-below", (3, 5, 20), NEAR, layout="interleaved",
          scaling=DynamicNTK(4, 600), length=64),
    _rope("dynamic/at", "dynamic-below", (5, 12), (0, 1, 2, 7, 15), layout="half", scaling=DynamicNTK(2, 16),
          length=16),
    _rope("dynamic/at-interleaved", "dynamic-below", (3, 10), (0, 1, 11), layout="interleaved",
          scaling=DynamicNTK(3, 12), length=12),
    _rope("dynamic/above", "dynamic-above ntk-exponent", (5, 12), (0, 1, 2, 7, 39), layout="half",
          scaling=DynamicNTK(2, 16), length=40),
    _rope("dynamic/far-above", "dynamic-above", (3, 20), (1, 7, 4097), bits=24, layout="half", base=5e5,
          scaling=DynamicNTK(4, 2048), length=5000),
    _rope("dynamic/one-above", "dynamic-above", (3, 10), (1, 7, 12), layout="interleaved", scaling=DynamicNTK(3, 12),
          length=13),
    _rope("dynamic/above-interleaved", "dynamic-above ntk-exponent", (3, 5, 20), NEAR, bits=24, layout="interleaved",
          base=5e5, scaling=DynamicNTK(4, 24), length=70),
    _rope("dynamic/length-and-positions", "dynamic-above", (3, 10), (1, 7, 20),
          "length is more than the last position + 1", layout="interleaved_to_half", scaling=DynamicNTK(2.5, 16),
          length=100),
    _rope("llama3/llama-3.1", "llama3-bands true-size", (7, 128), (0, 1, 2, 7, 63, 257, 8193), layout="half", base=5e5,
          scaling=LLAMA3),
    _rope("llama3/llama-3.2", "llama3-factor llama3-bands true-size", (5, 64), (0, 1, 7, 63, 8193),
          layout="interleaved", base=5e5, scaling=LLAMA32),
    _rope("llama3/limits", "llama3-factor llama3-bands", (3, 5, 20), NEAR, bits=24, layout="half", base=2e4,
          scaling=Llama3(6, 500, 2, 9)),
    _rope("llama3/limits-interleaved", "llama3-factor llama3-bands", (5, 12), NEAR, layout="interleaved",
          scaling=Llama3(5, 300, 1.5, 24)),
    _rope("llama3/llama-4", "llama3-step true-size", (5, 128), (0, 1, 7, 63, 8193), layout="interleaved", base=5e5,
          scaling=LLAMA4),
    _rope("llama3/step", "llama3-step", (5, 20), NEAR, layout="half", scaling=Llama3(4, 700, 2, 2)),
)  # fmt: skip

YARN = (
    _rope("yarn/qwen-2.5", "yarn-gain true-size", (7, 128), (0, 1, 2, 7, 63, 257, 32769), layout="half", base=1e6,
          scaling=QWEN),
    _rope("yarn/gpt-oss", "yarn-truncate true-size", (7, 64), (0, 1, 2, 7, 63, 257, 4097), layout="half", base=150000.0,
          scaling=GPT_OSS),
    _rope("yarn/deepseek-v3", "yarn-mscale true-size", (7, 64), (0, 1, 2, 7, 63, 257, 4097),
          layout="interleaved_to_half", scaling=DEEPSEEK_V3),
    _rope("yarn/deepseek-v2-lite", "yarn-mscale true-size", (5, 64), NEAR, layout="interleaved", scaling=DEEPSEEK_V2),
    _rope("yarn/kimi-k2", "yarn-singular yarn-betas true-size", (5, 64), NEAR, layout="interleaved_to_half",
          base=50000.0, scaling=KIMI),
    _rope("yarn/interleaved", "yarn-gain-layout yarn-gain yarn-factor", (2, 5, 20), NEAR, layout="interleaved",
          base=5e5, scaling=YaRN(16, 1000)),
    _rope("yarn/mixed", "yarn-gain-layout yarn-gain yarn-factor", (3, 5, 12), NEAR, bits=24,
          layout="interleaved_to_half", scaling=YaRN(5, 700)),
    _rope("yarn/24-bits", "yarn-gain yarn-factor downcast", (5, 22), NEAR, bits=24, layout="half",
          scaling=YaRN(7, 900)),
    _rope("yarn/mscale", "yarn-mscale yarn-gain", (5, 12), NEAR, layout="half", scaling=UNEQUAL),
    _rope("yarn/mscale-interleaved", "yarn-mscale yarn-gain-layout", (3, 5, 20), NEAR, layout="interleaved",
          scaling=UNEQUAL),
    _rope("yarn/zero-mscale", "yarn-zero", (5, 12), NEAR, "1 / (0.08 ln 9 + 1), not 0.1 ln 9 + 1", layout="half",
          scaling=YaRN(9, 800, mscale=0.0, mscale_all_dim=0.8)),
    _rope("yarn/zero-mscale-all-dim", "yarn-zero", (5, 14), NEAR, layout="interleaved",
          scaling=YaRN(9, 800, mscale=0.5, mscale_all_dim=0.0)),
    _rope("yarn/given-factor", "yarn-gain yarn-betas", (5, 12), NEAR, layout="half", scaling=GIVEN),
    _rope("yarn/given-factor-interleaved", "yarn-gain-layout yarn-betas", (3, 5, 20), NEAR, layout="interleaved",
          scaling=GIVEN),
    _rope("yarn/unrounded", "yarn-truncate yarn-betas", (3, 5, 24), NEAR, bits=24, layout="interleaved",
          scaling=UNROUNDED),
    _rope("yarn/unrounded-partial", "yarn-truncate partial-exponent", (5, 40), NEAR, layout="half", scaling=UNROUNDED,
          rotary_dim=28),
    _rope("yarn/long-original", "yarn-range", (5, 64), (0, 1, 63, 257, 4096), "high is 35, above d/2 - 1 = 31",
          layout="half", scaling=YaRN(4, 131072)),
    _rope("yarn/long-original-interleaved", "yarn-range", (3, 48), (1, 100, 300), layout="interleaved",
          scaling=YaRN(6, 200000)),
    _rope("yarn/equal-betas", "yarn-singular yarn-truncate", (5, 20), NEAR, "a ramp 1/1000 wide", layout="half",
          scaling=YaRN(4, 900, beta_fast=3, beta_slow=3, truncate=False)),
    _rope("yarn/factor-one", "yarn-gain yarn-factor", (5, 12), NEAR, "no factor on cos and sin for s <= 1",
          layout="interleaved", scaling=YaRN(0.75, 2000)),
)  # fmt: skip


def _steps(params: dict[str, Any], *calls: tuple[dict[str, Any], tuple[int, ...], Any]) -> tuple[Step, ...]:
    """Return calls of rope: options that change, the shape of x, and positions."""
    return tuple(
        Step({"base": BASE, **params, **change}, {"x": floats(*shape, seed=i), "positions": positions})
        for i, (change, shape, positions) in enumerate(calls)
    )


def _sequence(name: str, flags: str, comment: str, steps: tuple[Step, ...]) -> Case:
    """Return a case of several calls."""
    return Case(name, flags=tuple(flags.split()), comment=comment, kind="sequence", steps=steps)


def _lengths(layout: str, scaling: DynamicNTK, longest: int) -> tuple[Step, ...]:
    """Return calls with a long sequence, a short one, exactly the limit, and a long one."""
    limit = scaling.original_length
    lengths = (longest, limit // 2, longest, limit, longest + 3)
    calls = (({"length": n}, (3, 12), (0, 1, n - 1)) for n in lengths)
    return _steps({"layout": layout, "scaling": scaling}, *calls)


SEQUENCES = (
    *(
        _sequence(f"rope/sequence/dynamic-{scaling.original_length}-{layout}", "dynamic-stale dynamic-limit",
                  "long, short, long, exactly the limit, longer", _lengths(layout, scaling, longest))
        for scaling, longest in ((DynamicNTK(2, 16), 40), (DynamicNTK(3, 12), 31))
        for layout in ("half", "interleaved")
    ),
    _sequence("rope/sequence/offset", "cache-key", "the same T at another offset",
              _steps({"layout": "half"}, ({}, (2, 5, 8), (0, 1, 2, 3, 4)), ({}, (2, 5, 8), (7, 8, 9, 10, 11)))),
    _sequence("rope/sequence/offset-interleaved", "cache-key", "the same T at another offset",
              _steps({"layout": "interleaved"}, ({}, (3, 10), (9, 10, 11)), ({}, (3, 10), (0, 1, 2)))),
    _sequence("rope/sequence/order", "cache-key", "the same T, first and last position in another order",
              _steps({"layout": "half"}, ({}, (4, 6), (0, 1, 2, 3)), ({}, (4, 6), (0, 2, 1, 3)))),
    _sequence("rope/sequence/base", "cache-key base", "another base, then the first again",
              _steps({"layout": "half"}, ({}, (5, 12), NEAR), ({"base": 5e5}, (5, 12), NEAR), ({}, (5, 12), NEAR))),
    _sequence("rope/sequence/base-interleaved", "cache-key base", "another base",
              _steps({"layout": "interleaved"}, ({"base": 1e6}, (5, 6), NEAR), ({}, (5, 6), NEAR))),
    _sequence("rope/sequence/decode", "decode cache-key position-ids", "prefill, then one token after another",
              _steps({"layout": "half"}, ({}, (3, 5, 12), (0, 1, 2, 3, 4)), ({}, (3, 1, 12), (5,)),
              ({}, (3, 1, 12), (6,)))),
    _sequence("rope/sequence/decode-interleaved", "decode cache-key position-ids",
              "prefill, one token, prefill of another row", _steps({"layout": "interleaved"},
              ({}, (2, 7, 6), (0, 1, 2, 3, 4, 5, 6)), ({}, (2, 1, 6), (7,)), ({}, (2, 7, 6), (3, 4, 5, 6, 7, 8, 9)))),
)  # fmt: skip

REFUSED = (
    _rope("refused/odd-rotary-dim", "refuse-width", (3, 8), (0, 1, 5), "lanes rotate in pairs", kind="reject",
          layout="half", rotary_dim=5),
    _rope("refused/wide-rotary-dim", "refuse-width", (3, 8), (0, 1, 5), "rotary_dim is more than d", kind="reject",
          layout="interleaved", rotary_dim=10),
    _rope("refused/layout", "refuse-option", (3, 8), (0, 1, 5), "no such layout", kind="reject", layout="neox"),
    _rope("refused/enlarged", "refuse-positions", (1, 8), (0, 1, 5), "three positions for one row", kind="reject",
          layout="half"),
    _rope("refused/rows-as-heads", "refuse-positions", (3, 3, 5, 8), OFFSETS,
          "(B, T) would broadcast against (H, T), silently since B = H", kind="reject", layout="half"),
    _rope("refused/base-zero", "refuse-option", (3, 8), (0, 1, 5), "base must be above 0", kind="reject", layout="half",
          base=0.0),
    _rope("refused/no-length", "refuse-option", (3, 8), (0, 1, 5), "dynamic NTK without a length", kind="reject",
          layout="half", scaling=DynamicNTK(2, 16)),
)  # fmt: skip


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
    _frequencies("yarn/equal-betas", "yarn-singular yarn-truncate", 20,
                 scaling=YaRN(4, 900, beta_fast=3, beta_slow=3, truncate=False)),
    _frequencies("yarn/factor-one", "yarn-gain", 12, "no factor for s <= 1", scaling=YaRN(1, 2000)),
    _frequencies("yarn/factor-below-one", "yarn-gain", 14, scaling=YaRN(0.75, 2000)),
    _sequence("rope_frequencies/sequence/dynamic", "dynamic-stale dynamic-limit",
              "long, short, long, the limit, longer", _frequency_lengths(12, BASE, DynamicNTK(2, 16),
              (40, 8, 40, 16, 41))),
    _sequence("rope_frequencies/sequence/dynamic-limit", "dynamic-stale dynamic-limit", "long, then exactly the limit",
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

EIGHT_BITS = tuple(
    n / 2**k for n, k in ((1, 0), (205, 9), (165, 10), (133, 11), (215, 13), (171, 14))
)  # falling by about 2.5
WIDE = tuple(n / 2**24 for n in (16777215, 6675213, 2657431, 1057921, 421177, 167647, 66751))  # 24 bits each
HEAD_128 = tuple(float(np.float32(13347**i / 16384**i)) for i in range(64))  # within 1% of base 500000's; 24 bits each
PAIRS = (1.0, 0.1171875, 0.013671875)  # 3 pairs


def _table(
    name: str, flags: str, positions: Any, inv_freq: tuple[float, ...], comment: str = "", *, kind: str = "value",
    tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of rope_table."""
    inputs = {"positions": positions, "inv_freq": inv_freq}
    return Case(f"rope_table/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _tables(name: str, *calls: tuple[Any, tuple[float, ...]]) -> Case:
    """Return a case of several calls of rope_table."""
    steps = tuple(Step({}, {"positions": positions, "inv_freq": inv_freq}) for positions, inv_freq in calls)
    return _sequence(f"rope_table/sequence/{name}", "cache-key", "the same number of positions, elsewhere", steps)


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
        key: floats(*size, seed=_seed(name + key), bits=bits) / (1 if key == "x" else 4) for key, size in arrays.items()
    }
    return Case(f"apply_rope/{name}", params, inputs, tuple(flags.split()), comment, kind, tier)


def _apply_layout(layout: str) -> Iterator[Case]:
    """Yield what every layout is asked of apply_rope."""
    group = layout.replace("_", "-")
    first = "smoke" if layout == "half" else "core"
    yield _apply(f"{group}/small", "layout sign", (3, 8), (3,), tier=first, layout=layout)
    yield _apply(f"{group}/24-bits", "downcast table-layout mixed-layout", (3, 2, 5, 12), (5,), bits=24, layout=layout)
    yield _apply(f"{group}/rows", "row-offsets every-head", (3, 2, 5, 14), (3, 1, 5), layout=layout)
    yield _apply(f"{group}/tokens-first", "token-axis rank", (2, 5, 3, 10), (2, 5, 1), bits=24, layout=layout)
    yield _apply(f"{group}/partial", "partial partial-tail", (2, 5, 22), (5,), pairs=7, bits=24, layout=layout)
    yield _apply(f"{group}/inverse", "inverse sign", (5, 12), (5,), bits=24, layout=layout, inverse=True)
    yield _apply(
        f"{group}/inverse-partial", "inverse partial-tail", (3, 5, 17), (3, 5), pairs=5, layout=layout, inverse=True
    )


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
    _apply("refused/layout", "refuse-option", (3, 8), (3,), "no such layout", kind="reject", layout="neox"),
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
    _matrix(
        "scaling/dynamic-interleaved", "dynamic-above", 3, 6, layout="interleaved", scaling=DynamicNTK(3, 12), length=31
    ),
    _matrix("scaling/dynamic-below", "dynamic-below", 9, 6, layout="interleaved", scaling=DynamicNTK(2, 16), length=10),
    _matrix("scaling/llama3", "llama3-bands", 50, 20, layout="half", base=2e4, scaling=Llama3(6, 500, 2, 9)),
    _matrix("scaling/llama3-interleaved", "llama3-bands", 7, 12, layout="interleaved", scaling=Llama3(5, 300, 1.5, 24)),
    _matrix("scaling/yarn", "yarn-gain", 5, 12, layout="half", scaling=GIVEN),
    _matrix("scaling/yarn-mixed", "yarn-gain-layout yarn-mscale", 8, 10, layout="interleaved_to_half", scaling=UNEQUAL),
    _matrix("scaling/deepseek-v3", "yarn-mscale true-size", 63, 64, layout="interleaved", scaling=DEEPSEEK_V3),
    _matrix("refused/odd", "refuse-width", 3, 5, "lanes rotate in pairs", kind="reject", layout="half"),
)

CASES: tuple[Case, ...] = (
    *FREQUENCIES,
    *TABLES,
    *(case for layout in LAYOUTS for case in _apply_layout(layout)),
    *ROTATIONS,
    *(case for layout in LAYOUTS for case in _layout(layout)),
    *SHAPES,
    *POSITIONS,
    *BASES,
    *PARTIAL,
    *INVERSE,
    *SCALED,
    *YARN,
    *SEQUENCES,
    *REFUSED,
    *MATRICES,
)
