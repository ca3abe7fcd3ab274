"""The table is read as (H, num_buckets) by a reshape, not a transpose. Imagined: a weight converter."""

import numpy as np

DEFECT = "T5 table reshaped in place of transposed"
NAMES = ("t5-table-reshaped",)


def buckets(rel, bidirectional, count, max_distance):
    side = 0
    if bidirectional:
        count //= 2
        side, rel = count * (rel > 0), np.abs(rel)
    else:
        rel = np.maximum(-rel, 0)
    exact = count // 2
    far = exact + (np.log(np.maximum(rel, exact) / exact) / np.log(max_distance / exact) * (count - exact)).astype(int)
    return side + np.where(rel < exact, rel, np.minimum(far, count - 1))


def t5_bias(q_positions, k_positions, table, /, *, bidirectional, max_distance=128):
    rel = k_positions[..., None, :] - q_positions[..., :, None]
    by_head = table.reshape(table.shape[1], table.shape[0])
    return np.moveaxis(by_head[:, buckets(rel, bidirectional, table.shape[0], max_distance)], 0, -3)
