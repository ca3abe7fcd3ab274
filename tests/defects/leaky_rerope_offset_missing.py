"""The second pass divides all angles by the factor and does not move the queries on, so that distances jump at the window."""

import numpy as np

DEFECT = "no offset of queries beyond the window"
NAMES = ("leaky-no-offset",)


def leaky_rerope_distances(q_positions, k_positions, /, *, window, factor):
    apart = q_positions[..., :, None] - k_positions[..., None, :]
    return np.where(np.abs(apart) < window, apart, apart / factor).astype(np.float32)
