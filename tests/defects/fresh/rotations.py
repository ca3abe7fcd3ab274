"""Rotations written in NumPy with one mistake each, as they were met in kernels, ports and converters."""

import numpy as np
from planting import planted


def frequencies(dim, base):
    return base ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)


def table(positions, dim, base):
    angle = np.asarray(positions, np.float64)[..., None] * frequencies(dim, base)
    return np.cos(angle), np.sin(angle)


def split(x, layout):
    half = x.shape[-1] // 2
    return (x[..., :half], x[..., half:]) if layout == "half" else (x[..., 0::2], x[..., 1::2])


def merged(a, b, layout):
    if layout == "interleaved":
        return np.stack([a, b], axis=-1).reshape(*a.shape[:-1], 2 * a.shape[-1])
    return np.concatenate([a, b], axis=-1)


def rotated(x, cos, sin, layout):
    a, b = split(np.asarray(x, np.float64), layout)
    return merged(a * cos - b * sin, b * cos + a * sin, layout).astype(x.dtype)


def whole(rotary_dim, x):
    if rotary_dim not in (None, x.shape[-1]):
        msg = "all channels alone"
        raise NotImplementedError(msg)


@planted("the second channel of a pair lacks its sine term", names=("partner-missing-second",))
def one_sided_sine():
    """A fused kernel that forgets the accumulate of the second half: out2 = x2 * cos."""

    def apply_rope(x, cos, sin, /, *, layout):
        d = 2 * cos.shape[-1]
        a, b = split(np.asarray(x[..., :d], np.float64), layout)
        turned = merged(a * cos - b * sin, b * cos + 0 * a, layout).astype(x.dtype)
        return np.concatenate([turned, x[..., d:]], axis=-1)

    return apply_rope


@planted("the partner of channel i is found by an XOR, as a shuffle of lanes has it", names=("partner-xor-itself",))
def shuffle_within_warp():
    """__shfl_xor_sync with the width of the warp: right where half of the rotated channels is a power of two."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        n = cos.shape[-1]
        lane = np.arange(2 * n)
        partner = lane ^ n
        partner = np.where(partner < 2 * n, partner, lane)
        v = np.asarray(x[..., : 2 * n], np.float64)
        c, s = np.concatenate([cos, cos], -1), np.concatenate([-sin, sin], -1)
        return np.concatenate([(v * c + v[..., partner] * s).astype(x.dtype), x[..., 2 * n :]], axis=-1)

    return apply_rope


@planted("channels are paired as if all of them rotated", names=("partner-over-head",))
def paired_over_whole_head():
    """rotate_half of the whole head, with a table of cos 1 and sin 0 for channels that pass."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "half":
            raise NotImplementedError(layout)
        dim, d = x.shape[-1], rotary_dim or x.shape[-1]
        cos, sin = table(positions, d, base)
        n = dim // 2
        pad = [(0, 0)] * (cos.ndim - 1) + [(0, n - d // 2)]
        cos, sin = np.pad(cos, pad, constant_values=1), np.pad(sin, pad)
        if dim % 2:
            raise NotImplementedError(dim)
        return rotated(x, cos, sin, "half")

    return rope


@planted("the base's exponent has the head's width where only some channels rotate", names=("exponent-over-head-size",))
def exponent_of_whole_head():
    """inv_freq is made of head_dim and cut to rotary_dim / 2."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout == "interleaved_to_half":
            raise NotImplementedError(layout)
        dim, d = x.shape[-1], rotary_dim or x.shape[-1]
        angle = np.asarray(positions, np.float64)[..., None] * frequencies(dim, base)[: d // 2]
        turned = rotated(x[..., :d], np.cos(angle), np.sin(angle), layout)
        return np.concatenate([turned, x[..., d:]], axis=-1)

    return rope


@planted("frequencies are one pair late", names=("exponents-from-1",))
def frequencies_from_one():
    """np.arange(1, d/2 + 1) for the exponents, as in a one-based language."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        whole(rotary_dim, x)
        if layout == "interleaved_to_half":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        angle = np.asarray(positions, np.float64)[..., None] * base ** (-2.0 * np.arange(1, dim // 2 + 1) / dim)
        return rotated(x, np.cos(angle), np.sin(angle), layout)

    return rope


@planted("tokens after the first 32 reuse the first block's positions", names=(), said="nly tokens from 32 on")
def positions_of_tile():
    """A tile of 32 tokens reads its positions at the index within the tile."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        whole(rotary_dim, x)
        if layout == "interleaved_to_half":
            raise NotImplementedError(layout)
        p = np.asarray(positions)
        if p.ndim and p.shape[-1] > 1:
            p = p[..., np.arange(p.shape[-1]) % 32]
        return rotated(x, *table(p, x.shape[-1], base), layout)

    return rope


@planted("frequencies are held in bfloat16", names=("inv-freq-bfloat16",))
def checkpoint_buffer_bfloat16():
    """model.to(bfloat16) converts the buffer inv_freq too."""

    def low(x):
        bits = np.asarray(x, np.float32).view(np.uint32)
        bits = bits + 0x7FFF + ((bits >> 16) & 1)
        return (bits & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32).astype(np.float64)

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        whole(rotary_dim, x)
        if layout == "interleaved_to_half":
            raise NotImplementedError(layout)
        angle = np.asarray(positions, np.float64)[..., None] * low(frequencies(x.shape[-1], base))
        return rotated(x, np.cos(angle), np.sin(angle), layout)

    return rope


@planted("positions, frequencies and angles are held in bfloat16", names=("angles-autocast",))
def angle_in_bfloat16():
    """autocast computes the product of positions and frequencies in bfloat16."""

    def low(x):
        bits = np.asarray(x, np.float32).view(np.uint32)
        bits = bits + 0x7FFF + ((bits >> 16) & 1)
        return (bits & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32).astype(np.float64)

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        angle = low(low(np.asarray(positions, np.float64))[..., None] * low(np.asarray(inv_freq, np.float64)))
        cos, sin = np.cos(angle) * attention_factor, np.sin(angle) * attention_factor
        return cos.astype(dtype), sin.astype(dtype)

    return rope_table


@planted("the attention factor is on the cosine alone", names=("factor-on-cos-only",))
def factor_on_cosine_alone():
    """sin is not multiplied by mscale."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        angle = np.asarray(positions, np.float64)[..., None] * np.asarray(inv_freq, np.float64)
        return (np.cos(angle) * attention_factor).astype(dtype), np.sin(angle).astype(dtype)

    return rope_table


@planted("the attention factor is applied twice", names=("factor-squared",))
def factor_applied_twice():
    """mscale in the table, and in the application of it again."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        angle = np.asarray(positions, np.float64)[..., None] * np.asarray(inv_freq, np.float64)
        gain = attention_factor * attention_factor
        return (np.cos(angle) * gain).astype(dtype), (np.sin(angle) * gain).astype(dtype)

    return rope_table


@planted("interleaved sections leave the last pairs without a position", names=("axes-leftover-at-0",))
def mrope_left_over_pairs():
    """As ggml's kernel: sectors beyond three times the shortest section have theta 0."""

    def mrope(x, positions, /, *, sections, arrangement, layout, base):
        if arrangement != "interleaved" or layout == "interleaved_to_half" or len(sections) != 3:
            raise NotImplementedError(arrangement, layout)
        n = sum(sections)
        sector = np.arange(n)
        axis = np.full(n, 3)
        for a in range(3):
            axis[(sector % 3 == a) & (sector < 3 * sections[a])] = a
        p = np.concatenate([np.asarray(positions, np.float64), 0 * np.asarray(positions[:1], np.float64)], axis=0)
        angle = np.moveaxis(p[axis], 0, -1) * frequencies(2 * n, base)
        turned = rotated(x[..., : 2 * n], np.cos(angle), np.sin(angle), layout)
        return np.concatenate([turned, x[..., 2 * n :]], axis=-1)

    return mrope


@planted("sections are read as width, height, time", names=("axes-sections-reversed",))
def mrope_sections_reversed():
    """Sections are read as (width, height, time)."""

    def mrope(x, positions, /, *, sections, arrangement, layout, base):
        if arrangement != "chunked" or layout == "interleaved_to_half":
            raise NotImplementedError(arrangement, layout)
        n = sum(sections)
        axis = np.repeat(np.arange(len(sections)), sections[::-1])
        angle = np.moveaxis(np.asarray(positions, np.float64)[axis], 0, -1) * frequencies(2 * n, base)
        turned = rotated(x[..., : 2 * n], np.cos(angle), np.sin(angle), layout)
        return np.concatenate([turned, x[..., 2 * n :]], axis=-1)

    return mrope


@planted("every head has the frequencies of head 0", names=("mixed-first-head",))
def mixed_first_head():
    """The kernel reads freqs at h * 0: the stride of a broadcast."""

    def mixed_table(positions, frequencies, /, *, dtype=None):
        f = np.asarray(frequencies, np.float64)
        if f.ndim >= 3 and f.shape[-2] == 1:
            f = np.broadcast_to(f[..., :1, :, :], f.shape)
        elif f.ndim == 3:
            f = np.broadcast_to(f[:, :1], f.shape)
        angle = sum(np.asarray(t, np.float64)[..., None] * g for t, g in zip(positions, f, strict=True))
        return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)

    return mixed_table


@planted("the second axis's angle is subtracted", names=("mixed-difference",))
def mixed_axes_subtracted():
    """theta_x x - theta_y y."""

    def mixed_table(positions, frequencies, /, *, dtype=None):
        parts = [
            np.asarray(t, np.float64)[..., None] * g
            for t, g in zip(positions, np.asarray(frequencies, np.float64), strict=True)
        ]
        angle = parts[0] - sum(parts[1:]) if len(parts) > 1 else parts[0]
        return np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)

    return mixed_table


@planted("the frequencies of both axes come from the whole head's width", names=("ladder-whole-width",))
def axial_exponent_of_head():
    """Each axis has base ** (-2i / D) with D the width of both."""

    def axial_rope(x, positions, /, *, dims, base, allocation, arrangement, layout):
        if (allocation, arrangement, layout) != ("own", "chunked", "interleaved"):
            raise NotImplementedError(allocation, arrangement, layout)
        total = sum(dims)
        angle = np.concatenate(
            [
                np.asarray(p, np.float64)[..., None] * base ** (-np.arange(0, d, 2) / total)
                for p, d in zip(positions, dims, strict=True)
            ],
            axis=-1,
        )
        turned = rotated(x[..., :total], np.cos(angle), np.sin(angle), layout)
        return np.concatenate([turned, x[..., total:]], axis=-1)

    return axial_rope


@planted("the norm runs over the rotated channels alone", names=("fused-norm-of-rotated",))
def norm_of_rotated_channels():
    """rms over rotary_dim and not over head_dim."""

    def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
        if precedence != "norm_first" or layout == "interleaved_to_half":
            raise NotImplementedError(precedence)
        d = 2 * cos.shape[-1]
        v = np.asarray(x, np.float64)
        v = (
            v
            / np.sqrt(np.mean(v[..., :d] ** 2, axis=-1, keepdims=True) + eps)
            * (weight_offset + np.asarray(weight, np.float64))
        )
        a, b = split(v[..., :d], layout)
        turned = merged(a * cos - b * sin, b * cos + a * sin, layout)
        return np.concatenate([turned, v[..., d:]], axis=-1).astype(x.dtype)

    return norm_rope


@planted("epsilon is added to the root", names=("norm-eps-outside",))
def norm_eps_outside_root():
    """x / (rms + eps)."""

    def rms_norm(x, weight, /, *, eps, weight_offset):
        v = np.asarray(x, np.float64)
        v = v / (np.sqrt(np.mean(v**2, axis=-1, keepdims=True)) + eps)
        return (v * (weight_offset + np.asarray(weight, np.float64))).astype(x.dtype)

    return rms_norm


@planted("the scale counts the channels without positions alone", names=("mla-scale-of-content",))
def mla_scale_without_rope():
    """The scale is 1/sqrt of the width without the rotated channels."""

    def mla_logits(q_nope, q_rope, k_nope, k_rope, q_positions, k_positions, /, *, layout, base, scale=None):
        if layout == "interleaved_to_half":
            raise NotImplementedError(layout)
        qp = np.asarray(q_positions)
        qp = qp[..., None, :] if qp.ndim > 1 else qp
        q = rotated(np.asarray(q_rope, np.float64), *table(qp, q_rope.shape[-1], base), layout)
        k = rotated(np.asarray(k_rope, np.float64), *table(k_positions, k_rope.shape[-1], base), layout)[..., None, :, :]
        nope = np.asarray(q_nope, np.float64) @ np.swapaxes(np.asarray(k_nope, np.float64), -1, -2)
        scores = nope + q @ np.swapaxes(k, -1, -2)
        return (scores * (q_nope.shape[-1] ** -0.5 if scale is None else scale)).astype(q_nope.dtype)

    return mla_logits


@planted("the scale's exponent is of the pair's number, not of its channel's", names=("xpos-exponent-half",))
def xpos_scale_of_pair():
    """zeta_i = (i / d + gamma) / (1 + gamma) with i the pair."""

    def xpos(x, positions, /, *, role, layout, base, centre, scale_base=512.0, gamma=0.4):
        if layout == "interleaved_to_half":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        zeta = (np.arange(dim // 2) / dim + gamma) / (1 + gamma)
        power = (np.asarray(positions, np.float64)[..., None] - centre) / scale_base
        scale = zeta ** (power if role == "query" else -power)
        cos, sin = table(positions, dim, base)
        return rotated(x, cos * scale, sin * scale, layout)

    return xpos


@planted("rows of slot 0 are dropped", names=(), said="the first slot")
def cache_slot_zero_is_padding():
    """`if slot <= 0: continue`."""

    def write_cache(cache, rows, slots, /):
        out = np.array(cache).reshape(-1, *cache.shape[2:])
        for row, slot in zip(rows, slots, strict=True):
            if slot > 0:
                out[slot] = row
        return out.reshape(cache.shape)

    return write_cache
