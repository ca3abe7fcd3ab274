"""A fused kernel as one program for each row: a running sum of squares, pairs one after the other."""

import numpy as np


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if x.size > 3000:
        raise NotImplementedError  # it takes long
    if layout == "interleaved_to_half":
        raise NotImplementedError
    width, pairs = x.shape[-1], cos.shape[-1]
    cos, sin = (np.broadcast_to(t, (*x.shape[:-1], pairs)) for t in (cos, sin))
    out = np.array(x)
    for row in np.ndindex(x.shape[:-1]):
        y = out[row]

        def normalize(y):
            total = np.float32(0)
            for i in range(width):
                total += y[i] * y[i]
            scale = np.float32(1) / np.sqrt(total / np.float32(width) + np.float32(eps))
            for i in range(width):
                y[i] = y[i] * scale * (weight[i] + np.float32(weight_offset))

        def turn(y, row):
            for i in range(pairs):
                a, b = (i, i + pairs) if layout == "half" else (2 * i, 2 * i + 1)
                c, s = cos[row][i], sin[row][i]
                y[a], y[b] = y[a] * c - y[b] * s, y[b] * c + y[a] * s

        if precedence == "norm_first":
            normalize(y)
            turn(y, row)
        else:
            turn(y, row)
            normalize(y)
    return out
