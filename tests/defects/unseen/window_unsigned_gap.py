"""The gap between query and key is unsigned, so that later keys are far away; uint32 indices in a kernel.

Should be said: keys after the query are not visible with sides "both", as if they were "causal".
"""

import numpy as np

DEFECT = "positions subtracted as unsigned numbers"
NAMES = ("window-causal",)


def sliding_window(q_positions, k_positions, /, *, window, counting, sides):
    q, k = q_positions.astype(np.uint32)[..., :, None], k_positions.astype(np.uint32)[..., None, :]
    return q - k <= np.uint32(window - (counting == "with_query"))
