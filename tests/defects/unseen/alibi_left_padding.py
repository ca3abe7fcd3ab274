"""Keys count from 0 whatever their positions, so left padding shifts the bias; PaddleNLP #6495."""

import jax.numpy as jnp

backend = "jax"
DEFECT = "keys at 0, 1, 2, ..."
NAMES = ("alibi-key-arange",)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    lower = 2 ** (heads.bit_length() - 1)
    powers = [(h + 1) / lower for h in range(lower)] + [(2 * h + 1) / (2 * lower) for h in range(heads - lower)]
    slope = jnp.exp2(-8.0 * jnp.asarray(powers, dtype=jnp.float32)).reshape(-1, 1, 1)
    keys = jnp.broadcast_to(jnp.arange(k_positions.shape[-1], dtype=jnp.float32), k_positions.shape)[..., None, None, :]
    if form == "key":
        return (slope * keys).astype(dtype or jnp.float32)
    queries = q_positions.astype(jnp.float32)[..., None, :, None]
    apart = queries - keys
    return (-slope * (jnp.abs(apart) if form == "distance" else apart)).astype(dtype or jnp.float32)
