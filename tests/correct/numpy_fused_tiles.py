"""A fused kernel in tiles: sums of four channels at a time, the last tile masked, scaled by a power of two against overflow."""

import numpy as np

dtypes = ("float32", "float16")
claims = {"float32": "angle32", "float16": "fused"}


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    if layout == "interleaved_to_half":
        raise NotImplementedError
    width, pairs = x.shape[-1], cos.shape[-1]
    tiles = -(-width // 4)
    cos, sin = (t.astype(np.float32) for t in (cos, sin))

    def normalize(y):
        power = np.exp2(np.float32(np.frexp(np.abs(y).max(initial=0))[1]))
        padded = np.zeros((*y.shape[:-1], 4 * tiles), dtype=np.float32)
        padded[..., :width] = y / power
        lanes = padded.reshape(*y.shape[:-1], tiles, 4)
        total = np.zeros((*y.shape[:-1], 4), dtype=np.float32)
        for tile in range(tiles):
            total = total + lanes[..., tile, :] ** 2
        mean = (total[..., :2] + total[..., 2:]).sum(axis=-1, keepdims=True) / np.float32(width)
        root = power * np.sqrt(mean + np.float32(eps) / power / power)
        return y * ((weight.astype(np.float32) + np.float32(weight_offset)) / root)

    def turn(y):
        first = slice(0, pairs) if layout == "half" else slice(0, 2 * pairs, 2)
        second = slice(pairs, 2 * pairs) if layout == "half" else slice(1, 2 * pairs, 2)
        out = y.copy()
        out[..., first] = y[..., first] * cos - y[..., second] * sin
        out[..., second] = y[..., first] * sin + y[..., second] * cos
        return out

    y = x.astype(np.float32)
    y = turn(normalize(y)) if precedence == "norm_first" else normalize(turn(y))
    return y.astype(x.dtype)
