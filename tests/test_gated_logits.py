"""Logits and biases whose positions come from the text: values of the authors' code, and properties."""

from typing import Any

import numpy as np
import pytest
from sampling import few

import posref
from posref.backends.bounds import Bounds
from posref.backends.roundoffs import CLASSES


def made(*shape: int, phase: float) -> Any:
    """Return sin(0.7 n + phase) for n = 0, 1, ... in C order."""
    return np.sin(0.7 * np.arange(np.prod(shape)) + phase).reshape(shape)


def heads_first(x: Any) -> Any:
    """Return tokens, heads, ... as heads, tokens, ..."""
    return np.moveaxis(x, 0, 1)


def log_sigmoid(x: Any) -> Any:
    """Return the logarithm of the sigmoid."""
    return -np.log1p(np.exp(-x))


Q, K, V = (heads_first(made(5, heads, 3, phase=phase)) for heads, phase in ((2, 0.3), (1, 1.1), (1, 2.0)))
DECAY = heads_first(log_sigmoid(made(5, 2, 3, phase=3.0)))
GATES = log_sigmoid(made(5, 2, phase=5.0)).T
CAUSAL = np.tri(5, dtype=bool)


def last_output(logits: Any, *, mask: Any = CAUSAL, sink: float | None = None) -> Any:
    """Return what attention gives the last query of the first head."""
    row = np.where(mask, logits[0], -np.inf)[-1]
    weights = np.exp(row)
    return weights @ V[0] / (weights.sum() + (0.0 if sink is None else np.exp(sink)))


# naive_wall_attn of fla-core 0.6.0 on these arrays: its outputs in float32
WALL = {
    "plain": (-0.2223303, -0.2870244, -0.2167264),
    "window": (-0.478968, -0.7108939, -0.6084752),
    "sink": (-0.2047312, -0.2643042, -0.1995709),
    "gate": (-0.6255358, -0.7497299, -0.5213143),
    "documents": (-0.3405122, -0.2599584, -0.0571421),
    "all": (-0.5366304, -0.6280692, -0.4241173),
}


@pytest.mark.parametrize("form", WALL)
def test_wall_logits_give_the_outputs_of_their_authors_code(form: str) -> None:
    gate = posref.forgetting_bias(GATES, queries=5) if form in ("gate", "all") else 0.0
    width = {"window": 2, "all": 3}.get(form, 5)
    mask = CAUSAL & ~np.tri(5, k=-width, dtype=bool)
    if form == "documents":
        mask = mask & np.equal.outer(np.arange(5) < 2, np.arange(5) < 2)
    sink = np.sin(4.0) if form in ("sink", "all") else None
    output = last_output(posref.wall_logits(Q, K, DECAY) + gate, mask=mask, sink=sink)
    np.testing.assert_allclose(output, WALL[form], rtol=0, atol=2e-7)


def test_wall_logits_equal_rows_of_their_authors_code() -> None:
    first = (-0.0814624, 0.0594319, 0.1949812, -0.7860592, 0.5899389)
    second = (0.0381043, -0.0957397, -0.0089408, 0.3600165, -0.9309537)
    np.testing.assert_allclose(posref.wall_logits(Q, K, DECAY)[:, 4], (first, second), rtol=0, atol=1e-7)


@pytest.mark.parametrize("decay", [0.2, 0.05, 0.01])
def test_a_query_sees_its_own_key_as_plain_attention_does_under_strong_decays(decay: float) -> None:
    q, k = made(128, 16, phase=0.3), made(128, 16, phase=1.1)
    logits = posref.wall_logits(q, k, np.full((128, 16), np.log(decay)))
    np.testing.assert_array_equal(np.isfinite(logits), True)
    np.testing.assert_allclose(np.diag(logits), (q * k).sum(axis=1) / 4, rtol=1e-14)
    np.testing.assert_allclose(np.diag(logits, -1), decay * (q[1:] * k[:-1]).sum(axis=1) / 4, rtol=1e-12)


def test_wall_logits_equal_rescaled_queries_and_keys_in_short_texts() -> None:
    sums = np.cumsum(DECAY, axis=-2)
    keys = np.repeat(K, 2, axis=0) * np.exp(-sums)
    expected = posref.attention_logits(Q * np.exp(sums), keys)
    np.testing.assert_allclose(np.tril(posref.wall_logits(Q, K, DECAY)), np.tril(expected), rtol=1e-12, atol=1e-15)


def test_the_first_tokens_decay_never_matters() -> None:
    other = DECAY.copy()
    other[:, 0] = -5.0
    np.testing.assert_allclose(posref.wall_logits(Q, K, DECAY), posref.wall_logits(Q, K, other), rtol=1e-13, atol=1e-16)


W = heads_first(made(5, 1, 3, phase=3.0))
W = W / np.linalg.norm(W, axis=-1, keepdims=True)
BETA = 2 / (1 + np.exp(-made(5, 1, phase=4.0))).T


def test_path_logits_equal_rows_of_their_authors_code() -> None:
    first = (-0.0112045, 0.099748, -0.2258175, -0.3805892, 1.0218041)
    second = (0.0530415, -0.0892446, 0.0444821, 1.1178554, -1.612459)
    np.testing.assert_allclose(posref.path_logits(Q, K, W, BETA, scale=1.0)[:, 4], (first, second), rtol=0, atol=2e-7)


def test_path_logits_give_the_outputs_of_their_authors_code() -> None:
    logits = posref.path_logits(Q, K, W, BETA)
    np.testing.assert_allclose(last_output(logits), (-0.1454485, -0.286442, -0.2927175), rtol=0, atol=2e-7)
    gated = logits + posref.forgetting_bias(GATES, queries=5) / np.sqrt(3)  # that code scales the gate too
    np.testing.assert_allclose(last_output(gated), (-0.4128509, -0.5598261, -0.4435064), rtol=0, atol=2e-7)


def test_reflections_in_turn_are_a_rotation() -> None:
    angle, q, k = 0.3, made(9, 2, phase=0.3), made(9, 2, phase=1.1)
    w = np.asarray([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])[np.arange(9) % 2]
    even = np.arange(0, 9, 2)
    logits = posref.path_logits(q, k, w, np.full(9, 2.0), scale=1.0)[-1, even]
    table = posref.rope_table(np.arange(5), np.asarray([2 * angle]))
    queries, keys = (posref.apply_rope(x[even], *table, layout="half") for x in (q, k))
    np.testing.assert_allclose(logits, keys @ queries[-1], rtol=1e-12)


@few(1, "width", [2, 16])
def test_bounds_of_a_long_chain_are_those_of_norms(width: int) -> None:
    tokens = 256
    w = made(tokens, width, phase=0.7) * np.cos(np.arange(width) + np.arange(tokens)[:, None] ** 2)
    w = np.float64(np.float32(w / np.linalg.norm(w, axis=-1, keepdims=True)))
    beta = np.float64(np.float32(1 + made(tokens, phase=2.0)))
    q, k = (np.float64(np.float32(made(n, width, phase=1.0))) for n in (1, tokens))
    system = Bounds(CLASSES["angle32"])
    _, bound, _ = posref.path_logits(*(system.asarray(x, dtype=system.float64) for x in (q, k, w, beta))).parts
    exact = posref.path_logits(q, k, w, beta)
    carried = k.astype(np.float32)
    for t in range(tokens):
        part = np.float32(beta[t]) * (carried[:t] @ w[t].astype(np.float32))
        carried[:t] -= part[:, None] * w[t].astype(np.float32)
    off = np.abs(carried @ q[0].astype(np.float32) / np.sqrt(np.float32(width)) - exact[0])
    assert np.all(off <= bound[0])
    assert np.max(bound) <= tokens * (width + 4) * 2**-24 * 4 * width


def test_row_forgetting_bias_equals_its_authors_code() -> None:
    p = made(4, 6, 8, phase=2.0)[0]
    normed = p / np.sqrt((p**2).mean(axis=-1, keepdims=True))
    rotated = posref.apply_rope(normed, *posref.rope_table(-np.arange(6), np.ones(4)), layout="half")
    gates = posref.alibi_slopes(4)[0] * log_sigmoid(p @ rotated.T / 8)
    bias = posref.row_forgetting_bias(gates[None], counted="query")[0]
    np.testing.assert_allclose(bias[5], (-0.9439088, -0.7129982, -0.5354962, -0.3504122, -0.1501399, 0), rtol=0, atol=1e-6)


def test_rows_of_equal_gates_give_the_bias_of_forgetting_attention() -> None:
    gates = np.broadcast_to(GATES[:, None, :], (2, 5, 5))
    bias = posref.row_forgetting_bias(gates, counted="query")
    np.testing.assert_allclose(bias, np.tril(posref.forgetting_bias(GATES, queries=5)), rtol=1e-12, atol=1e-15)


def test_tupe_bias_equals_its_authors_code() -> None:
    p_q, p_k = made(5, 2, phase=0.3), made(5, 2, phase=1.1)
    bias = posref.tupe_bias(p_q, p_k, cls=True)
    np.testing.assert_allclose(bias[0], np.full(4, 0.5414172), rtol=0, atol=1e-7)
    np.testing.assert_allclose(bias[1], (0.2770271, 0.2897000, 0.0681782, -0.2665239), rtol=0, atol=1e-7)
