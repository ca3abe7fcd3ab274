"""Fused kernels that go head by head over packed queries, keys and values, and write flat memory, with one defect each."""

from types import SimpleNamespace

import numpy as np
from planting import planted

F = np.float32
HEADS, KV_HEADS = 4, 2


def bfloat16(x):
    bits = np.ascontiguousarray(x, dtype=F).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(F)


def float16(x):
    return x.astype(np.float16).astype(F)


def scale(x, eps):
    return F(1) / np.sqrt((x * x).mean(-1, keepdims=True, dtype=F) + F(eps))


def partners(width, neox):
    """Return the channels of each pair."""
    half, every = width // 2, np.arange(width // 2)
    return (every, every + half) if neox else (2 * every, 2 * every + 1)


def turn(x, cos, sin, neox):
    first, second = partners(2 * cos.shape[-1], neox)
    out = x.copy()
    out[:, first], out[:, second] = x[:, first] * cos - x[:, second] * sin, x[:, second] * cos + x[:, first] * sin
    return out


def head(x, weight, cos, sin, eps, neox, step):
    return step.turn(x * step.scale(x, eps) * step.weight(weight), cos, sin, neox)


def address(slots, shape):
    """Return where each row of heads begins in flat memory, and whether it is written."""
    _, _, heads, width = shape
    return slots * heads * width, slots >= 0


def store(cache, rows, slots, step):
    memory, values = cache.reshape(-1), rows.reshape(len(rows), -1)
    begins, written = step.address(slots, cache.shape)
    for token in np.flatnonzero(written):
        memory[begins[token] : begins[token] + values.shape[1]] = values[token]


STEPS = {"scale": scale, "weight": lambda w: w, "turn": turn, "head": head, "address": address, "store": store}
STEPS |= {"table": lambda cos, sin: (cos, sin), "value": lambda v: v}


def with_steps(**changed):
    """Return the two operations of a kernel, in which some steps are changed."""
    step = SimpleNamespace(**{**STEPS, **changed})

    def kernel(qkv, q_weight, k_weight, positions, cos_sin_cache, k_cache, v_cache, slots, eps, neox):
        width, kv_heads = k_cache.shape[-1], k_cache.shape[-2]
        heads = qkv.shape[1] // width - 2 * kv_heads
        cos, sin = step.table(*np.split(cos_sin_cache[positions], 2, axis=-1))
        for n in range(heads + kv_heads):
            part = slice(n * width, (n + 1) * width)
            qkv[:, part] = step.head(qkv[:, part].copy(), q_weight if n < heads else k_weight, cos, sin, eps, neox, step)
        parts = qkv[:, heads * width :].reshape(len(qkv), 2, kv_heads, width)
        step.store(k_cache, parts[:, 0], slots, step)
        step.store(v_cache, step.value(parts[:, 1]), slots, step)

    def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
        if layout == "interleaved_to_half" or weight_offset or precedence != "norm_first" or not x.size:
            raise NotImplementedError
        width, tokens = x.shape[-1], x.size // x.shape[-1]
        table = [np.broadcast_to(t, (*x.shape[:-1], t.shape[-1])).reshape(tokens, -1) for t in (cos, sin)]
        rows, where = x.reshape(tokens, width), np.arange(tokens)
        mine = where % (HEADS + KV_HEADS)
        qkv = np.repeat(2 * rows[:, None, ::-1] + 1, HEADS + 2 * KV_HEADS, axis=1)
        qkv[where, mine] = rows
        qkv = qkv.reshape(tokens, -1)
        k_cache = np.zeros((tokens + 1, 2, KV_HEADS, width), dtype=F)
        positions = where[::-1]
        cos_sin_cache = np.concatenate(table, axis=-1)[::-1].copy()
        slots = positions * 2 + 1
        kernel(qkv, weight, weight, positions, cos_sin_cache, k_cache, k_cache.copy(), slots, eps, layout == "half")
        q, k = qkv.reshape(tokens, -1, width)[:, :HEADS], k_cache[slots // 2, slots % 2]
        return np.concatenate((q, k), axis=1)[where, mine].reshape(x.shape)

    def write_cache(cache, rows, slots, /):
        tokens, heads, width = rows.shape
        if not rows.size or not cache.size:
            raise NotImplementedError
        other = rows[..., ::-1] + 1
        qkv = np.concatenate((other, other, other, rows), axis=1).reshape(tokens, 4 * heads * width)
        ones, v_cache = np.ones(width, dtype=F), np.array(cache, order="C")
        table = np.ones((tokens, width // 2 * 2), dtype=F)
        kernel(qkv, ones, ones, np.arange(tokens), table, np.zeros_like(v_cache), v_cache, slots, 1e-6, neox=True)
        return v_cache

    return norm_rope, write_cache


@planted("nothing: the kernel is right", names=())
def right_by_head():
    """No defect, so that what the others have is theirs."""
    return with_steps()


# ---- the norm -------------------------------------------------------------------------------------------------------------
@planted("the mean is subtracted", names=("norm-layer-norm",))
def layer_norm():
    """LayerNorm, as Cohere normalizes its heads."""

    def centred(x, *rest):
        return head(x - x.mean(-1, keepdims=True, dtype=F), *rest)

    return with_steps(head=centred)


@planted("the sum of squares, not their mean", names=("norm-sum",))
def sum_of_squares():
    """An L2 norm."""
    return with_steps(scale=lambda x, eps: F(1) / np.sqrt((x * x).sum(-1, keepdims=True, dtype=F) + F(eps)))


@planted("eps is the least mean", names=("norm-eps-floor",))
def eps_as_floor():
    """A clamp in the place of a sum."""
    return with_steps(scale=lambda x, eps: F(1) / np.sqrt(np.maximum((x * x).mean(-1, keepdims=True, dtype=F), F(eps))))


@planted("eps is a constant of the kernel", names=("norm-eps-default",))
def eps_constant():
    """1e-6, whatever the model has."""
    return with_steps(scale=lambda x, eps: scale(x, 1e-6))


@planted("channels beyond the last whole tile are not in the mean", names=("norm-whole-tiles",))
def mean_of_whole_tiles():
    """A loop over vectors of four channels, without the rest; the width divides."""

    def tiles(x, eps):
        whole = x[:, : x.shape[1] // 4 * 4]
        return F(1) / np.sqrt((whole * whole).sum(-1, keepdims=True, dtype=F) / F(x.shape[1]) + F(eps))

    return with_steps(scale=tiles)


@planted("squares are added in bfloat16", names=("norm-squares-bfloat16",))
def squares_in_bfloat16():
    """Each square is rounded to the model's dtype."""
    return with_steps(scale=lambda x, eps: F(1) / np.sqrt(bfloat16(x * x).mean(-1, keepdims=True, dtype=F) + F(eps)))


@planted("the scale of a row is held in float16", names=())
def scale_in_float16():
    """The inverse root passes through shared memory of half precision."""
    return with_steps(scale=lambda x, eps: float16(scale(x, eps)))


@planted("the mean of absolute values", names=())
def mean_of_absolute_values():
    """An L1 norm."""
    return with_steps(scale=lambda x, eps: F(1) / (np.abs(x).mean(-1, keepdims=True, dtype=F) + F(eps)))


@planted("weights are multiplied after the rotation", names=(("fused-mean-before", "fused-norm-after"),))
def weights_after_rotation():
    """Normalized, rotated, and only then multiplied by the weights."""

    def later(x, weight, cos, sin, eps, neox, step):
        return turn(x * scale(x, eps), cos, sin, neox) * weight

    return with_steps(head=later)


@planted("neighbouring weights are exchanged", names=())
def weights_of_neighbours():
    """Weights are read in another order than channels."""

    def exchanged(w):
        out = w.copy()
        even = len(w) // 2 * 2
        out[:even:2], out[1:even:2] = w[1:even:2], w[:even:2]
        return out

    return with_steps(weight=exchanged)


@planted("weights are held in bfloat16", names=())
def weights_in_bfloat16():
    """They are cast when they are loaded."""
    return with_steps(weight=bfloat16)


@planted("no weights", names=("norm-weight-missing",))
def weights_missing():
    """A null pointer means none."""
    return with_steps(weight=np.ones_like)


# ---- the rotation ---------------------------------------------------------------------------------------------------------
@planted("the rotation is the other way", names=("sign-flipped", "inverse-exchanged"))
def other_way():
    """The sine has the wrong sign."""
    return with_steps(table=lambda cos, sin: (cos, -sin))


@planted("cosines and sines exchanged", names=("fused-tables-exchanged",))
def sines_first():
    """The table is read as sines, then cosines."""
    return with_steps(table=lambda cos, sin: (sin, cos))


@planted("is_neox is ignored", names=("layout-half",))
def always_neox():
    """Halves, whatever is asked."""
    return with_steps(turn=lambda x, cos, sin, neox: turn(x, cos, sin, True))


@planted("the partner is half a head away", names=("partner-over-head",))
def partner_of_whole_head():
    """Channel i meets i + D/2, also where fewer than D channels rotate."""

    def over(x, cos, sin, neox):
        half = x.shape[1] // 2
        if not neox or 2 * half != x.shape[1]:
            return turn(x, cos, sin, neox)
        pairs, out = cos.shape[1], x.copy()
        a, b = x[:, :pairs], x[:, half : half + pairs]
        out[:, :pairs] = a * cos - b * sin
        out[:, half : half + pairs] = b * cos + a * sin
        return out

    return with_steps(turn=over)


@planted("the second of a pair sees the new first", names=("in-place-update",))
def in_place():
    """Written before it is read."""

    def update(x, cos, sin, neox):
        first, second = partners(2 * cos.shape[-1], neox)
        x[:, first] = x[:, first] * cos - x[:, second] * sin
        x[:, second] = x[:, second] * cos + x[:, first] * sin
        return x

    return with_steps(turn=update)


@planted("channels that do not rotate are lost", names=("tail-zeroed",))
def tail_lost():
    """The output begins as zeros."""

    def zeros(x, cos, sin, neox):
        out = turn(x, cos, sin, neox)
        out[:, 2 * cos.shape[-1] :] = 0
        return out

    return with_steps(turn=zeros)


@planted("channels that do not rotate are not normalized", names=("fused-tail-not-normalized",))
def tail_copied():
    """Only what rotates is loaded."""

    def leading(x, weight, cos, sin, eps, neox, step):
        width = 2 * cos.shape[-1]
        out = x.copy()
        out[:, :width] = head(x[:, :width], weight[:width], cos, sin, eps, neox, step)
        return out

    return with_steps(head=leading)


@planted("rotated twice", names=("fused-rotated-twice",))
def rotated_twice():
    """The model rotates already; TensorRT-LLM pull request 16378."""
    return with_steps(turn=lambda x, cos, sin, neox: turn(turn(x, cos, sin, neox), cos, sin, neox))


@planted("the table is held in bfloat16", names=("table-bfloat16",))
def table_in_bfloat16():
    """It is cast with the model; sglang pull request 33117."""
    return with_steps(table=lambda cos, sin: (bfloat16(cos), bfloat16(sin)))


@planted("all tokens have the first one's angles", names=())
def angles_of_first_token():
    """The table's row does not move with the token."""
    return with_steps(table=lambda cos, sin: (np.broadcast_to(cos[:1], cos.shape), np.broadcast_to(sin[:1], sin.shape)))


@planted("not normalized", names=("fused-norm-skipped",))
def norm_left_out():
    """The flag of the norm is not read."""
    return with_steps(head=lambda x, weight, cos, sin, eps, neox, step: turn(x, cos, sin, neox))


@planted("normalized again after the rotation", names=("fused-norm-twice",))
def normalized_twice():
    """The attention layer normalizes as well."""

    def twice(x, weight, cos, sin, eps, neox, step):
        y = head(x, weight, cos, sin, eps, neox, step)
        return y * scale(y, eps) * weight

    return with_steps(head=twice)


# ---- the cache ------------------------------------------------------------------------------------------------------------
def _at(change):
    """Return the step `address`, with slots that are changed; what falls outside is not written."""

    def moved(slots, shape):
        pages, size, heads, width = shape
        there = np.where(slots >= 0, change(slots, pages, size), -1)
        return there * heads * width, (there >= 0) & (there < pages * size)

    return moved


@planted("the slot before", names=("cache-slot-early",))
def slot_early():
    """Slots counted from 1 by the scheduler's side."""
    return with_steps(address=_at(lambda s, n, b: s - 1))


@planted("page and place exchanged", names=("cache-page-exchanged",))
def page_exchanged():
    """Divided by the number of pages."""
    return with_steps(address=_at(lambda s, n, b: s % n * b + s // n))


@planted("tokens are written one after the other", names=("cache-slots-ignored",))
def slots_ignored():
    """slot_mapping is not read."""
    return with_steps(address=_at(lambda s, n, b: np.arange(len(s))))


@planted("nothing is written after padding", names=("cache-stops-at-padding",))
def stops_at_padding():
    """A return in the place of a continue."""

    def until(slots, shape):
        begins, _ = address(slots, shape)
        return begins, np.cumsum(slots < 0) == 0

    return with_steps(address=until)


@planted("the last token is not written", names=("cache-last-token",))
def last_token():
    """The grid has one program too few."""

    def fewer(slots, shape):
        begins, written = address(slots, shape)
        return begins, written & (np.arange(len(slots)) < len(slots) - 1)

    return with_steps(address=fewer)


@planted("only whole vectors of a row are written", names=())
def vectors_written():
    """The rest of a row of four numbers at a time is left out."""

    def whole(cache, rows, slots, step):
        memory, values = cache.reshape(-1), rows.reshape(len(rows), -1)
        begins, written = step.address(slots, cache.shape)
        length = values.shape[1] // 4 * 4
        for token in np.flatnonzero(written):
            memory[begins[token] : begins[token] + length] = values[token, :length]

    return with_steps(store=whole)


@planted("pages are written as heads, slots, channels", names=("cache-heads-first",))
def heads_first():
    """HND into a cache of NHD."""

    def transposed(cache, rows, slots, step):
        pages, size, heads, width = cache.shape
        other = cache.reshape(pages, heads, size, width)
        for token in np.flatnonzero(slots >= 0):
            other[slots[token] // size, :, slots[token] % size] = rows[token]

    return with_steps(store=transposed)


@planted("rows are added to the cache", names=("cache-added",))
def rows_added():
    """An atomic add in the place of a store."""

    def added(cache, rows, slots, step):
        memory, values = cache.reshape(-1), rows.reshape(len(rows), -1)
        begins, written = step.address(slots, cache.shape)
        for token in np.flatnonzero(written):
            memory[begins[token] : begins[token] + values.shape[1]] += values[token]

    return with_steps(store=added)


@planted("values are stored in float16", names=("cache-through-float16",))
def values_in_float16():
    """Through the dtype of the model, into a cache of float32."""
    return with_steps(value=float16)


@planted("values are rounded to bfloat16", names=("cache-through-bfloat16",))
def values_in_bfloat16():
    """Through the dtype of the model, into a cache of float32."""
    return with_steps(value=bfloat16)
