"""The rotation of RoPE by a given table. Source: Su et al., arXiv:2104.09864, equation (34)."""

from posref.arrays import Array, cast, namespace, wide
from posref.checks import check_flag, check_rows, check_word
from posref.spec import Axes, Flag, OneOf, encoding

# layout -> where pairs are read and written: "half" is lanes (i, i + d/2), "interleaved" lanes (2i, 2i + 1)
LAYOUTS = {
    "half": ("half", "half"),
    "interleaved": ("interleaved", "interleaved"),
    "interleaved_to_half": ("interleaved", "half"),
}
WORDS = tuple(LAYOUTS)
LANES = ("leading", "trailing")
AXIS = {"half": -2, "interleaved": -1}  # the axis on which a pair lies where lanes have shape (2, d/2) or (d/2, 2)


@encoding(
    family="rotary",
    source="arXiv:2104.09864, equation (34)",
    models=("Llama", "GPT-J", "GPT-NeoX", "DeepSeek"),
    domains={"layout": OneOf(WORDS), "inverse": Flag(), "lanes": OneOf(LANES)},
    invariants=("norm kept", "tail unchanged", "batch equivariant"),
    arrays={
        "x": Axes("2*n+tail | *R T 2*n+tail | B T H 2*n+tail"),
        "cos": Axes("n | ~*R ~T n | T 1 n"),
        "sin": Axes("=cos"),
    },
    requires=("H > 1",),
)
def apply_rope(x: Array, cos: Array, sin: Array, /, *, layout: str, inverse: bool = False, lanes: str = "leading") -> Array:
    r"""
    Return `x` with every pair of lanes (a, b) rotated by the angle whose cosine and sine are given.

    .. math:: a' = a \, c - b \, s, \qquad b' = b \, c + a \, s

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys; the leading axes R hold positions in the last place, or wherever the table's axes say.
    cos, sin : arrays, shape ``(*P, d/2)``, d <= D
        From `rope_table`. P broadcasts from the right against R and never enlarges it: (B, H, T, D) takes (T,) or (B, 1, T);
        (B, T, H, D) takes (T, 1) or (B, T, 1). d lanes are rotated; the others are returned as they came.
    layout : {"half", "interleaved", "interleaved_to_half"}
        Pairs (i, i + d/2), as GPT-NeoX and Llama in transformers; pairs (2i, 2i + 1), as GPT-J, Meta's Llama and the paper;
        read (2i, 2i + 1) and written (i, i + d/2), as DeepSeek-V3 in transformers.
    inverse : bool
        The transpose: read and write layouts swapped, sine negated. The inverse when the table has no factor, the vjp always.
    lanes : {"leading", "trailing"}
        Which d of the D lanes rotate, the first or the last. The last in DeepSeek-V4; the first in GPT-J, GPT-NeoX and others.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; arithmetic is in float32 or wider, with one rounding.

    Raises
    ------
    ValueError
        If `layout` or `lanes` is unknown, `inverse` is neither True nor False, x is not real floating, or the tables differ in
        shape, are wider than x, or do not fit its leading axes.

    Examples
    --------
    >>> import numpy as np
    >>> quarter = np.asarray([[0.0, 0.0]]), np.asarray([[1.0, 1.0]])
    >>> apply_rope(np.asarray([[1.0, 2.0, 3.0, 4.0]]), *quarter, layout="half").tolist()
    [[-3.0, -4.0, 1.0, 2.0]]
    """
    check_word("apply_rope", "layout", layout, WORDS)
    check_word("apply_rope", "lanes", lanes, LANES)
    check_flag("apply_rope", "inverse", inverse)
    xp = namespace(x, cos, sin)
    shape, half = x.shape, cos.shape[-1]
    if cos.shape != sin.shape or 2 * half > shape[-1]:
        msg = (
            f"apply_rope: cos and sin must have one shape, with at most {shape[-1] // 2} columns (half the last axis of x); "
            f"got {tuple(cos.shape)} and {tuple(sin.shape)}."
        )
        raise ValueError(msg)
    check_rows("apply_rope", "cos", cos.shape[:-1], shape[:-1])
    work = wide(cos.dtype, xp)
    if x.dtype != work and not xp.isdtype(x.dtype, "real floating"):
        msg = f"apply_rope: x must be real floating; got {x.dtype}."
        raise ValueError(msg)
    read, write = LAYOUTS[layout]
    if inverse:
        read, write, sin = write, read, -sin
    start = shape[-1] - 2 * half if lanes == "trailing" else 0
    end = start + 2 * half
    a, b = _pairs(x, start, half, read)
    if not x.dtype == cos.dtype == sin.dtype == work:
        a, b, cos, sin = [cast(t, wide(t.dtype, xp)) for t in (a, b, cos, sin)]
    first, second = a * cos - b * sin, b * cos + a * sin
    if first.dtype != x.dtype:  # rounded before they are stacked: fewer bytes to move
        first, second = cast(first, x.dtype), cast(second, x.dtype)
    turned = xp.reshape(xp.stack([first, second], axis=AXIS[write]), (*shape[:-1], 2 * half))
    if 2 * half == shape[-1]:
        return turned
    parts = [x[..., :start], turned] if lanes == "trailing" else [turned, x[..., end:]]
    return xp.concat(parts, axis=x.ndim - 1)


def _pairs(x: Array, start: int, half: int, layout: str) -> tuple[Array, Array]:
    """Return the two members of every pair of the ``2 * half`` lanes from `start` on."""
    middle, end = start + half, start + 2 * half
    if layout == "half":
        return x[..., start:middle], x[..., middle:end]
    return x[..., start:end:2], x[..., start + 1 : end : 2]
