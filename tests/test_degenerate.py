"""Windows, chunks and groups about as large as the text, and texts of nothing: answers are those of the second witnesses."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mpmath import mp

import posref
from posref.scaling import YaRN

LIBRARIES = {"numpy": np, "torch": torch, "jax": jnp}
UNIT = {"numpy": 2.0**-53, "torch": 2.0**-24, "jax": 2.0**-24}
HUGE = 2**30
ROTATION = {"layout": "half", "base": 100.0}
Options = dict[str, Any]


def literal(op: str, *arrays: list[Any], **options: Any) -> np.ndarray:
    """Return what the second witness gives, with 200 bits."""
    with mp.workprec(200):
        found = getattr(import_module(f"posref.conformance.witness.{op}"), op)(*arrays, **options)
        return np.asarray(found, dtype=np.float64)


SIZED: dict[str, Callable[[int], Iterator[Options]]] = {  # options of which one is about as large as the text is long
    "sliding_window": lambda n: (
        {"window": n, "counting": counting, "sides": sides}
        for counting in ("with_query", "without_query")
        for sides in ("causal", "both")
    ),
    "chunked_window": lambda n: ({"chunk_size": n, "sides": sides} for sides in ("causal", "both")),
    "lambda_window": lambda n: (
        {"num_sinks": sinks, "window": window, "counting": counting}
        for sinks, window in ((0, n), (2, n), (n, 1), (n, n))
        for counting in ("with_query", "without_query")
    ),
    "rerope": lambda n: iter([{"window": n}]),
    "leaky_rerope": lambda n: iter([{"window": n, "factor": 1}, {"window": 1, "factor": n}, {"window": 2, "factor": 3}]),
    "self_extend": lambda n: (
        {"group": group, "window": window, "rounding": shift}
        for group, window in ((1, n), (n, 1), (2, n))
        for shift in ("floor", "exact")
        if group * window < 2**31
    ),
    "dual_chunk": lambda n: iter([{"chunk_size": n, "window": local} for local in {0, n // 2, n - 1}]),
    "logn_scale": lambda n: iter(
        [{"original_length": n + 1, "offset": o, "at_least_one": one} for o in (0, n) for one in (True, False)]
    ),
    "attention_temperature": lambda n: iter(
        [{"form": form, "beta": 0.5, "original_length": n, "offset": o} for form in ("steps", "smooth") for o in (0, n)]
    ),
}
SIZED["streaming_llm"] = SIZED["lambda_window"]
SCORES = ("rerope", "leaky_rerope", "self_extend", "dual_chunk", "streaming_llm")


def sizes(length: int) -> list[int]:
    """Return 1, the length, one less and one more, and a size beyond all positions."""
    return sorted({1, max(length - 1, 1), length, length + 1, HUGE - 1})


def called(library: str, op: str, arrays: list[Any], **options: Any) -> np.ndarray:
    """Return an operation's result on arrays of a library, as float64."""
    xp = LIBRARIES[library]
    made = [xp.asarray(a if np.asarray(a).dtype.kind == "i" or library == "numpy" else np.float32(a)) for a in arrays]
    return np.asarray(getattr(posref, op)(*made, **options)).astype(np.float64)


@pytest.mark.parametrize("library", ["numpy", "torch", pytest.param("jax", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("length", [1, 6])
@pytest.mark.parametrize("op", SIZED)
def test_sizes_around_the_length(op: str, length: int, library: str) -> None:
    """Masks and whole distances are equal; others within a few roundings of the largest number on the way."""
    name, places = f"{op}_distances" if op in SCORES else op, list(range(length))
    arrays = [places] if op in ("logn_scale", "attention_temperature") else [places, places]
    for size in sizes(length):
        for options in SIZED[op](size):
            true = literal(name, *arrays, **options)
            found = called(library, name, [np.asarray(a) for a in arrays], **options)
            whole = op in ("rerope", "dual_chunk", "streaming_llm") or op.endswith("window")
            assert found.shape == true.shape
            assert np.max(np.abs(found - true)) <= (0 if whole else 8 * UNIT[library] * (size + length)), options


@pytest.mark.parametrize("library", ["numpy", "torch", pytest.param("jax", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("op", SCORES)
def test_scores_around_the_length(op: str, length: int, library: str) -> None:
    """
    Of keys that are not after their query, whose distances are small.

    An angle is a float64 product of a place of at most `size` + `length` in a pass, and rounds to the dtype of the result.
    """
    q, k = np.random.default_rng(length).integers(-16, 17, (2, length, 2)) / 8
    places = list(range(length))
    seen = np.tri(length, dtype=bool)
    for size in sizes(length)[:-1]:
        for options in SIZED[op](size):
            asked = {**options, **ROTATION}
            true = literal(op, q.tolist(), k.tolist(), places, places, **asked)
            found = called(library, op, [q, k, np.asarray(places), np.asarray(places)], **asked)
            allowed = 2 * np.abs(q).sum() * np.abs(k).max() * (8 * UNIT[library] + 2.0**-50 * (size + 1) ** 2)
            assert np.max(np.abs(found - true)[seen]) <= allowed, options


def _sums(op: str, queries: int, keys: int, heads: int, xp: Any) -> tuple[Any, tuple[int, ...]]:
    """Return what an operation gives of so many queries, keys and heads, and the shape that it must have."""
    lanes = [xp.ones((heads, n, 4)) for n in (queries, keys)]
    places = [xp.arange(n) for n in (queries, keys)]
    if op == "attention":
        return posref.attention(*lanes, xp.ones((heads, keys, 3)), sinks=xp.ones(heads)), (heads, queries, 3)
    if op == "attention_logits":
        return posref.attention_logits(*lanes), (heads, queries, keys)
    if op == "rotated_values":
        return posref.rotated_values(xp.ones((heads, queries, keys)), lanes[1], *places, **ROTATION), (heads, queries, 4)
    if op == "mla_logits":
        return posref.mla_logits(lanes[0], lanes[0], lanes[1], xp.ones((keys, 4)), *places, **ROTATION), (heads, queries, keys)
    if op == "rotary_linear_attention":
        values = xp.ones((heads, keys, 3))
        return posref.rotary_linear_attention(*lanes, values, *places, causal=True, **ROTATION), (heads, queries, 3)
    options = next(SIZED[op](3))
    if op in SCORES:
        apart = getattr(posref, f"{op}_distances")(*places, **options)
        assert tuple(apart.shape) == (queries, keys)
        return getattr(posref, op)(*lanes, *places, **options, **ROTATION), (heads, queries, keys)
    return getattr(posref, op)(*places, **options), (queries, keys)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(("queries", "keys", "heads"), [(0, 3, 2), (3, 0, 2), (0, 0, 2), (3, 2, 0), (1, 1, 1)])
@pytest.mark.parametrize(
    "op",
    ["sliding_window", "chunked_window", "lambda_window", *SCORES, "attention", "attention_logits", "rotated_values",
     "mla_logits", "rotary_linear_attention"],
)  # fmt: skip
def test_nothing_to_sum(op: str, queries: int, keys: int, heads: int, library: str) -> None:
    """Without queries, keys or heads the shape is what it would be; the mean of no values is zero."""
    found, shape = _sums(op, queries, keys, heads, LIBRARIES[library])
    assert tuple(found.shape) == shape
    if keys == 0:
        assert not np.any(np.asarray(found))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@pytest.mark.parametrize("op", SCORES)
def test_positions_of_few_bits_do_not_wrap_around(op: str, dtype: str, library: str) -> None:
    """At both ends of the dtype, which their differences leave."""
    ends = np.asarray([np.iinfo(dtype).min, -3, np.iinfo(dtype).max], dtype=dtype)
    options = next(SIZED[op](100))
    wide = ends.astype(np.int64)
    for name, arrays, more in ((f"{op}_distances", [], {}), (op, [np.ones((3, 2)), np.ones((3, 2))], ROTATION)):
        narrow, full = (called(library, name, [*arrays, p, p], **options, **more) for p in (ends, wide))
        np.testing.assert_array_equal(narrow, full)


BIASES = {
    "alibi": lambda p: posref.alibi(p, p, heads=2, form="distance"),
    "alibi, signed": lambda p: posref.alibi(p, p, heads=2, form="causal"),
    "t5_bias": lambda p: posref.t5_bias(p, p, np.arange(16.0).reshape(8, 2), bidirectional=True),
    "shaw_scores": lambda p: posref.shaw_scores(
        np.ones((3, 2)), np.ones((3, 2)), np.arange(10.0).reshape(5, 2), p, p, left=2, right=2, order="key_minus_query"
    ),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("name", BIASES)
def test_distances_of_few_bits_do_not_wrap_around(name: str, dtype: str) -> None:
    """At both ends of the dtype, signed or not."""
    ends = np.asarray([np.iinfo(dtype).min, 3, np.iinfo(dtype).max], dtype=dtype)
    np.testing.assert_array_equal(BIASES[name](ends), BIASES[name](ends.astype(np.int64)))


@pytest.mark.parametrize(("length", "beta", "base"), [(6, 2.0, 1e4), (100_000, 1.0, 3.0), (600, 2.39955872, 1e4)])
def test_yarn_with_equal_betas_follows_the_released_code_beyond_its_limits(length: int, beta: float, base: float) -> None:
    """As `yarn_linear_ramp_mask` of the authors' code and its copies, without rounding of the range."""
    dim, factor = 12, 4.0
    index = dim * np.log(length / (beta * 2 * np.pi)) / (2 * np.log(base))
    low, high = max(index, 0), min(index, dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2) - low) / (high - low), 0, 1)
    plain = base ** (-np.arange(0, dim, 2) / dim)
    scaling = YaRN(factor, length, beta_fast=beta, beta_slow=beta, truncate=False)
    found = posref.rope_frequencies(dim, base=base, scaling=scaling, dtype="float64")[0]
    rounding = 16 * 2.0**-52 / 0.001  # a few roundings of the index, and a ramp of 1/1000 enlarges them
    np.testing.assert_allclose(found, plain / factor * ramp + plain * (1 - ramp), rtol=rounding)
