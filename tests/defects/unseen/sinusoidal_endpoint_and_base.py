"""The diffusion form with its constants inside: exponent i/(d/2 - 1) and base 10000, whatever is asked for."""

import jax.numpy as jnp
import numpy as np

backend = "jax"
DEFECT = "endpoint=True and base=10000 hard-coded"
NAMES = (("endpoint-always", "sinusoid-base-10000"),)


def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    half = dim // 2
    freqs = jnp.exp(-np.log(10000.0) * jnp.arange(half, dtype=jnp.float32) / max(half - 1, 1))
    args = positions.astype(jnp.float32)[..., None] * freqs
    parts = [jnp.sin(args), jnp.cos(args)]
    if layout == "interleaved":
        return jnp.stack(parts, axis=-1).reshape(*args.shape[:-1], dim)
    return jnp.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1)
