"""
Attention bias of LeViT. Source: Graham et al., arXiv:2104.01136, equation (2):

    A^h_{(x,y),(x',y')} = Q_{(x,y),:} K_{(x',y'),:} + B^h_{|x - x'|, |y - y'|}

and facebookresearch/LeViT, levit.py, classes Attention and AttentionSubsample: offsets are numbered in the order in which they
are met.
"""

from itertools import product
from typing import Any

from .lists import build, shape


def levit_bias(table: Any, *, height: int, width: int, stride: int) -> Any:
    """Return the bias, shape (H, Q, K)."""
    keys = list(product(range(height), range(width)))
    queries = [cell for cell in keys if cell[0] % stride == 0 and cell[1] % stride == 0]
    numbers: dict[tuple[int, int], int] = {}
    for query, key in product(queries, keys):
        numbers.setdefault((abs(query[0] - key[0]), abs(query[1] - key[1])), len(numbers))

    def element(h: int, i: int, j: int) -> Any:
        return table[h][numbers[abs(queries[i][0] - keys[j][0]), abs(queries[i][1] - keys[j][1])]]

    return build((shape(table)[0], len(queries), len(keys)), element)
