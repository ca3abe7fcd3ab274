"""Pi is written as 3.1416. A constant typed by hand, seen as 6.2832 for two pi.

Should be said: a number (angles 1.0000023 times as large), never that sines are inaccurate.
"""

import numpy as np

DEFECT = "pi is 3.1416"
NAMES = ()


def fourier(x, bands, /, *, unit, order, include):
    if order != "coordinate band wave" or include == "by_coordinate":
        raise NotImplementedError(order)
    turn = {"radians": 1.0, "half_turns": 3.1416, "turns": 2 * 3.1416}[unit]
    bands = np.asarray(bands, dtype=np.float64)
    angle = turn * (x.astype(np.float64)[..., None] * bands)
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(*x.shape[:-1], -1)
    return np.concatenate([x, waves] if include == "first" else [waves], axis=-1).astype(np.float32)
