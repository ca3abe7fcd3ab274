"""ALiBi, implemented with defects reported after the registry was written."""

import jax.numpy as jnp
import numpy as np
import torch
from planting import planted


@planted(
    "slopes held in bfloat16, and distances one too large", names=(("slopes-bfloat16", "alibi-off-by-one"),), backend="jax"
)
def alibi_bfloat16_slopes_off_by_one():
    """A bfloat16 slope buffer and an off-by-one distance: Falcon's dtype together with vLLM #945."""

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

    return alibi_slopes, alibi


@planted(
    "slopes 2^(-8h/H) for every H, and a signed distance where its size is asked for",
    names=(("slopes-closed-form", "alibi-abs-missing"),),
)
def alibi_closed_form_signed():
    """Slopes in closed form and no absolute value: Baichuan2 #225 meets x-transformers 4ed4d0a."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        m = (2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)).astype(np.float32)[:, None, None]
        keys = k_positions.astype(np.float32)[..., None, None, :]
        if form == "key":
            return (m * keys).astype(dtype or np.float32)
        return (m * (keys - q_positions.astype(np.float32)[..., None, :, None])).astype(dtype or np.float32)

    return alibi


@planted("the bias is m*j in every form, which only a causal softmax forgives", names=(), backend="torch")
def alibi_column_bias():
    """A row of key positions stands for every form; llm-foundry #186, Baichuan-13B #172 ask why it is not the paper's."""

    def slopes(n):
        below = 2 ** (n.bit_length() - 1)
        first = [2 ** (-8 * (h + 1) / below) for h in range(below)]
        return first + [2 ** (-4 * (2 * h + 1) / below) for h in range(n - below)]

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        m = torch.tensor(slopes(heads), dtype=torch.float32)
        bias = m.view(-1, 1, 1) * k_positions[..., None, None, :].to(torch.float32)
        if form != "key":
            bias = bias.expand(*bias.shape[:-2], q_positions.shape[-1], bias.shape[-1])
        return bias.to(dtype or torch.float32)

    return alibi


@planted("queries at 0, 1, 2, ...", names=("alibi-query-arange",))
def alibi_decode_from_zero():
    """The queries of a decode step count from 0; x-transformers 74f241d forgot to cut the bias to the last rows."""

    def get_slopes(n):
        p = 1 << (n.bit_length() - 1)
        start = 2.0 ** (-8.0 / p)
        return [start**e for e in range(1, p + 1)] + [2.0 ** (-4.0 * e / p) for e in range(1, 2 * (n - p), 2)]

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        i = np.arange(q_positions.shape[-1], dtype=np.float32)
        j = k_positions.astype(np.float32)[..., None, :]
        m = np.array(get_slopes(heads), dtype=np.float32)[:, None, None]
        if form == "key":
            return (m * j[..., None, :, :]).astype(dtype or np.float32)
        gap = (j - i[:, None])[..., None, :, :]
        return (m * (gap if form == "causal" else -np.abs(gap))).astype(dtype or np.float32)

    return alibi


@planted("distances beyond 1023 are clamped", names=())
def alibi_distance_capped():
    """Distances saturate at 1023, the length of training. Imagined: a bias table of a fixed size, indexed with a clamp."""

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form != "distance":
            raise NotImplementedError(form)
        p = 1 << (heads.bit_length() - 1)
        e = np.concatenate([np.arange(1, p + 1), np.arange(0.5, heads - p)]) / p
        far = np.minimum(np.abs(q_positions[..., :, None] - k_positions[..., None, :]), 1023)
        return (-(2.0 ** (-8 * e)).astype(np.float32)[:, None, None] * far[..., None, :, :].astype(np.float32)).astype(
            np.float32
        )

    return alibi


@planted("keys at 0, 1, 2, ...", names=("alibi-key-arange",), backend="jax")
def alibi_left_padding():
    """Keys count from 0 whatever their positions, so left padding shifts the bias; PaddleNLP #6495."""

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

    return alibi


@planted("distances in float16", names=())
def alibi_far_distance_float16():
    """
    Distances are held in float16 and lose their last bits from 2049 on, as positions do elsewhere.

    Should be said: unexplained or a rounding of distances; distances beyond 2048.
    """

    def slopes(heads):
        below = 1 << (heads.bit_length() - 1)
        first = 2.0 ** (-8 / below * np.arange(1, below + 1))
        return np.concatenate([first, 2.0 ** (-4 / below * np.arange(1, 2 * (heads - below), 2))])

    def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
        if form == "key":
            raise NotImplementedError(form)
        gap = q_positions.astype(np.float64)[..., :, None] - k_positions[..., None, :]
        gap = (abs(gap) if form == "distance" else gap).astype(np.float16).astype(np.float64)
        return (-slopes(heads)[:, None, None] * gap[..., None, :, :]).astype(np.float32)

    return alibi
