"""The last pair is left as it was, a loop bound off by one. Imagined: `for i in range(n - 1)`."""

DEFECT = "last pair is not rotated"
NAMES = ("last-pair-unrotated",)


def apply_rope(x, cos, sin, /, *, layout):
    if layout != "half":
        raise NotImplementedError(layout)
    half = cos.shape[-1]
    out = x.copy()
    for i in range(half - 1):
        out[..., i] = x[..., i] * cos[..., i] - x[..., half + i] * sin[..., i]
        out[..., half + i] = x[..., half + i] * cos[..., i] + x[..., i] * sin[..., i]
    return out
