"""Correct code of a JAX user."""

import jax
import jax.numpy as jnp

import posref


def rotated(x: jax.Array) -> jax.Array:
    return posref.rope(x, jnp.arange(x.shape[-2]), layout="half", base=10_000.0)


def stages(x: jax.Array, positions: jax.Array) -> jax.Array:
    inv_freq, factor = posref.rope_frequencies(x.shape[-1], base=10_000.0)
    cos, sin = posref.rope_table(positions, inv_freq, attention_factor=factor)
    return posref.apply_rope(x, cos, sin, layout="interleaved")


def table(positions: jax.Array) -> jax.Array:
    return posref.sinusoidal(positions, 8, layout="sin_cos", dtype=jnp.float32)


def slopes() -> jax.Array:
    return posref.alibi_slopes(8, xp=jnp)


def places() -> jax.Array:
    return posref.positions.zigzag(16, rank=0, ranks=2, xp=jnp)
