"""Attention with linear biases (ALiBi): cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.relative import K_OFFSETS, Q_OFFSETS, last_of_keys
from .tools import Case, Function, Real, after, argument, around, before, deviations_of, held, narrowed, pairs
from .tools.hints import ARANGE, FROM_ZERO, INTEGERS, KEEP_FLOAT32, LAST_QUERIES, SIGN

FORMS = ("causal", "key")
USUAL: dict[str, Any] = {"heads": 6, "form": "distance"}
KERNEL = (*({"form": form} for form in FORMS), {"form": "causal", "root": True})
WITH_OPTION = {"root": {"form": "causal"}}
OTHER_VALUES = {"first": 2, "count": 3}
EVERY_SIZE = True

FAR = (0, 1, 2, 7, 63, 255, 256, 257, 2047, 2048, 2049, 4095, 4097, 65535, 65537, 131071, 1048575)
HOLES = (0, 3, 3, 1, 9, 4, 20)  # gaps, repeats and no order


def _case(
    name: str, q_positions: Any, k_positions: Any, comment: str = "", *, kind: str = "value", tier: str = "core", **params: Any
) -> Case:
    """Return a case of alibi."""
    inputs = {"q_positions": q_positions, "k_positions": k_positions}
    return Case(f"alibi/{name}", params, inputs, comment, kind, tier)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("distance/small", (2, 3), (0, 1, 2, 3, 4), heads=8, form="distance"),
        _case("distance/both-sides", (3, 8, 5), HOLES, "keys before and after the query", heads=6, form="distance"),
        _case("distance/rows", Q_OFFSETS, K_OFFSETS, "(B, Q) and (B, K)", heads=12, form="distance"),
        _case("distance/one-head", (5, 4, 9), (0, 300), heads=1, form="distance"),
        _case("causal/baichuan-13b", (4095,), (0, 1, 2047, 4094, 4095), heads=40, form="causal"),
        _case("root/far", (1, 4097, 65537), FAR, heads=5, form="causal", root=True),
        _case("root/fractional", (0.5, 7.25), (1.75, 0.25, 3.0), heads=4, form="causal", root=True),
        _case("root/shard", (2, 9), (0, 1, 2, 3, 4), heads=12, form="causal", root=True, first=6, count=6),
        _case("max-bias/16", (3, 8, 5), HOLES, "MPT's alibi_bias_max", heads=6, form="key", max_bias=16),
        _case("max-bias/5", (2, 3), (0, 1, 2, 3, 4), heads=12, form="distance", max_bias=5),
        _case("max-bias/2.5", Q_OFFSETS, K_OFFSETS, heads=3, form="causal", max_bias=2.5),
        _case("shard/second-of-two", (3, 8, 5), HOLES, "heads 8 to 15 of 16", heads=16, form="key", first=8, count=8),
        _case("shard/third-of-four", (2, 3), tuple(range(200, 257)), "BLOOM on four ranks", heads=112,
              form="key", first=56, count=28),
        _case("shard/last", Q_OFFSETS, K_OFFSETS, "no count", heads=20, form="causal", first=9),
        _case("shard/max-bias", (2, 3), (0, 1, 2, 3, 4, 9), heads=12, form="distance", first=4, count=4, max_bias=16),
        _case("refused/form", (2, 3), (0, 1, 2), "no such form", kind="reject", heads=8, form="relative"),
        _case("refused/no-heads", (2, 3), (0, 1, 2), "at least one head", kind="reject", heads=0, form="distance"),
        _case("refused/root", (2, 3), (0, 1, 2), "a root of the distance on both sides", kind="reject", heads=8,
              form="distance", root=True),
        _case("refused/root-key", (2, 3), (0, 1, 2), "a root of positions", kind="reject", heads=8, form="key", root=True),
        _case("refused/shard", (2, 3), (0, 1, 2), "heads 6 to 9 of 8", kind="reject", heads=8, form="key", first=6, count=4),
        _case("refused/max-bias", (2, 3), (0, 1, 2), "slopes must fall", kind="reject", heads=8, form="key", max_bias=0),
        *pairs("alibi", USUAL),
        *(_case(f"usual/{form}-2", np.arange(2, 5), np.arange(5), heads=2, form=form) for form in FORMS),
    )  # fmt: skip


ROOT = "With root: minus the slope times the square root of query minus key, 0 after the query."
ABSOLUTE = "Only form 'distance' has an absolute value."

_deviation = deviations_of("alibi_product")


def _form(function: Function, given: str, used: str) -> Function:
    return lambda q, k, s, /, *, form, **rest: function(q, k, s, form=used if form == given else form, **rest)


def _future_zero(out: Real, q: Any, k: Any, s: Any, /, *, form: str, **rest: Any) -> Real:
    return out if form != "distance" else np.where((q[..., :, None] < k[..., None, :])[..., None, :, :], 0.0, out)


def _roots(q: Real, k: Real) -> Real:
    return np.sqrt(np.maximum(q[..., :, None] - k[..., None, :], 0.0))[..., None, :, :]


@around
def _without_root(function: Function, q: Any, k: Any, s: Any, /, *, root: bool, **rest: Any) -> Any:
    """Take the distance itself, 0 after the query."""
    return -s[:, None, None] * _roots(q, k) ** 2 if root else function(q, k, s, root=root, **rest)


@around
def _root_both_sides(function: Function, q: Any, k: Any, s: Any, /, *, root: bool, **rest: Any) -> Any:
    bias = function(q, k, s, root=root, **rest)
    return bias - s[:, None, None] * np.swapaxes(_roots(k, q), -1, -2) if root else bias


@around
def _root_of_product(function: Function, q: Any, k: Any, s: Any, /, *, root: bool, **rest: Any) -> Any:
    return -np.sqrt(s)[:, None, None] * _roots(q, k) if root else function(q, k, s, root=root, **rest)


@around
def _bf16_all(_: Function, q: Any, k: Any, s: Any, /, *, form: str, root: bool, **rest: Any) -> Any:
    narrow = narrowed("bfloat16")
    if root:
        return narrow(narrow(s)[:, None, None] * narrow(-_roots(q, k)))
    apart = k[..., None, None, :] if form == "key" else (k[..., None, :] - q[..., :, None])[..., None, :, :]
    return narrow(narrow(s)[:, None, None] * narrow(-np.abs(apart) if form == "distance" else apart))


def _last_of_keys(q: Any, k: Any, s: Any, /, **options: Any) -> Any:
    (q, k), options = last_of_keys(q, k, **options)
    return (q, k, s), options


DEVIATIONS = (
    _deviation("alibi-sign", "the bias has the wrong sign", after(lambda b, *a, **o: -b), hint=SIGN),
    _deviation("alibi-abs-missing", "form 'distance' has no absolute value", lambda f: _form(f, "distance", "causal"),
               hint=ABSOLUTE, seen_in="x-transformers@4ed4d0a"),
    _deviation("alibi-abs-added", "form 'causal' has an absolute value", lambda f: _form(f, "causal", "distance"),
               hint=ABSOLUTE),
    _deviation("alibi-future-zero", "keys after the query have no bias in form 'distance'", after(_future_zero),
               hint="Keys after the query have their distance too: look for a clamp or tril."),
    _deviation("alibi-off-by-one", "distances are one too large", argument(0, lambda q: q + 1), hint=FROM_ZERO,
               seen_in="vLLM#945"),
    _deviation("alibi-key-off-by-one", "keys' positions are one too large", argument(1, lambda k: k + 1), hint=FROM_ZERO),
    _deviation("alibi-query-arange", "queries are at 0, 1, 2, ... (a decode step's is at 0)",
               argument(0, lambda q: np.broadcast_to(np.arange(q.shape[-1]), q.shape)), hint=ARANGE,
               seen_in="x-transformers@74f241d"),
    _deviation("alibi-key-arange", "keys are at 0, 1, 2, ..., not at their positions",
               argument(1, lambda k: np.broadcast_to(np.arange(k.shape[-1]), k.shape)), hint=ARANGE, seen_in="PaddleNLP#6495"),
    _deviation("alibi-bottom-right", "queries are the last of the keys, whatever their positions", before(_last_of_keys),
               hint=LAST_QUERIES, seen_in="flash-attention#1778"),
    _deviation("alibi-bfloat16", "the product of slope and distance is held in bfloat16", held("bfloat16"), hint=KEEP_FLOAT32,
               seen_in="TensorRT-Model-Connect#667, vllm-fork#503"),
    _deviation("alibi-all-bfloat16", "slopes, distances and their product are held in bfloat16", _bf16_all, hint=KEEP_FLOAT32,
               seen_in="TensorRT-Model-Connect#667, vllm-fork#503"),
    _deviation("alibi-positions-bfloat16", "positions are held in bfloat16", held("bfloat16", 0, 1), hint=INTEGERS,
               seen_in="vllm-fork#503"),
    _deviation("alibi-no-root", "the distance itself is taken, not its square root", _without_root, hint=ROOT),
    _deviation("alibi-root-both-sides", "keys after the query have the root of their distance", _root_both_sides, hint=ROOT),
    _deviation("alibi-root-of-slope", "the root is taken of the slope too", _root_of_product, hint=ROOT),
)  # fmt: skip
