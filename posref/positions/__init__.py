"""
Position ids: from masks, tokens, draws, packed sequences, shards, caches, and grids of image and video.

Most positions count tokens, in the indexing dtype of the argument's library (int64; int32 in JAX without x64). Positions on
grids count cells, and `centred`, `circle`, `scaled` and `tmrope` may return fractions. Functions without array arguments
return NumPy arrays, or arrays of `xp` on `device`. In 32 bits, the difference of positions 2**31 or more apart wraps around.

Encodings never read array values, but some of these functions do. Code for ``jax.jit`` and ``torch.compile`` cannot. There,
pass arrays only to `constant_drafts`, `decode_delta`, `documents`, `from_tokens`, `visible_windows` and `with_origin`, or with
``check=False`` to `decode`, `evicted`, `from_mask`, `randomised`, `require_in_range`, `require_slots` and `tree`. Call `packed`
and `packed_shard` outside: the shapes of their results depend on values.

Some functions are also operations, which `posref check` can test in your code: `visible_windows` and `decode_delta`; without
their check of values, `from_mask` (`posref.positions_from_mask`) and `tree` (`posref.draft_tree`); and, under longer names,
`from_tokens` (`posref.positions_from_tokens`), `documents` (`posref.packed_documents`), `zigzag` (`posref.zigzag_shard`) and
`striped` (`posref.striped_shard`).
"""

from posref.core.grids import centred, grid, multimodal, scaled, with_origin
from posref.positions.caches import compressed, decode, evicted
from posref.positions.circles import circle
from posref.positions.decode_delta import decode_delta
from posref.positions.drafts import constant_drafts, tree
from posref.positions.draws import randomised
from posref.positions.joint import qwen_image
from posref.positions.masks import from_mask
from posref.positions.omni import tmrope
from posref.positions.packed_documents import documents
from posref.positions.packs import packed
from posref.positions.positions_from_tokens import from_tokens
from posref.positions.shards import contiguous, packed_shard
from posref.positions.striped_shard import striped
from posref.positions.value_checks import require_in_range, require_slots
from posref.positions.visible_windows import visible_windows
from posref.positions.zigzag_shard import zigzag

__all__ = [
    "centred", "circle", "compressed", "constant_drafts", "contiguous", "decode", "decode_delta", "documents", "evicted",
    "from_mask", "from_tokens", "grid", "multimodal", "packed", "packed_shard", "qwen_image", "randomised", "require_in_range",
    "require_slots", "scaled", "striped", "tmrope", "tree", "visible_windows", "with_origin", "zigzag",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return only the public names, without the modules."""
    return __all__
