"""A bfloat16 slope buffer and an off-by-one distance: Falcon's dtype together with vLLM #945."""

import jax.numpy as jnp

backend = "jax"
DEFECT = "slopes held in bfloat16, and distances one too large"
NAMES = (("slopes-bfloat16", "alibi-off-by-one"),)


def alibi_slopes(heads, /):
    n = 2 ** (heads.bit_length() - 1)
    exponent = [8 * (h + 1) / n for h in range(n)] + [4 * (2 * h + 1) / n for h in range(heads - n)]
    return jnp.asarray([2.0**-e for e in exponent], dtype=jnp.bfloat16).astype(jnp.float32)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    m = alibi_slopes(heads)[:, None, None]
    k = k_positions[..., None, None, :].astype(jnp.float32)
    if form == "key":
        return (m * k).astype(dtype or jnp.float32)
    gap = q_positions[..., None, :, None].astype(jnp.float32) + 1 - k
    return (-m * (jnp.abs(gap) if form == "distance" else gap)).astype(dtype or jnp.float32)
