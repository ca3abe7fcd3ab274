"""As x-transformers 2.31.10 computes it: x_transformers/x_transformers.py, lines 771-790; for counted="query" as
model-architectures/GRAPE (commit f5b539f): model/llama-mha-grape-ap-v1.py, lines 179-184."""

import torch

backend = "torch"


def row_forgetting_bias(log_gates, /, *, counted):
    i, j = log_gates.shape[-2:]
    gates = log_gates.float()
    if counted == "query":
        hidden = torch.ones((i, j), dtype=torch.bool).triu(j - i + 1)
        gates = gates.masked_fill(hidden, 0.0)
        bias = gates.sum(dim=-1, keepdim=True) - gates.cumsum(dim=-1)
        return bias.masked_fill(hidden, 0.0).to(log_gates.dtype)
    causal_mask = torch.ones((i, j), dtype=torch.bool).triu(j - i)
    gates = gates.masked_fill(causal_mask, 0.0)
    return gates.flip(dims=(-1,)).cumsum(dim=-1).flip(dims=(-1,)).to(log_gates.dtype)
