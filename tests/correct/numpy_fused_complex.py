"""A fused kernel with complex numbers: the norm scales the pair's number, which is then multiplied by the position's."""

import numpy as np


def norm_rope(x, weight, cos, sin, /, *, layout, eps, weight_offset, precedence, lanes="leading"):
    if precedence != "norm_first" or layout == "interleaved_to_half":
        raise NotImplementedError
    pairs, inverse = cos.shape[-1], np.float32(x.shape[-1]) ** np.float32(0.5)
    length = np.sqrt(np.einsum("...i,...i->...", x, x) + np.float32(eps * x.shape[-1]))[..., None]
    out = (x * (inverse / length)) * (weight + np.float32(weight_offset))
    start = x.shape[-1] - 2 * pairs if lanes == "trailing" else 0
    turning = out[..., start : start + 2 * pairs]
    first, second = (slice(0, pairs), slice(pairs, None)) if layout == "half" else (slice(0, None, 2), slice(1, None, 2))
    z = (turning[..., first] + 1j * turning[..., second]) * (cos + 1j * sin)
    turning[..., first], turning[..., second] = z.real, z.imag
    return out.astype(np.float32)
