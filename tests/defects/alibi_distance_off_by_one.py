"""The distance counts from one; vLLM #945 (constant per row, so a softmax hides it)."""

import numpy as np

DEFECT = "ALiBi distance off by one"
NAMES = ("alibi-off-by-one",)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form != "causal":
        raise NotImplementedError(form)
    n = 1 << (heads.bit_length() - 1)
    m = [2.0 ** (-8.0 * i / n) for i in range(1, n + 1)] + [2.0 ** (-4.0 * i / n) for i in range(1, 2 * (heads - n), 2)]
    rel = k_positions[..., None, None, :] - (q_positions[..., None, :, None] + 1)
    return (np.array(m, dtype=np.float32)[:, None, None] * rel.astype(np.float32)).astype(dtype or np.float32)
