"""Bins of residue, token and chain offsets. Source: Jumper et al. 2021 (AlphaFold 2), supplement, algorithm 4."""

from typing import Literal, get_args

from posref.core.arrays import Array, beside, clipped, distances, library, whole
from posref.core.checks import check_integer, check_mask, check_tokens, check_word
from posref.spec import Axes, Integer, OneOf, encoding, part
from posref.types import AnyArray, ArrayOf, T

Order = Literal["query_minus_key", "key_minus_query"]
Outside = Literal["last", "first"]
MOST = 2**31 - 1
ORDERS: tuple[Order, ...] = get_args(Order)
OUTSIDES: tuple[Outside, ...] = get_args(Outside)


@encoding(
    title="Residue bins (AlphaFold, Boltz, Chai, ESMFold)",
    idea=(
        "A model of proteins sees how far apart two residues are in the chain, up to 32: each offset has a bin, and all larger "
        "ones share the first or the last. Pairs that are not comparable, such as residues of two chains, have a bin of their "
        "own. A learned vector for each bin is added to the pair."
    ),
    family="bias",
    source="doi.org/10.1038/s41586-021-03819-2, supplement, algorithm 4",
    models=("AlphaFold 2", "AlphaFold 3", "Boltz", "Chai-1", "ESMFold"),
    domains={"left": Integer(0, usual=8), "right": Integer(0, usual=8), "order": OneOf(ORDERS), "outside": OneOf(OUTSIDES)},
    arrays={
        "q_residues": Axes("~*B Q", "integer"),
        "k_residues": Axes("~*B K", "integer"),
        "same": Axes("~*B ~Q ~K", "mask", optional=True),
    },
    result="*B Q K",
    rows="*B Q K",
    returns="integer",
    noun="bins",
    read={
        "AlphaFold 2": "google-deepmind/alphafold@c77e5d2, alphafold/model/modules.py:1977-1988",
        "AlphaFold-Multimer": "google-deepmind/alphafold@c77e5d2, alphafold/model/modules_multimer.py:574-592",
        "AlphaFold 3": "google-deepmind/alphafold3@c0f97ed, src/alphafold3/model/network/featurization.py:205-255",
        "OpenFold": "aqlaboratory/openfold@ce0029e, openfold/model/embedders.py:95-105, 135, 216-286",
        "Boltz": "boltz 2.2.1, boltz/model/modules/encoders.py:67-119",
        "Chai-1": (
            "chai_lab 0.6.1, chai_lab/data/features/generators/relative_sep.py:16-20, 53-66; "
            "chai_lab/data/features/generators/relative_token.py:17-52; "
            "chai_lab/data/features/generators/relative_chain.py:38-55"
        ),
        "Protenix": "protenix 2.0.0, protenix/model/modules/embedders.py:159-195",
        "ESMFold": "transformers 5.23.0, models/esm/modeling_esmfold.py:1256-1284",
        "ESM3": "esm 3.2.1.post1, esm/models/vqvae.py:31-52",
    },
)
def residue_bins(
    q_residues: ArrayOf[T], k_residues: ArrayOf[T], /, *, left: int, right: int, order: Order, outside: Outside,
    same: AnyArray | None = None,
) -> T:  # fmt: skip
    r"""
    Return the bin of every pair of residues: the clipped offset of their indices, or a bin for pairs that are not comparable.

    .. math:: b_{ij} = \mathrm{clip}(n_i - n_j, -l, r) + l

    for ``order="query_minus_key"``, where n_i and n_j are the indices of the residues, and l and r are `left` and `right`. For
    ``outside="last"`` a pair that is not `same` has the bin l + r + 1. For ``outside="first"`` it has the bin 0, and all others
    are one higher.

    Parameters
    ----------
    q_residues : array, integer, shape ``(*B, Q)``
        n of the rows of the pair matrix: residue indices in the chain, token indices, or copy numbers (``sym_id``).
    k_residues : array, integer, shape ``(*B, K)``
        n of the columns.
    left : int
        l: the offset that shares the first bin with all below it is -l. 32 for residues in AlphaFold, 33 in Chai-1;
        16 for Chai-1's tokens.
    right : int
        r: the offset that shares the last bin with all above it. 32 for residues and tokens, 2 for chains; 17 for
        Chai-1's tokens.
    order : {"query_minus_key", "key_minus_query"}
        The sign of the offset.

        - ``"query_minus_key"``: Row less column. Used by AlphaFold 2, AlphaFold 3, OpenFold, Boltz, Chai-1, Protenix.
        - ``"key_minus_query"``: Column less row. Used by ESMFold, ESM3.
    outside : {"last", "first"}
        Which bin is for pairs that are not `same`.

        - ``"last"``: The one after all others. Used by AlphaFold-Multimer, AlphaFold 3, Boltz, Chai-1.
        - ``"first"``: Bin 0, so that an offset of 0 is in bin left + 1. Used by ESMFold, ESM3.
    same : array, boolean, broadcasts to ``(*B, Q, K)``, optional
        True where the offset means something. For residues: both are in one chain. For tokens: in one chain and residue. For
        chains there are two rules, see Notes. None means everywhere.

    Returns
    -------
    array, default integer dtype, shape ``(*B, Q, K)``
        Between 0 and l + r + 1: rows of a learned table, or places of a one-hot vector before a linear layer. Without `same`
        AlphaFold 2's table has only l + r + 1 rows.

    Raises
    ------
    ValueError
        If indices are not integers or have no axis, `same` is not boolean or does not fit, `left` or `right` is below 0, their
        sum is 2**31 - 1 or more, or a word is unknown.

    Notes
    -----
    AlphaFold 3 has residue bins (66 columns), token bins (66), one column for the same entity, and chain bins (6). The rules of
    chain bins differ. AlphaFold 2 multimer, AlphaFold 3's code, OpenFold and Chai-1 take copy numbers and `same` true where the
    *entity* is the same. Boltz-1 takes `same` true where the *chain* is another. The two differ within every chain. Boltz's
    cyclic chains take the offset modulo the length first. ESM3 knows no
    pair outside: its row 0 is never read. Indices must stay integers: OpenFold casts them to the dtype of the
    model, and bfloat16 cannot tell 256 from 257.

    Examples
    --------
    >>> import numpy as np
    >>> n, chain = np.asarray([1, 2, 9, 1]), np.asarray([1, 1, 1, 2])
    >>> same = chain[:, None] == chain
    >>> bins = residue_bins(n, n, left=2, right=2, order="query_minus_key", outside="last", same=same)
    >>> bins[0].tolist()
    [2, 1, 0, 5]
    """
    name = "residue_bins"
    check_word(name, "order", order, ORDERS)
    check_word(name, "outside", outside, OUTSIDES)
    left, right = check_integer(name, "left", left, 0), check_integer(name, "right", right, 0)
    check_tokens(name, q_residues=q_residues, k_residues=k_residues)
    q, k = whole(name, "q_residues", q_residues), whole(name, "k_residues", k_residues)
    offsets = distances(q, k) if order == "query_minus_key" else -distances(q, k)
    if left + right >= MOST:
        msg = f"{name}: left + right must be below {MOST}, so that integers of 32 bits hold every bin; got {left + right}."
        raise ValueError(msg)
    bins = offset_bins(offsets, left=left, right=right)
    bins = bins + 1 if outside == "first" else bins
    if same is None:
        return bins
    xp = library(name, q_residues=q_residues, k_residues=k_residues, same=same)
    check_mask(name, "same", same, "two residues are comparable", "pairs", bins.shape)
    return xp.where(same, bins, beside(0 if outside == "first" else left + right + 1, bins, bins.dtype))


@part()
def offset_bins(offsets: Array, /, *, left: int, right: int) -> Array:
    """Return clipped offsets, counted from 0."""
    return clipped(offsets, -left, right) + left
