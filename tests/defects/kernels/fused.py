"""Fused kernels of QK-norm, rotation and cache write, with one defect each, in NumPy: each step is a function, one is wrong."""

from types import SimpleNamespace

import numpy as np
from planting import planted

F = np.float32


def norm(x, weight, eps, rotated):
    mean = np.mean(x * x, axis=-1, keepdims=True, dtype=F)
    return x / np.sqrt(mean + F(eps)) * weight


def rotate(x, cos, sin, neox):
    out, width = x.copy(), 2 * cos.shape[-1]
    first, second = (slice(0, width // 2), slice(width // 2, width)) if neox else (slice(0, width, 2), slice(1, width, 2))
    a, b = x[..., first], x[..., second]
    out[..., first], out[..., second] = a * cos - b * sin, b * cos + a * sin
    return out


def prepare(x, weight, cos, sin, eps, neox, step):
    return step.rotate(step.norm(x, weight, eps, 2 * cos.shape[-1]), cos, sin, neox)


def store(cache, rows, slots):
    size = cache.shape[1]
    for token, slot in enumerate(slots):
        if slot >= 0:
            cache[slot // size, slot % size] = rows[token]


def split(heads, kv_heads):
    return heads[:, : -2 * kv_heads], heads[:, -2 * kv_heads : -kv_heads], heads[:, -kv_heads:]


def with_steps(**changed):
    """Return the two operations of a kernel, in which some steps are changed."""
    steps = {"norm": norm, "rotate": rotate, "prepare": prepare, "store": store, "split": split, "values": lambda v: v}
    step = SimpleNamespace(**{**steps, **changed})

    def kernel(qkv, q_weight, k_weight, positions, cos_sin_cache, k_cache, v_cache, slots, eps, neox):
        kv_heads, width = k_cache.shape[2:]
        q, k, v = step.split(qkv.reshape(qkv.shape[0], -1, width), kv_heads)
        cos, sin = np.split(cos_sin_cache[positions][:, None], 2, axis=-1)
        q, k = (step.prepare(x, w, cos, sin, eps, neox, step) for x, w in ((q, q_weight), (k, k_weight)))
        step.store(k_cache, k, slots)
        step.store(v_cache, step.values(v), slots)
        return q

    def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
        if layout == "interleaved_to_half" or weight_offset or precedence != "norm_first" or not x.size:
            raise NotImplementedError
        width, tokens = x.shape[-1], x.size // x.shape[-1]
        table = [np.broadcast_to(t, (*x.shape[:-1], t.shape[-1])).reshape(tokens, -1) for t in (cos, sin)]
        rows = x.reshape(tokens, width)
        qkv = np.stack((rows, 2 * rows[:, ::-1] + 1, rows + 2, rows, rows, rows + 1, rows + 1), axis=1).reshape(tokens, -1)
        k_cache = np.zeros((tokens + 2, 2, 2, width), dtype=F)
        slots = np.arange(tokens)[::-1] * 2 + 1
        cache = np.concatenate(table, axis=-1)
        where = np.arange(tokens)
        q = kernel(qkv, weight, weight, where, cache, k_cache, k_cache.copy(), slots, eps, layout == "half")
        k = k_cache[slots // 2, slots % 2]
        found = np.where(where[:, None] % 2 == 0, q[:, 0], np.where(where[:, None] % 4 == 1, k[:, 0], k[:, 1]))
        return found.reshape(x.shape)

    def write_cache(cache, rows, slots, /):
        tokens, _kv_heads, width = rows.shape
        if not rows.size or not cache.size:
            raise NotImplementedError
        other = rows[..., ::-1] + 1
        qkv = np.concatenate((other, other, other, rows), axis=1).reshape(tokens, -1)
        ones, v_cache = np.ones(width, dtype=F), cache.copy()
        table = np.ones((tokens, width // 2 * 2), dtype=F)
        kernel(qkv, ones, ones, np.arange(tokens), table, np.zeros_like(cache), v_cache, slots, 1e-6, neox=True)
        return v_cache

    return norm_rope, write_cache


@planted("nothing: the kernel is right", names=())
def right():
    """No defect, so that what the others have is theirs."""
    return with_steps()


@planted("norm after the rotation", names=("fused-norm-after",))
def norm_after_rotation():
    """Rotated first, then normalized, as HunYuan has it."""

    def after(x, weight, cos, sin, eps, neox, step):
        return step.norm(step.rotate(x, cos, sin, neox), weight, eps, 0)

    return with_steps(prepare=after)


@planted("eps outside the root", names=("norm-eps-outside",))
def eps_outside():
    """Divided by the root plus eps."""

    def norm(x, weight, eps, rotated):
        return x / (np.sqrt(np.mean(x * x, axis=-1, keepdims=True, dtype=F)) + F(eps)) * weight

    return with_steps(norm=norm)


@planted("one is added to the weight", names=("norm-offset-always",))
def weight_plus_one():
    """Gemma's convention for a model that does not have it."""
    return with_steps(norm=lambda x, weight, eps, rotated: norm(x, weight + 1, eps, rotated))


@planted("mean over the channels that rotate", names=("fused-norm-of-rotated",))
def mean_of_rotated():
    """The sum of squares is over rotary_dim channels."""

    def partial(x, weight, eps, rotated):
        mean = np.mean(x[..., :rotated] ** 2, axis=-1, keepdims=True, dtype=F)
        return x / np.sqrt(mean + F(eps)) * weight

    return with_steps(norm=partial)


@planted("mean over the heads of a token", names=())
def mean_over_heads():
    """One mean for all heads of a token, as OLMo 2 has it: the heads beside a row count in its norm."""

    def over_heads(x, weight, eps, rotated):
        return x / np.sqrt(np.mean(x * x, axis=(1, 2), keepdims=True, dtype=F) + F(eps)) * weight

    return with_steps(norm=over_heads)


@planted("the sum of squares divided by a padded width", names=("norm-padded-block",))
def padded_block():
    """A block of a power of two channels; its padding counts in the mean."""

    def padded(x, weight, eps, rotated):
        width = 1 << (x.shape[-1] - 1).bit_length()
        return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True, dtype=F) / F(width) + F(eps)) * weight

    return with_steps(norm=padded)


@planted("values normalized too", names=("cache-rows-normalized",))
def values_normalized():
    """A loop over q, k and v, as Gemma 4 has it, with a weight of 1."""
    return with_steps(values=lambda v: norm(v, F(1), 1e-6, 0))


@planted("slots off by one", names=("cache-slot-late",))
def slot_late():
    """Slots counted from 1, for keys and values."""

    def late(cache, rows, slots):
        moved = np.where(slots >= 0, slots + 1, -1)
        store(cache, rows, np.where(moved < cache.shape[0] * cache.shape[1], moved, -1))

    return with_steps(store=late)


@planted("a page has 16 slots", names=("cache-page-of-16",))
def pages_of_16():
    """The page's size is a constant."""

    def fixed(cache, rows, slots):
        pages, size = cache.shape[:2]
        for token, slot in enumerate(slots):
            if slot >= 0 and slot // 16 < pages and slot % 16 < size:
                cache[slot // 16, slot % 16] = rows[token]

    return with_steps(store=fixed)


@planted("padding written into the last slot", names=("cache-padding-last",))
def padding_wraps():
    """Slot -1 as a Python index; vllm #43810."""

    def wraps(cache, rows, slots):
        cache.reshape(-1, *cache.shape[2:])[slots] = rows

    return with_steps(store=wraps)


@planted("the last key head is not written", names=("cache-last-head",))
def last_head():
    """A loop over heads ends one too early."""

    def shorter(cache, rows, slots):
        kept = cache[:, :, -1].copy()
        store(cache, rows, slots)
        cache[:, :, -1] = kept

    return with_steps(store=shorter)


@planted("rounded to bfloat16 between norm and rotation", names=("fused-rounded-between-bfloat16",))
def rounded_between():
    """The normalized heads pass through the model's dtype."""

    def narrow(x):
        bits = np.ascontiguousarray(x, dtype=F).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(F)

    return with_steps(norm=lambda x, weight, eps, rotated: narrow(norm(x, weight, eps, rotated)))


@planted("keys and values swapped", names=())
def keys_and_values_swapped():
    """The last two parts of qkv are taken for each other."""

    def swapped(heads, kv_heads):
        q, k, v = split(heads, kv_heads)
        return q, v, k

    return with_steps(split=swapped)
