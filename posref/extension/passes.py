"""One pass of a length extension: products of queries and keys, each rotated by a position that the method chooses."""

from collections.abc import Callable
from typing import Any

from posref.attention.attention_logits import check_queries, products
from posref.core.arrays import (
    Array,
    beside,
    cast,
    common_shape,
    index_dtype,
    library,
    namespace,
    number_system,
    repeat_heads,
    wide,
)
from posref.core.checks import check_rotated, check_rows, check_tokens, check_word
from posref.rotary.apply_rope import WORDS, apply_rope
from posref.rotary.rope import rope
from posref.rotary.rope_frequencies import check_scaling, rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.scaling import Scaling
from posref.spec import Axes, Domain, Integer, OneOf, Real, Record, part
from posref.types import Layout

PLACES = {"q_positions": Axes("~*B Q", "integer"), "k_positions": Axes("*B K", "integer")}  # for maps such as rerope_distances
SCORES = {
    "q": Axes("Q D | *R G*g Q D | *R G*g Q D", usual=(-1.0, 1.0)),
    "k": Axes("K D | *R G K D | *R G K D"),
    "q_positions": Axes("Q | Q | *R 1 Q", "integer"),
    "k_positions": Axes("K | K | *R 1 K", "integer"),
}
ROTATION: dict[str, Domain] = {
    "layout": OneOf(WORDS),
    "base": Real(0, usual=(2, 1e7)),
    "rotary_dim": Integer(2, step=2, optional=True, usual=64),
    "scaling": Record("rotary_dim or D"),
    "length": Integer(0, optional=True, usual=2**20),
}
ROTATES = ("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0")


Scores = Callable[..., Array]


def passes(
    function: str, q: Array, k: Array, q_positions: Array, k_positions: Array, /, *, layout: Layout, base: float,
    rotary_dim: int | None, scaling: Scaling | None, length: Any,
) -> tuple[Scores, Array, Array]:  # fmt: skip
    r"""
    Check a call. Return a function that computes one pass, and the positions of queries and keys, from `signed`.

    The function takes positions of queries and keys, and `steps` in a token.

    A pass returns the products of all queries and keys, each rotated by its position divided by `steps`, in the working dtype:
    :math:`(R_{p/g} q) \cdot (R_{n/g} k)` for steps g, with R the rotation of `rope`.
    """
    q_positions, k_positions = signed(function, q_positions, k_positions)
    check_word(function, "layout", layout, WORDS)
    check_queries(function, q, k)
    check_rows(function, "q_positions", tuple(q_positions.shape), tuple(q.shape[:-1]), of="q")
    check_rows(function, "k_positions", tuple(k_positions.shape), tuple(k.shape[:-1]), of="k")
    dim = check_rotated(function, rotary_dim, q.shape[-1], "q")
    xp = library(function, q=q, k=k, q_positions=q_positions, k_positions=k_positions)
    check_scaling(function, dim, base=base, scaling=scaling, length=length)
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length, xp=number_system(xp))

    def rotated(x: Array, positions: Array, steps: int) -> Array:
        work = wide(x.dtype, xp)
        per_step = inv_freq if steps == 1 else inv_freq / steps
        cos, sin = rope_table(positions, per_step, attention_factor=factor, dtype=work)
        return apply_rope(cast(x, work), cos, sin, layout=layout)

    def scores(q_positions: Array, k_positions: Array, *, steps: int = 1) -> Array:
        return products(function, rotated(q, q_positions, steps), rotated(k, k_positions, steps))

    return scores, q_positions, k_positions


@part(noun="logits")
def rotated_products(
    q: Array, k: Array, relative: Array, /, *, layout: Layout, base: float, rotary_dim: int | None = None,
    scaling: Scaling | None = None, length: Any = None,
) -> Array:  # fmt: skip
    """
    Return ``q . R(-relative) k`` for every query and key, shape ``(*R, H, Q, K)``, given the relative position of each pair.

    The passes of a method must give the same scores. Here every key is rotated once for every query.
    """
    xp = namespace(q, k)

    def rotated(x: Array, positions: Array) -> Array:
        return rope(x, positions, layout=layout, base=base, rotary_dim=rotary_dim, scaling=scaling, length=length)

    keys = repeat_heads("rotated_products", k, q.shape[-3]) if q.ndim > 2 else k
    pairs = common_shape((*q.shape[:-1], 1), (*keys.shape[:-2], 1, keys.shape[-2]))
    spread = xp.broadcast_to(keys[..., None, :, :], (*pairs, k.shape[-1]))
    back = rotated(spread, xp.broadcast_to(-relative, pairs))
    plain = rotated(q, beside(0, q, index_dtype(q)))  # applies the factor, and the layout's order of channels
    return xp.sum(plain[..., :, None, :] * back, axis=-1)


def signed(function: str, q_positions: Array, k_positions: Array) -> tuple[Array, Array]:
    """
    Return positions in the indexing dtype, where differences do not wrap around (`posref.core.arrays.whole`).

    Raise if they are not signed integers, because windows, groups and chunks are decided in integers.
    """
    check_tokens(function, q_positions=q_positions, k_positions=k_positions)
    xp = library(function, q_positions=q_positions, k_positions=k_positions)
    if not all(xp.isdtype(p.dtype, "signed integer") for p in (q_positions, k_positions)):
        msg = f"{function}: positions must be signed integers; got {q_positions.dtype} and {k_positions.dtype}."
        raise ValueError(msg)
    return cast(q_positions, index_dtype(q_positions)), cast(k_positions, index_dtype(k_positions))
