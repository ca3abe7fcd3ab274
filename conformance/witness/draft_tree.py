"""
Positions of a tree of drafts. Source: sgl-project/sglang, sgl-kernel/csrc/speculative/eagle_utils.cu, build_tree_efficient:
each node walks up to the root, counts its steps, and adds the number of verified tokens:

    while (true) { position += 1; ... if (parent_tb_idx == 0) break; ... }
    positions[bid * draft_token_num + tid] = position + seq_len;
"""

from typing import Any

from .lists import at, build, shape


def draft_tree(verified: Any, parents: Any) -> Any:
    """Return, for every node, the steps up to its root and the tokens before the tree."""
    sizes = shape(parents)

    def element(*index: int) -> int:
        *row, node = index
        lead = row if len(sizes) > 1 else []
        position = 0
        node = at(parents, (*lead, node))
        while node >= 0:
            position += 1
            node = at(parents, (*lead, node))
        return position + int(at(verified, tuple(row)))

    return build((*shape(verified), sizes[-1]), element)
