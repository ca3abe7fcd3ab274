"""Angles are looked up among 4096 steps of a turn, not interpolated. Imagined: a fixed-point kernel."""

import numpy as np

DEFECT = "angles quantised to 4096 steps of a turn"
NAMES = ()

STEPS = 4096
TURN = (2 * np.pi * np.arange(STEPS) / STEPS).astype(np.float32)
COS, SIN = np.cos(TURN), np.sin(TURN)


def rope(x, positions, /, *, layout, base):
    if layout != "half":
        raise NotImplementedError(layout)
    n = x.shape[-1] // 2
    angle = positions[..., None].astype(np.float64) * float(base) ** (-np.arange(n) / n)
    step = np.rint(angle * (STEPS / (2 * np.pi))).astype(np.int64) % STEPS
    cos, sin = COS[step], SIN[step]
    return np.concatenate([x[..., :n] * cos - x[..., n:] * sin, x[..., n:] * cos + x[..., :n] * sin], axis=-1)
