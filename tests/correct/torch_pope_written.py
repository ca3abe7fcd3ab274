"""PoPE with the softplus as its formula is written, ln(1 + exp(x)), and x where that is large, as kernels have it."""

import torch

backend = "torch"
dtypes = ("float32", "float64")


def pope(x, positions, /, *, layout, base):
    d = x.shape[-1]
    angles = positions[..., None].double() * float(base) ** (-torch.arange(d).double() / d)
    limit = 20 if x.dtype == torch.float32 else 40
    size = torch.where(x > limit, x, torch.log(1 + torch.exp(x.clamp(max=limit))))
    parts = size * angles.cos().to(x.dtype), size * angles.sin().to(x.dtype)
    if layout == "cos_sin":
        return torch.cat(torch.broadcast_tensors(*parts), dim=-1)
    return torch.stack(torch.broadcast_tensors(*parts), dim=-1).flatten(-2)
