"""Cases of masks (sliding_window, chunked_window, lambda_window) and of factors (logn_scale, attention_temperature)."""

from typing import Any

import numpy as np

from ..model import Case, Flag, Step
from .forms import pairs, places
from .numbers import floats

FLAGS = {
    "window-counting": Flag("a window of W keys besides the query's for W with it, or the reverse",
                        "transformers #39408, vLLM #3385"),
    "window-sides": Flag("a window on both sides of a causal query, or on one side of another"),
    "window-future": Flag("keys after the query allowed, as where only the window's far end is looked at"),
    "window-inverted": Flag("True forbids in place of allowing", "torch's MultiheadAttention"),
    "window-ids": Flag("counts from 0, or places in the cache, in place of the caller's positions", "transformers #37414"),
    "window-rows": Flag("row 0's positions used for every row of the batch", "transformers #40324"),
    "window-far": Flag("positions held in bfloat16 or float32", "candle #3520"),
    "window-decode": Flag("a decode row, or a chunk of prefill, that is not the row of the whole", "executorch #21857"),
    "window-true-size": Flag("a model's own window not reproduced", "Megatron-Bridge #2656"),
    "window-empty": Flag("no query: a crash or a wrong shape"),
    "window-refuse": Flag("a window that sees nothing, fractions of positions or an unknown word accepted"),
    "chunk-window": Flag("a sliding window of as many tokens in place of chunks"),
    "chunk-start": Flag("chunks counted from elsewhere than position 0", "transformers #40324"),
    "chunk-negative": Flag("quotients of negative positions rounded towards 0"),
    "lambda-sinks": Flag("the first keys forgotten, one too many, or told by their place in the cache"),
    "lambda-count": Flag("the sinks counted among the window", "transformers' SinkCache"),
    "lambda-future": Flag("sinks seen by queries that stand before them"),
    "factor-offset": Flag("the position taken for the number of keys, or the reverse", "xFasterTransformer's Qwen, fastllm"),
    "factor-limit": Flag("a factor below 1 where it must not be, or no such factor where it must"),
    "factor-length": Flag("the length in training ignored"),
    "factor-steps": Flag("steps for a smooth growth, or the reverse; quotients rounded, or rounded up"),
    "factor-strength": Flag("beta ignored"),
    "factor-inverse": Flag("a temperature that divides where it multiplies"),
    "factor-ids": Flag("counts from 0, or one factor for all queries, in place of their positions"),
    "factor-rows": Flag("row 0's positions used for every row of the batch"),
    "factor-far": Flag("positions held in bfloat16 or float32", "candle #3520"),
    "factor-bits": Flag("factors held in bfloat16", "transformers' Mistral Large 4"),
    "factor-decode": Flag("a decode step's factor that is not that of the whole"),
    "factor-true-size": Flag("a model's own numbers not reproduced"),
    "factor-empty": Flag("no position: a crash or a wrong shape"),
    "factor-refuse": Flag("a length that cannot divide, fractions of positions or an unknown word accepted"),
}  # fmt: skip

NEAR = (0, 1, 2, 3, 4, 5, 6)
UNSORTED = (5, 0, 0, 9, 2, 12, 7)
Q_ROWS = ((4, 5, 9), (260, 261, 262))  # another offset in every row
K_ROWS = ((0, 2, 3, 5, 9), (262, 256, 261, 259, 260))
Q_NEGATIVE, K_NEGATIVE = (-5, -1, 3), (-9, -8, -7, -4, -3, -1, 0, 2)
NONE = np.zeros(0, dtype=np.int64)
BEYOND = 2**24  # from here on float32 does not hold every integer
Q_BEYOND = (BEYOND + 1, BEYOND + 6, 2**30 + 7)
K_BEYOND = (BEYOND - 1, BEYOND, BEYOND + 1, BEYOND + 2, BEYOND + 3, BEYOND + 5, 2**30 + 3, 2**30 + 4, 2**30 + 7)
WITH, WITHOUT = "with_query", "without_query"


def _window(
    op: str, name: str, flags: str, q: Any, k: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of a mask."""
    return Case(f"{op}/{name}", params, {"q_positions": q, "k_positions": k}, _flags("window", flags), comment, kind, tier)


def _flags(prefix: str, flags: str) -> tuple[str, ...]:
    return tuple(flag if flag in FLAGS else f"{prefix}-{flag}" for flag in flags.split())


def _steps(op: str, name: str, **params: Any) -> Case:
    """Return a sequence: the whole, its second half, its last row against a longer cache, and another text."""
    calls = ((NEAR, NEAR), ((4, 5, 6), NEAR), ((7,), (*NEAR, 7)), ((300, 301), (296, 301, 299, 300, 3)))
    steps = tuple(Step(params, {"q_positions": q, "k_positions": k}) for q, k in calls)
    return Case(f"{op}/{name}", flags=("window-decode", "window-ids"), kind="sequence", steps=steps)


SLIDING = (
    _window("sliding_window", "causal/small", "counting future inverted", (4, 2, 7), NEAR, window=3, counting=WITH,
            sides="causal"),
    _window("sliding_window", "causal/unsorted", "counting sides ids", (6, 3, 12, 0), UNSORTED, window=4, counting=WITHOUT,
            sides="causal"),
    _window("sliding_window", "causal/itself", "counting sides", (2, 5, 3), NEAR, "the query alone", window=1, counting=WITH,
            sides="causal"),
    _window("sliding_window", "causal/nothing-else", "counting", (2, 5, 3, 8), NEAR, "the query alone", window=0,
            counting=WITHOUT, sides="causal"),
    _window("sliding_window", "causal/rows", "rows ids", Q_ROWS, K_ROWS, "(B, Q) and (B, K)", window=3, counting=WITH,
            sides="causal"),
    _window("sliding_window", "causal/rows-and-heads", "rows counting", np.asarray(Q_ROWS)[:, None], np.asarray(K_ROWS)[:,
            None], "(B, 1, Q) and (B, 1, K), for (B, H, Q, K)", window=4, counting=WITHOUT, sides="causal"),
    _window("sliding_window", "causal/negative", "ids sides", Q_NEGATIVE, K_NEGATIVE, window=3, counting=WITH, sides="causal"),
    _window("sliding_window", "causal/gpt-oss", "true-size counting far", (127, 128, 131071), (0, 1, 127, 128, 130943, 130944,
            130945, 131071, 131072), window=128, counting=WITH, sides="causal"),
    _window("sliding_window", "causal/mistral", "true-size counting far", (4095, 4096, 4097, 32767), (0, 1, 2, 4095, 28670,
            28671, 28672, 32767), "as Mistral's own code has it", window=4096, counting=WITHOUT, sides="causal"),
    _window("sliding_window", "causal/beyond-float32", "far ids", Q_BEYOND, K_BEYOND, window=4, counting=WITH, sides="causal"),
    _window("sliding_window", "causal/one-query", "decode ids", (258,), (254, 255, 256, 257, 258, 259), window=3,
            counting=WITHOUT, sides="causal"),
    _window("sliding_window", "causal/no-query", "empty", NONE, (0, 1), window=2, counting=WITH, sides="causal"),
    _window("sliding_window", "both/small", "sides counting inverted", (4, 2, 9), UNSORTED, window=3, counting=WITH,
            sides="both"),
    _window("sliding_window", "both/modernbert", "true-size sides counting", (70, 0, 300), (0, 5, 6, 63, 64, 65, 134, 135,
            364, 365), "local_attention 128: 64 on each side", window=64, counting=WITHOUT, sides="both"),
    _window("sliding_window", "both/rows", "rows ids sides", Q_ROWS, K_ROWS, window=2, counting=WITHOUT, sides="both"),
    _window("sliding_window", "both/beyond-float32", "far sides", Q_BEYOND[:2], K_BEYOND, window=2, counting=WITHOUT,
            sides="both"),
    _steps("sliding_window", "sequence/decode", window=3, counting=WITH, sides="causal"),
    _window("sliding_window", "refused/window", "refuse", (1, 2), (0, 1, 2), "with its query a window has a key at least",
            window=0, counting=WITH, sides="causal", kind="reject"),
    _window("sliding_window", "refused/fractions", "refuse", (1.5, 2.0), (0.0, 1.0, 2.0), "positions are integers", window=2,
            counting=WITH, sides="causal", kind="reject"),
    _window("sliding_window", "refused/counting", "refuse", (1, 2), (0, 1, 2), "no such word", window=2, counting="inclusive",
            sides="causal", kind="reject"),
)  # fmt: skip

CHUNKED = (
    _window("chunked_window", "causal/small", "chunk-window future inverted", (5, 3, 8), (0, 3, 4, 5, 7, 8), chunk=4,
            sides="causal", tier="smoke"),
    _window("chunked_window", "causal/unsorted", "chunk-start ids sides", (6, 2, 9, 0), UNSORTED, chunk=3, sides="causal"),
    _window("chunked_window", "causal/rows", "rows ids chunk-window", Q_ROWS, K_ROWS, chunk=5, sides="causal"),
    _window("chunked_window", "causal/rows-and-heads", "rows chunk-start", np.asarray(Q_ROWS)[:, None], np.asarray(K_ROWS)[:,
            None], "(B, 1, Q) and (B, 1, K)", chunk=4, sides="causal"),
    _window("chunked_window", "causal/negative", "chunk-negative chunk-start", Q_NEGATIVE, K_NEGATIVE, chunk=4, sides="causal"),
    _window("chunked_window", "causal/llama-4", "true-size chunk-window far", (8191, 8192, 131071, 16385), (0, 1, 8191, 8192,
            16383, 16384, 122879, 122880, 131071), chunk=8192, sides="causal"),
    _window("chunked_window", "causal/beyond-float32", "far ids", Q_BEYOND, K_BEYOND, chunk=2, sides="causal"),
    _window("chunked_window", "both/beyond-float32", "far sides", Q_BEYOND[:2], K_BEYOND[:-1], chunk=3, sides="both"),
    _window("chunked_window", "causal/one-query", "decode ids chunk-start", (261,), (255, 256, 259, 260, 261), chunk=4,
            sides="causal"),
    _window("chunked_window", "causal/no-query", "empty", NONE, (0, 1), chunk=4, sides="causal"),
    _window("chunked_window", "both/small", "sides chunk-window", (5, 3, 8), (0, 3, 4, 5, 7, 8, 11), chunk=4, sides="both"),
    _window("chunked_window", "both/negative", "chunk-negative sides", (-1, 2), K_NEGATIVE, chunk=5, sides="both"),
    _window("chunked_window", "both/rows", "rows sides inverted", Q_ROWS, K_ROWS, chunk=3, sides="both"),
    _window("chunked_window", "both/one", "chunk-start", (2, 5, 3), NEAR, "the query alone", chunk=1, sides="both"),
    _steps("chunked_window", "sequence/decode", chunk=4, sides="causal"),
    _window("chunked_window", "refused/chunk", "refuse", (1, 2), (0, 1, 2), "a chunk has a token at least", chunk=0,
            sides="causal", kind="reject"),
    _window("chunked_window", "refused/fractions", "refuse", (1.5, 2.0), (0.0, 1.0, 2.0), "positions are integers", chunk=2,
            sides="causal", kind="reject"),
)  # fmt: skip

LAMBDA = (
    _window("lambda_window", "few/small", "lambda-sinks counting future", (9, 3, 6), (0, 1, 2, 5, 7, 8, 9), sinks=2, window=3,
            counting=WITH, tier="smoke"),
    _window("lambda_window", "few/unsorted", "lambda-sinks lambda-future ids inverted", (12, 1, 20), UNSORTED, sinks=3,
            window=4, counting=WITHOUT),
    _window("lambda_window", "few/before-the-sinks", "lambda-future future", (1, 0, 12, 3), (0, 1, 2, 3, 9, 12), sinks=4,
            window=2, counting=WITH),
    _window("lambda_window", "few/evicted", "lambda-count ids", (900, 902), (0, 1, 898, 899, 900, 901),
            "keys that a cache has left", sinks=2, window=3, counting=WITHOUT),
    _window("lambda_window", "few/rows", "rows ids", Q_ROWS, K_ROWS, sinks=3, window=2, counting=WITH),
    _window("lambda_window", "few/rows-and-heads", "rows counting", np.asarray(Q_ROWS)[:, None], np.asarray(K_ROWS)[:, None],
            "(B, 1, Q) and (B, 1, K)", sinks=1, window=3, counting=WITHOUT),
    _window("lambda_window", "few/streaming-llm", "true-size lambda-count counting", (600, 515, 516, 131071), (0, 3, 4, 87,
            88, 515, 516, 130558, 130559, 130560, 131071), "start_size 4, recent_size 512", sinks=4, window=512,
            counting=WITHOUT),
    _window("lambda_window", "few/lm-infinite", "true-size lambda-sinks far counting", (4105, 4106, 8192), (0, 9, 10, 11,
            4095, 4096, 4097, 8192), "global_branch 10, local_branch 4096", sinks=10, window=4096, counting=WITH),
    _window("lambda_window", "few/beyond-float32", "far ids", Q_BEYOND, (0, 1, *K_BEYOND), sinks=1, window=4, counting=WITH),
    _window("lambda_window", "few/beyond-float32-without", "far counting", Q_BEYOND[:2], (0, *K_BEYOND), sinks=1, window=2,
            counting=WITHOUT),
    _window("lambda_window", "few/one-query", "decode ids", (300,), (0, 1, 2, 297, 298, 299, 300), sinks=2, window=2,
            counting=WITHOUT),
    _window("lambda_window", "few/no-query", "empty", NONE, (0, 1), sinks=1, window=2, counting=WITH),
    _window("lambda_window", "none/window-alone", "counting inverted", (4, 2, 7), NEAR, sinks=0, window=3, counting=WITH),
    _window("lambda_window", "none/nothing-else", "lambda-sinks", (6, 5, 9), NEAR, "the query and the first key", sinks=1,
            window=0, counting=WITHOUT),
    _steps("lambda_window", "sequence/decode", sinks=1, window=3, counting=WITH),
    _window("lambda_window", "refused/sinks", "refuse", (1, 2), (0, 1, 2), "no fewer than none", sinks=-1, window=2,
            counting=WITH, kind="reject"),
    _window("lambda_window", "refused/fractions", "refuse", (1.5, 2.0), (0.0, 1.0, 2.0), "positions are integers", sinks=1,
            window=2, counting=WITH, kind="reject"),
)  # fmt: skip


def _factor(
    op: str, name: str, flags: str, positions: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of a factor on queries."""
    return Case(f"{op}/{name}", params, {"positions": positions}, _flags("factor", flags), comment, kind, tier)


def _calls(op: str, name: str, *positions: Any, **params: Any) -> Case:
    """Return a sequence of calls."""
    steps = tuple(Step(params, {"positions": p}) for p in positions)
    return Case(f"{op}/{name}", flags=("factor-decode", "factor-ids"), kind="sequence", steps=steps)


EDGES = (0, 1, 2, 7, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 65537, 131071, 1048575)
TEXTS = ((3, 700, 1200, 2100), (4100, 2050, 0, 90000))  # another text in every row

LOGN = (
    _factor("logn_scale", "limited/small", "offset limit length", (3, 20, 16, 90), length=16, offset=1, at_least_one=True,
            tier="smoke"),
    _factor("logn_scale", "limited/qwen-7b", "true-size limit offset far", EDGES, "seq_length 2048", length=2048, offset=1,
            at_least_one=True),
    _factor("logn_scale", "limited/rerope", "true-size limit length", (4094, 4095, 4096, 8191, 16383, 40000),
            "training_length 4096", length=4096, offset=1, at_least_one=True),
    _factor("logn_scale", "limited/grok-2", "true-size offset limit", (1023, 1024, 1025, 2000, 131071),
            "xai_temperature_len 1024", length=1024, offset=0, at_least_one=True),
    _factor("logn_scale", "limited/rows", "rows ids limit", TEXTS, length=512, offset=1, at_least_one=True),
    _factor("logn_scale", "limited/negative", "ids limit", (-7, 40, -1, 0, 900), length=30, offset=0, at_least_one=True),
    _factor("logn_scale", "limited/decode", "decode ids", (5000,), length=100, offset=1, at_least_one=True),
    _factor("logn_scale", "limited/no-axis", "offset limit", 70, "one position", length=9, offset=0, at_least_one=True),
    _factor("logn_scale", "limited/more-axes", "rows offset", np.asarray(TEXTS)[:, None, :3], length=9, offset=0,
            at_least_one=True),
    _factor("logn_scale", "free/small", "offset limit length", (3, 20, 16, 90), length=16, offset=1, at_least_one=False),
    _factor("logn_scale", "free/su", "true-size limit far offset", EDGES, "log_512 n", length=512, offset=1,
            at_least_one=False),
    _factor("logn_scale", "free/from-zero", "offset limit", (0, 1, 2, 3, 60), "the first factors are 0", length=7, offset=0,
            at_least_one=False),
    _factor("logn_scale", "free/rows", "rows ids bits", TEXTS, length=3, offset=2, at_least_one=False),
    _factor("logn_scale", "free/beyond-float32", "far bits", (BEYOND, BEYOND + 1, 2**30), length=1000, offset=1,
            at_least_one=False),
    _factor("logn_scale", "free/none", "empty", NONE, length=16, offset=1, at_least_one=False),
    _calls("logn_scale", "sequence/decode", (0, 1, 40, 77), (78,), (79,), (1000, 3), length=20, offset=1, at_least_one=True),
    _factor("logn_scale", "refused/length", "refuse", (1, 2), "the logarithm of 1 is 0", length=1, offset=1, at_least_one=True,
            kind="reject"),
    _factor("logn_scale", "refused/fractions", "refuse", (1.5, 2.0), "positions are integers", length=16, offset=1,
            at_least_one=True, kind="reject"),
)  # fmt: skip

LLAMA, MINISTRAL = (
    {"form": "steps", "length": 8192, "beta": 0.1, "offset": 1},
    {"form": "steps", "length": 16384, "beta": 0.1, "offset": 0},
)
INKLING = {"form": "smooth", "length": 128000, "beta": 0.1, "offset": 1}


def _temperature(*args: Any, **more: Any) -> Case:
    """Return a case of attention_temperature."""
    return _factor("attention_temperature", *args, **more)


TEMPERATURE = (
    _temperature("steps/small", "steps offset strength", (3, 6, 7, 8, 15, 40), form="steps", beta=0.5, length=8, offset=1,
                 tier="smoke"),
    _temperature("steps/llama-4", "true-size steps offset far", (0, 8190, 8191, 8192, 16383, 65535, 131071, 1048575), **LLAMA),
    _temperature("steps/ministral-3", "true-size steps offset length", (0, 16383, 16384, 32767, 32768, 262143), **MINISTRAL),
    _temperature("steps/rows", "rows ids inverse", TEXTS, form="steps", beta=0.25, length=600, offset=0),
    _temperature("steps/not-a-power", "steps length strength", (99, 100, 149, 150, 299, 1000), form="steps", beta=0.3,
                 length=100, offset=0),
    _temperature("steps/negative", "ids steps", (-7, 40, -1, 0, 900), form="steps", beta=0.75, length=13, offset=1),
    _temperature("steps/beyond-float32", "far", (2**25 - 2, 2**25 - 1, 2**29 - 1, 2**29), "one token before a step, and on it",
                 form="steps", beta=2.0, length=2**24, offset=0),
    _temperature("steps/beyond-float32-llama-4", "far offset", (2**26 - 3, 2**26 - 2, 2**26 - 1), form="steps", beta=1.5,
                 length=8192, offset=1),
    _temperature("steps/no-axis", "offset steps", 23, "one position", form="steps", beta=0.5, length=8, offset=1),
    _temperature("steps/more-axes", "rows offset", np.asarray(TEXTS)[:, None, :3], form="steps", beta=0.5, length=7, offset=1),
    _temperature("smooth/small", "steps offset strength", (3, 6, 7, 8, 15, 40), form="smooth", beta=0.5, length=8, offset=1),
    _temperature("smooth/inkling", "true-size far limit", (0, 127998, 127999, 128000, 200000, 1048575), **INKLING),
    _temperature("smooth/rows", "rows ids inverse", TEXTS, form="smooth", beta=0.25, length=600, offset=0),
    _temperature("smooth/from-zero", "offset limit length", (99, 100, 101, 149, 900), form="smooth", beta=0.3, length=100,
                 offset=0),
    _temperature("smooth/strong", "strength bits", (10, 1000, 131071), form="smooth", beta=3.7, length=7, offset=2),
    _temperature("smooth/none", "empty", NONE, form="smooth", beta=0.1, length=16, offset=1),
    _calls("attention_temperature", "sequence/decode", (0, 1, 40, 77), (78,), (79,), (1000, 3), form="steps", beta=0.4,
           length=20, offset=1),
    _temperature("refused/length", "refuse", (1, 2), "nothing divides by 0", form="steps", beta=0.1, length=0, offset=1,
                 kind="reject"),
    _temperature("refused/form", "refuse", (1, 2), "no such form", form="floor", beta=0.1, length=8, offset=1, kind="reject"),
    _temperature("refused/fractions", "refuse", (1.5, 2.0), "positions are integers", form="steps", beta=0.1, length=8,
                 offset=1, kind="reject"),
)  # fmt: skip


def _learned(name: str, flags: str, positions: Any, heads: int, comment: str = "", **more: Any) -> Case:
    """Return a case of learned_logn_scale with a scale and a bias for each head."""
    bits = more.pop("bits", 8)
    learned = {n: floats(heads, seed=len(name) * 31 + k, bits=bits) for k, n in enumerate(("scale", "bias"))}
    inputs = {"positions": positions, **learned, **more.pop("given", {})}
    return Case(f"learned_logn_scale/{name}", {}, inputs, _flags("factor", flags), comment, **more)


def _given(positions: Any, scale: Any, bias: Any) -> dict[str, Any]:
    return {"positions": positions, "scale": np.asarray(scale), "bias": np.asarray(bias)}


LEARNED_LOGN = (
    _learned("heads/small", "offset ids strength", (0, 1, 9, 99), 3, tier="smoke"),
    _learned("heads/mistral-large-4", "true-size far", EDGES, 64, "as many heads"),
    _learned("heads/rows", "rows ids strength", TEXTS, 2),
    _learned("heads/more-axes", "rows ids", np.asarray(TEXTS)[:, None, :3], 5, "two axes before the tokens"),
    _learned("heads/24-bits", "bits strength", (3, 70, 700, 5), 7, bits=24),
    _learned("heads/beyond-float32", "far bits", (BEYOND, BEYOND + 1, 2**30), 3, bits=24),
    _learned("heads/one", "ids offset", (40, 2, 2047), 1, "one head"),
    _learned("heads/decode", "decode ids", (5000,), 4),
    _learned("heads/unsorted", "ids decode", UNSORTED, 3),
    _learned("heads/negative", "offset ids", (-7, -1, 40, 0), 2, "as at position 0"),
    _learned("heads/negative-rows", "offset rows", ((-3, -1, 5), (8, -2, 300)), 3),
    _learned("heads/no-heads", "empty", (0, 3, 9), 0),
    _learned("heads/no-query", "empty", NONE, 3),
    _learned("learned/ssmax", "strength offset", (), 0, "no bias; the first factors are 0",
             given=_given((0, 1, 2, 511, 4095), (0.43, 1.0), (0.0, 0.0))),
    _learned("learned/neutral", "strength", (), 0, "nothing changes", given=_given((0, 7, 100), (0.0,) * 2, (1.0,) * 2)),
    _learned("learned/falling", "strength inverse", (), 0, "below 0 from some position on",
             given=_given((0, 6, 7, 300), (-0.5, 0.25), (1.0, -1.5))),
    Case("learned_logn_scale/sequence/decode", flags=("factor-decode", "factor-ids"), kind="sequence",
         steps=tuple(Step({}, _given(p, (0.5, -0.25), (1.0, 0.375))) for p in ((0, 1, 40, 77), (78,), (1000, 3)))),
    _learned("refused/fractions", "refuse", (1.5, 2.0), 2, "positions are integers", kind="reject"),
    _learned("refused/shapes", "refuse", (), 0, "a bias for each head", given=_given((1, 2), (0.5, 1.0), (1.0,)),
             kind="reject"),
    _learned("refused/no-axis", "refuse", 3, 2, "queries have an axis", kind="reject"),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    *SLIDING, *CHUNKED, *LAMBDA, *LOGN, *TEMPERATURE, *LEARNED_LOGN,
    *pairs("sliding_window", {"window": 3, "counting": WITH, "sides": "causal"}),
    *pairs("chunked_window", {"chunk": 5, "sides": "causal"}),
    *pairs("lambda_window", {"sinks": 2, "window": 3, "counting": WITHOUT}),
    *places("logn_scale", "positions", {"length": 3, "offset": 1, "at_least_one": True}),
    *places("learned_logn_scale", "positions", {}, scale=floats(3, seed=71), bias=floats(3, seed=72)),
    *places("attention_temperature", "positions", {"form": "steps", "beta": 0.5, "length": 2, "offset": 1}),
)  # fmt: skip
