"""As bert4keras 0.11.5 computes it: bert4keras/layers.py, lines 798-804."""

import torch

backend = "torch"


def hierarchical_learned(positions, table, /, *, alpha=0.4):
    embeddings = table - alpha * table[:1]
    embeddings = embeddings / (1 - alpha)
    x = torch.nn.functional.embedding(positions // len(table), embeddings)
    y = torch.nn.functional.embedding(positions % len(table), embeddings)
    return alpha * x + (1 - alpha) * y
