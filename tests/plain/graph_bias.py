"""As DGL computes it (dmlc/dgl, commit 3d16000): python/dgl/nn/pytorch/gt/spatial_encoder.py, lines 59-86, and path_encoder.py,
lines 56-88, with heads first."""

import torch

backend = "torch"


def graph_bias(distances, table, edges, weights, /):
    spatial = table[torch.clamp(distances, min=-1, max=table.shape[0] - 2) + 1]
    shortest = torch.clamp(distances, min=1, max=weights.shape[0])
    summed = torch.einsum("...xyld,ldh->...xyh", edges, weights)
    return (spatial + torch.div(summed, shortest.unsqueeze(-1))).movedim(-1, -3)
