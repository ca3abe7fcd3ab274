"""Learned tables, sinusoids and numbers of tokens, with one or several mistakes."""

import math

import jax.numpy as jnp
import numpy as np
import torch
from planting import planted


def tf32(a):
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)).view(np.float32)


@planted("positions mutated in place", op="learned", names=())
def positions_mutated(positions, table, /, *, offset=0):
    """The offset is added to the caller's position ids in place; mlx-lm #1699 (offset mutated across update_and_fetch)."""
    positions += offset
    return table[positions]


@planted("the last row of the table is the one before", op="learned", names=())
def learned_last_row(positions, table, /, *, offset=0):
    """The last row is never written, and reads as the one before."""
    return table[np.minimum(positions + offset, max(len(table) - 2, 0))]


@planted("the offset is added twice", op="learned", names=())
def learned_offset_twice(positions, table, /, *, offset=0):
    """OPT's offset is added by the caller and again by the module. Imagined, after the OPT offsets of transformers #36537."""
    return table[np.minimum(positions + 2 * offset, table.shape[0] - 1)]


@planted("the second coordinate limited by the first table", op="axial_learned", names=())
def axial_learned_second_by_first_size(positions, first, second, /, *, combine):
    """
    Columns are limited by the number of rows of the other table, which no square table shows. Imagined, after a copied line.

    Should be said: unexplained; second coordinates beyond the first table's rows.
    """
    one, two = positions.astype(np.int64)
    e, f = first[one], second[np.minimum(two, first.shape[0] - 1)]
    return np.concatenate([e, f], axis=-1) if combine == "concat" else e + f


@planted("rows wrap at 256", op="learned", names=())
def learned_rows_uint8(positions, table, /, *, offset=0):
    """
    Rows are looked up by an index of 8 bits, which wraps at 256. Index types of 8 bits are met on accelerators.

    Should be said: unexplained (or wrapped at 256): positions from 256 on.
    """
    return table[(positions.astype(np.int64) + offset) % 256]


@planted("antialias along the first axis alone", names=())
def resample_columns_not_antialiased():
    """
    Only rows are filtered before they are made fewer; columns are interpolated plainly. Imagined: a separable filter, halfway.

    Should be said: unexplained; cases with antialias that have fewer columns.
    """

    def weights(n, m, antialias):
        step = n / m
        r = abs(np.arange(n) - (step * (np.arange(m)[:, None] + 0.5) - 0.5))
        if not antialias:
            centre = np.clip(step * (np.arange(m)[:, None] + 0.5) - 0.5, 0, n - 1)
            return np.maximum(1 - abs(np.arange(n) - centre), 0)
        w = np.maximum(1 - r / max(step, 1), 0)
        return w / w.sum(axis=1, keepdims=True)

    def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias):
        if method != "linear" or align_corners or len(size) != 2:
            raise NotImplementedError(method)
        cells = table[prefix:].astype(np.float64).reshape(*old_size, -1)
        rows, columns = weights(old_size[0], size[0], antialias), weights(old_size[1], size[1], False)
        cells = np.einsum("ij,kl,jld->ikd", rows, columns, cells).reshape(-1, table.shape[1])
        return np.concatenate([table[:prefix], cells.astype(table.dtype)])

    return resample


@planted("rows of cells reversed", names=())
def resample_flipped_rows():
    """
    Rows come out from bottom to top: a picture's origin in another corner. Imagined.

    Should be said: unexplained, all cases with more than one row of cells.
    """

    def weights(n, m):
        centre = np.clip(n / m * (np.arange(m)[:, None] + 0.5) - 0.5, 0, n - 1)
        return np.maximum(1 - abs(np.arange(n) - centre), 0)

    def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias):
        if method != "linear" or align_corners or antialias or len(size) != 2:
            raise NotImplementedError(method)
        cells = table[prefix:].astype(np.float64).reshape(*old_size, -1)
        cells = np.einsum("ij,kl,jld->ikd", weights(old_size[0], size[0])[::-1], weights(old_size[1], size[1]), cells)
        return np.concatenate([table[:prefix], cells.reshape(-1, table.shape[1]).astype(table.dtype)])

    return resample


@planted("ids below the padding count as padding", op="positions_from_tokens", names=())
def token_ids_padding_below(tokens, /, *, padding_idx):
    """
    Every id up to the padding's counts as padding: `>` for `!=`. RoBERTa has ids 0 and 2 on both sides of its padding 1.

    Should be said: unexplained; tokens below the padding's id.
    """
    real = (tokens > padding_idx).astype(np.int64)
    return np.cumsum(real, axis=-1) * real + padding_idx


@planted("base 1000", op="sinusoidal", names=())
def sinusoidal_base_1000(positions, dim, /, *, layout, base=10000.0, dtype=None):
    """A constant of another model."""
    angle = positions[..., None] * 1000.0 ** (-np.arange(0, dim, 2) / dim)
    parts = np.sin(angle), np.cos(angle)
    if layout == "interleaved":
        return np.stack(parts, axis=-1).reshape(*angle.shape[:-1], dim).astype(dtype)
    return np.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1).astype(dtype)


@planted(
    "endpoint=True and base=10000 hard-coded",
    op="sinusoidal",
    names=(("endpoint-always", "sinusoid-base-10000"),),
    backend="jax",
)
def sinusoidal_endpoint_and_base(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    """The diffusion form with its constants inside: exponent i/(d/2 - 1) and base 10000, whatever is asked for."""
    half = dim // 2
    freqs = jnp.exp(-np.log(10000.0) * jnp.arange(half, dtype=jnp.float32) / max(half - 1, 1))
    args = positions.astype(jnp.float32)[..., None] * freqs
    parts = [jnp.sin(args), jnp.cos(args)]
    if layout == "interleaved":
        return jnp.stack(parts, axis=-1).reshape(*args.shape[:-1], dim)
    return jnp.concatenate(parts if layout == "sin_cos" else parts[::-1], axis=-1)


@planted("positions scaled by 1000", op="sinusoidal", names=())
def sinusoidal_timestep_scaled(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    """Positions are multiplied by 1000 first, as latent-diffusion code does for times between 0 and 1."""
    if endpoint:
        raise NotImplementedError(endpoint)
    n = dim // 2
    angle = 1000 * positions.astype(np.float64)[..., None] * float(base) ** (-np.arange(n) / n)
    sin, cos = np.sin(angle), np.cos(angle)
    if layout == "interleaved":
        out = np.stack([sin, cos], axis=-1).reshape(*angle.shape[:-1], dim)
    else:
        out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
    return out.astype(np.float32)


@planted("pi is 3.1416", op="fourier", names=())
def fourier_pi_3_1416(x, bands, /, *, unit, arrangement, include):
    """
    Pi is written as 3.1416. A constant typed by hand, seen as 6.2832 for two pi.

    Should be said: a number (angles 1.0000023 times as large), never that sines are inaccurate.
    """
    if arrangement != "coordinate band wave" or include == "by_coordinate":
        raise NotImplementedError(arrangement)
    turn = {"radians": 1.0, "half_turns": 3.1416, "turns": 2 * 3.1416}[unit]
    bands = np.asarray(bands, dtype=np.float64)
    angle = turn * (x.astype(np.float64)[..., None] * bands)
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*x.shape[:-1], -1)
    return np.concatenate([x, waves] if include == "first" else [waves], axis=-1).astype(np.float32)


@planted("coordinates clamped to [-1, 1]", op="random_fourier", names=())
def fourier_points_clamped(x, matrix, /, *, layout):
    """
    Coordinates are clamped to the box from -1 to 1 first, as scene bounds are. Imagined, after NeRF's normalised scenes.

    Should be said: unexplained; coordinates beyond 1 are wrong, the others right.
    """
    turns = np.clip(x.astype(np.float64), -1, 1) @ np.asarray(matrix, dtype=np.float64)
    sin, cos = np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns)
    if layout == "interleaved":
        out = np.stack([sin, cos], axis=-1).reshape(*turns.shape[:-1], -1)
    else:
        out = np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)
    return out.astype(np.float32)


@planted("ln 10000 is 9.21", op="timestep", names=())
def timestep_ln_9_21(timesteps, dim, /, *, flip, freq_shift, scale, base=10000.0):
    """
    The logarithm of the longest period is typed as 9.21, so that the period is 9996.6. Constants of this kind are common.

    Should be said: a number: the longest period is about 9996.6, or the base is.
    """
    if base != 10000.0:
        raise NotImplementedError(base)
    half = dim // 2
    angle = scale * timesteps.astype(np.float64)[..., None] * np.exp(-9.21 * np.arange(half) / (half - freq_shift))
    waves = [np.cos(angle), np.sin(angle)] if flip else [np.sin(angle), np.cos(angle)]
    return np.concatenate([*waves, np.zeros((*angle.shape[:-1], dim % 2))], axis=-1).astype(np.float32)


@planted("angles in TensorFloat-32", op="sinusoidal", names=("angles-tf32",))
def sinusoid_tf32(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
    """Positions times frequencies as a product of matrices, in TensorFloat-32."""
    if layout != "sin_cos" or endpoint:
        raise NotImplementedError(layout)
    inv = base ** (-np.arange(0, dim, 2) / dim)
    angle = tf32(positions).astype(float)[..., None] * tf32(inv).astype(float)
    return np.concatenate([np.sin(angle), np.cos(angle)], -1).astype(dtype or np.float32)


@planted("the last token's row is zero", op="learned", names=(), said="nly the last token")
def learned_last_token_zero(positions, table, /, *, offset=0):
    """The last token has no row: its embedding is zero."""
    out = np.array(table[np.asarray(positions) + offset])
    if out.ndim > 1 and out.shape[-2] > 1:
        out[..., -1, :] = 0
    return out


@planted("the second table is read with the width of the first", op="layout_2d", names=())
def layout_widths_from_heights(boxes, x_table, y_table, h_table, w_table, /, *, combine, clip_sizes):
    """Widths look their row up in the table of heights."""
    if combine != "concat" or h_table.shape[0] < w_table.shape[0]:
        raise NotImplementedError(combine)
    x0, y0, x1, y1 = np.moveaxis(np.asarray(boxes), -1, 0)
    h, w = y1 - y0, x1 - x0
    if clip_sizes:
        h, w = np.clip(h, 0, len(h_table) - 1), np.clip(w, 0, len(w_table) - 1)
    return np.concatenate([x_table[x0], y_table[y0], x_table[x1], y_table[y1], h_table[h], h_table[w]], -1)


@planted("documents are counted in uint8", op="packed_documents", names=())
def documents_uint8(positions, /):
    """The number of a document wraps at 256."""
    p = np.asarray(positions)
    new = np.concatenate([np.zeros_like(p[..., :1]), (np.diff(p, axis=-1) != 1).astype(p.dtype)], -1)
    return (np.cumsum(new, -1) % 4).astype(p.dtype)


@planted("ids of every row begin where the first row's text does", op="positions_from_mask", names=())
def ids_first_padding(mask, /, *, padding):
    """The offset of the first row is taken off every row."""
    if mask.ndim < 2 or not mask.size:
        raise NotImplementedError("rows")
    first = int(np.argmax(mask.reshape(-1, mask.shape[-1])[0]))
    ids = np.arange(mask.shape[-1]) - first
    return np.where(mask, ids, padding)


@planted("timesteps are held in bfloat16", op="timestep", names=(), said="positions are held in bfloat16")
def timestep_in_bfloat16(timesteps, dim, /, *, flip, freq_shift, scale, base=10000.0, dtype=None):
    """The timestep follows the model's dtype before the product."""
    if dim % 2:
        raise NotImplementedError(dim)
    t = torch.from_numpy(np.asarray(timesteps, np.float64)).to(torch.bfloat16).double().numpy()
    half = dim // 2
    f = np.exp(-math.log(base) * np.arange(half) / (half - freq_shift))
    a = scale * t[..., None] * f
    parts = [np.cos(a), np.sin(a)] if flip else [np.sin(a), np.cos(a)]
    return np.concatenate(parts, axis=-1).astype(dtype)


@planted("the exponent has the channel's number, not the pair's", op="sinusoidal", names=(), said="the sine of p base^(-4i/d)")
def sinusoidal_exponent_of_channel(
    positions, dim, /, *, layout, base=10000.0, endpoint=False, odd="refused", scale=1.0, dtype=None
):
    """pos / base ** (2 j / d) with j the channel."""
    if endpoint or dim % 2 or layout != "interleaved":
        raise NotImplementedError(layout)
    j = np.arange(dim)
    a = np.asarray(positions, np.float64)[..., None] / base ** (2 * j / dim)
    return (scale * np.where(j % 2 == 0, np.sin(a), np.cos(a))).astype(dtype)


@planted("the first table is used for both axes", op="axial_learned", names=(), said="first is used instead of second")
def axial_learned_one_table(positions, first, second, /, *, combine):
    """The second axis is looked up in the first table."""
    if first.shape[1] != second.shape[1]:
        raise NotImplementedError(second.shape)
    a = np.asarray(first)[np.asarray(positions[0], np.int64)]
    b = np.asarray(first)[np.asarray(positions[1], np.int64)]
    return np.concatenate([a, b], axis=-1) if combine == "concat" else a + b
