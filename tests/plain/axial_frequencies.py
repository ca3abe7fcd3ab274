"""As transformers 5.23.0 computes them: models/qwen2_vl/modeling_qwen2_vl.py, line 230 (own),
models/pixtral/modeling_pixtral.py, lines 73-74 (shared), and models/dinov3_vit/modeling_dinov3_vit.py, line 199 (turns)."""

import math

import torch

backend = "torch"


def ladder(dim, base):
    return 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))


def axial_frequencies(dims, /, *, base, allocation, unit="radians"):
    if allocation == "own":
        inv_freq = torch.cat([ladder(dim, base) for dim in dims])
    elif len(dims) == 2:
        whole = ladder(sum(dims), base)
        inv_freq = torch.cat([whole[0::2], whole[1::2]])
    else:
        raise NotImplementedError(dims)
    return 2 * math.pi * inv_freq if unit == "turns" else inv_freq
