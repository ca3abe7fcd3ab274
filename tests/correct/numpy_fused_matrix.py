"""A fused kernel in matrices: the norm is a diagonal matrix, and the rotation a block matrix, in float64."""

import numpy as np


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence):
    width, pairs = x.shape[-1], cos.shape[-1]
    if not x.size or x.size > 20000:
        raise NotImplementedError
    rotation = np.zeros((*cos.shape[:-1], width, width))
    i = np.arange(pairs)
    interleaved, half = (2 * i, 2 * i + 1), (i, i + pairs)
    reads = half if layout == "half" else interleaved
    writes = interleaved if layout == "interleaved" else half
    rotation[..., writes[0], reads[0]], rotation[..., writes[0], reads[1]] = cos, -sin
    rotation[..., writes[1], reads[0]], rotation[..., writes[1], reads[1]] = sin, cos
    rest = np.arange(2 * pairs, width)
    rotation[..., rest, rest] = 1.0

    def normalized(y):
        longer = np.append(y / np.sqrt(width), np.full((*y.shape[:-1], 1), np.sqrt(eps)), -1)
        return (weight + weight_offset) * y / np.linalg.norm(longer, axis=-1, keepdims=True)

    def rotated(y):
        return (rotation @ y[..., None])[..., 0]

    y = x.astype(np.float64)
    return (rotated(normalized(y)) if precedence == "norm_first" else normalized(rotated(y))).astype(x.dtype)


def write_cache(cache, rows, slots, /):
    pages, size = cache.shape[:2]
    chosen = (np.arange(pages * size)[:, None] == slots).astype(cache.dtype)  # a row of it has at most one 1
    written = np.tensordot(chosen, rows, axes=1).reshape(cache.shape)
    kept = 1 - chosen.sum(axis=1).reshape(pages, size, 1, 1)
    return (kept * cache + written).astype(cache.dtype)
