"""Bidirectional ALiBi without the absolute value: later keys are rewarded; x-transformers 4ed4d0a (no `bias.abs()`)."""

import numpy as np

DEFECT = "absolute value missing in distance form"
NAMES = ("alibi-abs-missing",)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form == "key":
        raise NotImplementedError(form)
    n = 2 ** int(np.log2(heads))
    m = [2 ** (-8 * i / n) for i in range(1, n + 1)] + [2 ** (-4 * i / n) for i in range(1, 2 * (heads - n) + 1, 2)]
    m = np.asarray(m, dtype=np.float32).reshape(heads, 1, 1)
    relative = (k_positions[..., None, None, :] - q_positions[..., None, :, None]).astype(np.float32)
    return (m * relative).astype(dtype or np.float32)
