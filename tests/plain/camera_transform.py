"""As diffusers 0.42.1 computes it: diffusers/models/transformers/transformer_sana_wm.py, lines 928-944, for any number of
blocks, and lines 1011 and 1030 for what multiplies queries, keys and values, and the output."""

import torch

backend = "torch"


def camera_transform(x, matrices, inverses, /, *, role, blocks):
    matrix = {"query": matrices.transpose(-1, -2), "key_value": inverses, "output": matrices}[role].float()
    matrix_dim = matrix.shape[-1]
    projected, rest = x[..., : blocks * matrix_dim], x[..., blocks * matrix_dim :]
    columns = projected.float().reshape(*x.shape[:-1], blocks, matrix_dim)
    projected = torch.einsum("...ij,...kj->...ki", matrix, columns).reshape(projected.shape)
    return torch.cat([projected.to(x.dtype), rest], dim=-1)
