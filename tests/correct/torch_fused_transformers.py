"""As a model of transformers does it, in the model's dtype: q_norm, then apply_rotary_pos_emb."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


class Norm(torch.nn.Module):
    def __init__(self, weight, eps):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(weight), eps

    def forward(self, hidden_states):
        variance = hidden_states.float().pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states.float() * torch.rsqrt(variance + self.eps)).to(hidden_states.dtype)


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


@torch.no_grad()
def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout != "half" or weight_offset:
        raise NotImplementedError
    q_norm = Norm(weight, eps)
    cos, sin = (torch.cat((t, t), dim=-1).to(x.dtype) for t in (cos, sin))
    width = cos.shape[-1]

    def rotated(q):
        return torch.cat((q[..., :width] * cos + rotate_half(q[..., :width]) * sin, q[..., width:]), dim=-1)

    return rotated(q_norm(x)) if precedence == "norm_first" else q_norm(rotated(x))
