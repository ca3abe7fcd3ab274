"""As AlphaFold 2 computes it for complexes (google-deepmind/alphafold, commit c77e5d2): alphafold/model/modules_multimer.py,
lines 574-590, in PyTorch, with a limit for each side."""

import torch

backend = "torch"


def residue_bins(q_residues, k_residues, /, *, left, right, order, outside, same=None):
    if order != "query_minus_key":
        raise NotImplementedError(order)
    if outside != "last":
        raise NotImplementedError(outside)
    offset = q_residues[..., :, None] - k_residues[..., None, :]
    clipped_offset = torch.clip(offset + left, min=0, max=left + right)
    if same is None:
        return clipped_offset
    return torch.where(same, clipped_offset, (left + right + 1) * torch.ones_like(clipped_offset))
