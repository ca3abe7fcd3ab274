"""As MPT computes it (mosaicml/llm-foundry, commit 8c8dd48): llmfoundry/models/layers/attention.py, lines 1099-1108 and
1122-1137. It counts keys from the last one; here they have the positions that the caller gives. The square root, and the slopes
of a shard, as vLLM 0.33.0 computes them: vllm/v1/attention/ops/triton_attention_helpers.py, lines 432-438, and
vllm/model_executor/models/step1.py, lines 129-132."""

import math

import torch

backend = "torch"


def slopes_of(heads, max_bias):
    rounded = 2 ** math.ceil(math.log2(heads))
    m = torch.arange(1, rounded + 1, dtype=torch.float32)
    slopes = 1.0 / torch.pow(2, m.mul(max_bias / rounded))
    if rounded != heads:
        slopes = torch.concat([slopes[1::2], slopes[::2]])[:heads]
    return slopes.view(heads, 1, 1)


def alibi(q_positions, k_positions, /, *, heads, form, max_bias=8, root=False, first=0, count=None, dtype=None):
    if form == "causal" and not root:
        raise NotImplementedError(form)
    bias = k_positions[..., None, None, :]
    if root:
        relative = bias - q_positions[..., None, :, None]
        bias = torch.where(relative <= 0, -torch.sqrt((-relative).to(torch.float32)), 0.0)
    elif form == "distance":
        bias = (bias - q_positions[..., None, :, None]).abs().mul(-1)
    slopes = slopes_of(heads, max_bias)[first:]
    return (bias * slopes[:count]).to(dtype=dtype)
