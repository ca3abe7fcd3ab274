"""Cayley-STRING: RoPE-Mixed in a learned basis. Source: Schenck et al., arXiv:2502.02562, equations (9) and (10)."""

from typing import Literal, get_args

from posref.core.arrays import cast, library, wide
from posref.core.checks import check_coordinates, check_frequencies, check_numbers, check_positions, check_real, check_word
from posref.core.products import matmul
from posref.rotary.apply_rope import apply_rope
from posref.rotary.cayley import cayley
from posref.rotary.mixed_table import mixed_table
from posref.spec import Axes, OneOf, encoding
from posref.types import AnyArray, ArrayOf, T

Form = Literal["conjugate", "product"]
FORMS: tuple[Form, ...] = get_args(Form)


@encoding(
    title="Cayley-STRING",
    idea=(
        "Cayley-STRING first changes the axes by a learned rotation, then rotates pairs as RoPE does. So the model learns "
        "which mixtures of channels are a pair. Products of queries and keys still depend only on differences of coordinates."
    ),
    family="rotary",
    source="arXiv:2502.02562, equations (9) and (10)",
    models=("Cayley-STRING",),
    domains={"form": OneOf(FORMS)},
    invariants=("norm kept", "relative", "decode"),
    arrays={
        "x": Axes("D | *R T D | *R T D | *R T D | *R T D | *R T D"),
        "positions": Axes("A | A T | A T | A ~*R ~T | A ~*R ~T | A T", "position"),
        "skew": Axes("D D | D D | *R 1 D D | D D | *R 1 D D | *R 1 D D", "wide", usual=(-0.5, 0.5)),
        "frequencies": Axes("A N | A N | A ~*R ~T N | A N | A ~*R ~T N | A N", "wide", usual=(-1.0, 1.0)),
    },
    result="=x",
    rows="*R T",
    requires=("A >= 1", "N >= 1", "D >= 2*N"),
    read={"Cayley-STRING": "arXiv:2502.02562, equation (10)"},
)
def cayley_string(x: ArrayOf[T], positions: ArrayOf[T], skew: ArrayOf[T], frequencies: AnyArray, /, *, form: Form) -> T:
    r"""
    Return `x` with every channel pair rotated in a learned basis, by the sum of the token's coordinates times frequencies.

    .. math:: \text{conjugate}: \; y = U R_p \, U^T x, \qquad \text{product}: \; y = R_p \, U x, \qquad U = (I - S)(I + S)^{-1}

    .. math:: (R_p x)_{2i} = x_{2i} \cos\alpha_i - x_{2i+1} \sin\alpha_i, \quad
        (R_p x)_{2i+1} = x_{2i+1} \cos\alpha_i + x_{2i} \sin\alpha_i, \quad
        \alpha_i = \sum_{a<A} p_a \theta_{a,i}, \quad i = 0 \dots d/2-1

    Here :math:`p_a` is the token's coordinate along axis a. S is skew-symmetric, with :math:`S_{ij} = s_{ij}` and
    :math:`S_{ji} = -s_{ij}` for i < j, and 0 on the diagonal. :math:`R_p` does not change channels from d on.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        p, coordinates along each of the A axes. For x of (B, H, T, D) pass (A, T) or (A, B, 1, T).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    skew : array, shape ``(D, D)`` or ``(*F, D, D)``
        s, learned. Only the strict upper triangle is used: see `cayley`. F has one axis for each axis of R, of the same size or
        1. If each head has its own matrix, pass (1, H, 1, D, D) with x of (B, H, T, D).
    frequencies : array, at least float32, shape ``(A, d/2)`` or ``(A, *F, d/2)``
        theta, learned, in radians per unit of each axis: see `mixed_table`. d is at most D. F is as for `skew`.
    form : {"conjugate", "product"}
        Whether x returns from the learned axes. The two forms need different U: "product" with S gives the same logits as
        "conjugate" with -S.

        - ``"conjugate"``: The vector goes to the learned axes, rotates, and comes back (equation 9).
        - ``"product"``: The vector goes to the learned axes and rotates; going back would cancel in the product of a query and
          a key, as the paper says.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If `skew` or `frequencies` do not fit x, positions do not broadcast, positions or frequencies are half precision, or
        `form` is unknown.

    Notes
    -----
    The paper writes P for U. Its equation (2) pairs neighbouring channels, and its equation (5) sums over axes. At inference U
    (for "conjugate", its transpose) can be multiplied into the query and key projections.

    Examples
    --------
    >>> import numpy as np
    >>> x, skew = np.asarray([[1.0, 0.0]]), np.asarray([[0.0, 1.0], [0.0, 0.0]])
    >>> cayley_string(x, np.asarray([[1]]), skew, np.asarray([[np.pi]]), form="product").round(4).tolist()
    [[-0.0, -1.0]]
    """
    name = "cayley_string"
    check_word(name, "form", form, FORMS)
    xp = library(name, x=x, positions=positions, skew=skew)
    check_real(name, x=x)
    check_numbers(name, skew=skew)
    check_positions(name, "positions", positions)
    check_frequencies(name, "frequencies", frequencies)
    rows, width = tuple(x.shape[:-1]), x.shape[-1]
    s, f = tuple(skew.shape), tuple(frequencies.shape)
    if s[-2:] != (width, width) or not _fits(s[:-2], rows):
        msg = (
            f"{name}: skew must be ({width}, {width}), or (*F, {width}, {width}) with F of {len(rows)} axes that broadcast to "
            f"{rows} (the leading axes of x); got {s}."
        )
        raise ValueError(msg)
    if len(f) < 2 or not _fits(f[1:-1], rows) or 2 * f[-1] > width:
        msg = (
            f"{name}: frequencies must be (A, d/2), or (A, *F, d/2) with F of {len(rows)} axes that broadcast to {rows} (the "
            f"leading axes of x), and d at most {width}; got {f}."
        )
        raise ValueError(msg)
    check_coordinates(name, tuple(positions.shape), f[0], rows)
    work = wide(x.dtype, xp)
    basis = cayley(skew, dtype=work)
    first = xp.matrix_transpose(basis) if form == "conjugate" else basis
    cos, sin = mixed_table(positions, frequencies, dtype=work)
    rotated = apply_rope(matmul(first, cast(x, work)[..., None])[..., 0], cos, sin, layout="interleaved")
    if form == "conjugate":
        rotated = matmul(basis, rotated[..., None])[..., 0]
    return cast(rotated, x.dtype)


def _fits(axes: tuple[int, ...], rows: tuple[int, ...]) -> bool:
    """Return whether `axes` is empty, or is as long as `rows` and broadcasts to it."""
    return not axes or (len(axes) == len(rows) and all(n in (1, m) for n, m in zip(axes, rows, strict=True)))
