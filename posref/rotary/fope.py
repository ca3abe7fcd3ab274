"""FoPE, Fourier position embedding. Source: Hua et al., arXiv:2412.17739, and the authors' FourierEmbedding."""

from posref.arrays import beside, cast, namespace, repeat_heads, wide
from posref.checks import check_positions, check_real, check_rows
from posref.rotary.apply_rope import apply_rope
from posref.rotary.rope_frequencies import rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.spec import Axes, Real, encoding
from posref.types import ArrayOf, T


@encoding(
    family="rotary",
    source="arXiv:2412.17739",
    models=("OLMo-FoPE", "Intern-S1-Pro"),
    domains={"base": Real(0, usual=(2, 1e7))},
    invariants=("plain is rope", "decode"),
    arrays={
        "x": Axes("T 2*k | *R G*g T 2*k | *R G*g T 2*k | *R T 2*k"),
        "positions": Axes("~T | ~T | *R 1 T | ~*R ~T", "position"),
        "cos_mix": Axes("n m | G n m | G n m | n m"),
        "sin_mix": Axes("=cos_mix"),
    },
    result="=x",
    rows="*R T",
    requires=("1 <= n <= k", "1 <= m <= k", "G >= 1"),
    closed=True,
    rounded=("result",),
)
def fope(x: ArrayOf[T], positions: ArrayOf[T], cos_mix: ArrayOf[T], sin_mix: ArrayOf[T], /, *, base: float) -> T:
    r"""
    Return `x` rotated as by RoPE, except that every pair's cosine and sine are mixtures of those of all bands, per head.

    .. math:: y_u = x_u \, C_j - x_v \, S_j, \quad y_v = x_v \, C_j + x_u \, S_j, \qquad
        C_j = \sum_{i<n} \cos(p\theta_i) M_{ij}, \quad S_j = \sum_{i<n} \sin(p\theta_i) N_{ij}, \qquad \theta_i = b^{-2i/D}

    for pairs j < m, and :math:`C_j = S_j = 1` for the other pairs, up to D/2. Pair j is channels u = j and v = j + D/2 (layout
    half), band i one frequency of RoPE, and p the position.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, H, T, D)``, or ``(*R, T, D)`` with mixes of two axes
        Queries or keys; D even.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens; for x of (B, H, T, D) pass (T,) or (B, 1, T).
    cos_mix, sin_mix : arrays, shape ``(G, n, m)`` or ``(n, m)``
        M and N, in the dtype of `x`: learned, or drawn once around the identity. H is a multiple of G, and each mix serves a
        block of H/G neighbouring heads; a mix of two axes serves all heads. n, at most D/2, is how many bands are kept: those
        that make at least one full turn in the training length L, theta > 2 pi / L (authors, vLLM), or a number that one sets
        (``num_inv_freq``). m is min(n, D/4) in the authors' code, n in vLLM.
    base : float
        b of the frequencies, whose exponent has all of D.

    Returns
    -------
    array, shape of `x`
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If D is odd, mixes differ in shape, are larger than D/2 or do not divide the heads, or positions do not fit.

    Notes
    -----
    The pairs from m on have cosine *and* sine 1 in the authors' code, vLLM and SGLang: at every position they are rotated by 45
    degrees and lengthened by the root of 2. A frequency of 0 would leave them as they are.
    Products of a query and a key depend on more than their distance, unless the mixes are the identity.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.asarray([[1.0]])
    >>> fope(np.asarray([[1.0, 2.0, 0.0, 0.0]]), np.asarray([1]), one, one, base=10000.0).round(4).tolist()
    [[0.5403, 2.0, 0.8415, 2.0]]
    """
    xp = namespace(x, positions, cos_mix, sin_mix)
    check_positions("fope", "positions", positions)
    check_real("fope", x=x, cos_mix=cos_mix, sin_mix=sin_mix)
    kept, mixed = _check_mixes(tuple(x.shape), tuple(cos_mix.shape), tuple(sin_mix.shape))
    check_rows("fope", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    work, pairs = wide(x.dtype, xp), x.shape[-1] // 2
    system = xp if getattr(xp, "computes_constants", False) else None
    inv_freq = rope_frequencies(2 * pairs, base=base, xp=system)[0]
    full = xp.reshape(positions, (*(1,) * (x.ndim - 1 - positions.ndim), *positions.shape))
    tables = []
    for wave, mix in zip(rope_table(full, inv_freq[:kept], dtype=work), (cos_mix, sin_mix), strict=True):
        of_heads = repeat_heads("fope", mix, x.shape[-3]) if mix.ndim == 3 else mix
        table = xp.matmul(wave, cast(of_heads, work))
        ones = xp.broadcast_to(beside([1.0], x, work), (*table.shape[:-1], pairs - mixed))
        tables.append(xp.concat([table, ones], axis=table.ndim - 1))
    return apply_rope(x, *tables, layout="half")


def _check_mixes(x: tuple[int, ...], cos_mix: tuple[int, ...], sin_mix: tuple[int, ...]) -> tuple[int, int]:
    """Return n, how many bands are kept, and m, how many pairs are mixed; refuse mixes that do not fit x."""
    fits = cos_mix == sin_mix and len(cos_mix) in (2, 3) and len(x) >= len(cos_mix) and x[-1] % 2 == 0
    if not fits or not all(1 <= size <= x[-1] // 2 for size in cos_mix[-2:]):
        msg = (
            "fope: cos_mix and sin_mix must have one shape, (heads, n, m) or (n, m), with n and m from 1 to half the last axis "
            f"of x, {x}, which is even; got {cos_mix} and {sin_mix}."
        )
        raise ValueError(msg)
    return cos_mix[-2], cos_mix[-1]
