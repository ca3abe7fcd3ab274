"""
Sinusoids of an image's valid cells. Source: facebookresearch/detr, models/position_encoding.py, PositionEmbeddingSine:

    y_embed = not_mask.cumsum(1, dtype=torch.float32)
    y_embed = y_embed / (y_embed[:, -1:, :] + eps) * self.scale
    dim_t = self.temperature ** (2 * (dim_t // 2) / self.num_pos_feats)
    pos_x = torch.stack((pos_x[:, :, :, 0::2].sin(), pos_x[:, :, :, 1::2].cos()), dim=4).flatten(3)
    pos = torch.cat((pos_y, pos_x), dim=3)

and fundamentalvision/Deformable-DETR, the same file, for the offset:

    y_embed = (y_embed - 0.5) / (y_embed[:, -1:, :] + eps) * self.scale
"""

import math
from typing import Any

from mpmath import cos, mpf, sin

from .lists import at, build, shape


def sine_2d(
    mask: Any, dim: int, *, normalize: bool, centered: bool, base: Any = 10000.0, scale: Any = 2 * math.pi, eps: Any = 1e-6
) -> Any:
    """Return the sines and cosines of both axes, shape (*B, H, W, dim)."""
    *_, height, width = shape(mask)
    features = dim // 2
    periods = [mpf(base) ** (mpf(2 * (j // 2)) / features) for j in range(features)]

    def coordinate(valid: list[int], here: int) -> Any:
        count = mpf(sum(valid[: here + 1]))
        if not normalize:
            return count
        return (count - mpf(centered) / 2) / (sum(valid) + mpf(eps)) * mpf(scale)

    def waves(place: Any) -> list[Any]:
        return [(cos if j % 2 else sin)(place / period) for j, period in enumerate(periods)]

    def cell(*where: int) -> list[Any]:
        *batch, row, column = where
        down = [int(at(mask, (*batch, y, column))) for y in range(height)]
        along = [int(at(mask, (*batch, row, x))) for x in range(width)]
        return waves(coordinate(down, row)) + waves(coordinate(along, column))

    return build(shape(mask), cell)
