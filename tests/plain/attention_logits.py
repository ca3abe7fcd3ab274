"""As transformers 5.23.0 computes them: models/llama/modeling_llama.py, lines 168-195 and 215; the softcap is in
models/gemma2/modeling_gemma2.py, lines 194-197."""

import torch

backend = "torch"


def attention_logits(q, k, /, *, bias=None, scale=None, softcap=None):
    if q.ndim > 2:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3)
    weights = torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        weights = torch.tanh(weights / softcap) * softcap
    return weights if bias is None else weights + bias
