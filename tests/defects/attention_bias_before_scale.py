"""The bias is added before the 1/sqrt(D); Falcon's ALiBi, wrong for BLOOM and MPT."""

import torch

backend = "torch"
DEFECT = "bias added before the scale"
NAMES = ("bias-before-scale",)


def attention_logits(q, k, /, *, bias=None, scale=None):
    if min(q.ndim, k.ndim) > 2 and q.shape[-3] > k.shape[-3]:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    scores = torch.matmul(q, k.transpose(-1, -2))
    if bias is not None:
        scores = scores + bias
    return scores * (q.shape[-1] ** -0.5 if scale is None else scale)
