"""`rotate_half` returns (x2, -x1) where it should return (-x2, x1). Imagined: written from memory."""

import numpy as np

DEFECT = "sign of the sine term flipped"
NAMES = ("sign-flipped",)


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    d = 2 * cos.shape[-1]
    turned = np.concatenate([x[..., d // 2 : d], -x[..., : d // 2]], axis=-1)
    cos2, sin2 = np.concatenate([cos, cos], axis=-1), np.concatenate([sin, sin], axis=-1)
    return np.concatenate([x[..., :d] * cos2 + turned * sin2, x[..., d:]], axis=-1)
