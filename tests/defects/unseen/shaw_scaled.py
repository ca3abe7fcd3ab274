"""The 1/sqrt(D) of attention is applied inside the scores; the reference leaves it to the caller."""

import numpy as np

DEFECT = "scores divided by sqrt(D)"
NAMES = ("shaw-scaled",)


def shaw_scores(q, k, key_table, q_positions, k_positions, /, *, left, right, order):
    gap = k_positions[..., None, :] - q_positions[..., :, None]
    if order == "query_minus_key":
        gap = -gap
    a = key_table[np.clip(gap, -left, right) + left]
    content = np.einsum("...qd,...kd->...qk", q, k)
    place = np.einsum("...qd,...qkd->...qk", q, a)
    return (content + place) / np.float32(np.sqrt(q.shape[-1]))
