"""The scores of StreamingLLM and of LM-Infinite beside what their authors' code does, within the bounds of class angle32."""

import numpy as np
import pytest
import torch

import posref
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths

RNG = np.random.default_rng(8)
BASE, WIDTH = 500.0, 6
ROTATION = {"layout": "half", "base": BASE}
Reals = np.ndarray


def eighths(*shape: int) -> Reals:
    """Return reals of which products at distance 0 are exact: no tie between two float64."""
    return RNG.integers(-24, 25, shape) / 8


def turned(x: Reals, places: list[int]) -> torch.Tensor:
    """Return lanes turned by a table of cosines and sines, as Llama's modeling code has it."""
    lanes = torch.tensor(x, dtype=torch.float32)
    angle = torch.outer(torch.tensor(places).float(), 1.0 / BASE ** (torch.arange(0, WIDTH, 2).float() / WIDTH))
    cos, sin = torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()
    return lanes * cos + torch.cat((-lanes[..., WIDTH // 2 :], lanes[..., : WIDTH // 2]), -1) * sin


def agree(found: Reals, op: str, q: Reals, k: Reals, places: tuple[list[int], list[int]], **options: object) -> bool:
    """Return whether scores are within the bounds of the proved ones, where there are any."""
    inputs = {"q": q, "k": k, "q_positions": np.asarray(places[0]), "k_positions": np.asarray(places[1])}
    true = golden(op, inputs, {**ROTATION, **options})
    allowed = half_widths(op, inputs, {**ROTATION, **options}, "angle32", true)["out"]
    return bool(np.all(np.isnan(found) | (np.abs(found - true["out"]) <= allowed)))


@pytest.mark.parametrize("counting", ["with_query", "without_query"])
@pytest.mark.parametrize(("sinks", "window"), [(2, 3), (1, 4), (0, 2), (4, 1)])
def test_streaming_llm_is_attention_to_a_cache(sinks: int, window: int, counting: str) -> None:
    """Token by token: keys are turned by their places in the cache, the query by the next, and what is between is evicted."""
    length = sinks + window + 4
    q, k = eighths(length, WIDTH), eighths(length, WIDTH)
    options = {"num_sinks": sinks, "window": window, "counting": counting}
    allowed = posref.lambda_window(np.arange(length), np.arange(length), **options)
    cache: list[int] = []
    for token in range(length):
        if counting == "with_query" and len(cache) + 1 > sinks + window:  # room for one is made before
            cache = cache[:sinks] + cache[len(cache) - window + 1 :]
        cache = [*cache, token]
        scores = turned(q[token : token + 1], [len(cache) - 1]) @ turned(k[cache], list(range(len(cache)))).T
        assert cache == np.flatnonzero(allowed[token]).tolist()
        assert agree(scores.double().numpy(), "streaming_llm", q[token : token + 1], k[cache], ([token], cache), **options)
        if counting == "without_query" and len(cache) > sinks + window:  # trimmed after every token
            cache = cache[:sinks] + cache[len(cache) - window :]


@pytest.mark.parametrize("sinks", [0, 2, 7])
@pytest.mark.parametrize("length", [1, 4, 5, 6, 10, 13])
def test_lm_infinite_is_rerope_under_a_lambda_window(length: int, sinks: int) -> None:
    """Its branches, of a window of 5: keys of the last 5 positions turned as ever; sinks as they are, queries turned by 5."""
    branch, every = 5, list(range(length))
    q, k = eighths(length, WIDTH), eighths(length, WIDTH)
    limit = min(branch, length - 1)
    apart = np.subtract.outer(np.arange(length), np.arange(length))
    local = turned(q, every) @ turned(k, every).T
    stationary = turned(q, [limit] * length) @ torch.tensor(k, dtype=torch.float32).T
    scores = np.where((apart >= 0) & (apart < branch), local, np.nan)
    scores[:, :sinks] = np.where(apart >= branch, stationary, scores)[:, :sinks]
    mask = posref.lambda_window(np.asarray(every), np.asarray(every), num_sinks=sinks, window=branch, counting="with_query")
    np.testing.assert_array_equal(~np.isnan(scores), mask)
    assert agree(scores, "rerope", q, k, (every, every), window=branch)
