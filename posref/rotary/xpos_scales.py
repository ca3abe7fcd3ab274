"""The scales of xPos, which make channels grow or decay. Source: Sun et al., arXiv:2212.10554."""

from typing import Literal, get_args

from posref.core.arrays import DType, beside, cast, constants, index_dtype, library, result_dtype, wide
from posref.core.checks import check_integer, check_positions, check_positive, check_word
from posref.rotary.rope_frequencies import check_dim
from posref.spec import Axes, Integer, OneOf, Real, encoding
from posref.types import ArrayOf, T

Role = Literal["query", "key"]
ROLES: tuple[Role, ...] = get_args(Role)
NEAR = ("-2 * scale_base", "min(centre + 4 * scale_base, 2**24)")  # positions near the centre: their scales stay moderate


@encoding(
    title="xPos scales",
    idea=(
        "xPos multiplies the channel pairs of queries by factors that fall with the position, and keys by factors that grow. "
        "In a product of the two only the distance is left, and far keys count less. This gives the factors."
    ),
    family="rotary",
    source="arXiv:2212.10554",
    models=("LEX",),
    domains={
        "dim": Integer(2, step=2, usual=64),
        "role": OneOf(ROLES),
        "centre": Integer(0, usual=4096),
        "scale_base": Real(0, usual=(64, 2**20)),
        "gamma": Real(0, usual=(0.25, 64)),
    },
    arrays={"positions": Axes("*P", "position", *NEAR)},
    result="*P dim//2",
    rows="*P",
    noun="scales",
    read={
        "x-transformers": "x-transformers 2.31.10, x_transformers/x_transformers.py:874-887",
        "rotary-embedding-torch": "rotary-embedding-torch 0.9.1, rotary_embedding_torch/rotary_embedding_torch.py:261",
        "torchscale": "torchscale 0.3.0, torchscale/component/xpos_relative_position.py:50-53",
        "flash-attn": "Dao-AILab/flash-attention@0251105a, flash_attn/layers/rotary.py:418-422",
    },
)
def xpos_scales(
    positions: ArrayOf[T],
    dim: int,
    /,
    *,
    role: Role,
    centre: int,
    scale_base: float = 512.0,
    gamma: float = 0.4,
    dtype: DType | None = None,
) -> T:
    r"""
    Return the factor for every channel pair: queries decay with their position, keys grow with it.

    .. math:: s_{p,i} = \zeta_i^{(p - c)/S} \text{ for queries}, \quad \zeta_i^{(c - p)/S} \text{ for keys}, \qquad
        \zeta_i = \frac{2i/d + \gamma}{1 + \gamma}, \qquad i = 0 \dots d/2-1

    Here p is the position, c the centre and S the scale base.

    Parameters
    ----------
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens.
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dim : int
        d, the number of channels that rotate, even.
    role : {"query", "key"}
        What the factors are for.

        - ``"query"``: The factors are for queries, and fall as the position grows.
        - ``"key"``: The factors are for keys, and grow with the position, so that only the distance counts.
    centre : int
        c, the position whose scales are 1, at least 0. Use the same for queries and keys. For n tokens it is floor(n/2) in
        x-transformers, rotary-embedding-torch and flash-attn, and ceil(n/2) in the authors' torchscale. There it moves with n,
        so keys cached from a shorter call do not fit.
    scale_base : float
        S, in tokens, above 0.
    gamma : float
        Above 0. A smaller gamma makes the first pairs decay more.
    dtype : data type, optional
        Dtype of the result. None means the dtype of floating positions, else the library's default real dtype.

    Returns
    -------
    array, shape ``(*P, d/2)``
        One column for each pair. With the defaults, the first pair's scale leaves the range of float16 at about 4500 tokens
        from the centre, the range of float32 and bfloat16 at about 36000, and the range of float64 at about 290000. Farther
        away it is infinite or 0, and the product of a query and a key is NaN. A centre near the positions keeps it in range.

    Raises
    ------
    ValueError
        If `dim` is odd, `role` is unknown, `centre` is negative, `scale_base` or `gamma` is not positive, or positions are
        half precision.

    Examples
    --------
    >>> import numpy as np
    >>> xpos_scales(np.asarray([0, 512, 1024]), 2, role="query", centre=512, gamma=1.0).tolist()
    [[2.0], [1.0], [0.5]]
    """
    name = "xpos_scales"
    check_dim(name, dim)
    centre, scale_base, gamma = check_scales(name, role, centre, scale_base, gamma)
    check_positions(name, "positions", positions)
    xp = library(name, positions=positions)
    c = constants(xp)
    shift = c.asarray(float(gamma), dtype=c.float64)
    zeta = (c.arange(0, dim, 2, dtype=c.float64) / dim + shift) / (shift + 1)
    whole = xp.isdtype(positions.dtype, "integral")
    places = cast(positions, index_dtype(positions)) if whole else positions  # signed: differences are exact integers
    apart = places - centre if role == "query" else centre - places
    dtype = result_dtype(name, positions, dtype)
    work = wide(dtype, xp)
    powers = xp.pow(beside(zeta, positions, work), cast(apart, work)[..., None] / float(scale_base))
    return cast(powers, dtype)


def check_scales(function: str, role: Role, centre: int, scale_base: float, gamma: float) -> tuple[int, float, float]:
    """Return the numbers among the options. Raise if an option is out of range."""
    check_word(function, "role", role, ROLES)
    centre = check_integer(function, "centre", centre, 0)
    return centre, check_positive(function, "scale_base", scale_base), check_positive(function, "gamma", gamma)
