"""The cosines and sines of RoPE from its parameters. Source: Su et al., arXiv:2104.09864, section 3.2.2; `posref.scaling`."""

from posref.core.arrays import DType, library, number_system, result_dtype
from posref.core.checks import check_positions
from posref.rotary.rope_frequencies import check_dim, check_scaling, rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.scaling import Scaling
from posref.spec import Axes, Integer, Real, Record, encoding
from posref.types import AnyArray, ArrayOf, T


@encoding(
    title="Cosines and sines of RoPE from a model's parameters",
    idea=(
        "This goes straight from a model's base and scaling to the cosine and sine of every position and channel pair. This is "
        "what a library's rotary module returns, and what a server keeps in its cache."
    ),
    tool=True,
    family="rotary",
    source="arXiv:2104.09864, section 3.2.2",
    models=("Llama", "Qwen", "Mistral", "Gemma", "DeepSeek", "gpt-oss"),
    outputs=("cos", "sin"),
    domains={
        "dim": Integer(2, step=2, usual=128),
        "base": Real(0, usual=(2, 1e7)),
        "scaling": Record(),
        "length": Integer(0, optional=True, usual=2**20),
    },
    arrays={"positions": Axes("*P", "position")},
    result="*P dim//2",
    rows="*P",
    read={"vLLM": "vllm 0.33.0, model_executor/layers/rotary_embedding/base.py:94-103"},
)
def rope_cos_sin(
    positions: ArrayOf[T],
    dim: int,
    /,
    *,
    base: float,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    dtype: DType | None = None,
) -> tuple[T, T]:
    r"""
    Return the cosine and sine of every position's angles, from the parameters of the frequencies.

    .. math:: c_{p,i} = f \cos(p \, \theta_i), \qquad s_{p,i} = f \sin(p \, \theta_i), \qquad \theta_i = b^{-2i/d}, \quad
        i = 0 \dots d/2-1

    Here p is the position. A `scaling` changes the frequencies :math:`\theta_i` and can have a factor f; otherwise f is 1. The
    result is exactly `rope_table` of `rope_frequencies`. A rotary module built from a configuration returns it, and a server's
    cache holds it.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dim : int
        d, the number of channels that rotate, even.
    base : float
        b ("rope_theta" in configurations), above 0.
    scaling : record of posref.scaling, optional
        A context extension, which changes theta and f: see `rope_frequencies`.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. Some scalings need it: see `rope_frequencies`.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    cos, sin : arrays, shape ``(*P, d/2)``
        One column for each pair, in every layout. Columns are not repeated for the two channels of a pair.

    Raises
    ------
    ValueError
        If positions are half precision, or as for `rope_frequencies`.

    Notes
    -----
    Caches often hold cosines and sines side by side in one array (vLLM), or every column twice (transformers).

    Examples
    --------
    >>> import numpy as np
    >>> cos, sin = rope_cos_sin(np.asarray([0, 1]), 4, base=10000.0)
    >>> cos.round(4).tolist(), sin.round(4).tolist()
    ([[1.0, 1.0], [0.5403, 1.0]], [[0.0, 0.0], [0.8415, 0.01]])
    """
    check_positions("rope_cos_sin", "positions", positions)
    xp = library("rope_cos_sin", positions=positions)
    dim = check_dim("rope_cos_sin", dim)
    check_scaling("rope_cos_sin", dim, base=base, scaling=scaling, length=length)
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length, xp=number_system(xp))
    return rope_table(positions, inv_freq, attention_factor=factor, dtype=result_dtype("rope_cos_sin", positions, dtype))
