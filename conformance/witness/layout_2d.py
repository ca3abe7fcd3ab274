"""
2-D positions of LayoutLM, arXiv:1912.13318, section 2.2, and LayoutLMv2, arXiv:2012.14740, section 2.1.

LayoutLM adds the embeddings of the four edges and of height and width. LayoutLMv2 concatenates
PosEmb2D_x(x_min, x_max, width) and PosEmb2D_y(y_min, y_max, height); its code (modeling_layoutlmv2.py) does so in the order
left, upper, right, lower, height, width. LayoutLMv3's code clips height and width to 0 .. 1023, the rows of its tables.
"""

from typing import Any

from .lists import at, build, shape


def layout_2d(boxes: Any, x_table: Any, y_table: Any, h_table: Any, w_table: Any, *, combine: str, clip_sizes: bool) -> Any:
    """Return the six rows of every box, end to end or added."""
    *places, _ = shape(boxes)

    def clipped(size: int, table: Any) -> int:
        return max(0, min(size, len(table) - 1)) if clip_sizes else size

    def six(where: list[int]) -> list[Any]:
        left, upper, right, lower = (
            at(boxes, (*where, 0)),
            at(boxes, (*where, 1)),
            at(boxes, (*where, 2)),
            at(boxes, (*where, 3)),
        )
        height, width = clipped(lower - upper, h_table), clipped(right - left, w_table)
        return [x_table[left], y_table[upper], x_table[right], y_table[lower], h_table[height], w_table[width]]

    def element(*index: int) -> Any:
        *where, lane = index
        rows = six(where)
        if combine == "sum":
            return sum(row[lane] for row in rows)
        return [number for row in rows for number in row][lane]

    edge, size = shape(x_table)[1], shape(h_table)[1]
    return build((*places, edge if combine == "sum" else 4 * edge + 2 * size), element)
