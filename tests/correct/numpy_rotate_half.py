"""RoPE with duplicated tables and `rotate_half`, GPT-NeoX's way, all in float32."""

import numpy as np


def rope_frequencies(dim, /, *, base):
    return 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)), 1.0


def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
    freqs = positions[..., None].astype(np.float32) * inv_freq.astype(np.float32)
    emb = np.concatenate([freqs, freqs], axis=-1)
    cos, sin = np.cos(emb) * np.float32(attention_factor), np.sin(emb) * np.float32(attention_factor)
    half = freqs.shape[-1]
    return cos[..., :half].astype(dtype or np.float32), sin[..., :half].astype(dtype or np.float32)


def rotate_half(x):
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], axis=-1)


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    if layout != "half":
        raise NotImplementedError(layout)
    dim = 2 * cos.shape[-1]
    cos, sin = np.concatenate([cos, cos], axis=-1), np.concatenate([sin, sin], axis=-1)
    rotated, passed = x[..., :dim], x[..., dim:]
    turned = rotated * cos + rotate_half(rotated) * (-sin if inverse else sin)
    return np.concatenate([turned, passed], axis=-1)


def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    inv_freq, factor = rope_frequencies(rotary_dim or x.shape[-1], base=base)
    cos, sin = rope_table(positions, inv_freq, attention_factor=factor)
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse)
