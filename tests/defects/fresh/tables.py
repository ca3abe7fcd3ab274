"""Absolute encodings and learned tables with one mistake each."""

import math

import numpy as np
import torch
from planting import planted


@planted("the exponent is divided by half the width less one, whatever is asked", names=("timestep-shift-1",))
def timestep_shift_ignored():
    """half_dim - 1 always."""

    def timestep(timesteps, dim, /, *, flip, freq_shift, scale, base=10000.0, dtype=None):
        if dim % 2:
            raise NotImplementedError(dim)
        half = dim // 2
        f = np.exp(-math.log(base) * np.arange(half) / max(half - 1, 1))
        a = scale * np.asarray(timesteps, np.float64)[..., None] * f
        parts = [np.cos(a), np.sin(a)] if flip else [np.sin(a), np.cos(a)]
        return np.concatenate(parts, axis=-1).astype(dtype)

    return timestep


@planted("timesteps are held in bfloat16", names=(), said="positions are held in bfloat16")
def timestep_in_bfloat16():
    """The timestep follows the model's dtype before the product."""

    def timestep(timesteps, dim, /, *, flip, freq_shift, scale, base=10000.0, dtype=None):
        if dim % 2:
            raise NotImplementedError(dim)
        t = torch.from_numpy(np.asarray(timesteps, np.float64)).to(torch.bfloat16).double().numpy()
        half = dim // 2
        f = np.exp(-math.log(base) * np.arange(half) / (half - freq_shift))
        a = scale * t[..., None] * f
        parts = [np.cos(a), np.sin(a)] if flip else [np.sin(a), np.cos(a)]
        return np.concatenate(parts, axis=-1).astype(dtype)

    return timestep


@planted("the exponent has the channel's number, not the pair's", names=(("sinusoid-cos-exponent", "exponent-doubled"),))
def sinusoidal_exponent_of_channel():
    """pos / base ** (2 j / d) with j the channel."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, odd="refused", scale=1.0, dtype=None):
        if endpoint or dim % 2 or layout != "interleaved":
            raise NotImplementedError(layout)
        j = np.arange(dim)
        a = np.asarray(positions, np.float64)[..., None] / base ** (2 * j / dim)
        return (scale * np.where(j % 2 == 0, np.sin(a), np.cos(a))).astype(dtype)

    return sinusoidal


@planted("the exponent of odd channels is one step further", names=("sinusoid-cos-exponent",))
def sinusoidal_cosine_one_further():
    """pos / base ** (j / d) with j the channel: the cosine has 2i + 1."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, odd="refused", scale=1.0, dtype=None):
        if endpoint or dim % 2 or layout != "interleaved":
            raise NotImplementedError(layout)
        j = np.arange(dim)
        a = np.asarray(positions, np.float64)[..., None] / base ** (j / dim)
        return (scale * np.where(j % 2 == 0, np.sin(a), np.cos(a))).astype(dtype)

    return sinusoidal


@planted("positions are held in a signed byte", names=("positions-int8",))
def sinusoidal_int8():
    """int8 positions wrap at 128."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, odd="refused", scale=1.0, dtype=None):
        if endpoint or dim % 2 or layout != "sin_cos":
            raise NotImplementedError(layout)
        p = np.asarray(positions)
        p = p.astype(np.int64).astype(np.int8) if p.dtype.kind in "iu" else p
        a = p.astype(np.float64)[..., None] * base ** (-np.arange(0, dim, 2) / dim)
        return (scale * np.concatenate([np.sin(a), np.cos(a)], axis=-1)).astype(dtype)

    return sinusoidal


@planted("DETR's positions are normalised by the last row of the first image", names=("sine-2d-first-last",))
def sine_2d_first_image():
    """y_embed[0, -1] for the whole batch."""

    def sine_2d(mask, dim, /, *, normalize, centered, base=10000.0, scale=2 * math.pi, eps=1e-6, dtype=None):
        m = np.asarray(mask, np.float64)
        y, x = np.cumsum(m, axis=-2), np.cumsum(m, axis=-1)
        if normalize:
            o = 0.5 if centered else 0.0
            first = (0,) * (m.ndim - 2)
            y = (y - o) / (y[first][-1:, :] + eps) * scale
            x = (x - o) / (x[first][:, -1:] + eps) * scale
        f = dim // 2
        t = base ** (2 * (np.arange(f) // 2) / f)
        parts = []
        for e in (y, x):
            p = e[..., None] / t
            parts.append(np.stack([np.sin(p[..., 0::2]), np.cos(p[..., 1::2])], axis=-1).reshape(*p.shape[:-1], -1))
        return np.concatenate(parts, axis=-1).astype(dtype)

    return sine_2d


@planted("x comes before y", names=("sine-2d-columns-first",))
def sine_2d_x_first():
    """torch.cat((pos_x, pos_y))."""

    def sine_2d(mask, dim, /, *, normalize, centered, base=10000.0, scale=2 * math.pi, eps=1e-6, dtype=None):
        m = np.asarray(mask, np.float64)
        y, x = np.cumsum(m, axis=-2), np.cumsum(m, axis=-1)
        if normalize:
            o = 0.5 if centered else 0.0
            y, x = (y - o) / (y[..., -1:, :] + eps) * scale, (x - o) / (x[..., -1:] + eps) * scale
        f = dim // 2
        t = base ** (2 * (np.arange(f) // 2) / f)
        parts = []
        for e in (x, y):
            p = e[..., None] / t
            parts.append(np.stack([np.sin(p[..., 0::2]), np.cos(p[..., 1::2])], axis=-1).reshape(*p.shape[:-1], -1))
        return np.concatenate(parts, axis=-1).astype(dtype)

    return sine_2d


@planted("positions are clamped before the offset is added", names=("clip-before-offset",))
def learned_clip_before_offset():
    """clip(p, 0, N - 1) + offset, cut to the table again."""

    def learned(positions, table, /, *, offset=0, clip=False):
        p = np.asarray(positions, np.int64)
        n = len(table)
        if clip:
            rows = np.clip(np.clip(p, 0, n - 1 - offset) + offset, 0, n - 1)
            return np.asarray(table)[rows]
        return np.asarray(table)[p + offset]

    return learned


@planted("rows wrap in the table", names=("clip-wraps",))
def learned_clip_wraps():
    """rows modulo N where they should be clamped."""

    def learned(positions, table, /, *, offset=0, clip=False):
        p = np.asarray(positions, np.int64) + offset
        return np.asarray(table)[p % len(table) if clip else p]

    return learned


@planted("weights of the cubic have a = -0.5 always", names=("resample-a-0.5",))
def resample_cubic_half():
    """Keys' a of -0.5, without antialias too."""

    def resample(
        table, size, /, *, old_size, prefix, method, align_corners, antialias, interpolate_offset=None, boundary="border"
    ):
        if method != "cubic" or antialias or align_corners or interpolate_offset is not None or boundary != "border":
            raise NotImplementedError(method)
        a = -0.5
        near = lambda x: ((a + 2) * x - (a + 3)) * x * x + 1  # noqa: E731
        far = lambda x: ((a * x - 5 * a) * x + 8 * a) * x - 4 * a  # noqa: E731
        grid = np.asarray(table[prefix:], np.float64).reshape(*old_size, table.shape[-1])
        for axis, (n, m) in enumerate(zip(old_size, size, strict=True)):
            src = (np.arange(m) + 0.5) * n / m - 0.5
            raw = np.floor(src).astype(int)[:, None] + np.arange(-1, 3)
            d = np.abs(src[:, None] - raw)
            w = np.where(d <= 1, near(d), far(d))
            rows = np.moveaxis(grid, axis, 0)[np.clip(raw, 0, n - 1)]
            grid = np.moveaxis(np.sum(rows * w.reshape(*w.shape, *[1] * (rows.ndim - 2)), axis=1), 0, axis)
        return np.concatenate([table[:prefix], grid.reshape(-1, table.shape[-1]).astype(table.dtype)])

    return resample


@planted("rows and columns of the old grid are exchanged", names=("resample-old-sizes-exchanged",))
def resample_grid_transposed():
    """reshape(W, H, d) of a table that is not square."""

    def resample(
        table, size, /, *, old_size, prefix, method, align_corners, antialias, interpolate_offset=None, boundary="border"
    ):
        others = (antialias, align_corners, interpolate_offset is not None, boundary != "border", len(size) != 2)
        if method != "linear" or any(others):
            raise NotImplementedError(method)
        old = (old_size[1], old_size[0])
        grid = np.asarray(table[prefix:], np.float64).reshape(*old, table.shape[-1])
        for axis, (n, m) in enumerate(zip(old, size, strict=True)):
            src = np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
            low = np.floor(src).astype(int)
            w = (src - low).reshape(-1, *[1] * (grid.ndim - 1))
            moved = np.moveaxis(grid, axis, 0)
            grid = np.moveaxis((1 - w) * moved[low] + w * moved[np.minimum(low + 1, n - 1)], 0, axis)
        return np.concatenate([table[:prefix], grid.reshape(-1, table.shape[-1]).astype(table.dtype)])

    return resample


@planted("taps are applied as a convolution, not a correlation", names=("peg-flipped",))
def peg_kernel_flipped():
    """scipy's convolve turns the kernel."""

    def peg(x, weight, bias=None, /, *, residual):
        if 0 in x.shape:
            raise NotImplementedError(x.shape)
        v = np.asarray(x, np.float64).reshape(-1, *x.shape[-3:])
        n, k = weight.shape[-1] // 2, weight.shape[-1]
        p = np.pad(v, ((0, 0), (n, n), (n, n), (0, 0)))
        w = np.asarray(weight, np.float64)[:, 0, ::-1, ::-1]
        out = sum(p[:, a : a + v.shape[1], b : b + v.shape[2]] * w[:, a, b] for a in range(k) for b in range(k))
        out = out + (0 if bias is None else bias) + (v if residual else 0)
        return out.reshape(x.shape).astype(x.dtype)

    return peg


@planted("the first table is used for both axes", names=(), said="first is used in place of second")
def axial_learned_one_table():
    """The second axis is looked up in the first table."""

    def axial_learned(positions, first, second, /, *, combine):
        if first.shape[1] != second.shape[1]:
            raise NotImplementedError(second.shape)
        a = np.asarray(first)[np.asarray(positions[0], np.int64)]
        b = np.asarray(first)[np.asarray(positions[1], np.int64)]
        return np.concatenate([a, b], axis=-1) if combine == "concat" else a + b

    return axial_learned


@planted("the row above and below are exchanged in the blend", names=("cope-shares-exchanged",))
def cope_weights_exchanged():
    """w and 1 - w."""

    def cope(q, logits, table, mask, /):
        z = np.asarray(logits, np.float64)
        g = np.where(np.broadcast_to(mask, z.shape), 1 / (1 + np.exp(-z)), 0.0)
        pos = np.minimum(np.flip(np.cumsum(np.flip(g, -1), axis=-1), -1), len(table) - 1)
        rows = np.asarray(q, np.float64) @ np.asarray(table, np.float64).T
        low, high = np.floor(pos).astype(int), np.ceil(pos).astype(int)
        w = pos - low
        return (np.take_along_axis(rows, low, -1) * w + np.take_along_axis(rows, high, -1) * (1 - w)).astype(q.dtype)

    return cope


@planted("the absolute value stands in place of softplus", names=())
def pope_without_softplus():
    """The rotation of x itself."""

    def pope(x, positions, phases=None, /, *, layout, base):
        d = x.shape[-1]
        a = np.asarray(positions, np.float64)[..., None] * base ** (-np.arange(d) / d)
        if phases is not None:
            a = a + np.clip(phases, -2 * math.pi, 0)
        size = np.abs(np.asarray(x, np.float64))
        parts = [size * np.cos(a), size * np.sin(a)]
        out = np.concatenate(parts, -1) if layout == "cos_sin" else np.stack(parts, -1).reshape(*parts[0].shape[:-1], -1)
        return out.astype(x.dtype)

    return pope
