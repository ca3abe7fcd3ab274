"""As transformers 5.23.0 computes it: models/wavlm/modeling_wavlm.py, in WavLMAttention.forward, lines 176-181."""

import torch

backend = "torch"


def bias_gate(x, weight, offset, constant, /):
    relative_position_proj = torch.nn.functional.linear(x, weight, offset)
    relative_position_proj = relative_position_proj.view(*x.shape[:-1], 2, 4).sum(-1)
    gate_a, gate_b = torch.sigmoid(relative_position_proj).chunk(2, dim=-1)
    return (gate_a * (gate_b * constant.view(-1, 1, 1) - 1.0) + 2.0)[..., 0]
