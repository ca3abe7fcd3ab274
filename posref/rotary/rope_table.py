"""The table of cosines and sines of RoPE. Source: Su et al., arXiv:2104.09864, equation (15)."""

from posref.angles import cos_sin
from posref.arrays import Array, DType, cast, result_dtype
from posref.checks import check_positions
from posref.spec import Axes, Real, encoding


@encoding(
    family="rotary",
    source="arXiv:2104.09864, equation (15)",
    outputs=("cos", "sin"),
    domains={"attention_factor": Real(0)},
    arrays={"positions": Axes("*P", "position"), "inv_freq": Axes("n")},
)
def rope_table(
    positions: Array, inv_freq: Array, /, *, attention_factor: float = 1.0, dtype: DType | None = None
) -> tuple[Array, Array]:
    r"""
    Return the cosine and sine of every position's angles, one per rotated pair.

    .. math:: c_{p,i} = f \cos(p \, \theta_i), \qquad s_{p,i} = f \sin(p \, \theta_i)

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens.
    inv_freq : array, shape ``(d/2,)``
        Radians per token: host NumPy as `rope_frequencies` gives them, or the caller's own (learned), which carry gradients.
    attention_factor : float
        f, from `rope_frequencies`.
    dtype : data type, optional
        Of the result; None is that of floating positions, else the library's default real dtype.

    Returns
    -------
    cos, sin : arrays, shape ``(*P, d/2)``
        Not duplicated: one column a pair, whatever the layout.

    Raises
    ------
    ValueError
        If positions are half precision or `inv_freq` has not one axis.

    Notes
    -----
    Angles are accurate at every position (`posref.angles`); a float32 product, as most code has it, is off by 6e-3 at 1e5.

    Examples
    --------
    >>> import numpy as np
    >>> cos, sin = rope_table(np.asarray([0, 1]), np.asarray([1.0, 0.01]))
    >>> cos.round(4).tolist(), sin.round(4).tolist()
    ([[1.0, 1.0], [0.5403, 1.0]], [[0.0, 0.0], [0.8415, 0.01]])
    """
    check_positions("rope_table", "positions", positions)
    if len(inv_freq.shape) != 1:
        msg = f"rope_table: inv_freq must have one axis, (d/2,); got shape {tuple(inv_freq.shape)}."
        raise ValueError(msg)
    dtype = result_dtype(positions, dtype)
    cos, sin = cos_sin(positions, inv_freq, dtype=dtype)
    return cast(cos * attention_factor, dtype), cast(sin * attention_factor, dtype)
