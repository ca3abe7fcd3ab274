"""As LieRE's authors compute it (StanfordMIMI/LieRE, commit b27b41b): models/rope_vit.py, lines 224-241, 281 and 330-373."""

import torch

backend = "torch"


def liere(x, positions, generators, /):
    upper = torch.triu(generators, diagonal=1)
    bases = upper - upper.transpose(-1, -2)
    exponent = sum(t[..., None, None, None] * basis for t, basis in zip(positions, bases, strict=True))
    rotations = torch.matrix_exp(exponent.to(dtype=torch.float32)).to(dtype=x.dtype)
    blocks, n = rotations.shape[-3], rotations.shape[-1]
    states = x[..., : blocks * n].reshape(*x.shape[:-1], blocks, n, 1)
    rotated = torch.matmul(rotations, states).flatten(start_dim=-3)
    return torch.cat([rotated, x[..., blocks * n :]], dim=-1)
