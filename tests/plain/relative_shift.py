"""As kimiyoung/transformer-xl (commit 44781ed) computes it: pytorch/mem_transformer.py, `_rel_shift`, lines 194-206.
Queries and distances are the last axes here, the first ones there."""

import torch

backend = "torch"


def relative_shift(x, /):
    rows = x.movedim((-2, -1), (0, 1))
    zeros = torch.zeros((rows.size(0), 1, *rows.size()[2:]), device=x.device, dtype=x.dtype)
    padded = torch.cat([zeros, rows], dim=1)
    padded = padded.view(rows.size(1) + 1, rows.size(0), *rows.size()[2:])
    return padded[1:].view_as(rows).movedim((0, 1), (-2, -1))
