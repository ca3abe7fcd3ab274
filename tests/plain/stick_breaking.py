"""As its authors' reference computes it (shawntan/stickbreaking-attention, commit 3147a38): stickbreaking_attention/sb_ref.py,
lines 12-25, without the values, and in float32 throughout."""

import torch
from torch.nn import functional as F

backend = "torch"


def stick_breaking(logits, mask, /):
    hidden = ~torch.broadcast_to(mask, logits.shape)
    keys = logits.shape[-1]
    cum_weight = torch.ones(keys, keys).tril(-1)
    log_z = F.logsigmoid(logits.float()).masked_fill(hidden, -1e5)
    log_beta = F.logsigmoid(-logits.float()).masked_fill(hidden, 0)
    re_cum_log_beta = torch.einsum("...ij,jk->...ik", log_beta, cum_weight)
    att = (log_z + re_cum_log_beta).exp()
    return att.to(logits.dtype), (1 - att.sum(dim=-1)).to(logits.dtype)
