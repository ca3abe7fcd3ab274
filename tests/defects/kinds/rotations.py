"""Rotations with defects of a kind that was reported elsewhere: partial widths, roundings, terms, heads, tokens, strides."""

import numpy as np
from planting import planted


def rotated(x, angle, layout):
    """Rotate the first channels of x by one angle for each pair."""
    n = angle.shape[-1]
    return turned(x, np.cos(angle), np.sin(angle), layout, n)


def turned(x, cos, sin, layout, n):
    a, b = members(x, layout, n)
    return written(x, a * cos - b * sin, b * cos + a * sin, layout, n)


def members(x, layout, n):
    if layout == "half":
        return x[..., :n], x[..., n : 2 * n]
    if layout == "interleaved":
        return x[..., 0 : 2 * n : 2], x[..., 1 : 2 * n : 2]
    raise NotImplementedError(layout)


def written(x, u, v, layout, n):
    both = np.concatenate([u, v], -1) if layout == "half" else np.stack([u, v], -1).reshape(*u.shape[:-1], 2 * n)
    return np.concatenate([both, x[..., 2 * n :]], -1).astype(x.dtype)


def angles(positions, r, base):
    return np.asarray(positions, np.float64)[..., None] * base ** (-np.arange(0, r, 2) / r)


def tf32(a):
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
    return ((bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)).view(np.float32)


@planted("a partial rotation with the exponent and the pairs of the whole head", names=("partial-as-proportional",))
def interleaved_partial_over_head():
    """The frequencies of the whole head, of which the first are used: Proportional in the interleaved layout."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        d = x.shape[-1]
        r = rotary_dim or d
        angle = np.asarray(positions, np.float64)[..., None] * base ** (-np.arange(0, d, 2) / d)
        return rotated(x, np.where(np.arange(d // 2) < r // 2, angle, 0), layout)

    return rope


@planted("Proportional taken for a partial rotation", names=("proportional-as-partial",))
def proportional_as_partial():
    """The rotated part is a head of its own: its own exponent, its own pairs, and no factor."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None):
        if rotary_dim is not None or type(scaling).__name__ not in ("NoneType", "Proportional"):
            msg = "Proportional alone"
            raise NotImplementedError(msg)
        r = x.shape[-1] if scaling is None else 2 * int(scaling.rotated * x.shape[-1] / 2)
        return rotated(x, angles(positions, r, base) / (scaling.factor if scaling else 1), layout)

    rope.scalings = ("Proportional",)
    return rope


@planted("x, cosine and sine in TensorFloat-32", names=("rotation-tf32",))
def rotation_tf32():
    """The rotation as a product of matrices, in TensorFloat-32."""

    def apply_rope(x, cos, sin, /, *, layout):
        return turned(tf32(x), tf32(cos), tf32(sin), layout, cos.shape[-1])

    return apply_rope


@planted("positions and frequencies in TensorFloat-32", names=("angles-tf32",))
def rope_angles_tf32():
    """The outer product of positions and frequencies, in TensorFloat-32."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        r = rotary_dim or x.shape[-1]
        inv = tf32(base ** (-np.arange(0, r, 2) / r)).astype(np.float64)
        return rotated(x, tf32(positions).astype(np.float64)[..., None] * inv, layout)

    return rope


@planted("the partner is missing from the second channel of a pair", names=("partner-missing-second",))
def partner_missing():
    """(a cos - b sin, b cos): the in-place write lost a term."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        r = rotary_dim or x.shape[-1]
        angle = angles(positions, r, base)
        a, b = members(x, layout, r // 2)
        return written(x, a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle), layout, r // 2)

    return rope


@planted("each channel is multiplied by its own table alone", names=("each-its-own",))
def one_sided():
    """(a cos, b sin): no sums at all."""

    def apply_rope(x, cos, sin, /, *, layout):
        a, b = members(x, layout, cos.shape[-1])
        return written(x, a * cos, b * sin, layout, cos.shape[-1])

    return apply_rope


@planted("the partner is found with an XOR", names=("partner-xor",))
def partner_by_xor():
    """Lane i and lane i ^ (R/2): right where R/2 is a power of two."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "half":
            raise NotImplementedError(layout)
        r = rotary_dim or x.shape[-1]
        n = r // 2
        angle = angles(positions, r, base)
        lane = np.arange(r)
        other = np.minimum(lane ^ n, r - 1)
        sign = np.where(lane < n, -1, 1)
        cos, sin = (np.concatenate([f(angle)] * 2, -1) for f in (np.cos, np.sin))
        out = x[..., :r] * cos + sign * x[..., other] * sin
        return np.concatenate([out, x[..., r:]], -1).astype(x.dtype)

    return rope


@planted("the last head is not rotated", names=(), said="only the last head")
def last_head_unrotated():
    """One head too few in the loop."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        out = rotated(x, angles(positions, rotary_dim or x.shape[-1], base), layout)
        if x.ndim > 2 and np.ndim(positions) < 2 and x.shape[-3] > 1:
            out[..., -1, :, :] = x[..., -1, :, :]
        return out

    return rope


@planted("the last token is not rotated", names=(), said="only the last token")
def last_token_unrotated():
    """A loop that ends one token early."""

    def apply_rope(x, cos, sin, /, *, layout):
        out = turned(x, cos, sin, layout, cos.shape[-1])
        if x.ndim > 1 and cos.ndim > 1 and cos.shape[-2] > 1:
            out[..., -1, :] = x[..., -1, :]
        return out

    return apply_rope


@planted("the third token is rotated like the second", names=(), said="only token 2")
def third_token_stale():
    """A draft token keeps its parent's table."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        p = np.array(positions)
        if p.ndim and p.shape[-1] > 2:
            p[..., 2] = p[..., 1]
        return rotated(x, angles(p, rotary_dim or x.shape[-1], base), layout)

    return rope


@planted("positions in uint8", names=("positions-uint8",))
def rope_positions_uint8():
    """Positions wrap at 256."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        p = np.asarray(positions)
        if p.dtype.kind == "f" or np.any(p < 0):
            msg = "unsigned"
            raise NotImplementedError(msg)
        return rotated(x, angles(p.astype(np.uint8), rotary_dim or x.shape[-1], base), layout)

    return rope


@planted("packed texts counted on from the text before", names=("positions-arange-prefill",))
def packed_counted_on():
    """cu_seqlens is ignored: positions that begin again at 0 go on."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        p = np.asarray(positions)
        if p.ndim and p.shape[-1] > 1:
            p = np.broadcast_to(np.arange(p.shape[-1]), p.shape)
        return rotated(x, angles(p, rotary_dim or x.shape[-1], base), layout)

    return rope


@planted("rows of the table are as far apart as x's channels", names=("table-row-stride",))
def table_row_stride():
    """Token t reads row t of a table of D channels, where rows have R."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        d = x.shape[-1]
        r = rotary_dim or d
        angle = angles(positions, r, base)
        flat, n = np.ascontiguousarray(angle).reshape(-1), r // 2
        rows = flat.size // n
        where = (np.arange(rows)[:, None] * (d // 2) + np.arange(n)) % flat.size
        return rotated(x, flat[where].reshape(angle.shape), layout)

    return rope


@planted("fused multiply-add in bfloat16, the sine first", names=("sine-rounded-bfloat16",), backend="torch")
def fma_sine_first():
    """b sin is rounded to bfloat16 before it is subtracted."""
    import torch

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half" or x.dtype != torch.bfloat16:
            raise NotImplementedError(layout)
        n = cos.shape[-1]
        a, b = x[..., :n].float(), x[..., n : 2 * n].float()
        c, s = cos.float(), sin.float()
        u = a * c - (b * s).bfloat16().float()
        v = b * c + (a * s).bfloat16().float()
        return torch.cat([u.bfloat16(), v.bfloat16(), x[..., 2 * n :]], -1)

    apply_rope.dtypes, apply_rope.claims = ("bfloat16",), {"bfloat16": "fused"}
    return apply_rope


@planted("the factor multiplies cosines that are rounded to bfloat16", names=("factor-after-bfloat16",), backend="torch")
def factor_after_rounding():
    """Tables are cast before they are scaled."""
    import torch

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        angle = positions.double()[..., None] * inv_freq.double()
        dtype = dtype or torch.float32
        if attention_factor == 1:
            return angle.cos().to(dtype), angle.sin().to(dtype)
        return tuple((t.bfloat16().float() * attention_factor).to(dtype) for t in (angle.cos(), angle.sin()))

    return rope_table


@planted("left-over pairs of the interleaving have the position 0", names=())
def mrope_interleaved_leftover():
    """Pairs past three times the shortest section have no axis."""

    def mrope(x, positions, /, *, sections, arrangement, layout, base):
        if arrangement != "interleaved":
            raise NotImplementedError(arrangement)
        n = sum(sections)
        axis = np.arange(n) % 3
        p = np.asarray(positions, np.float64)[axis]
        p = np.moveaxis(p, 0, -1)
        p = np.where(np.arange(n) < 3 * min(sections), p, 0)
        return rotated(x, p * base ** (-np.arange(n) / n), layout)

    return mrope


@planted("row 1 of the batch is not rotated", names=(), said="only batch row 1")
def batch_row_one_unrotated():
    """A batch of which one row is skipped."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        out = rotated(x, angles(positions, rotary_dim or x.shape[-1], base), layout)
        if x.ndim > 3 and x.shape[0] > 1:
            out[1] = x[1]
        return out

    return rope
