"""`assert_conforms` in the tests of three small projects: what is right passes, and every planted mistake is found."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from projects import with_jax, with_numpy, with_torch

from posref.scaling import Llama3
from posref.testing import assert_conforms

LLAMA = {"factor": 8.0, "low": 1.0, "high": 4.0, "old": 8192}
Ask = Callable[[Any], None]


def drawn(*shape: int, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def of_torch_rotation(function: Any, dtype: Any = torch.float32) -> None:
    x = torch.from_numpy(drawn(2, 3, 100, 64, seed=1)).to(dtype)
    positions = torch.stack((torch.arange(100), torch.arange(3000, 3100)))
    assert_conforms("rope", function(x, positions, 500_000.0), x, positions[:, None], layout="half", base=500_000.0)


def of_torch_attention(function: Any) -> None:
    q, k, v = (torch.from_numpy(drawn(2, heads, n, 32, seed=heads)) for heads, n in ((8, 5), (2, 70), (2, 70)))
    keys = np.arange(70)
    last = keys[-5:, None]
    mask = torch.from_numpy((keys <= last) & (keys > last - 16))
    assert_conforms("attention", function(q, k, v, 16), q, k, v, mask=mask)


def of_jax_rotation(function: Any) -> None:
    x, positions = jnp.asarray(drawn(40, 3, 16, seed=2)), jnp.arange(900, 940)
    options: dict[str, Any] = {"layout": "interleaved", "base": 10_000.0}
    assert_conforms("rope", function(x, positions, 10_000.0), x, positions[:, None], **options)


def of_jax_penalty(function: Any) -> None:
    q, k = jnp.arange(30, 40), jnp.arange(45)
    assert_conforms("alibi", function(q, k, 12), q, k, heads=12, form="distance")


def of_jax_relative(function: Any) -> None:
    q, k, table = jnp.arange(300, 305), jnp.arange(305), jnp.asarray(drawn(32, 4, seed=3))
    assert_conforms("t5_bias", function(q, k, table), q, k, table, bidirectional=False, max_distance=128)


def of_numpy_sinusoids(function: Any) -> None:
    positions = np.arange(1500)
    assert_conforms("sinusoidal", function(positions, 48), positions, 48, layout="interleaved", base=10_000.0)


def of_numpy_frequencies(function: Any) -> None:
    x, positions = drawn(20, 128, seed=4), np.arange(9000, 9020)
    scaling = Llama3(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_length=8192)
    out = with_numpy.rotate(x, positions, function(128, 500_000.0, **LLAMA))
    assert_conforms("rope", out, x, positions, layout="half", base=500_000.0, scaling=scaling)


def of_jax_sections(function: Any) -> None:
    x, sections = jnp.asarray(drawn(3, 50, 64, seed=5)), (8, 12, 12)
    positions = jnp.stack((jnp.arange(50) // 10, jnp.arange(50) % 7, jnp.arange(50) + 100))
    options: dict[str, Any] = {"sections": sections, "arrangement": "chunked", "layout": "half", "base": 1e6}
    assert_conforms("mrope", function(x, positions, sections, 1e6), x, positions[:, None], **options)


def of_numpy_window(function: Any) -> None:
    q, k = np.arange(900, 907), np.arange(907)
    assert_conforms("sliding_window", function(q, k, 128), q, k, window=128, counting="with_query", sides="causal")


def in_bfloat16(function: Any) -> None:
    of_torch_rotation(function, torch.bfloat16)


RIGHT: list[tuple[Ask, Any]] = [
    (of_torch_rotation, with_torch.rotate), (in_bfloat16, with_torch.rotate), (of_torch_attention, with_torch.attend),
    (of_jax_rotation, with_jax.rotate), (of_jax_penalty, with_jax.penalty), (of_jax_relative, with_jax.relative),
    (of_numpy_sinusoids, with_numpy.sinusoids), (of_numpy_frequencies, with_numpy.frequencies),
    (of_jax_sections, with_jax.rotate_sections), (of_numpy_window, with_numpy.window),
]  # fmt: skip
WRONG: dict[str, tuple[Ask, Any, str]] = {  # and a word of what is said
    "rotate positions in bfloat16": (of_torch_rotation, with_torch.rotate_positions_in_bfloat16, "bfloat16"),
    "rotate positions in bfloat16 in bfloat16": (in_bfloat16, with_torch.rotate_positions_in_bfloat16, ""),
    "rotate short table": (
        of_torch_rotation,
        lambda x, p, base: with_torch.Rotary(x.shape[-1], base, 2048)(x, p.clamp(max=2047)),
        "",
    ),
    "rotate base of another model": (
        of_torch_rotation,
        lambda x, p, base: with_torch.rotate(x, p, 10_000.0),
        "base is always 10000",
    ),
    "rotate without the tail": (of_torch_rotation, with_torch.rotate_without_the_tail, ""),
    "rotate by the first row": (of_torch_rotation, lambda x, p, base: with_torch.rotate(x, p[:1].expand_as(p), base), "first"),
    "attend heads interleaved": (of_torch_attention, with_torch.attend_heads_interleaved, "heads"),
    "attend window one too wide": (of_torch_attention, lambda q, k, v, window: with_torch.attend(q, k, v, window + 1), ""),
    "attend scaled twice": (
        of_torch_attention,
        lambda q, k, v, window: with_torch.attend(q / math.sqrt(q.shape[-1]), k, v, window),
        "scale",
    ),
    "rotate halves": (of_jax_rotation, with_jax.rotate_halves, "layout"),
    "rotate back": (of_jax_rotation, lambda x, p, base: with_jax.rotate(x, -p, base), "sign"),
    "rotate exponent over half": (of_jax_rotation, lambda x, p, base: with_jax.rotate(x, p, math.sqrt(base)), ""),
    "penalty of power of two": (of_jax_penalty, with_jax.penalty_of_power_of_two, "slopes"),
    "penalty grows": (of_jax_penalty, lambda q, k, heads: -with_jax.penalty(q, k, heads), "sign"),
    "relative query minus key": (of_jax_relative, with_jax.relative_query_minus_key, ""),
    "relative as encoder": (of_jax_relative, with_jax.relative_as_encoder, "bidirectional"),
    "relative to 256": (of_jax_relative, with_jax.relative_to_256, "max_distance"),
    "sinusoids joined": (of_numpy_sinusoids, with_numpy.sinusoids_joined, ""),
    "sinusoids endpoint": (of_numpy_sinusoids, with_numpy.sinusoids_endpoint, "endpoint"),
    "sinusoids from one": (of_numpy_sinusoids, lambda p, dim: with_numpy.sinusoids(p + 1, dim), "one too large"),
    "frequencies without blend": (of_numpy_frequencies, with_numpy.frequencies_without_blend, ""),
    "frequencies all stretched": (
        of_numpy_frequencies,
        lambda dim, base, factor, **_: base ** (-np.arange(0, dim, 2) / dim) / factor,
        "",
    ),
}


@pytest.mark.parametrize(("ask", "function"), RIGHT, ids=[f"{a.__name__}-{f.__module__[-5:]}" for a, f in RIGHT])
def test_what_is_right_passes(ask: Ask, function: Any) -> None:
    ask(function)


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_mistake_is_found(name: str) -> None:
    ask, function, word = WRONG[name]
    with pytest.raises(AssertionError, match="is not within") as found:
        ask(function)
    assert word in str(found.value).partition("diagnosis:")[2]
