"""As PyTorch Geometric 2.8.1 computes it: torch_geometric/nn/models/tgn.py, lines 215-225. Its linear layer of one input is a
product and a sum. The sine is Time2Vec's."""

import torch

backend = "torch"


def affine_waves(x, weight, bias, /, *, wave, dtype=None):
    out = x.float()[..., None] * weight.float() + bias.float()
    return (torch.cos(out) if wave == "cos" else torch.sin(out)).to(dtype)
