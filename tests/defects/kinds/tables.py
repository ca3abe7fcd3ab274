"""Sinusoids, tables and ids with defects of a kind that was reported elsewhere."""

import numpy as np
from planting import planted


def tf32(a):
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)).view(np.float32)


def waves(v, d, base):
    angle = v[..., None] * base ** (-np.arange(0, d, 2) / d)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(*v.shape, d)


@planted("angles in TensorFloat-32", names=())
def sinusoid_tf32():
    """Positions times frequencies as a product of matrices, in TensorFloat-32."""

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        if layout != "sin_cos" or endpoint:
            raise NotImplementedError(layout)
        inv = base ** (-np.arange(0, dim, 2) / dim)
        angle = tf32(positions).astype(float)[..., None] * tf32(inv).astype(float)
        return np.concatenate([np.sin(angle), np.cos(angle)], -1).astype(dtype or np.float32)

    return sinusoidal


@planted("rows and columns are normalised by the first image of the batch", names=("sine-2d-first-last",))
def first_image_normalises():
    """The largest count of image 0 divides those of every image."""

    def sine_2d(mask, dim, /, *, normalize, centered, base=10000.0, scale=2 * np.pi, eps=1e-6, dtype=None):
        blocks = []
        for axis in (-2, -1):
            v = np.cumsum(mask, axis=axis).astype(float)
            if normalize:
                last = v[..., -1:, :] if axis == -2 else v[..., -1:]
                last = last.reshape(-1, *last.shape[-2:])[0] if last.size else last
                v = (v - (0.5 if centered else 0)) / (last + eps) * scale
            blocks.append(waves(v, dim // 2, base))
        return np.concatenate(blocks, -1).astype(dtype or np.float32)

    return sine_2d


@planted("YaRN's correction range with the logarithm of base 10", names=("yarn-range-log10",))
def yarn_range_log10():
    """find_correction_dim takes one logarithm of base 10 and the other natural."""

    def rope_frequencies(dim, /, *, base, scaling=None, dtype=None):
        f = float(base) ** (-np.arange(0, dim, 2) / dim)
        if scaling is None:
            return f.astype(dtype or np.float32), 1.0
        s = scaling
        if type(s).__name__ != "YaRN" or s.mscale is not None or s.attention_factor is not None:
            raise NotImplementedError(type(s).__name__)
        at = [dim * np.log10(s.original_length / (b * 2 * np.pi)) / (2 * np.log(base)) for b in (s.beta_fast, s.beta_slow)]
        low, high = (np.floor(at[0]), np.ceil(at[1])) if s.truncate else at
        low, high = max(low, 0), min(high, dim - 1)
        ramp = np.clip((np.arange(dim // 2) - low) / (high - low if high != low else 0.001), 0, 1)
        gain = 0.1 * np.log(s.factor) + 1 if s.factor > 1 else 1.0
        return (f / s.factor * ramp + f * (1 - ramp)).astype(dtype or np.float32), gain

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("YaRN's attention factor with the logarithm of base 10", names=("yarn-gain-log10",))
def yarn_gain_log10():
    """0.1 log10(s) + 1."""

    def rope_frequencies(dim, /, *, base, scaling=None, dtype=None):
        f = float(base) ** (-np.arange(0, dim, 2) / dim)
        if scaling is None:
            return f.astype(dtype or np.float32), 1.0
        s = scaling
        if type(s).__name__ != "YaRN" or s.mscale is not None or s.attention_factor is not None:
            raise NotImplementedError(type(s).__name__)
        at = [dim * np.log(s.original_length / (b * 2 * np.pi)) / (2 * np.log(base)) for b in (s.beta_fast, s.beta_slow)]
        low, high = (np.floor(at[0]), np.ceil(at[1])) if s.truncate else at
        low, high = max(low, 0), min(high, dim - 1)
        ramp = np.clip((np.arange(dim // 2) - low) / (high - low if high != low else 0.001), 0, 1)
        gain = 0.1 * np.log10(s.factor) + 1 if s.factor > 1 else 1.0
        return (f / s.factor * ramp + f * (1 - ramp)).astype(dtype or np.float32), gain

    rope_frequencies.scalings = ("YaRN",)
    return rope_frequencies


@planted("Llama 3's wavelengths have pi where they should have 2 pi", names=(), said="original_length is twice what is asked")
def llama3_one_pi():
    """Half of each wavelength."""

    def rope_frequencies(dim, /, *, base, scaling=None, dtype=None):
        f = float(base) ** (-np.arange(0, dim, 2) / dim)
        if scaling is not None:
            if type(scaling).__name__ != "Llama3" or scaling.low_freq_factor == scaling.high_freq_factor:
                msg = "Llama 3 alone"
                raise NotImplementedError(msg)
            span = scaling.high_freq_factor - scaling.low_freq_factor
            smooth = np.clip((scaling.original_length * f / np.pi - scaling.low_freq_factor) / span, 0, 1)
            f = (1 - smooth) * f / scaling.factor + smooth * f
        return f.astype(dtype or np.float32), 1.0

    rope_frequencies.scalings = ("Llama3",)
    return rope_frequencies


@planted("the last token's row is zero", names=(), said="nly the last token")
def learned_last_token_zero():
    """The last token has no row: its embedding is zero."""

    def learned(positions, table, /, *, offset=0):
        out = np.array(table[np.asarray(positions) + offset])
        if out.ndim > 1 and out.shape[-2] > 1:
            out[..., -1, :] = 0
        return out

    return learned


@planted("the second table is read with the width of the first", names=())
def layout_widths_from_heights():
    """Widths look their row up in the table of heights."""

    def layout_2d(boxes, x_table, y_table, h_table, w_table, /, *, combine, clip_sizes):
        if combine != "concat" or h_table.shape[0] < w_table.shape[0]:
            raise NotImplementedError(combine)
        x0, y0, x1, y1 = np.moveaxis(np.asarray(boxes), -1, 0)
        h, w = y1 - y0, x1 - x0
        if clip_sizes:
            h, w = np.clip(h, 0, len(h_table) - 1), np.clip(w, 0, len(w_table) - 1)
        return np.concatenate([x_table[x0], y_table[y0], x_table[x1], y_table[y1], h_table[h], h_table[w]], -1)

    return layout_2d


@planted("documents are counted in uint8", names=())
def documents_uint8():
    """The number of a document wraps at 256."""

    def packed_documents(positions, /):
        p = np.asarray(positions)
        new = np.concatenate([np.zeros_like(p[..., :1]), (np.diff(p, axis=-1) != 1).astype(p.dtype)], -1)
        return (np.cumsum(new, -1) % 4).astype(p.dtype)

    return packed_documents


@planted("ids of every row begin where the first row's text does", names=())
def ids_first_padding():
    """The offset of the first row is taken off every row."""

    def positions_from_mask(mask, /, *, padding):
        if mask.ndim < 2 or not mask.size:
            msg = "rows"
            raise NotImplementedError(msg)
        first = int(np.argmax(mask.reshape(-1, mask.shape[-1])[0]))
        ids = np.arange(mask.shape[-1]) - first
        return np.where(mask, ids, padding)

    return positions_from_mask


@planted("the zigzag of a rank is computed from the shard's own length", names=("shard-local",))
def zigzag_local_length():
    """Positions count within the shard: the second chunk follows the first."""

    def zigzag_shard(length, /, *, rank, ranks):
        n = length // ranks
        return np.arange(n) + 0 * rank

    return zigzag_shard
