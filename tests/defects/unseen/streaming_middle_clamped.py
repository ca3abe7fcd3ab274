"""Keys between the sinks and the window have the largest distance of the window: ReRoPE's rule in StreamingLLM. Imagined.

Should be said: unexplained; distances beyond the window are wrong (they are all one number).
"""

import numpy as np

DEFECT = "distances limited to the window"
NAMES = ()


def streaming_llm_distances(q_positions, k_positions, /, *, sinks, window, counting):
    farthest = window - 1 if counting == "with_query" else window
    q, k = q_positions.astype(np.int64)[..., :, None], k_positions.astype(np.int64)[..., None, :]
    return np.where(k < sinks, np.minimum(q, sinks + farthest) - k, np.minimum(q - k, farthest))
