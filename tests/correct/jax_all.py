"""Every operation in JAX, float32, compiled, with rotations written as in MaxText and EasyLM."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

backend = "jax"
einsum = partial(jnp.einsum, precision="highest")


def compiled(*static, positional=()):
    """Compile a function once for every shape and every choice of its options."""
    return partial(jax.jit, static_argnames=static, static_argnums=positional or None)


@compiled("layout", "base", "endpoint", "dtype", positional=(1,))
def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    half = dim // 2
    scale = jnp.exp(jnp.arange(half) * (-math.log(base) / (half - 1 if endpoint else half)))
    angle = positions[..., jnp.newaxis].astype(jnp.float32) * scale
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    if layout == "interleaved":
        out = jnp.stack([sin, cos], axis=-1).reshape(*positions.shape, dim)
    else:
        out = jnp.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
    return out.astype(dtype or jnp.float32)


@compiled("offset")
def learned(positions, table, /, *, offset=0):
    return jnp.take(table, positions + offset, axis=0)


def rope_frequencies(dim, /, *, base):
    timescale = base ** (2 * jnp.arange(0, dim // 2) / dim)
    return 1.0 / timescale, 1.0


@compiled("attention_factor", "dtype")
def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    angle = positions[..., None].astype(jnp.float32) * inv_freq.astype(jnp.float32)
    dtype = dtype or jnp.float32
    return (jnp.cos(angle) * attention_factor).astype(dtype), (jnp.sin(angle) * attention_factor).astype(dtype)


@compiled("layout", "inverse")
def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    dim = 2 * cos.shape[-1]
    axes = {"half": (-2, -2), "interleaved": (-1, -1), "interleaved_to_half": (-1, -2)}[layout]
    if inverse:
        axes, sin = axes[::-1], -sin
    shape = (2, dim // 2) if axes[0] == -2 else (dim // 2, 2)
    pairs = x[..., :dim].reshape(*x.shape[:-1], *shape)
    first, second = jnp.take(pairs, 0, axis=axes[0]), jnp.take(pairs, 1, axis=axes[0])
    turned = jnp.stack([first * cos - second * sin, second * cos + first * sin], axis=axes[1])
    return jnp.concatenate([turned.reshape(*x.shape[:-1], dim), x[..., dim:]], axis=-1)


@compiled("layout", "base", "rotary_dim", "inverse")
def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    inv_freq, _ = rope_frequencies(rotary_dim or x.shape[-1], base=base)
    return apply_rope(x, *rope_table(positions, inv_freq), layout=layout, inverse=inverse)


@compiled("layout", "base", "dtype", positional=(1,))
def rotation_matrix(position, dim, /, *, layout, base, dtype=None):
    columns = rope(jnp.eye(dim), jnp.asarray(position), layout=layout, base=base)
    return columns.T.astype(dtype or jnp.float32)


def alibi_slopes(heads, /, *, max_bias=8):
    below = 1 << (heads.bit_length() - 1)
    exponents = [h / below for h in range(1, below + 1)] + [(h + 0.5) / below for h in range(heads - below)]
    return jnp.asarray([2.0 ** (-max_bias * e) for e in exponents], dtype=jnp.float32)


@compiled("heads", "form", "dtype")
def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    slopes = alibi_slopes(heads)[:, None, None]
    gap = k_positions[..., None, None, :] - (0 if form == "key" else q_positions[..., None, :, None])
    return (slopes * (-jnp.abs(gap) if form == "distance" else gap)).astype(dtype or jnp.float32)


@compiled("bidirectional", "num_buckets", "max_distance")
def t5_buckets(relative_positions, /, *, bidirectional, num_buckets=32, max_distance=128):
    count = num_buckets // 2 if bidirectional else num_buckets
    exact = count // 2
    log = np.log(np.arange(exact, max_distance + 1) / exact) / np.log(max_distance / exact)
    far = np.minimum(exact + np.floor(log * (count - exact) + 1e-9), count - 1)
    lookup = jnp.asarray(np.concatenate([np.arange(exact), far]).astype(np.int32))
    distance = jnp.abs(relative_positions) if bidirectional else jnp.maximum(-relative_positions, 0)
    side = jnp.where(relative_positions > 0, count, 0) if bidirectional else 0
    return side + lookup[jnp.minimum(distance, max_distance)]


@compiled("bidirectional", "max_distance")
def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    relative = k_positions[..., None, :] - q_positions[..., :, None]
    one_hot = t5_buckets(relative, bidirectional=bidirectional, num_buckets=table.shape[0], max_distance=max_distance)
    return jnp.moveaxis(table[one_hot], -1, -3)


def relative_rows(table, q_positions, k_positions, left, right, order):
    difference = k_positions[..., None, :] - q_positions[..., :, None]
    return table[jnp.clip(difference if order == "key_minus_query" else -difference, -left, right) + left]


@compiled("left", "right", "order")
def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    a = relative_rows(key_table, q_positions, k_positions, left, right, order)
    return einsum("...qd,...kd->...qk", q, k) + einsum("...qd,...qkd->...qk", q, a)


@compiled("left", "right", "order")
def shaw_values(weights, v, value_table, q_positions, k_positions, /, *, left, right, order):
    a = relative_rows(value_table, q_positions, k_positions, left, right, order)
    return einsum("...qk,...kd->...qd", weights, v) + einsum("...qk,...qkd->...qd", weights, a)


def repeat(q, k):
    grouped = min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]
    return jnp.repeat(k, q.shape[-3] // k.shape[-3], axis=-3) if grouped else k


@compiled("scale")
def attention_logits(q, k, /, *, bias=None, scale=None):
    logits = einsum("...qd,...kd->...qk", q, repeat(q, k)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return logits if bias is None else logits + bias


@compiled("scale")
def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    logits = attention_logits(q, k, bias=bias, scale=scale)
    where = None if mask is None else jnp.broadcast_to(mask, logits.shape)
    top = jnp.max(logits, axis=-1, keepdims=True, where=where, initial=jnp.finfo(jnp.float32).min)
    weights = jnp.exp(jnp.minimum(logits - top, 0))
    if mask is not None:
        weights = jnp.where(mask, weights, 0)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return einsum("...qk,...kd->...qd", weights / jnp.where(total == 0, 1, total), repeat(q, v))
