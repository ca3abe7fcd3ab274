"""As transformers 5.23.0 computes it: models/llama/modeling_llama.py, lines 119-149. Where only the leading channels rotate it
does as models/gpt_neox/modeling_gpt_neox.py, lines 128-139."""

import torch

backend = "torch"


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    rotary_dim = cos.shape[-1]
    rot, passed = x[..., :rotary_dim], x[..., rotary_dim:]
    return torch.cat(((rot * cos) + (rotate_half(rot) * sin), passed), dim=-1)
