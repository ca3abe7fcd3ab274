"""As transformers 5.23.0 computes it: models/levit/modeling_levit.py, lines 165-176 and 243-257, for grids that need not be
square."""

import torch

backend = "torch"


def levit_bias(table, /, *, height, width, stride):
    points = [(y, x) for y in range(height) for x in range(width)]
    points_ = [(y, x) for y in range(-(-height // stride)) for x in range(-(-width // stride))]
    attention_offsets, indices = {}, []
    for p1 in points_:
        for p2 in points:
            offset = (abs(p1[0] * stride - p2[0]), abs(p1[1] * stride - p2[1]))
            if offset not in attention_offsets:
                attention_offsets[offset] = len(attention_offsets)
            indices.append(attention_offsets[offset])
    attention_bias_idxs = torch.LongTensor(indices).view(len(points_), len(points))
    return table[:, attention_bias_idxs]
