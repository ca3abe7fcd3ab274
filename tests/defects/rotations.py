"""Rotations and their tables, with one or several mistakes that no registered mistake gives alone."""

import math

import numpy as np
import torch
from planting import only, planted


def rotated(x, cos, sin, layout):
    r = 2 * cos.shape[-1]
    if layout == "half":
        u, v = x[..., : r // 2], x[..., r // 2 : r]
    elif layout == "interleaved":
        u, v = x[..., :r:2], x[..., 1:r:2]
    else:
        raise NotImplementedError(layout)
    turned = u * cos - v * sin, v * cos + u * sin
    turned = np.concatenate(turned, axis=-1) if layout == "half" else np.stack(turned, axis=-1).reshape(*x.shape[:-1], r)
    return np.concatenate([turned, x[..., r:]], axis=-1).astype(x.dtype)


def halves(x, angle, layout):
    """Rotate halves alone, by sines and cosines in float32."""
    only(layout, "half")
    return rotated(x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), layout)


def table(positions, width, base):
    angle = np.asarray(positions, np.float64)[..., None] * float(base) ** (-np.arange(0, width, 2) / width)
    return np.cos(angle), np.sin(angle)


def whole(rotary_dim, x):
    if rotary_dim not in (None, x.shape[-1]):
        raise NotImplementedError("all channels alone")


@planted("angles quantised to 4096 steps of a turn", names=())
def angle_lookup_table():
    """Angles are looked up among 4096 steps of a turn, not interpolated. Imagined: a fixed-point kernel."""

    STEPS = 4096
    TURN = (2 * np.pi * np.arange(STEPS) / STEPS).astype(np.float32)
    COS, SIN = np.cos(TURN), np.sin(TURN)

    def rope(x, positions, /, *, layout, base):
        only(layout, "half")
        n = x.shape[-1] // 2
        angle = positions[..., None].astype(np.float64) * float(base) ** (-np.arange(n) / n)
        step = np.rint(angle * (STEPS / (2 * np.pi))).astype(np.int64) % STEPS
        return rotated(x, COS[step], SIN[step], layout)

    return rope


@planted("output transposed", op="rope", names=())
def heads_and_tokens_swapped(x, positions, /, *, layout, base):
    """The result comes back as (..., T, H, d) for (..., H, T, d); DeepSpeed #2782 (as if q and k were not transposed)."""
    only(layout, "interleaved")
    d = x.shape[-1]
    angle = positions[..., None].astype(np.float32) / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
    out = rotated(x, np.cos(angle), np.sin(angle), layout)
    return np.swapaxes(out, -3, -2) if x.ndim > 2 else out


@planted("NaN at position 0", op="rope", names=())
def nan_at_position_zero(x, positions, /, *, layout, base):
    """Angles are exp(log p + log f) and the sign is p/|p|: NaN at position 0. Imagined: log-domain angles."""
    n = x.shape[-1] // 2
    p = positions.astype(np.float64)[..., None]
    with np.errstate(all="ignore"):
        angle = p / np.abs(p) * np.exp(np.log(np.abs(p)) - np.arange(n) / n * np.log(base))
    return halves(x, angle, layout)


@planted("positions held in bfloat16", op="rope", names=("positions-bfloat16",), backend="torch")
def positions_bfloat16(x, positions, /, *, layout, base):
    """Positions are held in bfloat16, so 257 becomes 256; transformers #29285 and the Baichuan2 position collision."""
    only(layout, "half")
    dim = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    t = positions.to(torch.bfloat16)
    freqs = t.float()[..., None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


@planted("constant zeros", names=())
def returns_zeros():
    """Every result is zero: the buffer is allocated and the kernel never runs. Imagined: a launch error nobody reads."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
        return np.zeros_like(x)

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        return np.zeros((*positions.shape, dim), dtype=dtype or np.float32)

    return rope, sinusoidal


@planted("input mutated in place", op="apply_rope", names=())
def input_mutated(x, cos, sin, /, *, layout):
    """The rotation is written into the caller's array; unsloth #5001 (Triton kernel mutates Q and K)."""
    only(layout, "half")
    n = cos.shape[-1]
    first = x[..., :n].copy()
    x[..., :n] = first * cos - x[..., n : 2 * n] * sin
    x[..., n : 2 * n] = x[..., n : 2 * n] * cos + first * sin
    return np.asarray(x)


@planted("last of an odd number of rows is not rotated", op="apply_rope", names=("not-rotated",))
def last_odd_row_unrotated(x, cos, sin, /, *, layout):
    """Rows are taken two at a time and an odd last row is left. Imagined: a vectorised kernel without its tail loop."""
    only(layout, "half")
    n = cos.shape[-1]
    rows = x.reshape(-1, x.shape[-1])
    c = np.broadcast_to(cos, (*x.shape[:-1], n)).reshape(-1, n)
    s = np.broadcast_to(sin, (*x.shape[:-1], n)).reshape(-1, n)
    out = rows.copy()
    end = len(rows) // 2 * 2
    for i in range(0, end, 2):
        two = slice(i, i + 2)
        a, b = rows[two, :n], rows[two, n : 2 * n]
        out[two, :n], out[two, n : 2 * n] = a * c[two] - b * s[two], b * c[two] + a * s[two]
    return out.reshape(x.shape)


@planted("base fixed at 500000", op="rope", names=(), backend="torch")
def base_500000(x, positions, /, *, layout, base):
    """Llama 3's base in every model: a constant that was right where it was written."""
    only(layout, "interleaved")
    d = x.shape[-1]
    freqs = 1.0 / (500000.0 ** (torch.arange(0, d, 2).double() / d))
    angle = (positions.double().unsqueeze(-1) * freqs).float()
    pairs = torch.view_as_complex(x.unflatten(-1, (d // 2, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


@planted(
    "positions and frequencies held in bfloat16, the product in float32",
    op="rope",
    names=(("positions-bfloat16", "inv-freq-bfloat16"),),
    backend="torch",
)
def everything_cast_to_bfloat16(x, positions, /, *, layout, base, rotary_dim=None):
    """`model.to(bfloat16)` reaches the position ids and the frequency buffer; transformers #25681 and #29285."""
    only(layout, "interleaved")
    d = rotary_dim or x.shape[-1]
    inv_freq = (1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.float32) / d))).to(torch.bfloat16)
    angle = positions.to(torch.bfloat16).float()[..., None] * inv_freq.float()
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., :d:2], x[..., 1:d:2]
    turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    return torch.cat((turned, x[..., d:]), dim=-1)


@planted("base^(2i/d) in place of base^(-2i/d)", op="rope", names=())
def exponent_without_minus(x, positions, /, *, layout, base):
    """Frequencies grow rather than fall: the minus of the exponent is lost, as in the text that labml #313 corrects."""
    n = x.shape[-1] // 2
    return halves(x, positions[..., None] * float(base) ** (np.arange(n) / n), layout)


@planted("layout fixed at interleaved, and base fixed at 500000", op="rope", names=("layout-interleaved",))
def interleaved_and_base_500000(x, positions, /, *, layout, base):
    """One layout and one base for everybody, the base not the usual one: a port of one model's inference code."""
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float64) * 500000.0 ** (-np.arange(n) / n)
    return rotated(x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), "interleaved")


@planted("layout and base hard-coded", op="rope", names=(("layout-half", "base-10000"),), backend="torch")
def layout_and_base_fixed(x, positions, /, *, layout, base, rotary_dim=None):
    """Half layout and base 10000 for every model: airllm #368 in a file that also knows one layout only."""
    dim = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
    freqs = positions.float()[..., None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    rot, rest = x[..., :dim], x[..., dim:]
    x1, x2 = rot.chunk(2, dim=-1)
    return torch.cat((rot * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin(), rest), dim=-1)


@planted("linear scaling applied twice", op="rope", names=())
def linear_scaled_twice(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None):
    """Positions and frequencies are both divided by the factor; mlxcel #1324 used one number in two places."""
    d = rotary_dim or x.shape[-1]
    factor = 1.0
    if scaling is not None:
        if type(scaling).__name__ != "Linear":
            raise NotImplementedError(scaling)
        factor = scaling.factor
    inv_freq = 1 / float(base) ** (np.arange(0, d, 2) / d) / factor
    angle = (positions / factor)[..., None] * inv_freq
    return rotated(x, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), layout)


@planted("the first position of a row is added to all of them", op="rope", names=(), backend="torch")
def offset_counted_twice(x, positions, /, *, layout, base):
    """The cache's offset is part of the positions and added once more; mlx-node #33 and mlx-lm #1699."""
    only(layout, "half")
    d = x.shape[-1]
    if positions.ndim:
        positions = positions + positions[..., :1]
    inv_freq = base ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = positions.double().unsqueeze(-1) * inv_freq
    cos, sin = (torch.cat((t, t), -1).float() for t in (angle.cos(), angle.sin()))
    x1, x2 = x.chunk(2, -1)
    return x * cos + torch.cat((-x2, x1), -1) * sin


@planted("the whole head is rotated, with base 10000", op="rope", names=(("rotary-dim-ignored", "base-10000"),))
def partial_and_base_ignored(x, positions, /, *, layout, base, rotary_dim=None):
    """Neither rotary_dim nor base arrives: maxtext #4616 with litgpt #2217."""
    n = x.shape[-1] // 2
    return halves(x, positions[..., None].astype(np.float32) * (10000.0 ** (-np.arange(n) / n)).astype(np.float32), layout)


@planted("positions doubled", op="rope", names=())
def positions_doubled(x, positions, /, *, layout, base, rotary_dim=None):
    """`rope_scale` falls through to 2, so positions are doubled; mlxcel #1324."""
    d = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / np.float32(base) ** (np.arange(0, d, 2, dtype=np.float32) / np.float32(d))
    return halves(x, (2 * positions).astype(np.float32)[..., None] * inv_freq, layout)


@planted(
    "scaling ignored, and positions beyond 4095 clamped", op="rope", names=(("scaling-dropped", "positions-clamped-4095"),)
)
def scaling_dropped_and_clamped(x, positions, /, *, layout, base, scaling=None, length=None):
    """The declared scaling does not arrive (mlx-vlm #1710); a table of 4096 rows is read with a clamp (vllm-ascend #1266)."""
    n = x.shape[-1] // 2
    inv_freq = (float(base) ** (-np.arange(n) / n)).astype(np.float32)
    return halves(x, np.minimum(positions, 4095).astype(np.float32)[..., None] * inv_freq, layout)


@planted(
    "frequencies held in bfloat16, and the second half computed from the rotated first",
    names=(("inv-freq-bfloat16", "in-place-update"),),
    backend="torch",
)
def stages_each_wrong():
    """A bfloat16 frequency buffer (tt-metal #54516), and a half overwritten before it is read (transformers #11725)."""

    def rope_frequencies(dim, /, *, base):
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        return inv_freq.bfloat16().float(), 1.0

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        angle = positions.float().unsqueeze(-1) * inv_freq.float()
        return angle.cos() * attention_factor, angle.sin() * attention_factor

    def apply_rope(x, cos, sin, /, *, layout):
        only(layout, "half")
        n = cos.shape[-1]
        out = x.clone()
        out[..., :n] = out[..., :n] * cos - x[..., n : 2 * n] * sin
        out[..., n : 2 * n] = x[..., n : 2 * n] * cos + out[..., :n] * sin
        return out

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        inv_freq, factor = rope_frequencies(rotary_dim or x.shape[-1], base=base)
        return apply_rope(x, *rope_table(positions, inv_freq, attention_factor=factor), layout=layout)

    return rope_frequencies, rope_table, apply_rope, rope


@planted(
    "positions one too large, and a cos/sin table in float16",
    op="rope",
    names=(("positions-plus-1", "table-float16"),),
    backend="torch",
)
def table_rounded_and_one_based(x, positions, /, *, layout, base, rotary_dim=None):
    """Positions begin at 1 (vLLM #945's sibling), and the table is kept in float16 (sglang #3134)."""
    only(layout, "half")
    d = rotary_dim or x.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float32) / d)
    angle = (positions.float() + 1)[..., None] * inv_freq
    cos, sin = angle.cos().half().float(), angle.sin().half().float()
    a, b = x[..., : d // 2], x[..., d // 2 : d]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., d:]], dim=-1)


@planted(
    "sign flipped, and the attention factor dropped",
    names=(
        ("sign-flipped", "yarn-factor-missing"),
        ("sign-flipped", "factor-dropped"),
        ("positions-negated", "yarn-factor-missing"),
        ("positions-negated", "factor-dropped"),
    ),
    backend="torch",
)
def yarn_backwards_without_factor():
    """The sine has the other sign (lalamo #268's planted one), and YaRN's factor is dropped (exllamav3 #259)."""

    def yarn(dim, base, s):
        freqs = base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        low, high = (
            dim * math.log(s.original_length / (b * 2 * math.pi)) / (2 * math.log(base)) for b in (s.beta_fast, s.beta_slow)
        )
        if s.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
        return (1 / (s.factor * freqs) * ramp + (1 - ramp) / freqs).float()

    def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None):
        only(layout, "interleaved")
        dim = rotary_dim or x.shape[-1]
        if scaling is None:
            inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        elif type(scaling).__name__ == "YaRN":
            inv_freq = yarn(dim, base, scaling)
        else:
            raise NotImplementedError(scaling)
        angle = positions.unsqueeze(-1).float() * inv_freq
        turn = torch.polar(torch.ones_like(angle), -angle)
        turned = torch.view_as_real(torch.view_as_complex(x[..., :dim].unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)
        return torch.cat((turned, x[..., dim:]), dim=-1)

    return rope


@planted("truncate=False ignored, and mscale ignored", names=(("yarn-truncated", "yarn-factor-plain"),))
def yarn_truncated_plain_factor():
    """Always truncated (mlx-lm #1507), and the factor ln(s)/10 + 1 whatever mscale says (vLLM #56446)."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
        if scaling is None:
            return inv_freq, 1.0
        if type(scaling).__name__ != "YaRN":
            raise NotImplementedError(scaling)

        def where(beta):
            return dim * math.log(scaling.original_length / (beta * 2 * math.pi)) / (2 * math.log(base))

        low, high = max(math.floor(where(scaling.beta_fast)), 0), min(math.ceil(where(scaling.beta_slow)), dim - 1)
        ramp = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / max(high - low, 0.001), 0, 1)
        mixed = inv_freq / np.float32(scaling.factor) * ramp + inv_freq * (1 - ramp)
        return mixed.astype(np.float32), 1.0 if scaling.factor <= 1 else 0.1 * math.log(scaling.factor) + 1.0

    def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None):
        only(layout, "half")
        inv_freq, factor = rope_frequencies(rotary_dim or x.shape[-1], base=base, scaling=scaling, length=length)
        angle = positions[..., None].astype(np.float32) * inv_freq
        return rotated(x, np.cos(angle) * np.float32(factor), np.sin(angle) * np.float32(factor), layout)

    return rope_frequencies, rope


@planted("the first two coordinates exchanged", op="axial_rope", names=())
def axial_rope_width_first(x, positions, /, *, dims, base, allocation, arrangement, layout):
    """
    Rows and columns are exchanged, which no square grid shows; the xy order of torchtitan #4244.

    Should be said: the first two coordinates are exchanged; of two axes the last two are these, of three they are not.
    """
    if allocation != "own" or arrangement != "chunked":
        raise NotImplementedError(allocation)
    order = [1, 0, *range(2, len(dims))]
    ladders = [float(base) ** (-2 * np.arange(dim // 2) / dim) for dim in dims]
    angles = [positions[axis][..., None] * ladder for axis, ladder in zip(order, ladders, strict=True)]
    angle = np.concatenate(angles, axis=-1)
    return rotated(x, np.cos(angle), np.sin(angle), layout)


@planted("the first coordinate doubled", op="mrope", names=())
def mrope_time_counted_twice(x, positions, /, *, sections, arrangement, layout, base):
    """
    Times are multiplied by two tokens a second for images too; a still image's temporal id, transformers #45325.

    Should be said: unexplained; the pairs of the first coordinate are wrong (or: the first coordinate is doubled).
    """
    only(arrangement, "chunked")
    axes = np.repeat(np.arange(len(sections)), sections)
    positions = positions * np.asarray([2, *[1] * (len(sections) - 1)]).reshape(-1, *[1] * (positions.ndim - 1))
    inv_freq = float(base) ** (-np.arange(len(axes)) / len(axes))
    angle = np.moveaxis(positions[axes], 0, -1) * inv_freq
    return rotated(x, np.cos(angle), np.sin(angle), layout)


@planted("16 channels rotated, always", op="rope", names=())
def rope_16_channels(x, positions, /, *, layout, base, rotary_dim=None):
    """
    Sixteen channels are rotated whatever is asked: a kernel's template parameter.

    Should be said: 16 channels are rotated.
    """
    d = min(16, x.shape[-1])
    return rotated(x, *table(positions, d, base), layout)


@planted("the base is at most 65504", op="rope", names=())
def rope_base_65504(x, positions, /, *, layout, base, rotary_dim=None):
    """
    The base goes through float16, whose largest number is 65504. A parameter kept with the weights.

    Should be said: the base is 65504 where it is larger.
    """
    d = rotary_dim or x.shape[-1]
    return rotated(x, *table(positions, d, min(float(base), 65504.0)), layout)


@planted("positions divided by 4", op="rope", names=())
def rope_interpolated_by_4(x, positions, /, *, layout, base, rotary_dim=None):
    """
    Positions are divided by 4 for every model: the factor of one configuration, hard-coded.

    Should be said: angles are a quarter (scaling Linear of 4, or positions divided by 4).
    """
    d = rotary_dim or x.shape[-1]
    return rotated(x, *table(positions / 4, d, base), layout)


@planted("positions 3 too large", op="rope", names=())
def rope_three_too_far(x, positions, /, *, layout, base, rotary_dim=None):
    """
    Three tokens of a prefix were counted that are not there: a cache's length, mlx-vlm #1710's kind.

    Should be said: positions are 3 too large.
    """
    d = rotary_dim or x.shape[-1]
    return rotated(x, *table(positions + 3, d, base), layout)


@planted("the distance from the centre has no sign", op="xpos_scales", names=())
def xpos_distance_from_centre(positions, dim, /, *, role, centre, scale_base=512.0, gamma=0.4, dtype=None):
    """
    The power is the distance from the centre, without its sign. Imagined: an absolute value as in ALiBi.

    Should be said: unexplained; positions on one side of the centre are wrong (below it for queries, above it for keys).
    """
    zeta = (np.arange(0, dim, 2) / dim + gamma) / (1 + gamma)
    apart = abs(positions - centre)[..., None] / scale_base
    return (zeta ** (apart if role == "query" else -apart)).astype(dtype or np.float32)


@planted("scales repeated in halves with an interleaved rotation", op="xpos", names=("xpos-scales-in-halves",))
def xpos_scales_in_halves(x, positions, /, *, role, layout, base, centre, scale_base=512.0, gamma=0.4):
    """
    The scales lie in halves, one for each channel, while the rotation is interleaved. Imagined, after how-to-train-your-gpt #6.

    Should be said: unexplained; all of layout "interleaved" is wrong, position at the centre apart.
    """
    d = x.shape[-1]
    zeta = (np.arange(0, d, 2) / d + gamma) / (1 + gamma)
    apart = (positions - centre if role == "query" else centre - positions)[..., None] / scale_base
    scale = np.concatenate([zeta**apart] * 2, axis=-1)
    return (rotated(x.astype(np.float64), *table(positions, d, base), layout) * scale).astype(x.dtype)


@planted("strides ignored", op="apply_rope", names=())
def apply_strides_ignored(x, cos, sin, /, *, layout):
    """A kernel that reads its input as if it were contiguous (TileOPs #492)."""
    only(layout, "half")
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x).reshape(-1)[::-1].reshape(x.shape)
    return rotated(x, cos, sin, layout)


@planted("inverse ignored, and the tail zeroed", op="apply_rope", names=(("inverse-ignored", "tail-zeroed"),))
def inverse_forward_and_tail_lost(x, cos, sin, /, *, layout, inverse=False):
    """inverse=True rotates forward, and lanes beyond rotary_dim come back as zeros (labml #215's slice)."""
    out = np.zeros_like(x)
    n = cos.shape[-1]
    if layout == "half":
        read = write = (slice(0, n), slice(n, 2 * n))
    else:
        read = write = (slice(0, 2 * n, 2), slice(1, 2 * n, 2))
    if layout == "interleaved_to_half":
        write = (slice(0, n), slice(n, 2 * n))
    a, b = x[..., read[0]], x[..., read[1]]
    out[..., write[0]], out[..., write[1]] = a * cos - b * sin, b * cos + a * sin
    return out


@planted("sines and cosines of low accuracy", names=())
def table_coarse_sine():
    """A table of sines with 2^-11 between its steps, as some hardware has."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
        angle = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
        return tuple((attention_factor * np.round(way(angle) * 2048) / 2048).astype(dtype) for way in (np.cos, np.sin))

    return rope_table


@planted("positions wrap at 20000", op="rope_table", names=())
def table_wrapped_20000(positions, inv_freq, /, *, attention_factor=1.0, dtype=np.float32):
    """A ring buffer of 20000 rows."""
    positions = np.where(positions >= 20000, np.asarray(positions) % 20000, positions)
    angle = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
    return tuple((attention_factor * way(angle)).astype(dtype) for way in (np.cos, np.sin))


@planted("the last head is not rotated", op="rope", names=("last-head-unrotated",))
def last_head_unrotated(x, positions, /, *, layout, base, rotary_dim=None):
    """One head too few in the loop."""
    out = rotated(x, *table(positions, rotary_dim or x.shape[-1], base), layout)
    if x.ndim > 2 and np.ndim(positions) < 2 and x.shape[-3] > 1:
        out[..., -1, :, :] = x[..., -1, :, :]
    return out


@planted("the last token is not rotated", op="apply_rope", names=(), said="only the last token")
def last_token_unrotated(x, cos, sin, /, *, layout):
    """A loop that ends one token early."""
    out = rotated(x, cos, sin, layout)
    if x.ndim > 1 and cos.ndim > 1 and cos.shape[-2] > 1:
        out[..., -1, :] = x[..., -1, :]
    return out


@planted("the third token is rotated like the second", op="rope", names=(), said="only token 2")
def third_token_stale(x, positions, /, *, layout, base, rotary_dim=None):
    """A draft token keeps its parent's table."""
    p = np.array(positions)
    if p.ndim and p.shape[-1] > 2:
        p[..., 2] = p[..., 1]
    return rotated(x, *table(p, rotary_dim or x.shape[-1], base), layout)


@planted("left-over pairs of the interleaving have the position 0", op="mrope", names=())
def mrope_interleaved_leftover(x, positions, /, *, sections, arrangement, layout, base):
    """Pairs past three times the shortest section have no axis."""
    only(arrangement, "interleaved")
    n = sum(sections)
    axis = np.arange(n) % 3
    p = np.asarray(positions, np.float64)[axis]
    p = np.moveaxis(p, 0, -1)
    p = np.where(np.arange(n) < 3 * min(sections), p, 0)
    angle = p * base ** (-np.arange(n) / n)
    return rotated(x, np.cos(angle), np.sin(angle), layout)


@planted("row 1 of the batch is not rotated", op="rope", names=(), said="only batch row 1")
def batch_row_one_unrotated(x, positions, /, *, layout, base, rotary_dim=None):
    """A batch of which one row is skipped."""
    out = rotated(x, *table(positions, rotary_dim or x.shape[-1], base), layout)
    if x.ndim > 3 and x.shape[0] > 1:
        out[1] = x[1]
    return out


@planted("tokens after the first 32 reuse the first block's positions", op="rope", names=(), said="nly tokens from 32 on")
def positions_of_tile(x, positions, /, *, layout, base, rotary_dim=None):
    """A tile of 32 tokens reads its positions at the index within the tile."""
    whole(rotary_dim, x)
    if layout == "interleaved_to_half":
        raise NotImplementedError(layout)
    p = np.asarray(positions)
    if p.ndim and p.shape[-1] > 1:
        p = p[..., np.arange(p.shape[-1]) % 32]
    return rotated(x, *table(p, x.shape[-1], base), layout)


@planted("tokens after the last full tile of four are not computed", op="rope", names=(), said="after the last full block of 4")
def tiles_without_a_tail(x, positions, /, *, layout, base):
    """The grid is ``tokens // 4``, at least 1, where it must be rounded up: what is left has the zeros of the buffer."""
    if layout != "half" or x.ndim < 2:
        raise NotImplementedError(layout)
    pairs = x.shape[-1] // 2
    found = halves(x, positions[..., None] * base ** -(np.arange(pairs) / pairs), layout)
    found[..., x.shape[-2] // 4 * 4 or x.shape[-2] :, :] = 0
    return found


@planted("the exponent counts padded channels", op="rope", names=(), said="Wrong with head size not a power of two")
def exponent_of_padded_channels(x, positions, /, *, layout, base):
    """Triton's blocks have a power of two of channels, and the kernel divides by that in place of the head size."""
    pairs = x.shape[-1] // 2
    padded = 1 << max(0, (2 * pairs - 1).bit_length())
    return halves(x, positions[..., None] * base ** -(2 * np.arange(pairs) / padded), layout)


@planted("the last row of every eight is not written", op="rope_table", names=(), said="that end a block of 8")
def last_of_eight_not_written(positions, inv_freq, /):
    """A warp stores ``lane < 7``: the last row of each eight has the zeros of the buffer."""
    angles = np.asarray(positions, dtype=np.float64)[..., None] * inv_freq
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    if cos.ndim > 1:
        cos[..., 7::8, :] = 0
        sin[..., 7::8, :] = 0
    return cos, sin


@planted("the absolute value stands in place of softplus", op="pope", names=())
def pope_without_softplus(x, positions, phases=None, /, *, layout, base):
    """The rotation of x itself."""
    d = x.shape[-1]
    a = np.asarray(positions, np.float64)[..., None] * base ** (-np.arange(d) / d)
    if phases is not None:
        a = a + np.clip(phases, -2 * math.pi, 0)
    size = np.abs(np.asarray(x, np.float64))
    parts = [size * np.cos(a), size * np.sin(a)]
    out = np.concatenate(parts, -1) if layout == "cos_sin" else np.stack(parts, -1).reshape(*parts[0].shape[:-1], -1)
    return out.astype(x.dtype)
