"""Slope and product are kept in bfloat16; TensorRT-Model-Connect #667 (Falcon), Habana vllm-fork #503."""

import torch

backend = "torch"
DEFECT = "ALiBi product in bfloat16"
NAMES = ("alibi-all-bfloat16",)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    n = 2 ** (heads.bit_length() - 1)
    slopes = torch.pow(2 ** (-8 / n), torch.arange(1, 1 + n, dtype=torch.float32))
    extra = torch.pow(2 ** (-4 / n), torch.arange(1, 1 + 2 * (heads - n), 2, dtype=torch.float32))
    slopes = torch.cat([slopes, extra]).bfloat16()[:, None, None]
    keys = k_positions[..., None, None, :]
    gap = {
        "key": keys,
        "causal": keys - q_positions[..., None, :, None],
        "distance": -(keys - q_positions[..., None, :, None]).abs(),
    }[form]
    return (slopes * gap.bfloat16()).to(dtype or torch.float32)
