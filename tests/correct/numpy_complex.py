"""RoPE as multiplication of complex64 numbers, Meta's way, extended to every layout."""

import numpy as np


def to_complex(x, layout):
    if layout == "half":
        half = x.shape[-1] // 2
        return x[..., :half] + np.complex64(1j) * x[..., half:]
    return np.ascontiguousarray(x).view(np.complex64)


def from_complex(z, layout):
    if layout == "interleaved":
        return np.ascontiguousarray(z).view(np.float32)
    return np.concatenate([z.real, z.imag], axis=-1)


def turn(x, freqs_cis, layout, inverse):
    dim = 2 * freqs_cis.shape[-1]
    read = "half" if layout == "half" else "interleaved"
    write = "half" if layout == "interleaved_to_half" else read
    if inverse:
        read, write, freqs_cis = write, read, np.conj(freqs_cis)
    return np.concatenate([from_complex(to_complex(x[..., :dim], read) * freqs_cis, write), x[..., dim:]], axis=-1)


def precompute_freqs_cis(positions, dim, base):
    freqs = 1.0 / (base ** (np.arange(0, dim, 2)[: (dim // 2)].astype(np.float32) / dim))
    return np.exp(1j * (np.asarray(positions, dtype=np.float32)[..., None] * freqs))


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    return turn(x, (cos + np.complex64(1j) * sin).astype(np.complex64), layout, inverse)


def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
    freqs_cis = precompute_freqs_cis(positions, x.shape[-1] if rotary_dim is None else rotary_dim, base)
    return turn(x, freqs_cis, layout, inverse)


def rotation_matrix(position, dim, /, *, layout, base, dtype=None):
    columns = turn(np.eye(dim, dtype=np.float32), precompute_freqs_cis(position, dim, base), layout, inverse=False)
    return np.ascontiguousarray(columns.T).astype(dtype or np.float32)
