"""A fused kernel in Triton, one program for each token and head, run on a CPU by Triton's interpreter."""

import os

import torch

os.environ["TRITON_INTERPRET"] = "1"  # which Triton reads at its import

import triton
import triton.language as tl

backend = "torch"
dtypes = ("float32",)
claims = {"float32": "angle32"}
supports = {  # the interpreter runs a program in some milliseconds
    "norm_rope": {
        "layout": ["half", "interleaved"], "weight_offset": [0], "precedence": ["norm_first"], "lanes": ["leading"],
        "empty": False, "tokens": {"max": 24}, "head_size": {"max": 128}, "gradient": False,
    },
    "write_cache": {"empty": False, "gradient": False},
}  # fmt: skip
HEADS, KV_HEADS = 4, 2


@triton.jit
def _kernel(
    qkv, q_weight, k_weight, positions, table, k_cache, v_cache, slots, eps,
    heads: tl.constexpr, kv_heads: tl.constexpr, width: tl.constexpr, pairs: tl.constexpr, size: tl.constexpr,
    neox: tl.constexpr, block: tl.constexpr, pair_block: tl.constexpr,
):  # fmt: skip
    token, head = tl.program_id(0), tl.program_id(1)
    row = qkv + (token * (heads + 2 * kv_heads) + head) * width
    slot = tl.load(slots + token)
    lanes = tl.arange(0, block)
    inside = lanes < width
    x = tl.load(row + lanes, mask=inside, other=0.0).to(tl.float32)
    if head < heads + kv_heads:
        weight = q_weight if head < heads else k_weight
        scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / width + tl.load(eps))
        n = tl.arange(0, pair_block)
        first = n if neox else 2 * n
        second = n + pairs if neox else 2 * n + 1
        turning = n < pairs
        at = tl.load(positions + token) * 2 * pairs + n
        cos, sin = tl.load(table + at, mask=turning, other=1.0), tl.load(table + at + pairs, mask=turning, other=0.0)
        a = tl.load(row + first, mask=turning, other=0.0).to(tl.float32) * scale
        b = tl.load(row + second, mask=turning, other=0.0).to(tl.float32) * scale
        a *= tl.load(weight + first, mask=turning, other=0.0).to(tl.float32)
        b *= tl.load(weight + second, mask=turning, other=0.0).to(tl.float32)
        rest = inside & (lanes >= 2 * pairs)
        tl.store(row + lanes, x * scale * tl.load(weight + lanes, mask=inside, other=0.0).to(tl.float32), mask=rest)
        tl.store(row + first, a * cos - b * sin, mask=turning)
        tl.store(row + second, b * cos + a * sin, mask=turning)
    if head >= heads and slot >= 0:
        cache = k_cache if head < heads + kv_heads else v_cache
        kv = (head - heads) % kv_heads
        place = ((slot // size) * size + slot % size) * kv_heads + kv
        tl.store(cache + place * width + lanes, tl.load(row + lanes, mask=inside), mask=inside)


def fused(qkv, q_weight, k_weight, positions, cos_sin_cache, k_cache, v_cache, slots, *, eps, neox):
    size, kv_heads, width = k_cache.shape[1:]
    heads, pairs = qkv.shape[1] // width - 2 * kv_heads, cos_sin_cache.shape[1] // 2
    blocks = [max(1, triton.next_power_of_2(n)) for n in (width, pairs)]
    _kernel[(len(qkv), heads + 2 * kv_heads)](
        qkv, q_weight, k_weight, positions, cos_sin_cache, k_cache, v_cache, slots, torch.tensor([eps]),
        heads, kv_heads, width, pairs, size, neox, *blocks,
    )  # fmt: skip


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout == "interleaved_to_half" or weight_offset or precedence != "norm_first" or not x.numel() or x.numel() > 4000:
        raise NotImplementedError
    size, tokens, pairs = x.shape[-1], x.numel() // x.shape[-1], cos.shape[-1]
    rows, where = x.detach().reshape(tokens, size), torch.arange(tokens)
    table = [torch.broadcast_to(t.detach(), (*x.shape[:-1], pairs)).reshape(tokens, pairs).float() for t in (cos, sin)]
    positions = where.flip(0)
    slots = positions * 2 + 1
    mine = (where % (HEADS + KV_HEADS))[:, None] == torch.arange(HEADS + 2 * KV_HEADS)
    qkv = torch.where(mine[..., None], rows[:, None], 2 * rows.flip(-1)[:, None] + 1).reshape(tokens, -1).contiguous()
    k_cache = torch.zeros((tokens + 1, 2, KV_HEADS, size), dtype=x.dtype)
    weights, tables = weight.detach().contiguous(), torch.cat(table, dim=-1).flip(0).contiguous()
    fused(qkv, weights, weights, positions, tables, k_cache, k_cache.clone(), slots, eps=eps, neox=layout == "half")
    q, k = qkv.view(tokens, -1, size)[:, :HEADS], k_cache.view(-1, KV_HEADS, size)[slots]
    return torch.cat((q, k), dim=1)[mine[:, : HEADS + KV_HEADS]].reshape(x.shape)


def write_cache(cache, rows, slots, /):
    tokens, kv_heads, size = rows.shape
    if not rows.numel() or not cache.numel() or rows.numel() > 3000:
        raise NotImplementedError
    other = rows.detach().flip(-1) + 1
    qkv = torch.cat((other, other, other, rows.detach()), dim=1).reshape(tokens, 4 * kv_heads * size)
    ones, where, table = torch.ones(size, dtype=rows.dtype), torch.arange(tokens), torch.ones((tokens, size // 2 * 2))
    v_cache = cache.detach().clone(memory_format=torch.contiguous_format)
    fused(qkv, ones, ones, where, table, torch.zeros_like(v_cache), v_cache, slots.contiguous(), eps=1e-6, neox=True)
    return v_cache
