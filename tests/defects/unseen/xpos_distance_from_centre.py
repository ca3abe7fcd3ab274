"""The power is the distance from the centre, without its sign. Imagined: an absolute value as in ALiBi.

Should be said: unexplained; positions on one side of the centre are wrong (below it for queries, above it for keys).
"""

import numpy as np

DEFECT = "the distance from the centre has no sign"
NAMES = ()


def xpos_scales(positions, dim, /, *, role, centre, scale_base=512.0, gamma=0.4, dtype=None):
    zeta = (np.arange(0, dim, 2) / dim + gamma) / (1 + gamma)
    apart = abs(positions - centre)[..., None] / scale_base
    return (zeta ** (apart if role == "query" else -apart)).astype(dtype or np.float32)
