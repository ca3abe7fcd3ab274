"""As x-transformers 2.31.10 computes it: x_transformers/x_transformers.py, lines 580-629. There queries are the last of the
keys, and each distance is computed once; here the caller gives positions."""

import torch
from torch.nn import functional as F

backend = "torch"


def dynamic_position_bias(q_positions, k_positions, w_in, b_in, w_hidden, b_hidden, w_out, b_out, /, *, distance):
    layers = [(w_in[:, None], b_in), *zip(w_hidden, b_hidden, strict=True)]
    pos = (q_positions[..., :, None] - k_positions[..., None, :]).float()[..., None]
    if distance == "log":
        pos = torch.sign(pos) * torch.log(pos.abs() + 1)
    for weight, bias in layers:
        pos = F.silu(F.linear(pos, weight.float(), bias.float()))
    bias = F.linear(pos, w_out.float(), b_out.float())
    return bias.movedim(-1, -3).to(w_out.dtype)
