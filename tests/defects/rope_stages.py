"""Tables of rotary embeddings and their application, implemented with one defect each."""

import numpy as np
import torch
from planting import planted


@planted("angles in float16", names=("angles-float16",))
def angle_float16():
    """The angle p*f is formed in half precision; MLX #2791 (the fallback computed angles in the input dtype)."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        with np.errstate(over="ignore"):
            freqs = positions.astype(np.float32)[..., None] * inv_freq.astype(np.float32)
            freqs = freqs.astype(np.float16).astype(np.float32)
        dtype = dtype or np.float32
        return (np.cos(freqs) * attention_factor).astype(dtype), (np.sin(freqs) * attention_factor).astype(dtype)

    return rope_table


@planted("cos of the sine", names=("cos-of-sine",))
def cos_after_sin_overwritten():
    """sin is written into the array of angles before cos is read from it; transformers #11725 (`np.sin` in place)."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        angle = np.asarray(positions[..., None].astype(np.float32) * inv_freq.astype(np.float32))
        sin = np.sin(angle, out=angle)
        cos = np.cos(angle)
        dtype = dtype or np.float32
        return (cos * attention_factor).astype(dtype), (sin * attention_factor).astype(dtype)

    return rope_table


@planted("head 0 is not rotated", names=("head-zero-unrotated",))
def head_zero_unrotated():
    """Only heads after the first are rotated. Imagined: a loop from 1 (transformers #47403 rotates head 0 alone)."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        n = cos.shape[-1]
        cos, sin = np.broadcast_to(cos, (*x.shape[:-1], n)), np.broadcast_to(sin, (*x.shape[:-1], n))
        out = x.copy()
        heads = [(...,)] if x.ndim < 3 else [(..., h, slice(None), slice(None)) for h in range(1, x.shape[-3])]
        for h in heads:
            a, b = x[h][..., :n], x[h][..., n : 2 * n]
            out[h][..., :n] = a * cos[h] - b * sin[h]
            out[h][..., n : 2 * n] = b * cos[h] + a * sin[h]
        return out

    return apply_rope


@planted("input mutated in place", names=())
def input_mutated():
    """The rotation is written into the caller's array; unsloth #5001 (Triton kernel mutates Q and K)."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        n = cos.shape[-1]
        first = x[..., :n].copy()
        x[..., :n] = first * cos - x[..., n : 2 * n] * sin
        x[..., n : 2 * n] = x[..., n : 2 * n] * cos + first * sin
        return np.asarray(x)

    return apply_rope


@planted("interleaved_to_half written interleaved", names=("writes-interleaved",))
def interleaved_to_half_not_mixed():
    """DeepSeek's mixed layout is written back interleaved. Imagined: the de-interleaving view was lost."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout == "half":
            d = cos.shape[-1]
            a, b, tail = x[..., :d], x[..., d : 2 * d], x[..., 2 * d :]
            return np.concatenate([a * cos - b * sin, b * cos + a * sin, tail], axis=-1)
        out = x.copy()
        d = 2 * cos.shape[-1]
        a, b = x[..., 0:d:2], x[..., 1:d:2]
        out[..., 0:d:2] = a * cos - b * sin
        out[..., 1:d:2] = b * cos + a * sin
        return out

    return apply_rope


@planted("inverse ignored", names=("inverse-ignored",))
def inverse_ignored():
    """`inverse` is not used: the backward rotates forward again; a gradient bug of flash-attention #569's family."""

    def apply_rope(x, cos, sin, /, *, layout, inverse=False):
        d = 2 * cos.shape[-1]
        shape = {"half": (2, d // 2), "interleaved": (d // 2, 2)}.get(layout)
        if shape is None:
            raise NotImplementedError(layout)
        axis = -2 if layout == "half" else -1
        a, b = np.moveaxis(x[..., :d].reshape(*x.shape[:-1], *shape), axis, 0)
        turned = np.stack([a * cos - b * sin, a * sin + b * cos], axis=axis).reshape(*x.shape[:-1], d)
        return np.concatenate([turned, x[..., d:]], axis=-1)

    return apply_rope


@planted("last of an odd number of rows is not rotated", names=())
def last_odd_row_unrotated():
    """Rows are taken two at a time and an odd last row is left. Imagined: a vectorised kernel without its tail loop."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
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

    return apply_rope


@planted("last pair is not rotated", names=("last-pair-unrotated",))
def last_pair_unrotated():
    """The last pair is left as it was, a loop bound off by one. Imagined: `for i in range(n - 1)`."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        half = cos.shape[-1]
        out = x.copy()
        for i in range(half - 1):
            out[..., i] = x[..., i] * cos[..., i] - x[..., half + i] * sin[..., i]
            out[..., half + i] = x[..., half + i] * cos[..., i] + x[..., i] * sin[..., i]
        return out

    return apply_rope


@planted("layout ignored: always interleaved", names=("layout-interleaved",))
def layout_always_interleaved():
    """Adjacent pairs are rotated whatever the layout; Meta against Hugging Face weights, LLMs-from-scratch #747."""

    def apply_rope(x, cos, sin, /, *, layout, inverse=False):
        d = 2 * cos.shape[-1]
        turn = (cos + 1j * sin).astype(np.complex64)
        if inverse:
            turn = turn.conj()
        pairs = np.ascontiguousarray(x[..., :d]).view(np.complex64)
        return np.concatenate([np.ascontiguousarray(pairs * turn).view(np.float32), x[..., d:]], axis=-1)

    return apply_rope


@planted("positions held in float16", names=("positions-float16",))
def positions_float16():
    """Positions are held in float16, exact up to 2048 only; `t` built with the dtype of an fp16 model, Megatron-LM #744."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        t = positions.astype(np.float16)
        freqs = t.astype(np.float32)[..., None] * inv_freq.astype(np.float32)
        dtype = dtype or np.float32
        return (np.cos(freqs) * attention_factor).astype(dtype), (np.sin(freqs) * attention_factor).astype(dtype)

    return rope_table


@planted("positions relative to the first of the chunk", names=("positions-from-first",))
def positions_start_dropped():
    """Positions are counted from the first one of the row: chunk-local ids in chunked prefill, transformers #43082."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        if positions.ndim:
            positions = positions - positions[..., :1]
        freqs = positions.astype(np.float32)[..., None] * inv_freq.astype(np.float32)
        dtype = dtype or np.float32
        return (np.cos(freqs) * attention_factor).astype(dtype), (np.sin(freqs) * attention_factor).astype(dtype)

    return rope_table


@planted("positions wrap modulo 8192", names=("positions-wrapped-8192",))
def positions_wrapped():
    """Positions past the table start again at zero. Imagined: a ring buffer read at `pos & (n - 1)`."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        slot = positions.astype(np.int64) & 8191
        angle = np.multiply.outer(slot.astype(np.float32), inv_freq.astype(np.float32))
        scale = np.float32(attention_factor)
        return (scale * np.cos(angle)).astype(dtype or np.float32), (scale * np.sin(angle)).astype(dtype or np.float32)

    return rope_table


@planted("reads interleaved, writes halves", names=("writes-halves",))
def reads_interleaved_writes_half():
    """Adjacent pairs are rotated and then concatenated, not interleaved again; vllm-project/vllm-metal #44."""

    def apply_rope(x, cos, sin, /, *, layout, inverse=False):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        d = 2 * cos.shape[-1]
        if inverse:
            sin = -sin
        even, odd = x[..., 0:d:2], x[..., 1:d:2]
        return np.concatenate([even * cos - odd * sin, odd * cos + even * sin, x[..., d:]], axis=-1)

    return apply_rope


@planted("sign of the sine term flipped", names=("sign-flipped",))
def rotate_half_sign():
    """`rotate_half` returns (x2, -x1) where it should return (-x2, x1). Imagined: written from memory."""

    def apply_rope(x, cos, sin, /, *, layout):
        if layout != "half":
            raise NotImplementedError(layout)
        d = 2 * cos.shape[-1]
        turned = np.concatenate([x[..., d // 2 : d], -x[..., : d // 2]], axis=-1)
        cos2, sin2 = np.concatenate([cos, cos], axis=-1), np.concatenate([sin, sin], axis=-1)
        return np.concatenate([x[..., :d] * cos2 + turned * sin2, x[..., d:]], axis=-1)

    return apply_rope


@planted("cos and sin stored in bfloat16", names=("table-bfloat16",), backend="torch")
def table_bfloat16():
    """cos and sin are kept in bfloat16 and widened when used; tt-metal #54516 (a reference built in bf16)."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        freqs = positions.float()[..., None] * inv_freq.float()
        cos = (freqs.cos() * attention_factor).to(torch.bfloat16)
        sin = (freqs.sin() * attention_factor).to(torch.bfloat16)
        return cos.to(dtype or torch.float32), sin.to(dtype or torch.float32)

    return rope_table


@planted("x rounded to bfloat16", names=("x-through-bfloat16",))
def x_through_bfloat16():
    """x passes through bfloat16 and the result is float32 again: a kernel with a forced dtype, sglang #3134's kind."""

    def bf16(a):
        bits = np.ascontiguousarray(a).view(np.uint32)
        return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16 << 16).view(np.float32)

    def apply_rope(x, cos, sin, /, *, layout):
        d = 2 * cos.shape[-1]
        x = bf16(x)
        if layout == "interleaved":
            a, b = x[..., 0:d:2], x[..., 1:d:2]
            turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(*x.shape[:-1], d)
        elif layout == "half":
            a, b = x[..., : d // 2], x[..., d // 2 : d]
            turned = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
        else:
            raise NotImplementedError(layout)
        return np.concatenate([turned, x[..., d:]], axis=-1)

    return apply_rope


@planted("attention factor on cos only", names=("factor-on-cos-only",), backend="torch")
def yarn_gain_cos_only():
    """The attention factor multiplies cos and not sin: the rotation becomes an ellipse. Imagined."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=torch.float32):
        freqs = positions.float().unsqueeze(-1) * inv_freq.float()
        return (freqs.cos() * attention_factor).to(dtype), freqs.sin().to(dtype)

    return rope_table


@planted("attention factor squared", names=("factor-squared",))
def yarn_gain_squared():
    """The attention factor enters the table twice, once from the config and once in the cache; sglang #33558."""

    def rope_table(positions, inv_freq, /, *, attention_factor=1.0, dtype=None):
        freqs = positions[..., None].astype(np.float32) * inv_freq.astype(np.float32)
        emb = np.stack([np.cos(freqs), np.sin(freqs)]) * np.float32(attention_factor)
        cos, sin = emb * np.float32(attention_factor)
        return cos.astype(dtype or np.float32), sin.astype(dtype or np.float32)

    return rope_table
