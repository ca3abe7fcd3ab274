"""The relative shift of Transformer-XL. Source: Dai et al., arXiv:1901.02860, appendix B; kimiyoung/transformer-xl."""

from posref.core.arrays import beside, library
from posref.core.checks import check_real
from posref.spec import Axes, encoding
from posref.types import T


@encoding(
    title="Relative shift (Transformer-XL)",
    idea=(
        "Transformer-XL multiplies each query with the vectors of all distances, once. Query 5 needs distance 2 at key 3, "
        "query 6 at key 4: each row must move one place less than the row above. One column of zeros and a reshape do it."
    ),
    tool=True,
    family="relative",
    source="arXiv:1901.02860, appendix B",
    models=("Transformer-XL", "XLNet", "Parakeet", "Wav2Vec2-Conformer", "Music Transformer"),
    arrays={"x": Axes("*R Q N")},
    result="*R Q N",
    rows="*R",
    read={
        "Parakeet": "transformers 5.23.0, models/parakeet/modeling_parakeet.py:341-347",
        "NeMo": "nemo_toolkit 3.0.0, nemo/collections/asr/parts/submodules/multi_head_attention.py:259-270",
        "ESPnet": "espnet 202511, espnet/nets/pytorch_backend/transformer/attention.py:391-408",
    },
)
def relative_shift(x: T, /) -> T:
    r"""
    Return scores by distance moved to the columns of their keys: row a moves Q - 1 - a places to the left.

    .. math:: Y_{a,c} = X_{a,\, c + Q - 1 - a} \quad \text{where } c + Q - 1 - a < N

    where X is the input with Q rows and N columns, and a and c count rows and columns from 0. The other cells hold what the
    code leaves there: with a column of zeros before X, all rows one after another make a row Z, and
    :math:`Y_{a,c} = Z_{Q + aN + c}`. So they are 0 or numbers of the rows below.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, Q, N)``
        X: column c has the score for distance s - c between query and key, with a first distance s.

    Returns
    -------
    array, shape ``(*R, Q, N)``
        Entries of `x`, bit for bit, and zeros.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes or is not real floating.

    Notes
    -----
    The queries are the last Q of K tokens. With distances K - 1, ..., 1 - Q (N = K + Q - 1 columns) the first K columns of the
    result are the scores of the K keys, all of them right. Parakeet, NeMo and ESPnet have this, with Q = K. With distances
    K - 1, ..., 0 (N = K columns; Transformer-XL, Music Transformer) only keys up to the query are right: column c of row a
    if c <= K - Q + a. A causal mask must hide the others. XLNet has distances K, ..., 1 - Q and no column of zeros: that is the
    shift of all columns but the first. Gemma 3n and 4 move to the right instead, into a window of keys.

    Examples
    --------
    >>> import numpy as np
    >>> relative_shift(np.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).tolist()
    [[2.0, 3.0, 0.0], [4.0, 5.0, 6.0]]
    """
    name = "relative_shift"
    xp = library(name, x=x)
    check_real(name, x=x)
    if x.ndim < 2:
        msg = f"{name}: x must have an axis of queries and one of distances; got shape {tuple(x.shape)}."
        raise ValueError(msg)
    *lead, queries, distances = x.shape
    zeros = xp.broadcast_to(beside([0.0], x, x.dtype), (*lead, queries, 1))
    wider = xp.concat([zeros, x], axis=x.ndim - 1)
    flat = xp.reshape(wider, (*lead, queries * (distances + 1)))  # Dask can merge axes and split one, but not both at once
    return xp.reshape(flat[..., queries:], (*lead, queries, distances))
