"""Sines and cosines alternate whatever is asked for; multidim-positional-encoding #20."""

import jax.numpy as jnp

backend = "jax"
DEFECT = "layout fixed at interleaved"
NAMES = ("sinusoid-interleaved",)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    half = dim // 2
    inv_freq = base ** (-jnp.arange(half, dtype=jnp.float32) / (half - 1 if endpoint else half))
    angle = positions[..., None].astype(jnp.float32) * inv_freq
    emb = jnp.stack([jnp.sin(angle), jnp.cos(angle)], axis=-1)
    return emb.reshape(*angle.shape[:-1], dim).astype(dtype or jnp.float32)
