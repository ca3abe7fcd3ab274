"""Pairs beyond three times a section read a fourth position, which is 0: ggml's interleaved M-RoPE, pairs 61 and 62 of 64.

Should be said: unexplained; only the last pairs are wrong, in arrangement "interleaved" with unequal sections.
"""

import numpy as np

DEFECT = "pairs left over by the interleaving are not rotated"
NAMES = ()


def rotated(x, cos, sin, layout):
    r = 2 * cos.shape[-1]
    if layout == "half":
        u, v = x[..., : r // 2], x[..., r // 2 : r]
    elif layout == "interleaved":
        u, v = x[..., :r:2], x[..., 1:r:2]
    else:
        raise NotImplementedError(layout)
    turned = u * cos - v * sin, v * cos + u * sin
    turned = np.concatenate(turned, axis=-1) if layout == "half" else np.stack(turned, axis=-1).reshape(*x.shape[:-1], r)
    return np.concatenate([turned, x[..., r:]], axis=-1).astype(x.dtype)


def mrope(x, positions, /, *, sections, arrangement, layout, base):
    if arrangement != "interleaved":
        raise NotImplementedError(arrangement)
    pair = np.arange(sum(sections))
    left_over = pair >= 3 * np.asarray(sections)[pair % 3]
    inv_freq = float(base) ** (-pair / len(pair))
    angle = np.moveaxis(positions[pair % 3], 0, -1) * np.where(left_over, 0, inv_freq)
    return rotated(x, np.cos(angle), np.sin(angle), layout)
