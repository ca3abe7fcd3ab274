"""The causal form takes the absolute value too, so the two forms are one; flash-attention has a single ALiBi mode."""

import numpy as np

DEFECT = "absolute value in causal form"
NAMES = ("alibi-abs-added",)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form not in ("distance", "causal"):
        raise NotImplementedError(form)
    n = 1 << (heads.bit_length() - 1)
    m = np.exp2(np.float32(-8 / n) * np.arange(1, n + 1, dtype=np.float32))
    m = np.append(m, np.exp2(np.float32(-4 / n) * np.arange(1, 2 * (heads - n), 2, dtype=np.float32)))
    bias = -m[:, None, None] * np.abs(q_positions[..., None, :, None] - k_positions[..., None, None, :])
    return bias.astype(dtype or np.float32)
