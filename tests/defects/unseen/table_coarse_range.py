"""Whole turns are taken off in float32 with one constant: range reduction of fast-math sines, kekzl/imp #1316.

Should be said: angles are reduced coarsely; errors grow with the position. Not a looser trigonometry that passes all.
"""

import numpy as np

DEFECT = "whole turns taken off with a float32 constant"
NAMES = ()


def rope_table(positions, inv_freq, /, *, attention_factor=1.0):
    angle = positions.astype(np.float32)[..., None] * np.asarray(inv_freq, dtype=np.float32)
    turn = np.float32(2 * np.pi)
    angle = angle - np.round(angle / turn) * turn
    return (np.cos(angle) * attention_factor).astype(np.float32), (np.sin(angle) * attention_factor).astype(np.float32)
