"""As MPT computes it (mosaicml/llm-foundry, commit 8c8dd48): llmfoundry/models/layers/attention.py, lines 1099-1108 and
1122-1137. It counts keys from the last one; here they have the positions that the caller gives."""

import math

import torch

backend = "torch"


def slopes_of(heads):
    rounded = 2 ** math.ceil(math.log2(heads))
    m = torch.arange(1, rounded + 1, dtype=torch.float32)
    slopes = 1.0 / torch.pow(2, m.mul(8 / rounded))
    if rounded != heads:
        slopes = torch.concat([slopes[1::2], slopes[::2]])[:heads]
    return slopes.view(heads, 1, 1)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form == "causal":
        raise NotImplementedError(form)
    bias = k_positions[..., None, None, :]
    if form == "distance":
        bias = (bias - q_positions[..., None, :, None]).abs().mul(-1)
    return (bias * slopes_of(heads)).to(dtype=dtype)
