"""Logits and biases whose positions come from the text: values of the authors' code, and properties."""

from typing import Any

import numpy as np
import pytest

import posref


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
    rows = [[-0.0814624, 0.0594319, 0.1949812, -0.7860592, 0.5899389], [0.0381043, -0.0957397, -0.0089408, 0.3600165, -0.9309537]]
    np.testing.assert_allclose(posref.wall_logits(Q, K, DECAY)[:, 4], rows, rtol=0, atol=1e-7)


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
