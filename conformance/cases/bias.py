"""Cases of additive biases: alibi_slopes, alibi, t5_buckets and t5_bias."""

from typing import Any
from zlib import crc32

import numpy as np

from ..model import Case, Flag, Step
from .numbers import floats

FLAGS = {
    "alibi-exponent": Flag("the first slope is 1: the exponent starts at 0", "aprender #2143"),
    "alibi-heads": Flag("the closed form for heads that are no power of two", "Baichuan2 #225, TensorRT-LLM #1611"),
    "alibi-order": Flag("slopes sorted, reversed or not interleaved", "llm-foundry #186"),
    "alibi-max-bias": Flag("max_bias fixed at 8"),
    "alibi-true-size": Flag("a model's own number of heads not reproduced", "Baichuan2 #225"),
    "alibi-sign": Flag("far keys favoured", "x-transformers 4ed4d0a"),
    "alibi-form": Flag("one form in place of another: signed, absolute or by key", "Baichuan-13B #172, llm-foundry #186"),
    "alibi-off-by-one": Flag("distances counted from one", "vLLM #945"),
    "alibi-product": Flag("slope, distance or product in half precision", "TensorRT-Model-Connect #667, vllm-fork #503"),
    "alibi-ids": Flag("counts from 0 in place of the caller's positions", "PaddleNLP #6495"),
    "alibi-rows": Flag("row 0's positions used for every row of the batch", "PaddleNLP #6495"),
    "alibi-decode": Flag("a decode row that is not the row of the whole", "x-transformers 74f241d, fbbc159"),
    "alibi-far": Flag("distances past 256 or 2048 in half precision", "vllm-fork #503"),
    "alibi-empty": Flag("no query: a crash or a wrong shape"),
    "alibi-refuse": Flag("no heads, or an unknown word, accepted"),
    "t5-direction": Flag("encoder's buckets in a decoder, or the reverse", "espnet #2816"),
    "t5-sign": Flag("query minus key for key minus query", "text-to-text-transfer-transformer #415"),
    "t5-log": Flag("no logarithmic half, or one that is rounded", "nntrainer #3982"),
    "t5-clamp": Flag("far distances past the last bucket"),
    "t5-max-distance": Flag("max_distance fixed at 128", "llama.cpp llama_relative_position_bucket"),
    "t5-num-buckets": Flag("num_buckets fixed at 32"),
    "t5-true-size": Flag("T5's own settings not reproduced", "text-to-text-transfer-transformer #415"),
    "t5-heads": Flag("the table reshaped where it is transposed"),
    "t5-half-precision": Flag("distances held in bfloat16 before they are sorted into buckets"),
    "t5-downcast": Flag("a table of 24-bit numbers narrowed on the way"),
    "t5-ids": Flag("counts from 0 in place of the caller's positions", "text-to-text-transfer-transformer #325"),
    "t5-rows": Flag("row 0's positions used for every row of the batch"),
    "t5-decode": Flag("a decode row that is not the row of the whole", "text-to-text-transfer-transformer #415"),
    "t5-empty": Flag("no query: a crash or a wrong shape"),
    "t5-refuse": Flag("settings that leave a bucket empty accepted"),
}


def _slopes(
    name: str, flags: str, heads: int, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of alibi_slopes."""
    flagged = tuple(f"alibi-{flag}" for flag in flags.split())
    return Case(f"alibi_slopes/{name}", {"heads": heads, **params}, {}, flagged, comment, kind, tier)


SLOPES = (
    _slopes("power-of-two/8", "exponent order", 8, "a half to 1/256", tier="smoke"),
    _slopes("power-of-two/16", "exponent order", 16, "roots of 2"),
    _slopes("power-of-two/1", "exponent", 1),
    _slopes("power-of-two/32", "true-size", 32, "MPT-7B"),
    _slopes("other/3", "heads order", 3),
    _slopes("other/6", "heads order", 6),
    _slopes("other/12", "heads order", 12),
    _slopes("other/20", "heads", 20),
    _slopes("other/40", "true-size heads", 40, "Baichuan-13B"),
    _slopes("other/71", "true-size heads", 71, "Falcon-7B"),
    _slopes("other/112", "true-size heads", 112, "BLOOM"),
    _slopes("max-bias/16", "max-bias", 8, max_bias=16),
    _slopes("max-bias/5", "max-bias heads", 12, max_bias=5),
    _slopes("max-bias/2.5", "max-bias", 4, max_bias=2.5),
    _slopes("refused/no-heads", "refuse", 0, "at least one head", kind="reject"),
    _slopes("refused/max-bias", "refuse", 8, "slopes must fall", kind="reject", max_bias=0),
)

NEAR = (0, 1, 2, 7, 63)
FAR = (0, 1, 2, 7, 63, 255, 256, 257, 2047, 2048, 2049, 4095, 4097, 65535, 65537, 131071, 1048575)
Q_ROWS = ((4, 5, 6), (260, 261, 262))  # another offset in every row
K_ROWS = ((0, 2, 3, 4, 5, 6, 8), (250, 256, 257, 259, 260, 261, 262))
HOLES = (0, 3, 3, 1, 9, 4, 20)  # gaps, repeats and no order


def _alibi(
    name: str, flags: str, q_positions: Any, k_positions: Any, comment: str = "", *, kind: str = "value",
    tier: str = "core",
    **params: Any,
) -> Case:  # fmt: skip
    """Return a case of alibi."""
    inputs = {"q_positions": q_positions, "k_positions": k_positions}
    return Case(f"alibi/{name}", params, inputs, tuple(f"alibi-{flag}" for flag in flags.split()), comment, kind, tier)


def _alibi_steps(*calls: tuple[Any, Any], **params: Any) -> tuple[Step, ...]:
    """Return calls of alibi."""
    return tuple(Step(params, {"q_positions": q, "k_positions": k}) for q, k in calls)


ALIBI = (
    _alibi("distance/small", "sign exponent off-by-one", (2, 3), (0, 1, 2, 3, 4), heads=8,
           form="distance"),
    _alibi("distance/both-sides", "form sign heads", (3, 8, 5), HOLES, "keys before and after the query", heads=6,
           form="distance"),
    _alibi("distance/rows", "rows ids order", Q_ROWS, K_ROWS, "(B, Q) and (B, K)", heads=12, form="distance"),
    _alibi("distance/far", "far product", (0, 2049), FAR, heads=3, form="distance"),
    _alibi("distance/negative", "form ids", (-3, 0), (-300, -1, 2), heads=20, form="distance"),
    _alibi("distance/fractional", "product", (0.5, 7.25), (1.75, 0.25, 3.0), heads=4, form="distance"),
    _alibi("distance/one-head", "exponent off-by-one", (5, 4, 9), (0, 300), heads=1, form="distance"),
    _alibi("causal/small", "form off-by-one sign", (2, 3), (0, 1, 2, 3, 4), heads=8, form="causal"),
    _alibi("causal/both-sides", "form off-by-one heads", (3, 8, 5), HOLES, "positive after the query", heads=12,
           form="causal"),
    _alibi("causal/rows", "rows ids", Q_ROWS, K_ROWS, heads=20, form="causal"),
    _alibi("causal/far", "far product", (1, 4097, 65537), FAR, heads=6, form="causal"),
    _alibi("causal/baichuan-13b", "true-size heads order", (4095,), (0, 1, 2047, 4094, 4095), heads=40, form="causal"),
    _alibi("causal/shared-queries", "rows", (7, 9), K_ROWS, "queries (Q,) against keys (B, K)", heads=3, form="causal"),
    _alibi("key/small", "form sign", (2, 3), (0, 1, 2, 3, 4), "(H, 1, K)", heads=8, form="key"),
    _alibi("key/bloom", "true-size heads order", (1, 2, 3), (0, 1, 2, 7, 2047), heads=112, form="key"),
    _alibi("key/falcon", "true-size heads product", (1, 2), (0, 1, 257, 2047, 5), heads=71, form="key"),
    _alibi("key/rows", "rows ids form", Q_ROWS, K_ROWS, heads=6, form="key"),
    _alibi("key/far", "far product", (5, 6), FAR, heads=3, form="key"),
    _alibi("decode/one-query", "decode ids", (6,), tuple(range(7)), "the last row of the whole", heads=12,
           form="distance"),
    _alibi("decode/one-query-causal", "decode ids", (258,), (0, 1, 2, 256, 257, 258), heads=6, form="causal"),
    _alibi("decode/one-key", "decode", (3, 4), (2,), heads=6, form="distance"),
    _alibi("decode/no-query", "empty", np.zeros(0, dtype=np.int64), (0, 1, 2), heads=6, form="distance"),
    Case("alibi/sequence/decode", flags=("alibi-decode",), comment="prefill, then a decode row, then prefill elsewhere",
         kind="sequence", steps=_alibi_steps((range(5), range(5)), ((5,), range(6)), (range(7, 12), range(12)),
         heads=12, form="distance")),
    Case("alibi/sequence/decode-causal", flags=("alibi-decode", "alibi-ids"),
         comment="prefill, then one token after another", kind="sequence",
         steps=_alibi_steps((range(3), range(3)), ((3,), range(4)), ((4,), range(5)), heads=6, form="causal")),
    _alibi("refused/form", "refuse", (2, 3), (0, 1, 2), "no such form", kind="reject", heads=8, form="relative"),
    _alibi("refused/no-heads", "refuse", (2, 3), (0, 1, 2), "at least one head", kind="reject", heads=0,
           form="distance"),
)  # fmt: skip

CLOSE = tuple(range(-24, 25))
EDGES = (
    -129,
    -128,
    -127,
    -64,
    -63,
    -33,
    -32,
    -31,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    129,
)  # where a power of two begins a bucket
SPARSE = tuple(range(-300, 301, 7))
BEYOND = (-1048575, -65537, -2049, -1000, 1000, 4097, 131071)


def _buckets(
    name: str,
    flags: str,
    relative_positions: Any,
    comment: str = "",
    *,
    kind: str = "value",
    tier: str = "core",
    **params: Any,
) -> Case:
    """Return a case of t5_buckets."""
    flagged = tuple(f"t5-{flag}" for flag in flags.split())
    return Case(f"t5_buckets/{name}", params, {"relative_positions": relative_positions}, flagged, comment, kind, tier)


BUCKETS = (
    _buckets("bidirectional/small", "sign direction", (-9, -1, 0, 1, 2, 40), tier="smoke", bidirectional=True),
    _buckets("bidirectional/close", "direction sign log", CLOSE, bidirectional=True),
    _buckets("bidirectional/t5", "true-size log clamp", EDGES + SPARSE, bidirectional=True),
    _buckets("bidirectional/beyond", "clamp", BEYOND, bidirectional=True),
    _buckets("causal/close", "direction sign log", CLOSE, bidirectional=False),
    _buckets("causal/t5", "true-size log clamp", EDGES + SPARSE, bidirectional=False),
    _buckets("causal/beyond", "clamp direction", BEYOND, bidirectional=False),
    _buckets("settings/16-77", "num-buckets max-distance", SPARSE, bidirectional=True, num_buckets=16, max_distance=77),
    _buckets("settings/40-1000", "num-buckets max-distance", SPARSE + BEYOND, bidirectional=True, num_buckets=40,
             max_distance=1000),
    _buckets("settings/64-256", "num-buckets max-distance", SPARSE, bidirectional=False, num_buckets=64,
             max_distance=256),
    _buckets("settings/20-50", "num-buckets max-distance log", CLOSE + BEYOND, bidirectional=True, num_buckets=20,
             max_distance=50),
    _buckets("settings/64-5000", "half-precision max-distance", (-399, -754, -1029, -1205, -2265, -3641, 5),
             "bfloat16 moves each across a threshold", bidirectional=False, num_buckets=64, max_distance=5000),
    _buckets("settings/128-5000", "half-precision num-buckets", (291, -469, 549, -1030, 1413, -2266, 3643),
             "bfloat16 moves each across a threshold", bidirectional=True, num_buckets=128, max_distance=5000),
    _buckets("settings/32-64", "max-distance", SPARSE, bidirectional=False, num_buckets=32, max_distance=64),
    _buckets("settings/7-30", "num-buckets", CLOSE, "an odd number, one side", bidirectional=False, num_buckets=7,
             max_distance=30),
    _buckets("shapes/matrix", "sign log", ((0, -1, -2, 9, 50), (1, 0, -100, 3, -17), (2, 11, 0, -5, 300)),
             bidirectional=True),
    _buckets("shapes/scalar", "log", -50, bidirectional=False),
    _buckets("shapes/empty", "empty", np.zeros(0, dtype=np.int64), bidirectional=True),
    _buckets("refused/odd", "refuse", (-1, 0, 1), "half the buckets for each side", kind="reject", bidirectional=True,
             num_buckets=31),
    _buckets("refused/near", "refuse", (-1, 0, 1), "max_distance leaves the logarithmic half empty", kind="reject",
             bidirectional=False, max_distance=16),
)  # fmt: skip


def _bias(
    name: str, flags: str, q_positions: Any, k_positions: Any, table: tuple[int, int], comment: str = "", *,
    bits: int = 8,
    kind: str = "value", tier: str = "core", **params: Any,
) -> Case:  # fmt: skip
    """Return a case of t5_bias with a table of this shape."""
    table_of = floats(*table, seed=crc32(name.encode()), bits=bits)
    inputs = {"q_positions": q_positions, "k_positions": k_positions, "table": table_of}
    return Case(f"t5_bias/{name}", params, inputs, tuple(f"t5-{flag}" for flag in flags.split()), comment, kind, tier)


def _bias_steps(heads: int, *calls: tuple[Any, Any], **params: Any) -> tuple[Step, ...]:
    """Return calls of t5_bias with one table."""
    table = floats(32, heads, seed=heads)
    return tuple(Step(params, {"q_positions": q, "k_positions": k, "table": table}) for q, k in calls)


KEYS = (0, 1, 2, 3, 7, 12, 30, 50, 90, 200, 1000)
BIAS = (
    _bias("bidirectional/small", "sign direction heads", (0, 2, 9), (0, 1, 2, 7), (32, 2), tier="smoke",
          bidirectional=True),
    _bias("bidirectional/t5", "true-size heads log", (0, 40, 300), KEYS, (32, 12), "T5 base: 12 heads",
          bidirectional=True),
    _bias("bidirectional/24-bits", "downcast log clamp", (10, 150, 2049), KEYS, (32, 5), bits=24, bidirectional=True),
    _bias("bidirectional/rows", "rows ids", Q_ROWS, K_ROWS, (32, 5), bidirectional=True),
    _bias("causal/small", "sign direction heads", (0, 2, 9), (0, 1, 2, 7), (32, 5), bidirectional=False),
    _bias("causal/t5", "true-size heads log clamp", (40, 300, 1000), KEYS, (32, 12), bidirectional=False),
    _bias("causal/24-bits", "downcast log", (60, 95, 400), (1, 2, 20, 37, 44, 58, 59), (32, 6), bits=24,
          bidirectional=False),
    _bias("causal/rows", "rows ids", Q_ROWS, K_ROWS, (32, 6), bidirectional=False),
    _bias("settings/16-77", "num-buckets max-distance", (0, 60), KEYS, (16, 3), bidirectional=True, max_distance=77),
    _bias("settings/20-50", "num-buckets max-distance", (30, 55, 5), KEYS, (20, 7), bidirectional=False,
          max_distance=50),
    _bias("settings/40-1000", "num-buckets max-distance", (500, 3), KEYS, (40, 5), bits=24, bidirectional=True,
          max_distance=1000),
    _bias("settings/32-64", "max-distance", (70, 33), KEYS, (32, 3), bidirectional=False, max_distance=64),
    _bias("decode/one-query", "decode ids", (90,), KEYS, (32, 6), bidirectional=False),
    _bias("decode/one-query-bidirectional", "decode ids", (13,), KEYS, (32, 3), bidirectional=True),
    _bias("decode/one-head", "heads", (7, 3), (0, 4, 30), (32, 1), bidirectional=True),
    _bias("decode/negative", "ids sign", (-3, 0), (-40, -4, 2), (32, 5), bidirectional=True),
    _bias("decode/no-query", "empty", np.zeros(0, dtype=np.int64), (0, 1, 2), (32, 5), bidirectional=True),
    Case("t5_bias/sequence/decode", flags=("t5-decode",), comment="prefill, then one token after another",
         kind="sequence", steps=_bias_steps(5, (range(4), range(4)), ((4,), range(5)), ((5,), range(6)),
         bidirectional=False)),
    _bias("refused/odd", "refuse", (0, 2), (0, 1, 2), (31, 5), "half the buckets for each side", kind="reject",
          bidirectional=True),
)  # fmt: skip

CASES: tuple[Case, ...] = (*SLOPES, *ALIBI, *BUCKETS, *BIAS)
