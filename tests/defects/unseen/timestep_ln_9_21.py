"""The logarithm of the longest period is typed as 9.21, so that the period is 9996.6. Constants of this kind are common.

Should be said: a number: the longest period is about 9996.6, or the base is.
"""

import numpy as np

DEFECT = "ln 10000 is 9.21"
NAMES = ()


def timestep(timesteps, dim, /, *, flip, shift, scale, max_period=10000.0):
    if max_period != 10000.0:
        raise NotImplementedError(max_period)
    half = dim // 2
    angle = scale * timesteps.astype(np.float64)[..., None] * np.exp(-9.21 * np.arange(half) / (half - shift))
    waves = [np.cos(angle), np.sin(angle)] if flip else [np.sin(angle), np.cos(angle)]
    return np.concatenate([*waves, np.zeros((*angle.shape[:-1], dim % 2))], axis=-1).astype(np.float32)
