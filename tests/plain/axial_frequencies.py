"""As transformers 5.23.0 computes them: models/qwen2_vl/modeling_qwen2_vl.py, line 230 (own),
models/pixtral/modeling_pixtral.py, lines 73-74 (shared), and models/dinov3_vit/modeling_dinov3_vit.py, line 199 (turns).
With both ends as diffusers 0.42.1 does: models/transformers/transformer_ltx.py, lines 256-265."""

import math

import torch

backend = "torch"


def ladder(dim, base, endpoint):
    if endpoint:
        return (1 / base) ** torch.linspace(0, 1, dim // 2, dtype=torch.float)
    return 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))


def axial_frequencies(dims, /, *, base, allocation, unit="radians", endpoint=False, first_frequency=1.0):
    if allocation == "own":
        inv_freq = torch.cat([ladder(dim, base, endpoint) for dim in dims])
    else:
        whole = ladder(sum(dims), base, endpoint)
        inv_freq = torch.cat([whole[axis :: len(dims)] for axis in range(len(dims))])
    return (2 * math.pi * inv_freq if unit == "turns" else inv_freq) * first_frequency
