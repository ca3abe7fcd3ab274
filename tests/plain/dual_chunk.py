"""As dual chunk attention's authors compute the scores (HKUNLP/ChunkLlama, commit 2add4d7): chunkllama_attn_replace.py, lines
44-61, 86-93 and 151-222. A key of a later chunk, which their code never asks for, counts as of the query's own."""

import torch

backend = "torch"


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rotated(x, position, base):
    inv_freq = 1.0 / (base ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    freqs = position[..., None].float() * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()


def dual_chunk(q, k, q_positions, k_positions, /, *, chunk_size, window, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    chunk = chunk_size - window
    own = q_positions % chunk
    successive = (own + chunk).clamp(max=chunk_size)
    inter = torch.full_like(own, chunk - 1 + chunk).clamp(max=chunk_size)
    keys = rotated(k, k_positions % chunk, base)
    if q.ndim > 2:
        keys = keys.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    intra, after, far = (torch.matmul(rotated(q, p, base), keys.transpose(-2, -1)) for p in (own, successive, inter))
    behind = (q_positions // chunk)[..., :, None] - (k_positions // chunk)[..., None, :]
    return torch.where(behind < 1, intra, torch.where(behind == 1, after, far))
