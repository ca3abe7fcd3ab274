"""
Sinusoids of several axes. Source: facebookresearch/mae, util/pos_embed.py, get_2d_sincos_pos_embed_from_grid:

    emb_h = get_1d_sincos_pos_embed_from_grid(embed_dim // 2, grid[0])
    emb_w = get_1d_sincos_pos_embed_from_grid(embed_dim // 2, grid[1])
    emb = np.concatenate([emb_h, emb_w], axis=1)

and timm, layers/pos_embed_sincos.py, build_sincos2d_pos_embed, for arrangement "outer":

    pos_emb = torch.stack([torch.sin(pos2), torch.cos(pos2)], dim=1).flatten(1)    # pos2: positions, axes, bands
"""

from typing import Any

from .lists import at, build, shape
from .sinusoidal import sinusoidal


def sinusoidal_nd(
    positions: Any, *, dims: Any, layout: str, arrangement: str, base: Any = 10000.0, endpoint: bool = False
) -> Any:
    """Return the blocks of all axes, shape (*P, sum(dims))."""
    _, *places = shape(positions)

    def row(*where: int) -> list[Any]:
        blocks = []
        for axis, width in enumerate(dims):
            blocks.append(sinusoidal(at(positions[axis], where), width, layout=layout, base=base, endpoint=endpoint))
        if arrangement == "axis":
            return [value for block in blocks for value in block]
        first = [value for block in blocks for value in block[: len(block) // 2]]
        return first + [value for block in blocks for value in block[len(block) // 2 :]]

    return build(places, row)
