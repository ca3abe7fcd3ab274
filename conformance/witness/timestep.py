"""
Timestep embeddings. Source: hojonathanho/diffusion, diffusion_tf/nn.py, get_timestep_embedding, and diffusers, embeddings.py.

    half_dim = embedding_dim // 2
    emb = math.log(10000) / (half_dim - 1)
    emb = exp(arange(half_dim) * -emb)
    emb = timesteps[:, None] * emb[None, :]
    emb = concat([sin(emb), cos(emb)], axis=1)
    if embedding_dim % 2 == 1: emb = pad(emb, [[0, 0], [0, 1]])

diffusers has half_dim - downscale_freq_shift for half_dim - 1, multiplies emb by scale, and exchanges the halves before the
padding if flip_sin_to_cos.
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build, shape


def timestep(timesteps: Any, dim: int, *, flip: bool, freq_shift: int, scale: Any, base: Any = 10000.0) -> Any:
    """Return the embedding of `timesteps`, shape (*timesteps.shape, dim)."""
    half_dim = dim // 2

    def element(*index: int) -> Any:
        *where, column = index
        if column == 2 * half_dim:
            return mpf(0)
        half, i = divmod(column, half_dim)
        emb = at(timesteps, where) * mp.exp(-mp.log(mpf(base)) * i / (half_dim - freq_shift)) * mpf(scale)
        return mp.cos(emb) if (half == 1) != flip else mp.sin(emb)

    return build((*shape(timesteps), dim), element)
