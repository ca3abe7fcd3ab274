"""
Continuous relative position bias of Swin v2. Source: microsoft/Swin-Transformer, models/swin_transformer_v2.py,
WindowAttention:

    self.cpb_mlp = nn.Sequential(nn.Linear(2, 512, bias=True), nn.ReLU(inplace=True), nn.Linear(512, num_heads, bias=False))
    relative_position_bias = 16 * torch.sigmoid(relative_position_bias)

Form "cr" is timm 1.0.31, timm/layers/pos_embed_rel.py, lines 414-417 and 448-455: the logarithm of 1 + |x|, a bias in the
second layer, and no sigmoid. Here the network is evaluated for every two cells anew.
"""

from itertools import product
from typing import Any

from mpmath import mp

from .lists import build, shape


def continuous_position_bias(
    w1: Any, b1: Any, w2: Any, *, b2: Any = None, height: int, width: int, form: str, pretrained_height: int | None = None,
    pretrained_width: int | None = None,
) -> Any:  # fmt: skip
    """Return the bias, shape (H, N, N)."""
    cells = list(product(range(height), range(width)))
    trained = (pretrained_height or height, pretrained_width or width)

    def coordinate(apart: int, window: int) -> Any:
        x = mp.mpf(apart)
        sign = -1 if apart < 0 else 1
        if form == "cr":
            return sign * mp.log(1 + abs(x))
        return sign * mp.log(1 + abs(8 * (x / (window - 1) if window > 1 else x)), 2) / 3

    def network(h: int, apart: tuple[int, int]) -> Any:
        c = [coordinate(a, w) for a, w in zip(apart, trained, strict=True)]
        total = mp.mpf(0) if b2 is None else b2[h]
        for weights, bias, out in zip(w1, b1, w2[h], strict=True):
            hidden = weights[0] * c[0] + weights[1] * c[1] + bias
            total += out * hidden if hidden > 0 else 0
        return total if form == "cr" else 16 / (1 + mp.exp(-total))

    heads = range(shape(w2)[0])
    apart = {(a, b) for a in range(1 - height, height) for b in range(1 - width, width)}
    outputs = {(h, offset): network(h, offset) for h in heads for offset in apart}

    def element(h: int, i: int, j: int) -> Any:
        return outputs[h, (cells[i][0] - cells[j][0], cells[i][1] - cells[j][1])]

    return build((len(heads), len(cells), len(cells)), element)
