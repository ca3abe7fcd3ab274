"""The bias is +m|i-j|: far keys are favoured; a sign slip of the kind of x-transformers 4ed4d0a."""

import numpy as np

DEFECT = "ALiBi sign flipped"
NAMES = ("alibi-sign",)


def slopes(heads):
    below = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / below * np.arange(1, below + 1))
    extra = 2.0 ** (-4 / below * np.arange(1, 2 * (heads - below), 2))
    return np.concatenate([first, extra]).astype(np.float32)


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    if form == "key":
        raise NotImplementedError(form)
    gap = q_positions[..., :, None] - k_positions[..., None, :]
    if form == "distance":
        gap = np.abs(gap)
    return (slopes(heads)[:, None, None] * gap[..., None, :, :].astype(np.float32)).astype(dtype or np.float32)
