"""The distance is divided by the group, in place of the two positions."""

import numpy as np

DEFECT = "distances grouped in place of positions"
NAMES = ("self-extend-difference",)


def self_extend_distances(q_positions, k_positions, /, *, group, window, shift):
    apart = q_positions[..., :, None] - k_positions[..., None, :]
    taken = window // group if shift == "floor" else window / group
    return np.where((apart >= 0) & (apart < window), apart, apart // group + window - taken).astype(np.float32)
