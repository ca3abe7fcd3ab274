"""As fla-core 0.6.0 computes them: fla/ops/wall_attn/naive.py, lines 44-75, with heads before tokens, the last of the tokens as
queries, and in natural units."""

import torch

backend = "torch"

RCP_LN2 = 1.4426950216


def wall_logits(q, k, log_decay, /, *, scale=None):
    P = (log_decay.float() * RCP_LN2).cumsum(-2)
    T, D = k.shape[-2:]
    n = q.shape[-2]
    if q.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    diff = P[..., T - n :, :].unsqueeze(-2) - P.unsqueeze(-3)
    scores = (q.unsqueeze(-2).float() * k.unsqueeze(-3).float() * torch.exp2(diff)).sum(-1)
    i_idx = torch.arange(T - n, T).view(n, 1)
    valid = torch.arange(T).view(1, T) <= i_idx
    return (scores.masked_fill(~valid, 0) * (D**-0.5 if scale is None else scale)).to(q.dtype)
