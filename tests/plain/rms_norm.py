"""As transformers 5.23.0 computes it: models/llama/modeling_llama.py, lines 61-66, and
models/gemma3/modeling_gemma3.py, lines 141-149."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def rms_norm(x, weight, /, *, eps, weight_offset):
    if weight_offset == 1:
        output = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
        return (output * (1.0 + weight.float())).type_as(x)
    hidden_states = x.to(torch.float32)
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * torch.rsqrt(variance + eps)
    return weight * hidden_states.to(x.dtype)
