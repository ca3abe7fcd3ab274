"""Adjacent pairs are rotated whatever the layout; Meta against Hugging Face weights, LLMs-from-scratch #747."""

import numpy as np

DEFECT = "layout ignored: always interleaved"
NAMES = ("layout-interleaved",)


def apply_rope(x, cos, sin, /, *, layout, inverse=False):
    d = 2 * cos.shape[-1]
    turn = (cos + 1j * sin).astype(np.complex64)
    if inverse:
        turn = turn.conj()
    pairs = np.ascontiguousarray(x[..., :d]).view(np.complex64)
    return np.concatenate([np.ascontiguousarray(pairs * turn).view(np.float32), x[..., d:]], axis=-1)
