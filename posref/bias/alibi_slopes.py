"""ALiBi's slopes. Source: Press et al., arXiv:2108.12409, section 3, and the authors' get_slopes."""

from typing import Any

from posref.core.arrays import DType, constants, created, number_system
from posref.core.checks import check_integer, check_positive
from posref.spec import Integer, Real, encoding
from posref.types import HOST, N, NamespaceOf

LARGEST = 1024  # exponents of 2 below it have a power in float64


@encoding(
    title="ALiBi slopes",
    idea=(
        "In ALiBi every attention head lowers far keys at a rate of its own. With 8 heads the rates are 1/2, 1/4 and so on "
        "down to 1/256: the first head sees only the nearest tokens, the last one far back. This gives the rate of each head."
    ),
    family="bias",
    source="arXiv:2108.12409, section 3",
    models=("BLOOM", "MPT", "Baichuan-13B"),
    domains={
        "heads": Integer(1, usual=128),
        "max_bias": Real(0),
        "first": Integer(0, usual=16),
        "count": Integer(1, optional=True, usual=16),
    },
    result="(heads-first,count)[count!=None]",
    requires=("first < heads", "count is None or first+count <= heads"),
    noun="slopes",
    read={"Baichuan-13B": "sglang 0.5.23, sglang/srt/models/baichuan.py:58-80, 184-206"},
)
def alibi_slopes(
    heads: int,
    /,
    *,
    max_bias: float = 8,
    first: int = 0,
    count: int | None = None,
    xp: NamespaceOf[N] | None = HOST,
    device: Any = None,
    dtype: DType | None = None,
) -> N:
    r"""
    Return the slope of every head, or of the heads of one shard.

    .. math:: m_h = 2^{-\beta h/H}, \qquad h = 1 \dots H

    for H heads, if H is a power of two. Otherwise let P be the largest power of two below H. The first P slopes are those of P
    heads, :math:`2^{-\beta h/P}` for h = 1 ... P. The other H - P are every other slope of 2P heads,
    :math:`2^{-\beta(2n-1)/(2P)}` for n = 1 ... H - P.

    Parameters
    ----------
    heads : int
        H, the number of heads in the whole model (not in one shard), at least 1.
    max_bias : float
        beta, above 0; 8 in the paper. MPT calls it ``alibi_bias_max``.
    first : int
        The first head of the shard, from 0. With tensor parallelism over n ranks, rank r has the heads from r H / n on.
    count : int, optional
        How many heads the shard has. None means all from `first` on.
    xp : array namespace, optional
        The library of the result. None means NumPy.
    device : optional
        The device of the result. None means the library's default.
    dtype : data type, optional
        Dtype of the result. None means float64 if the library computes in float64, else float32.

    Returns
    -------
    array, shape ``(count,)``
        In logits per token, of heads `first`, ..., `first` + `count` - 1. They decrease with h if H is a power of two.

    Raises
    ------
    ValueError
        If `heads` is less than 1, `max_bias` is not positive, or a head of the shard is not one of the model's.

    Notes
    -----
    The paper does not say what to do when H is not a power of two. The rule above is from the authors' code. MPT's code
    computes the same slopes in another way.

    Examples
    --------
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    >>> alibi_slopes(3, first=1, count=2).tolist()
    [0.00390625, 0.25]
    """
    heads = check_integer("alibi_slopes", "heads", heads, 1)
    max_bias = check_positive("alibi_slopes", "max_bias", max_bias)
    first, count = check_shard("alibi_slopes", heads, first, count)
    c = constants(xp)
    below = 1 << heads.bit_length() - 1  # the power of two at or below heads
    steps = [2 * h for h in range(1, below + 1)] + [2 * h - 1 for h in range(1, heads - below + 1)]
    exponents = c.asarray(steps, dtype=c.float64) * float(max_bias) / (2 * below)
    slopes = c.pow(c.asarray(2.0, dtype=c.float64), -exponents)
    system = number_system(c)
    if system is not None and max_bias < LARGEST:  # error bounds also cover powers of a rounded ratio, as in BLOOM's code
        ratios = [2.0 ** (max_bias / below)] * below + [2.0 ** (max_bias / (2 * below))] * (heads - below)
        powers = [step // 2 for step in steps[:below]] + steps[below:]
        ratio, power = c.asarray(ratios, dtype=c.float64), c.asarray(powers, dtype=c.float64)
        slopes = system.either(slopes, lambda: c.pow(1 / ratio, power))
    return created("alibi_slopes", slopes if count == heads else slopes[first : first + count], xp, device, dtype)


def check_shard(name: str, heads: int, first: int, count: int | None) -> tuple[int, int]:
    """Return the first head of a shard and how many it has. Raise unless all are heads of the model."""
    first = check_integer(name, "first", first, 0)
    last = first if count is None else first + check_integer(name, "count", count, 1) - 1
    if last >= heads:
        msg = (
            f"{name}: the shard must have heads of the model, from 0 to {heads - 1}; got first={first} and count={count}. "
            "heads is the number in the whole model."
        )
        raise ValueError(msg)
    return first, heads - first if count is None else count
