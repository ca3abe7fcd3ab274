"""As transformers 5.23.0 computes it: models/qwen3/modeling_qwen3.py, lines 58-63 and 244-249, and for "rope_first"
models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py, lines 197-199. Where only the leading channels rotate it does as
models/gpt_neox/modeling_gpt_neox.py, lines 128-139, and with offset 1 as models/gemma3/modeling_gemma3.py, lines 141-149."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def norm(x, weight, eps, weight_offset):
    if weight_offset == 1:
        output = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
        return (output * (1.0 + weight.float())).type_as(x)
    hidden_states = x.to(torch.float32)
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * torch.rsqrt(variance + eps)
    return weight * hidden_states.to(x.dtype)


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def rotate(x, cos, sin):
    cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    rotary_dim = cos.shape[-1]
    rot, passed = x[..., :rotary_dim], x[..., rotary_dim:]
    return torch.cat(((rot * cos) + (rotate_half(rot) * sin), passed), dim=-1)


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout != "half":
        raise NotImplementedError(layout)
    if precedence == "rope_first":
        return norm(rotate(x, cos, sin), weight, eps, weight_offset)
    return rotate(norm(x, weight, eps, weight_offset), cos, sin)
