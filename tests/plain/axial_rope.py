"""As diffusers (commit 58eb52c) computes it for HunyuanDiT and CogVideoX, in float32: src/diffusers/models/embeddings.py,
lines 1163-1175 and 1219-1234."""

import torch

backend = "torch"


def table(position, dim, base):
    freqs = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    freqs = position[..., None].float() * freqs
    return freqs.cos().repeat_interleave(2, dim=-1), freqs.sin().repeat_interleave(2, dim=-1)


def axial_rope(x, positions, /, *, dims, base, allocation, arrangement, layout):
    if (allocation, arrangement, layout) != ("own", "chunked", "interleaved"):
        raise NotImplementedError(allocation, arrangement, layout)
    tables = [table(position, dim, base) for position, dim in zip(positions, dims, strict=True)]
    cos, sin = (torch.cat(parts, dim=-1) for parts in zip(*tables, strict=True))
    rot, passed = x[..., : sum(dims)], x[..., sum(dims) :]
    real, imag = rot.reshape(*rot.shape[:-1], -1, 2).unbind(-1)
    turned = torch.stack([-imag, real], dim=-1).flatten(-2)
    return torch.cat([(rot.float() * cos + turned.float() * sin).to(x.dtype), passed], dim=-1)
