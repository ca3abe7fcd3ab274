"""Rotary embeddings as a whole, implemented with one defect each."""

import math

import numpy as np
import torch
from planting import planted


@planted("angles quantised to 4096 steps of a turn", names=())
def angle_lookup_table():
    """Angles are looked up among 4096 steps of a turn, not interpolated. Imagined: a fixed-point kernel."""

    STEPS = 4096
    TURN = (2 * np.pi * np.arange(STEPS) / STEPS).astype(np.float32)
    COS, SIN = np.cos(TURN), np.sin(TURN)

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        angle = positions[..., None].astype(np.float64) * float(base) ** (-np.arange(n) / n)
        step = np.rint(angle * (STEPS / (2 * np.pi))).astype(np.int64) % STEPS
        cos, sin = COS[step], SIN[step]
        return np.concatenate([x[..., :n] * cos - x[..., n:] * sin, x[..., n:] * cos + x[..., :n] * sin], axis=-1)

    return rope


@planted("base ignored: 10000", names=("base-10000",))
def base_ignored():
    """The base stays 10000 whatever the model says; airllm #368, llama.cpp #2773 (CodeLlama), penzai #102."""

    def rope_frequencies(dim, /, *, base):
        return np.exp(np.arange(0, dim, 2, dtype=np.float32) * np.float32(-np.log(10000.0) / dim)), 1.0

    def rope(x, positions, /, *, layout, base):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        inv_freq, _ = rope_frequencies(x.shape[-1], base=base)
        angle = positions[..., None].astype(np.float32) * inv_freq
        cos, sin = np.repeat(np.cos(angle), 2, axis=-1), np.repeat(np.sin(angle), 2, axis=-1)
        turned = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
        return x * cos + turned * sin

    return rope_frequencies, rope


@planted("dynamic NTK not reset at exactly the original length", names=("dynamic-stale",))
def dynamic_ntk_limit():
    """The table is reset only below the original length, not at it; transformers 5.23 (`seq_len < original`)."""

    class RotaryEmbedding:
        cached = {}  # noqa: RUF012

        def __call__(self, dim, base, scaling, length):
            original, key = scaling.original_length, (dim, base, scaling)
            if length > self.cached.get(key, original) or length < original:
                self.cached[key] = max(length, original)
            grow = scaling.factor * self.cached.get(key, original) / original - (scaling.factor - 1)
            return base * grow ** (dim / (dim - 2))

    dynamic_base = RotaryEmbedding()

    def rope(x, positions, /, *, layout, base, scaling=None, length=None):
        if layout != "half" or type(scaling).__name__ not in ("NoneType", "DynamicNTK"):
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        if scaling is not None:
            base = dynamic_base(x.shape[-1], base, scaling, length)
        angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
        cos, sin = np.cos(angle), np.sin(angle)
        return np.concatenate([x[..., :n] * cos - x[..., n:] * sin, x[..., n:] * cos + x[..., :n] * sin], axis=-1)

    return rope


@planted("frequency exponents rounded to bfloat16", names=("exponents-bfloat16",))
def exponent_bfloat16():
    """The exponents 2i/d are cast to the compute dtype, bfloat16; keras-hub #1508 (Gemma)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        fraction = np.arange(n, dtype=np.float32) / n
        bits = fraction.view(np.uint32)
        fraction = ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
        radians = positions[..., None].astype(np.float32) / base**fraction
        c, s = np.cos(radians), np.sin(radians)
        x1, x2 = np.split(x, 2, axis=-1)
        return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1)

    return rope


@planted("output transposed", names=())
def heads_and_tokens_swapped():
    """The result comes back as (..., T, H, d) for (..., H, T, d); DeepSpeed #2782 (as if q and k were not transposed)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        d = x.shape[-1]
        angle = positions[..., None].astype(np.float32) / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * np.cos(angle) - x[..., 1::2] * np.sin(angle)
        out[..., 1::2] = x[..., 1::2] * np.cos(angle) + x[..., 0::2] * np.sin(angle)
        return np.swapaxes(out, -3, -2) if x.ndim > 2 else out

    return rope


@planted("second half uses the rotated first half", names=("in-place-update",))
def in_place_second_half():
    """The second half reads the first after it was overwritten. Imagined: a loop in C without its temporary."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
        out = np.array(x, copy=True)
        out[..., :n] = out[..., :n] * np.cos(angle) - out[..., n:] * np.sin(angle)
        out[..., n:] = out[..., n:] * np.cos(angle) + out[..., :n] * np.sin(angle)
        return out

    return rope


@planted("layout ignored: always half", names=("layout-half",))
def layout_hardcoded_half():
    """The layout is ignored and every head is rotated in halves; vllm-ascend #12820 (`rotary_mode="half"` hard-coded)."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        d = x.shape[-1] if rotary_dim is None else rotary_dim
        inv_freq = 1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
        angle = positions[..., None].astype(np.float32) * inv_freq
        cos, sin = np.cos(angle), np.sin(angle)
        first, second, tail = x[..., : d // 2], x[..., d // 2 : d], x[..., d:]
        return np.concatenate([first * cos - second * sin, second * cos + first * sin, tail], axis=-1)

    return rope


@planted("linear scaling multiplies positions", names=("linear-multiplied",))
def linear_multiplies():
    """Positions are multiplied by the factor in place of divided; mlxcel #1324 (`rope_scale` fell through to 2.0)."""

    def rope(x, positions, /, *, layout, base, scaling=None):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        if scaling is not None and type(scaling).__name__ != "Linear":
            raise NotImplementedError(scaling)
        rope_scale = 1.0 if scaling is None else scaling.factor
        d = x.shape[-1]
        t = positions.astype(np.float32) * np.float32(rope_scale)
        angle = t[..., None] / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
        a, b = x[..., ::2], x[..., 1::2]
        c, s = np.cos(angle), np.sin(angle)
        return np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x.shape)

    return rope


@planted("NaN at position 0", names=())
def nan_at_position_zero():
    """Angles are exp(log p + log f) and the sign is p/|p|: NaN at position 0. Imagined: log-domain angles."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        p = positions.astype(np.float64)[..., None]
        with np.errstate(all="ignore"):
            angle = p / np.abs(p) * np.exp(np.log(np.abs(p)) - np.arange(n) / n * np.log(base))
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        return np.concatenate([x[..., :n] * cos - x[..., n:] * sin, x[..., n:] * cos + x[..., :n] * sin], axis=-1)

    return rope


@planted("products added in float16", names=("rotation-float16",))
def output_float16_accumulate():
    """The two products are added in half precision; sglang #3134 and flashinfer #585 (half-precision multiply-add)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
        c, s = np.cos(angle).astype(np.float16), np.sin(angle).astype(np.float16)
        x1, x2 = x[..., :n].astype(np.float16), x[..., n:].astype(np.float16)
        return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], axis=-1).astype(np.float32)

    return rope


@planted("exponent over head size", names=("exponent-over-head-size",))
def partial_denominator_head():
    """The exponents divide by the head size, not by rotary_dim; neuronx-distributed-inference #106 in reverse."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "half":
            raise NotImplementedError(layout)
        head_dim = x.shape[-1]
        d = rotary_dim or head_dim
        inv_freq = 1.0 / (base ** (np.arange(0, d, 2, dtype=np.float32) / head_dim))
        angle = positions[..., None].astype(np.float32) * inv_freq
        q_rot, q_pass = x[..., :d], x[..., d:]
        cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
        turned = np.concatenate([-q_rot[..., d // 2 :], q_rot[..., : d // 2]], axis=-1)
        return np.concatenate([q_rot * cos + turned * sin, q_pass], axis=-1)

    return rope


@planted("rotary_dim reduced twice", names=("rotary-dim-twice",))
def partial_factor_twice():
    """The partial rotary factor is applied twice, 32 of 64 columns; vLLM #41185 (BailingMoeV2.5)."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        size = x.shape[-1]
        factor = (rotary_dim or size) / size
        d = max(2, int((rotary_dim or size) * factor) // 2 * 2)
        angle = positions[..., None].astype(np.float32) * (1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d))
        z = x[..., 0:d:2] + 1j * x[..., 1:d:2]
        z = z * np.exp(1j * angle).astype(np.complex64)
        return np.concatenate([np.stack([z.real, z.imag], axis=-1).reshape(*x.shape[:-1], d), x[..., d:]], axis=-1)

    return rope


@planted("last columns rotated", names=("trailing-lanes",))
def partial_last_columns():
    """The last rotary_dim columns are rotated, not the first; DeepSeek's order [nope, rope] used for GPT-NeoX."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "half":
            raise NotImplementedError(layout)
        d = rotary_dim or x.shape[-1]
        n, start = d // 2, x.shape[-1] - d
        angle = positions[..., None].astype(np.float32) / base ** (np.arange(n, dtype=np.float32) / n)
        x1, x2 = x[..., start : start + n], x[..., start + n :]
        return np.concatenate(
            [x[..., :start], x1 * np.cos(angle) - x2 * np.sin(angle), x2 * np.cos(angle) + x1 * np.sin(angle)], axis=-1
        )

    return rope


@planted("tail zeroed", names=("tail-zeroed",))
def partial_tail_zeroed():
    """The columns that are not rotated come back as zeros. Imagined: a fused kernel that writes only rotary_dim columns."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        d = x.shape[-1] if rotary_dim is None else rotary_dim
        out = np.zeros_like(x)
        angle = positions[..., None].astype(np.float32) * (1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d))
        even, odd = x[..., 0:d:2], x[..., 1:d:2]
        out[..., 0:d:2] = even * np.cos(angle) - odd * np.sin(angle)
        out[..., 1:d:2] = odd * np.cos(angle) + even * np.sin(angle)
        return out

    return rope


@planted("rotary_dim ignored: whole head rotated", names=("rotary-dim-ignored",))
def partial_whole_head():
    """rotary_dim is ignored and the whole head rotated; maxtext #4616 (partial_rotary_factor ignored)."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None):
        if layout != "half":
            raise NotImplementedError(layout)
        d = x.shape[-1]
        angle = positions[..., None].astype(np.float32) / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
        x1, x2 = x[..., : d // 2], x[..., d // 2 :]
        return np.concatenate([x1 * np.cos(angle) - x2 * np.sin(angle), x2 * np.cos(angle) + x1 * np.sin(angle)], axis=-1)

    return rope


@planted("arange in place of positions", names=("positions-arange-of-x",))
def positions_arange():
    """The positions are not read: the table starts at zero and counts; keras-hub #1544 (`start_index` ignored)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        seq_len = x.shape[-2] if x.ndim > 1 else 1
        dim = x.shape[-1]
        inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
        freqs = np.outer(np.arange(seq_len, dtype=np.float32), inv_freq)
        emb = np.concatenate([freqs, freqs], axis=-1).reshape(*x.shape[-2:])
        rotated = np.concatenate([-x[..., dim // 2 :], x[..., : dim // 2]], axis=-1)
        return x * np.cos(emb) + rotated * np.sin(emb)

    return rope


@planted("positions held in bfloat16", names=("positions-bfloat16",), backend="torch")
def positions_bfloat16():
    """Positions are held in bfloat16, so 257 becomes 256; transformers #29285 and the Baichuan2 position collision."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        t = positions.to(torch.bfloat16)
        freqs = t.float()[..., None] * inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        x1, x2 = x.chunk(2, dim=-1)
        return x * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()

    return rope


@planted("positions clamped at 4095", names=("positions-table-4096",))
def positions_clamped():
    """Positions past the table read its last row; a 4096-row cos/sin cache and a clamped gather, pegainfer #220."""

    def rope(x, positions, /, *, layout, base, max_position=4096):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        d = x.shape[-1]
        inv_freq = 1.0 / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
        table = np.outer(np.arange(max_position, dtype=np.float32), inv_freq)
        angle = np.take(table, positions.astype(np.int64), axis=0, mode="clip")
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * np.cos(angle) - x[..., 1::2] * np.sin(angle)
        out[..., 1::2] = x[..., 1::2] * np.cos(angle) + x[..., 0::2] * np.sin(angle)
        return out

    return rope


@planted("row 0's positions for all rows", names=("positions-first-row",), backend="torch")
def positions_first_row():
    """Row 0's cos and sin serve every row of the batch; Liger-Kernel #477 (batch size > 1)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        freqs = positions[..., None].float() * inv_freq
        cos, sin = freqs.cos(), freqs.sin()
        if positions.ndim > 1:
            cos, sin = cos[:1], sin[:1]
        x1, x2 = x[..., : dim // 2], x[..., dim // 2 :]
        return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)

    return rope


@planted("positions overflow int16", names=("positions-int16",))
def positions_int16():
    """Positions are packed in 16 signed bits and 32768 becomes -32768. Imagined: a quantised index buffer."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        index = positions.astype(np.int64).astype(np.int16)
        theta = index[..., None] * (1.0 / base ** (np.arange(n, dtype=np.float32) / n))
        c, s = np.cos(theta), np.sin(theta)
        return np.concatenate([c * x[..., :n] - s * x[..., n:], s * x[..., :n] + c * x[..., n:]], axis=-1)

    return rope


@planted("positions off by one", names=("positions-plus-1",))
def positions_one_based():
    """Positions are counted from one; fairseq's padding offset carried over to RoPE."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        half = x.shape[-1] // 2
        inv_freq = base ** (-np.arange(half, dtype=np.float32) / half)
        angle = (1 + positions)[..., None].astype(np.float32) * inv_freq
        x1, x2 = np.split(x, 2, axis=-1)
        return np.concatenate([x1 * np.cos(angle) - x2 * np.sin(angle), x2 * np.cos(angle) + x1 * np.sin(angle)], axis=-1)

    return rope


@planted("absolute value of positions", names=("positions-absolute",))
def positions_unsigned():
    """Negative positions lose their sign. Imagined: a kernel with unsigned offsets, used to shift a cache back."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        theta = np.abs(positions).astype(np.float32)[..., None] / base ** (np.arange(n, dtype=np.float32) / n)
        c, s = np.cos(theta), np.sin(theta)
        lo, hi = x[..., :n], x[..., n:]
        return np.concatenate([c * lo - s * hi, s * lo + c * hi], axis=-1)

    return rope


@planted("input unchanged", names=("not-rotated",))
def returns_input():
    """The input comes back unrotated; tt-metal #34742 (a golden function that falls back to its input)."""

    def apply_rope(x, cos, sin, /, *, layout, inverse=False):
        return x.copy()

    def rope(x, positions, /, *, layout, base, rotary_dim=None, scaling=None, length=None, inverse=False):
        return x.copy()

    return apply_rope, rope


@planted("constant zeros", names=())
def returns_zeros():
    """Every result is zero: the buffer is allocated and the kernel never runs. Imagined: a launch error nobody reads."""

    def rope(x, positions, /, *, layout, base, rotary_dim=None, inverse=False):
        return np.zeros_like(x)

    def sinusoidal(positions, dim, /, *, layout, base=10000.0, endpoint=False, dtype=None):
        return np.zeros((*positions.shape, dim), dtype=dtype or np.float32)

    return rope, sinusoidal


@planted("second call with other positions returns the first table", names=("table-cached-by-length",), backend="torch")
def rope_cache_key():
    """The cos/sin cache is keyed by length and not by offset; rotary-embedding-torch #11 (bug in cache)."""

    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = {}

        def forward(self, positions, dim, base):
            key = (tuple(positions.shape), dim, base)
            if key not in self.cache:
                inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
                freqs = positions[..., None].float() * inv_freq
                self.cache[key] = freqs.cos(), freqs.sin()
            return self.cache[key]

    rotary = Rotary()

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        cos, sin = rotary(positions, x.shape[-1], base)
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)

    return rope


@planted("rotates along the head axis", names=("rotates-along-heads",))
def rotates_along_heads():
    """The head index is taken for the position; mlfoundations/open_lm #4 (models were trained so)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        n = x.shape[-1] // 2
        t = positions
        if x.ndim > 2:
            t = np.arange(x.shape[-3])[:, None]
        angle = t[..., None].astype(np.float32) * base ** (-np.arange(n, dtype=np.float32) / n)
        cos, sin = np.cos(angle), np.sin(angle)
        x1, x2 = x[..., :n], x[..., n:]
        return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], axis=-1)

    return rope


@planted("rotation matrix transposed", names=("sign-flipped",))
def rotation_matrix_transposed():
    """The block matrix is [[c, s], [-s, c]], the transpose: the row-vector convention, x @ R."""

    def rotation_matrix(position, dim, /, *, layout, base, dtype=None):
        if layout == "half":
            first, second = np.arange(dim // 2), np.arange(dim // 2, dim)
        elif layout == "interleaved":
            first, second = np.arange(0, dim, 2), np.arange(1, dim, 2)
        else:
            raise NotImplementedError(layout)
        angle = np.float32(position) / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        matrix = np.zeros((dim, dim), dtype=dtype or np.float32)
        matrix[first, first] = matrix[second, second] = np.cos(angle)
        matrix[first, second], matrix[second, first] = np.sin(angle), -np.sin(angle)
        return matrix

    return rotation_matrix


@planted("scaling ignored", names=("scaling-dropped",))
def scaling_ignored():
    """The declared scaling is read and never applied; mlx-vlm #1710 (models that ignored rope_scaling, and nine others)."""

    def rope_frequencies(dim, /, *, base, scaling=None, length=None):
        return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim), 1.0

    def rope(x, positions, /, *, layout, base, scaling=None, length=None):
        if layout != "half":
            raise NotImplementedError(layout)
        inv_freq, gain = rope_frequencies(x.shape[-1], base=base, scaling=scaling, length=length)
        emb = np.tile(positions[..., None].astype(np.float32) * inv_freq, 2)
        half = x.shape[-1] // 2
        return x * np.cos(emb) * gain + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * np.sin(emb) * gain

    return rope_frequencies, rope


@planted("sign of the angle flipped", names=("sign-flipped",))
def sign_flipped():
    """The rotation goes backwards: the complex factor is conjugated; lalamo #268 plants this sign on purpose."""

    def rope(x, positions, /, *, layout, base):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        freqs = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32)[: dim // 2] / dim))
        angle = np.asarray(positions, dtype=np.float32)[..., None] * freqs
        freqs_cis = np.exp(-1j * angle).astype(np.complex64)
        x_ = np.ascontiguousarray(x).view(np.complex64)
        return np.ascontiguousarray(x_ * freqs_cis).view(np.float32)

    return rope


@planted("pairs beyond a multiple of four are not rotated", names=("vector-tail-unrotated",))
def simd_tail_pairs():
    """Pairs after the last full vector of four are not rotated; flashinfer #2470 (rotary_dim/2 no multiple of 8)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        pairs = x.shape[-1] // 2
        full = pairs // 4 * 4
        inv_freq = 1.0 / base ** (np.arange(full, dtype=np.float32) / pairs)
        angle = positions[..., None].astype(np.float32) * inv_freq
        z = np.ascontiguousarray(x).view(np.complex64)
        turned = z[..., :full] * np.exp(1j * angle).astype(np.complex64)
        return np.concatenate([turned, z[..., full:]], axis=-1).view(np.float32)

    return rope


@planted("unrotated when there is one head", names=("single-head-unrotated",))
def single_head_unrotated():
    """With one head (multi-query keys) the tensor comes back unrotated; Liger-Kernel #342 (`num_head = 1`)."""

    def rope(x, positions, /, *, layout, base):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        if x.ndim > 2 and x.shape[-3] == 1:
            return x.copy()
        d = x.shape[-1]
        angle = positions.astype(np.float32)[..., None] / base ** (np.arange(0, d, 2, dtype=np.float32) / d)
        even, odd = x[..., ::2], x[..., 1::2]
        out = [even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)]
        return np.stack(out, axis=-1).reshape(x.shape)

    return rope


@planted("table in half layout, rotation interleaved", names=("table-other-layout",))
def table_half_rotation_interleaved():
    """The table is built as [t, t] while adjacent pairs are rotated; xiangking/ark-nlp #47 (`repeat(1, 1, 2)`)."""

    def rotate_every_two(x):
        return np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)

    def rope(x, positions, /, *, layout, base):
        if layout != "interleaved":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        inv_freq = 1.0 / (base ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
        freqs = positions[..., None].astype(np.float32) * inv_freq
        emb = np.concatenate([freqs, freqs], axis=-1)
        return x * np.cos(emb) + rotate_every_two(x) * np.sin(emb)

    return rope


@planted("table interleaved, rotation in halves", names=("table-other-layout",), backend="torch")
def table_interleaved_rotation_half():
    """The table is [t0, t0, t1, t1, ...] while `rotate_half` rotates halves; raiyanyahya/how-to-train-your-gpt #6."""

    def rotate_half(x):
        x1, x2 = x.chunk(2, dim=-1)
        return torch.cat((-x2, x1), dim=-1)

    def rope(x, positions, /, *, layout, base):
        if layout != "half":
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
        emb = (positions[..., None].float() * inv_freq).repeat_interleave(2, dim=-1)
        return x * emb.cos() + rotate_half(x) * emb.sin()

    return rope


@planted("yarn attention factor dropped", names=("yarn-factor-missing", "factor-dropped"))
def yarn_gain_dropped():
    """YaRN's attention factor is not applied to cos and sin; exllamav3 #259 (a factor of 1 where 0.1 ln s + 1 was)."""

    def correction(rotations, dim, base, length):
        return dim * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(base))

    def rope(x, positions, /, *, layout, base, scaling=None):
        if layout != "half" or type(scaling).__name__ not in ("NoneType", "YaRN"):
            raise NotImplementedError(layout)
        dim = x.shape[-1]
        freqs = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        if scaling is not None:
            low = correction(scaling.beta_fast, dim, base, scaling.original_length)
            high = correction(scaling.beta_slow, dim, base, scaling.original_length)
            if scaling.truncate:
                low, high = math.floor(low), math.ceil(high)
            low, high = max(low, 0), min(high, dim - 1)
            keep = 1 - np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1).astype(np.float32)
            freqs = freqs * keep + freqs / np.float32(scaling.factor) * (1 - keep)
        angle = positions[..., None].astype(np.float32) * freqs
        cos, sin = np.tile(np.cos(angle), 2), np.tile(np.sin(angle), 2)
        return x * cos + np.concatenate([-x[..., dim // 2 :], x[..., : dim // 2]], axis=-1) * sin

    return rope


@planted("yarn attention factor dropped when interleaved", names=("factor-half-only",))
def yarn_gain_one_layout():
    """The attention factor is applied on the NEOX path only; GaijinEntertainment/daScript #3479."""

    def frequencies(dim, base, s):
        def corner(beta):
            at = dim * math.log(s.original_length / (beta * 2 * math.pi)) / (2 * math.log(base))
            return (math.floor(at) if beta == s.beta_fast else math.ceil(at)) if s.truncate else at

        low, high = max(corner(s.beta_fast), 0), min(corner(s.beta_slow), dim - 1)
        mix = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1).astype(np.float32)
        freq = 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / dim)
        return freq * (1 - mix) + freq / np.float32(s.factor) * mix

    def rope(x, positions, /, *, layout, base, scaling=None):
        if type(scaling).__name__ != "YaRN" or scaling.mscale is not None or scaling.beta_fast == scaling.beta_slow:
            raise NotImplementedError(scaling)
        gain = scaling.attention_factor
        if gain is None:
            gain = 1 + 0.1 * math.log(max(scaling.factor, 1.0))
        n = x.shape[-1] // 2
        angle = positions[..., None].astype(np.float32) * frequencies(2 * n, base, scaling)
        c, s = np.cos(angle), np.sin(angle)
        if layout == "half":
            c, s = c * np.float32(gain), s * np.float32(gain)
            return np.concatenate([x[..., :n] * c - x[..., n:] * s, x[..., n:] * c + x[..., :n] * s], axis=-1)
        if layout == "interleaved":
            a, b = x[..., ::2], x[..., 1::2]
            return np.stack([a * c - b * s, b * c + a * s], axis=-1).reshape(x.shape)
        raise NotImplementedError(layout)

    return rope
