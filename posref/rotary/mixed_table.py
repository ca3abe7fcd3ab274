"""Tables for RoPE-Mixed, in which each pair rotates with all axes. Source: Heo et al., arXiv:2403.13298, section 3."""

from posref.core.angles import cos_sin_of_sums
from posref.core.arrays import DType, cast, common_shape, library, result_dtype
from posref.core.checks import check_frequencies, check_positions
from posref.spec import Axes, encoding
from posref.types import AnyArray, ArrayOf, T


@encoding(
    title="Cosines and sines of RoPE-Mixed",
    idea=(
        "In axial RoPE a channel pair follows either rows or columns. In RoPE-Mixed it has a learned frequency for each, and "
        "its angle is the sum of both. This gives the cosine and sine of every angle."
    ),
    family="rotary",
    source="arXiv:2403.13298, section 3",
    models=("RoPE-ViT", "Mochi", "LightGlue"),
    outputs=("cos", "sin"),
    arrays={
        "positions": Axes("A | A *R T | A *R T | A T | A T 1 | A B 1 T", "position"),
        "frequencies": Axes("A N | A N | A ~*R ~T N | A H 1 N | A H N | A 1 H 1 N", "wide", usual=(-1.0, 1.0)),
    },
    result="N | *R T N | *R T N | H T N | T H N | B H T N",
    rows="*R B H T",
    requires=("A >= 1", "N >= 1"),
    rounded=("frequencies",),
)
def mixed_table(positions: ArrayOf[T], frequencies: AnyArray, /, *, dtype: DType | None = None) -> tuple[T, T]:
    r"""
    Return the cosine and sine of every channel pair's angle. Each pair has a frequency for each axis.

    .. math:: c_i = \cos \sum_{a<A} p_a \, \theta_{a,i}, \qquad s_i = \sin \sum_{a<A} p_a \, \theta_{a,i}, \qquad
        i = 0 \dots d/2 - 1

    Here :math:`p_a` is the coordinate along axis a, and :math:`\theta_{a,i}` is the frequency of pair i for that axis.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(A, *P)``
        p, coordinates along each of the A axes, A at least 1: width first in RoPE-ViT; time, height and width in Mochi.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    frequencies : array, at least float32, shape ``(A, *F, d/2)``
        theta, in radians per unit of the coordinate, of any sign. They are learned, for each layer and head, and carry
        gradients. F broadcasts with P. For heads before tokens pass ``(A, H, 1, d/2)`` and positions ``(A, T)``; for tokens
        before heads, ``(A, H, d/2)`` and positions ``(A, T, 1)``; if all heads share them (LightGlue), ``(A, d/2)``.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    cos, sin : arrays, shape ``(*R, d/2)``
        For `apply_rope`. R is the shape to which P and F broadcast.

    Raises
    ------
    ValueError
        If positions or frequencies are half precision, they differ in A, A is 0, or F and P do not broadcast.

    Notes
    -----
    RoPE-ViT initializes pair i < d/4 of head h to :math:`10^{-4i/d}(\cos\phi_h, \sin\phi_h)`, with a random angle
    :math:`\phi_h`. The other half of the pairs starts with the same vectors, rotated by 90 degrees.

    If each pair has only one frequency that is not 0, this is axial RoPE.

    Examples
    --------
    >>> import numpy as np
    >>> cos, sin = mixed_table(np.asarray([[0, 1], [2, 3]]), np.asarray([[1.0], [-0.5]]))
    >>> sin.round(4).tolist()
    [[-0.8415], [-0.4794]]
    """
    name = "mixed_table"
    check_positions(name, "positions", positions)
    check_frequencies(name, "frequencies", frequencies)
    p, f = tuple(positions.shape), tuple(frequencies.shape)
    if not p or len(f) < 2 or p[0] != f[0] or not p[0]:
        msg = f"{name}: frequencies must be (A, ..., d/2) for positions (A, ...), with A at least 1; got {f} and {p}."
        raise ValueError(msg)
    rows = common_shape(p[1:], f[1:-1])
    if any(n not in (1, m) for shape in (p[1:], f[1:-1]) for n, m in zip(shape[::-1], rows[::-1], strict=False)):
        msg = (
            f"{name}: the axes of frequencies between the first and the last must broadcast with the axes of positions after "
            f"the first; got {f} and {p}."
        )
        raise ValueError(msg)
    xp = library(name, positions=positions)
    dtype = result_dtype(name, positions, dtype)
    spread = xp.reshape(positions, (p[0], *(1,) * (len(rows) - len(p) + 1), *p[1:], 1))
    aligned = library(name, frequencies=frequencies).reshape(frequencies, (f[0], *(1,) * (len(rows) - len(f) + 2), *f[1:]))
    cos, sin = cos_sin_of_sums(spread, aligned, dtype=dtype)
    return cast(cos, dtype), cast(sin, dtype)
