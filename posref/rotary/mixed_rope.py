"""RoPE-Mixed, rotary embedding with learned frequencies for all axes. Source: Heo et al., arXiv:2403.13298, section 3."""

from posref.core.arrays import library, wide
from posref.core.checks import check_coordinates, check_flag, check_frequencies, check_lanes, check_positions, check_word
from posref.rotary.apply_rope import WORDS, apply_rope
from posref.rotary.mixed_table import mixed_table
from posref.spec import Axes, Flag, OneOf, encoding
from posref.types import AnyArray, ArrayOf, Layout, T


@encoding(
    title="RoPE-Mixed",
    idea=(
        "In RoPE-Mixed each channel pair has a learned frequency for rows and one for columns, and rotates by the sum. In "
        "axial RoPE it follows one of the two. A mixed pair can also respond to diagonal directions in an image."
    ),
    family="rotary",
    source="arXiv:2403.13298, section 3",
    models=("RoPE-ViT", "Mochi", "LightGlue"),
    domains={"layout": OneOf(WORDS), "inverse": Flag()},
    invariants=("norm kept", "tail unchanged", "relative", "decode"),
    arrays={
        "x": Axes("2*N+E | *R T 2*N+E | *R T 2*N+E | *R T 2*N+E | *R T 2*N+E"),  # E channels after the rotated ones
        "positions": Axes("A | A T | A T | A *R T | A ~*R ~T", "position"),
        "frequencies": Axes("A N | A N | A ~*R ~T N | A N | A ~*R ~T N", "wide", usual=(-1.0, 1.0)),
    },
    result="=x",
    rows="*R T",
    requires=("A >= 1", "N >= 1"),
    read={
        "RoPE-ViT": "naver-ai/rope-vit@ce85c2e, models/vit_rope.py:79-85",
        "LightGlue": "transformers 5.23.0, models/lightglue/modeling_lightglue.py:100-105",
        "Mochi": "huggingface/diffusers@58eb52c080, src/diffusers/models/attention_processor.py:1041-1051",
    },
)
def mixed_rope(x: ArrayOf[T], positions: ArrayOf[T], frequencies: AnyArray, /, *, layout: Layout, inverse: bool = False) -> T:
    r"""
    Return `x` with every channel pair rotated by an angle that adds up all coordinates, each times its own frequency.

    .. math:: y_u = x_u \cos \alpha_i - x_v \sin \alpha_i, \qquad
        y_v = x_v \cos \alpha_i + x_u \sin \alpha_i, \qquad \alpha_i = \sum_{a<A} p_a \, \theta_{a,i}

    Pair i, from 0 to d/2 - 1, is channels u and v (see `layout`). :math:`p_a` is the token's coordinate along axis a, and
    :math:`\theta_{a,i}` is the learned frequency of pair i for that axis. So logits depend only on differences of coordinates.
    A pair can follow a diagonal direction, because its angle depends on all axes.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        Coordinates along each of the A axes. For x of (B, H, T, D) pass (A, T) or (A, B, 1, T). A token at 0 on every axis is
        not rotated, like RoPE-ViT's class token.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    frequencies : array, at least float32, shape ``(A, d/2)`` or ``(A, *F, d/2)``
        theta, learned, in radians per unit of the coordinate: see `mixed_table`. F has as many axes as R. An axis has size 1 if
        the frequencies are the same along it: for frequencies per head, (A, 1, H, 1, d/2) for x of (B, H, T, D), and (A, 1, 1,
        H, d/2) for x of (B, T, H, D). The first d channels rotate.
    layout : {"half", "interleaved", "interleaved_to_half"}
        The channels u and v of pair i.

        - ``"half"``: Pair i is channels i and i + d/2: the first half of the channels meets the second.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1, as in RoPE's paper. Used by RoPE-ViT, Mochi,
          LightGlue.
        - ``"interleaved_to_half"``: Pair i is read at channels 2i and 2i + 1, and written at i and i + d/2.
    inverse : bool
        Apply the transpose, which undoes the rotation: see `apply_rope`.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; channels from d on are unchanged.

    Raises
    ------
    ValueError
        If frequencies do not fit x or the positions, positions do not broadcast, positions or frequencies are half precision,
        or an option is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> x, frequencies = np.asarray([[1.0, 0.0]]), np.asarray([[1.0], [-0.5]])
    >>> mixed_rope(x, np.asarray([[1], [3]]), frequencies, layout="interleaved").round(4).tolist()
    [[0.8776, -0.4794]]
    """
    name = "mixed_rope"
    check_word(name, "layout", layout, WORDS)
    xp = library(name, x=x, positions=positions)
    check_frequencies(name, "frequencies", frequencies)
    check_lanes(name, "x", x)
    check_positions(name, "positions", positions)
    rows, f = tuple(x.shape[:-1]), tuple(frequencies.shape)
    fits = len(f) == 2 or (len(f) == len(rows) + 2 and all(n in (1, m) for n, m in zip(f[1:-1], rows, strict=True)))
    if not fits or 2 * f[-1] > x.shape[-1]:
        msg = (
            f"{name}: frequencies must be (A, d/2), or (A, *F, d/2) with F of {len(rows)} axes that broadcast to {rows} (the "
            f"leading axes of x), and d at most {x.shape[-1]}; got {f}."
        )
        raise ValueError(msg)
    check_coordinates(name, tuple(positions.shape), f[0], rows)
    inverse = check_flag(name, "inverse", inverse)
    cos, sin = mixed_table(positions, frequencies, dtype=wide(x.dtype, xp))
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse)
