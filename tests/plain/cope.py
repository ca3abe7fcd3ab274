"""As x-transformers 2.31.10 computes it: x_transformers/x_transformers.py, lines 557-578. Masked logits hold the
lowest number, as in lines 549-553."""

import torch

backend = "torch"


def cope(q, logits, table, mask, /):
    attn_logits = logits.float().masked_fill(~mask, -torch.finfo(torch.float32).max)
    pos = attn_logits.sigmoid().flip(-1).cumsum(dim=-1).flip(-1)
    pos = pos.clamp(max=table.shape[0] - 1)
    logits_int = torch.einsum("...nd,pd->...np", q.float(), table.float())
    pos_ceil, pos_floor = pos.ceil().long(), pos.floor().long()
    logits_ceil, logits_floor = logits_int.gather(-1, pos_ceil), logits_int.gather(-1, pos_floor)
    w = pos - pos_floor
    return (logits_ceil * w + logits_floor * (1 - w)).to(q.dtype)
