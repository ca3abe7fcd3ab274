"""Chunks of chunk_size tokens, as if the local window were not a part of them."""

import numpy as np

DEFECT = "chunk length without the local window taken off"
NAMES = ("dual-chunk-local-ignored",)


def dual_chunk_distances(q_positions, k_positions, /, *, chunk_size, local_size):
    own, key = q_positions % chunk_size, k_positions % chunk_size
    behind = (q_positions // chunk_size)[..., :, None] - k_positions[..., None, :] // chunk_size
    at = np.where(behind < 1, own[..., :, None], chunk_size)
    return at - key[..., None, :]
