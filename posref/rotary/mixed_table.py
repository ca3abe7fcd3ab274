"""Tables of RoPE-Mixed, where each pair rotates with all axes. Source: Heo et al., arXiv:2403.13298, section 3."""

from posref.angles import cos_sin_of_sums
from posref.arrays import DType, cast, common_shape, namespace, result_dtype
from posref.checks import check_frequencies, check_positions
from posref.spec import Axes, encoding
from posref.types import AnyArray, ArrayOf, T


@encoding(
    family="rotary",
    source="arXiv:2403.13298, section 3",
    models=("RoPE-ViT", "Mochi", "LightGlue"),
    outputs=("cos", "sin"),
    arrays={
        "positions": Axes("A | A *R T | A *R T | A T | A T 1 | A B 1 T", "position"),
        "frequencies": Axes("A N | A N | A ~*R ~T N | A H 1 N | A H N | A 1 H 1 N", "wide"),
    },
    result="N | *R T N | *R T N | H T N | T H N | B H T N",
    rows="*R B H T",
    requires=("A >= 1", "N >= 1"),
    rounded=("frequencies",),
)
def mixed_table(positions: ArrayOf[T], frequencies: AnyArray, /, *, dtype: DType | None = None) -> tuple[T, T]:
    r"""
    Return the cosine and sine of every channel pair's angle, where each pair has a frequency on each axis.

    .. math:: c_i = \cos \sum_{a<A} p_a \, \theta_{a,i}, \qquad s_i = \sin \sum_{a<A} p_a \, \theta_{a,i}, \qquad
        i = 0 \dots d/2 - 1

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(A, *P)``
        p, coordinates along each of A axes, at least one; width first in RoPE-ViT, time, height and width in Mochi.
    frequencies : array, at least float32, shape ``(A, *F, d/2)``
        theta, radians per unit of the axis, of any sign: learned, for each layer and head. They carry gradients. F broadcasts
        with P from the right: ``(A, H, 1, d/2)`` for heads before tokens, ``(A, H, d/2)`` for tokens before heads with
        positions ``(A, T, 1)``, ``(A, d/2)`` where heads share them (LightGlue).
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    cos, sin : arrays, shape ``(*R, d/2)``
        R is the common shape of P and F. For `apply_rope`.

    Raises
    ------
    ValueError
        If positions or frequencies are half precision, frequencies do not have the axes of positions, or F and P do not
        broadcast.

    Notes
    -----
    RoPE-ViT starts from :math:`10^{-4i/d}(\cos\phi_h, \sin\phi_h)` for pair i < d/4 of head h, with a random :math:`\phi_h`.
    The other half of the pairs starts from the same at a right angle. Axial RoPE is the case in which each pair has only one
    frequency that is not 0.

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
        msg = f"{name}: axes of frequencies between the first and last must broadcast with positions; got {f} and {p}."
        raise ValueError(msg)
    xp = namespace(positions)
    dtype = result_dtype(positions, dtype)
    spread = xp.reshape(positions, (p[0], *(1,) * (len(rows) - len(p) + 1), *p[1:], 1))
    aligned = namespace(frequencies).reshape(frequencies, (f[0], *(1,) * (len(rows) - len(f) + 2), *f[1:]))
    cos, sin = cos_sin_of_sums(spread, aligned, dtype=dtype)
    return cast(cos, dtype), cast(sin, dtype)
