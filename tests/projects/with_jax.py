"""The position code of a small JAX model, as such models have it, and the mistakes that such code has had."""

import math
from typing import Any

import jax.numpy as jnp


def rotate(x: Any, positions: Any, base: float) -> Any:
    """Rotate neighbouring channels of (T, H, D), as complex numbers."""
    freqs = base ** (-jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = positions[:, None].astype(jnp.float32) * freqs
    turn = jnp.cos(angles) + 1j * jnp.sin(angles)
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * turn[:, None]
    return jnp.stack((pairs.real, pairs.imag), axis=-1).reshape(x.shape).astype(x.dtype)


def rotate_halves(x: Any, positions: Any, base: float) -> Any:
    half = x.shape[-1] // 2
    mixed = jnp.stack((x[..., :half], x[..., half:]), axis=-1).reshape(x.shape)
    turned = rotate(mixed, positions, base)
    return jnp.concatenate((turned[..., ::2], turned[..., 1::2]), axis=-1)


def slopes(heads: int) -> list[float]:
    closest = 2 ** int(math.log2(heads))
    found = [2 ** (-8 * (k + 1) / closest) for k in range(closest)]
    return found if closest == heads else found + slopes(2 * closest)[::2][: heads - closest]


def penalty(q_positions: Any, k_positions: Any, heads: int) -> Any:
    """ALiBi's bias, the same before and after the query."""
    distance = jnp.abs(q_positions[:, None] - k_positions[None]).astype(jnp.float32)
    return -jnp.asarray(slopes(heads), dtype=jnp.float32)[:, None, None] * distance


def penalty_of_power_of_two(q_positions: Any, k_positions: Any, heads: int) -> Any:
    found = jnp.asarray([2 ** (-8 * (k + 1) / heads) for k in range(heads)], dtype=jnp.float32)
    distance = jnp.abs(q_positions[:, None] - k_positions[None]).astype(jnp.float32)
    return -found[:, None, None] * distance


def buckets(apart: Any, bidirectional: bool, count: int = 32, farthest: int = 128) -> Any:
    offset = 0
    if bidirectional:
        count //= 2
        offset = (apart > 0) * count
        apart = jnp.abs(apart)
    else:
        apart = -jnp.minimum(apart, 0)
    exact = count // 2
    far = exact + (jnp.log(jnp.maximum(apart, 1) / exact) / math.log(farthest / exact) * (count - exact)).astype(jnp.int32)
    return offset + jnp.where(apart < exact, apart, jnp.minimum(far, count - 1))


def relative(q_positions: Any, k_positions: Any, table: Any) -> Any:
    """T5's bias of a decoder."""
    rows = buckets(k_positions[None] - q_positions[:, None], bidirectional=False)
    return jnp.moveaxis(table[rows], -1, 0)


def relative_query_minus_key(q_positions: Any, k_positions: Any, table: Any) -> Any:
    rows = buckets(q_positions[:, None] - k_positions[None], bidirectional=False)
    return jnp.moveaxis(table[rows], -1, 0)


def relative_as_encoder(q_positions: Any, k_positions: Any, table: Any) -> Any:
    rows = buckets(k_positions[None] - q_positions[:, None], bidirectional=True)
    return jnp.moveaxis(table[rows], -1, 0)


def relative_to_256(q_positions: Any, k_positions: Any, table: Any) -> Any:
    rows = buckets(k_positions[None] - q_positions[:, None], bidirectional=False, farthest=256)
    return jnp.moveaxis(table[rows], -1, 0)


def rotate_sections(x: Any, positions: Any, sections: tuple[int, ...], base: float) -> Any:
    """Rotate the halves of (H, T, D) by time, height and width, each with its chunk of pairs; positions are (3, T)."""
    freqs = base ** (-jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    axis = jnp.repeat(jnp.arange(3), jnp.asarray(sections), total_repeat_length=sum(sections))
    angles = positions[axis].T.astype(jnp.float32) * freqs
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)
