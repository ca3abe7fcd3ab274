"""A fused kernel that rounds to the model's dtype after the norm, and again after the rotation, as vLLM's for Step-5 does."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
claims = {"float32": "angle32", "bfloat16": "low", "float16": "low"}


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout == "interleaved_to_half":
        raise NotImplementedError

    def normalize(y):
        wide = y.float()
        mean = torch.linalg.vecdot(wide, wide)[..., None] / wide.shape[-1]
        return wide * torch.rsqrt(mean + eps) * (weight.float() + weight_offset)

    def turn(y):
        width = 2 * cos.shape[-1]
        pairs = y[..., :width].float()
        pairs = pairs.unflatten(-1, (2, -1)).transpose(-1, -2) if layout == "half" else pairs.unflatten(-1, (-1, 2))
        matrix = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2).float()
        turned = (matrix @ pairs[..., None])[..., 0]
        flat = turned.transpose(-1, -2).flatten(-2) if layout == "half" else turned.flatten(-2)
        return torch.cat((flat.to(y.dtype), y[..., width:]), -1)

    if precedence == "norm_first":
        return turn(normalize(x).to(x.dtype)).to(x.dtype)
    return normalize(turn(x).to(x.dtype)).to(x.dtype)
