"""FoPE, Fourier position embedding. Source: Hua et al., arXiv:2412.17739, and the authors' FourierEmbedding."""

from posref.core.arrays import beside, cast, library, number_system, repeat_heads, wide
from posref.core.checks import check_positions, check_positive, check_real, check_rows
from posref.core.products import matmul
from posref.rotary.apply_rope import apply_rope
from posref.rotary.rope_frequencies import rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.spec import Axes, Real, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Fourier position embedding (FoPE)",
    idea=(
        "In FoPE each channel pair mixes the cosines and sines of many frequencies, with weights for each head. In RoPE it has "
        "one frequency. Pairs at the slow end get constants, which do not change with the position."
    ),
    longer="Perplexity and passkey retrieval hold up better than with RoPE.",
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
    read={
        "vLLM": "vllm 0.33.0, model_executor/layers/rotary_embedding/fope.py:74-132",
        "SGLang": "sglang 0.5.23, sglang/srt/layers/rotary_embedding/rope_variant.py:229-283",
        "the authors' code": "TsinghuaC3I/Fourier-Position-Embedding@bd94b20, olmo/model.py:658-663, 712-720",
        "OLMo-FoPE": "TsinghuaC3I/Fourier-Position-Embedding@bd94b20, olmo/model.py:647-722",
        "Intern-S1-Pro": "vllm 0.33.0, model_executor/models/interns1_pro.py:383-394",
    },
)
def fope(x: ArrayOf[T], positions: ArrayOf[T], cos_mix: ArrayOf[T], sin_mix: ArrayOf[T], /, *, base: float) -> T:
    r"""
    Return `x` rotated as by RoPE, but with each pair's cosine and sine replaced by learned sums over several frequencies.

    .. math:: y_u = x_u \, C_j - x_v \, S_j, \quad y_v = x_v \, C_j + x_u \, S_j, \qquad
        C_j = \sum_{i<n} \cos(p\theta_i) M_{ij}, \quad S_j = \sum_{i<n} \sin(p\theta_i) N_{ij}, \qquad \theta_i = b^{-2i/D}

    for pairs j < m, and :math:`C_j = S_j = 1` for the other pairs, up to j = D/2 - 1. Pair j is channels u = j and v = j + D/2
    (layout "half"). Band i is one frequency of RoPE, and p is the position.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, H, T, D)``, or ``(*R, T, D)`` with 2-D mixes
        Queries or keys. D is even.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens. For x of (B, H, T, D) pass (T,) or (B, 1, T).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    cos_mix : array, real floating, shape ``(G, n, m)`` or ``(n, m)``
        M, learned, or drawn once around the identity. H is a multiple of G, and each of the G mixes serves a block of H/G
        neighbouring heads. A 2-D mix serves all heads. n, at most D/2, is the number of bands that are kept: those with
        theta > 2 pi / L, which make more than one turn in the training length L (authors, vLLM), or a number that the
        configuration sets (``num_inv_freq``). m is min(n, D/4) in the authors' code with
        ``fourier_ignore_zero``, n in vLLM and SGLang.
    sin_mix : array, real floating, shape of `cos_mix`
        N, learned or drawn like M.
    base : float
        b, the base of the frequencies, above 0. Their exponent has all D channels.

    Returns
    -------
    array, shape of `x`
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If D is odd, the mixes differ in shape, n or m is 0 or above D/2, H is not a multiple of G, positions do not broadcast
        or are half precision, an array is not real floating, or `base` is not positive.

    Notes
    -----
    The pairs from m on have cosine *and* sine 1 in the authors' code, vLLM and SGLang. So at every position they are rotated by
    45 degrees and multiplied by the square root of 2. A frequency of 0 would leave them unchanged.

    The product of a query and a key generally depends on both positions. If the mixes are the identity, it depends only on
    the offset.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.asarray([[1.0]])
    >>> fope(np.asarray([[1.0, 2.0, 0.0, 0.0]]), np.asarray([1]), one, one, base=10000.0).round(4).tolist()
    [[0.5403, 2.0, 0.8415, 2.0]]
    """
    xp = library("fope", x=x, positions=positions, cos_mix=cos_mix, sin_mix=sin_mix)
    check_positions("fope", "positions", positions)
    check_real("fope", x=x, cos_mix=cos_mix, sin_mix=sin_mix)
    kept, mixed = _check_mixes(tuple(x.shape), tuple(cos_mix.shape), tuple(sin_mix.shape))
    check_rows("fope", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    work, pairs = wide(x.dtype, xp), x.shape[-1] // 2
    check_positive("fope", "base", base)
    inv_freq = rope_frequencies(2 * pairs, base=base, xp=number_system(xp))[0]
    full = xp.reshape(positions, (*(1,) * (x.ndim - 1 - positions.ndim), *positions.shape))
    tables = []
    for wave, mix in zip(rope_table(full, inv_freq[:kept], dtype=work), (cos_mix, sin_mix), strict=True):
        of_heads = repeat_heads("fope", mix, x.shape[-3]) if mix.ndim == 3 else mix
        table = matmul(wave, cast(of_heads, work))
        ones = xp.broadcast_to(beside([1.0], x, work), (*table.shape[:-1], pairs - mixed))
        tables.append(xp.concat([table, ones], axis=table.ndim - 1))
    return apply_rope(x, *tables, layout="half")


def _check_mixes(x: tuple[int, ...], cos_mix: tuple[int, ...], sin_mix: tuple[int, ...]) -> tuple[int, int]:
    """Return n, the number of bands kept, and m, the number of pairs mixed. Raise if the mixes do not fit x."""
    fits = cos_mix == sin_mix and len(cos_mix) in (2, 3) and len(x) >= len(cos_mix) and x[-1] % 2 == 0
    if not fits or not all(1 <= size <= x[-1] // 2 for size in cos_mix[-2:]):
        msg = (
            "fope: cos_mix and sin_mix must have the same shape, (n, m), or (G, n, m) if x has an axis of heads, with n and m "
            f"from 1 to half the last axis of x, which must be even; got {cos_mix}, {sin_mix} and x of shape {x}."
        )
        raise ValueError(msg)
    if len(cos_mix) == 3 and (cos_mix[0] == 0 or x[-3] % cos_mix[0]):
        msg = (
            "fope: the number of heads of x must be a multiple of the number of mixes (the first axis of cos_mix); "
            f"got {x[-3]} and {cos_mix[0]}."
        )
        raise ValueError(msg)
    return cos_mix[-2], cos_mix[-1]
