"""As LSP-DETR computes it (RationAI/lsp-detr, commit 460614b): lsp_detr/modeling/layers/cayley_string.py, lines 22-46, with
the Cayley transform of PyTorch 2.13.0: torch/nn/utils/parametrizations.py, lines 92-97, where A/2 is -S."""

import torch

backend = "torch"


def cayley_string(x, positions, skew, frequencies, /, *, form):
    if form != "product" or 2 * frequencies.shape[-1] != x.shape[-1]:
        raise NotImplementedError(form)
    upper = skew.triu(1)
    s = upper - upper.mT
    one = torch.eye(s.shape[-1], dtype=s.dtype)
    basis = torch.linalg.solve(one + s, one - s)
    px = (basis @ x.float()[..., None])[..., 0]
    angles = sum(t.float().unsqueeze(-1) * f for t, f in zip(positions, frequencies, strict=True))
    cis = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(px.reshape(*px.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * cis).flatten(-2).type_as(x)
