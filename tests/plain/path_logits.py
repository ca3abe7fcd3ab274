"""As flash-linear-attention 0.6.0 decodes: fla/layers/path_attn.py, lines 150-158, with fla-core 0.6.0,
fla/ops/path_attn/naive.py, lines 39-51, for heads; heads stand before tokens."""

import torch

backend = "torch"


def path_logits(q, k, w, betas, /, *, scale=None):
    dtype, (T, D), n = q.dtype, k.shape[-2:], q.shape[-2]
    if q.ndim > 2:
        G = q.shape[-3] // k.shape[-3]
        k, w = (x.repeat_interleave(G, dim=-3) for x in (k, w))
        betas = betas.repeat_interleave(G, dim=-2)
    q, k, w, betas = (x.float() for x in (q, k, w, betas))
    scale = D**-0.5 if scale is None else scale
    A = []
    for t in range(T):
        w_t, past = w[..., t : t + 1, :], k[..., :t, :]
        past = past - betas[..., t : t + 1, None] * (past * w_t).sum(-1, keepdim=True) * w_t
        k = torch.cat([past, k[..., t:, :]], dim=-2)
        if t >= T - n:
            row = q[..., t - T + n : t - T + n + 1, :] @ k[..., : t + 1, :].transpose(-1, -2)
            A.append(torch.nn.functional.pad(row * scale, (0, T - t - 1)))
    return torch.cat(A, dim=-2).to(dtype) if A else (q @ k.transpose(-1, -2)).to(dtype)
