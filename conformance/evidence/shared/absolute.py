"""Points, positions and mistakes that absolute encodings share."""

from typing import Any

import numpy as np

from ..tools.deviation import Deviation, Real, held
from ..tools.hints import KEEP_FLOAT32

FAR = (0, 1, 255, 257, 999, 2047, 2049, 4097, 65537, 1048575)
POINTS = ((0.5, -0.25), (0.125, 0.9375), (-1, 0.75))
CELLS = ((-1, -0.5), (-0.5, 1), (0, 0.25), (1, -1))
THREE = ((0.5, -0.25, 1.5), (0.1875, 0.9375, -2))


def first_row(x: Any) -> Real:
    """Return points that are all the first one."""
    return np.broadcast_to(x.reshape(-1, x.shape[-1])[:1].reshape(*(1,) * (x.ndim - 1), -1), x.shape) if x.size else x


DEVIATIONS = (
    Deviation("table-through-bfloat16", "the learned table is held in bfloat16",
              {"learned": held("bfloat16", 1), "t5_rows": held("bfloat16", 0)}, hint=KEEP_FLOAT32),
)  # fmt: skip
