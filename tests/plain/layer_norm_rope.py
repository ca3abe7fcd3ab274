"""As transformers 5.23.0 computes it: models/deepseek_v32/modeling_deepseek_v32.py, lines 113-144, 171 and 210-221."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def layer_norm_rope(x, weight, bias, cos, sin, /, *, layout, eps, precedence):
    if layout != "half" or precedence != "norm_first":
        raise NotImplementedError
    norm = torch.nn.LayerNorm(x.shape[-1], eps=eps, dtype=x.dtype)
    k = torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x,))
    cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    k_rot, k_pass = torch.split(k, [cos.shape[-1], k.shape[-1] - cos.shape[-1]], dim=-1)
    k_rot = (k_rot * cos) + (rotate_half(k_rot) * sin)
    return torch.cat([k_rot, k_pass], dim=-1)
