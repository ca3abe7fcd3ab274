"""As LieRE's authors compute them (StanfordMIMI/LieRE, commit b27b41b): models/rope_vit.py, lines 224-241 and 281."""

import torch

backend = "torch"


def liere_rotations(positions, generators, /, *, dtype=None):
    upper = torch.triu(generators, diagonal=1)
    bases = upper - upper.transpose(-1, -2)
    exponent = sum(t[..., None, None, None] * basis for t, basis in zip(positions, bases, strict=True))
    return torch.matrix_exp(exponent.to(dtype=torch.float32)).to(dtype=dtype)
