"""
Log-spaced coordinates of Swin v2. Source: microsoft/Swin-Transformer, models/swin_transformer_v2.py, WindowAttention:

    relative_coords_table[:, :, :, 0] /= (self.window_size[0] - 1)
    relative_coords_table *= 8  # normalize to -8, 8
    relative_coords_table = torch.sign(relative_coords_table) * torch.log2(torch.abs(relative_coords_table) + 1.0) / np.log2(8)

Without a window: arXiv:2111.09883, equation (4), sign(x) log(1 + |x|).
"""

from typing import Any

from mpmath import mp

from .lists import at, build, shape


def log_spaced_coordinates(offsets: Any, *, window: int | None) -> Any:
    """Return the coordinates."""

    def element(*index: int) -> Any:
        x = mp.mpf(at(offsets, index))
        if window is not None and window > 1:
            x /= window - 1
        if window is not None:
            x *= 8
        size = mp.log(abs(x) + 1) if window is None else mp.log(abs(x) + 1, 2) / mp.log(8, 2)
        return -size if x < 0 else size

    return build(shape(offsets), element)
