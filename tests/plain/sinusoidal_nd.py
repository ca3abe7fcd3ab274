"""
As MAE computes it (facebookresearch/mae, commit a9f5c70): util/pos_embed.py, lines 38-67; in timm 1.0.31 with arrangement
"outer": layers/pos_embed_sincos.py, lines 65-79.
"""

import numpy as np

backend = "numpy"


def waves(dim, pos, base, endpoint):
    omega = np.arange(dim // 2, dtype=np.float32)
    omega /= dim / 2.0 - (1 if endpoint else 0)
    omega = 1.0 / base**omega
    out = np.einsum("m,d->md", pos.reshape(-1).astype(np.float32), omega)
    return [np.sin(out), np.cos(out)]


def sinusoidal_nd(positions, /, *, dims, layout, arrangement, base=10000.0, endpoint=False, dtype=None):
    if layout == "interleaved":
        raise NotImplementedError(layout)
    parts = [waves(width, pos, base, endpoint) for width, pos in zip(dims, positions, strict=True)]
    parts = [part if layout == "sin_cos" else part[::-1] for part in parts]
    if arrangement == "outer":
        columns = [part[number] for number in (0, 1) for part in parts]
    else:
        columns = [half for part in parts for half in part]
    return np.concatenate(columns, axis=1).reshape(*positions.shape[1:], sum(dims)).astype(dtype)
