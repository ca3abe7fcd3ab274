"""As PyTorch 2.13.0 computes it: torch/nn/utils/parametrizations.py, lines 92-97, where A/2 is -S."""

import torch

backend = "torch"


def cayley(skew, /, *, dtype=None):
    upper = skew.triu(1)
    s = upper - upper.mT
    one = torch.eye(s.shape[-1], dtype=s.dtype)
    return torch.linalg.solve(one + s, one - s).to(dtype)
