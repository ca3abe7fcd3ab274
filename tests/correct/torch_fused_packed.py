"""A fused kernel as serving libraries have it: flat tokens, torch's rms_norm, rotation in place, slots by index_copy_."""

import torch
from torch.nn.functional import rms_norm

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "fused", "float16": "fused"}


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout == "interleaved_to_half" or precedence != "norm_first":
        raise NotImplementedError
    heads = rms_norm(x.float(), (x.shape[-1],), weight.float() + weight_offset, eps)
    width = 2 * cos.shape[-1]
    cos, sin = cos.float(), sin.float()
    first, second = heads[..., :width].chunk(2, dim=-1) if layout == "half" else (heads[..., :width:2], heads[..., 1:width:2])
    a = torch.addcmul(first * cos, second, sin, value=-1)
    second.copy_(torch.addcmul(second * cos, first, sin))
    first.copy_(a)
    return heads.to(x.dtype)


def write_cache(cache, rows, slots, /):
    pages, size, heads, width = cache.shape
    flat = cache.reshape(pages * size, heads * width).clone()
    kept = slots >= 0
    return flat.index_copy_(0, slots[kept].long(), rows.reshape(len(slots), heads * width)[kept]).view(cache.shape)
