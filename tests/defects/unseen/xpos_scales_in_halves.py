"""The scales lie in halves, one for each channel, while the rotation is interleaved. Imagined, after how-to-train-your-gpt #6.

Should be said: unexplained; all of layout "interleaved" is wrong, position at the centre apart.
"""

import numpy as np

DEFECT = "scales repeated in halves with an interleaved rotation"
NAMES = ()


def xpos(x, positions, /, *, role, layout, base, centre, scale_base=512.0, gamma=0.4):
    if layout not in ("half", "interleaved"):
        raise NotImplementedError(layout)
    d = x.shape[-1]
    zeta = (np.arange(0, d, 2) / d + gamma) / (1 + gamma)
    apart = (positions - centre if role == "query" else centre - positions)[..., None] / scale_base
    scale = np.concatenate([zeta**apart] * 2, axis=-1)
    angle = positions[..., None] * float(base) ** (-np.arange(0, d, 2) / d)
    cos, sin = np.cos(angle), np.sin(angle)
    if layout == "half":
        u, v = x[..., : d // 2], x[..., d // 2 :]
        out = np.concatenate([u * cos - v * sin, v * cos + u * sin], axis=-1)
    else:
        u, v = x[..., ::2], x[..., 1::2]
        out = np.stack([u * cos - v * sin, v * cos + u * sin], axis=-1).reshape(x.shape)
    return (out * scale).astype(x.dtype)
