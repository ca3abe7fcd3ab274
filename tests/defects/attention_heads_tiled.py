"""Key heads are tiled 0,1,0,1 where they should repeat 0,0,1,1; `repeat` for `repeat_interleave` in a GQA port."""

import torch

backend = "torch"
DEFECT = "grouped heads tiled"
NAMES = ("heads-tiled",)


def attention(q, k, v, /, *, bias=None, mask=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        copies = q.shape[-3] // k.shape[-3]
        k, v = torch.cat([k] * copies, dim=-3), torch.cat([v] * copies, dim=-3)
    w = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        w = w + bias
    if mask is not None:
        w = w.masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(w, dim=-1)) @ v
