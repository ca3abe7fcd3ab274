"""KERPLE: kernelized relative positions. Source: Chi et al., arXiv:2205.09921, section 4."""

from typing import Literal, get_args

from posref.core.arrays import Array, beside, cast, distances, library, namespace, wide
from posref.core.checks import check_positions, check_real, check_tokens, check_word
from posref.spec import Axes, OneOf, encoding, part
from posref.types import ArrayOf, T

Form = Literal["log", "power", "weight"]
FORMS: tuple[Form, ...] = get_args(Form)


@encoding(
    title="Kernelized relative positions (KERPLE)",
    idea=(
        "Every attention head lowers the logit of a key by a learned function of its distance: a logarithm or a power. The "
        "logarithm falls ever more slowly, so far keys stay visible in texts longer than in training."
    ),
    longer="The logarithm extrapolates very well, on three datasets.",
    family="bias",
    source="arXiv:2205.09921, section 4",
    domains={"form": OneOf(FORMS)},
    arrays={
        "q_positions": Axes("~*B Q", "position"),
        "k_positions": Axes("~*B K", "position"),
        "r1": Axes("H", positive=True, usual=(0.0, 2.0)),
        "r2": Axes("H", positive=True, usual=(0.0, 2.0)),
    },
    result="*B H Q K",
    rows="*B H Q K",
    invariants=("shift invariant", "decode"),
)
def kerple(q_positions: ArrayOf[T], k_positions: ArrayOf[T], r1: ArrayOf[T], r2: ArrayOf[T], /, *, form: Form) -> T:
    r"""
    Return KERPLE's bias, or its weight, for each head and each query-key distance.

    .. math::

        B_{h,i,j} &= -r_{1,h} \ln(1 + r_{2,h} \, |p_i - p_j|) && \text{log} \\
        B_{h,i,j} &= -r_{1,h} \, |p_i - p_j|^{r_{2,h}} && \text{power} \\
        W_{h,i,j} &= \exp(-r_{1,h} \, |p_i - p_j|^{r_{2,h}}) && \text{weight}

    where p_i and p_j are the positions of query i and key j, and h is the head. At distance 0 a bias is 0, a weight 1.

    Parameters
    ----------
    q_positions : array, integer or at least float32, shape ``(*B, Q)``
        Positions of the queries, in tokens.
    k_positions : array, integer or at least float32, shape ``(*B, K)``
        Positions of the keys, in tokens.
    r1 : array, real floating, shape ``(H,)``
        The amplitude of each head, learned, above 0. In the authors' code ``bias_p`` of the logarithm, ``bias_a`` of the power,
        ``wei_a`` of the weight.
    r2 : array, real floating, shape ``(H,)``
        Learned, above 0: the rate of the logarithm (``bias_a``), or the exponent of a power, at most 2 (``bias_p``, ``wei_p``).
    form : {"log", "power", "weight"}
        Which function of the distance.

        - ``"log"``: The bias is minus r1 times the logarithm of one plus r2 times the distance.
        - ``"power"``: The bias is minus r1 times the distance to the power of r2. With r2 = 1 it is ALiBi with learned slopes.
        - ``"weight"``: A factor of the logits, exp of the bias of form "power", between 0 and 1. The authors' code then
          adds a bias of form "power" to the weighted logits.

    Returns
    -------
    array, shape ``(*B, H, Q, K)``
        In the dtype of `r1`. A bias is in logit units: add it after the 1/sqrt(D) scale and before the softmax. A weight
        multiplies the scaled logits, before any bias is added.

    Raises
    ------
    ValueError
        If `form` is unknown, `r1` and `r2` are not real floating or not both ``(H,)``, or positions are half precision or have
        no axis.

    Notes
    -----
    The kernel is conditionally positive definite if r1 > 0 and, for a power, 0 < r2 <= 2. The authors' code (chijames/KERPLE,
    megatron/mpu/layers.py) keeps its parameters there: before every forward pass it raises all of them to at least 0.01 and
    lowers exponents to at most 2. Pass parameters that are already clamped. That code has distance 0 for keys after the query,
    which its causal mask hides. The bias does not replace a mask.

    Examples
    --------
    >>> import numpy as np
    >>> r1, r2 = np.asarray([1.5]), np.asarray([0.5])
    >>> kerple(np.asarray([3]), np.arange(4), r1, r2, form="log").round(4).tolist()
    [[[-1.3744, -1.0397, -0.6082, -0.0]]]
    """
    name = "kerple"
    check_word(name, "form", form, FORMS)
    check_positions(name, "q_positions", q_positions)
    check_positions(name, "k_positions", k_positions)
    check_tokens(name, q_positions=q_positions, k_positions=k_positions)
    check_real(name, r1=r1, r2=r2)
    if r1.ndim != 1 or tuple(r1.shape) != tuple(r2.shape):
        msg = f"{name}: r1 and r2 must both be (heads,); got {tuple(r1.shape)} and {tuple(r2.shape)}."
        raise ValueError(msg)
    xp = library(name, q_positions=q_positions, k_positions=k_positions, r1=r1, r2=r2)
    work = wide(r1.dtype, xp)
    apart = cast(xp.abs(distances(q_positions, k_positions)), work)[..., None, :, :]
    amplitude, shape = (cast(r, work)[:, None, None] for r in (r1, r2))
    bias = -amplitude * (kerple_logarithm(apart, shape) if form == "log" else kerple_power(apart, shape))
    return cast(xp.exp(bias) if form == "weight" else bias, r1.dtype)


@part()
def kerple_logarithm(apart: Array, rate: Array, /) -> Array:
    """Return the logarithm of one plus the rate times the distance, as the field writes it (not log1p)."""
    return namespace(apart).log(rate * apart + beside(1.0, apart, apart.dtype))


@part()
def kerple_power(apart: Array, exponent: Array, /) -> Array:
    """Return the distance to the power of the exponent, and 0 at distance 0, where a power has no gradient."""
    xp = namespace(apart)
    nothing, one = apart == 0, beside(1.0, apart, apart.dtype)
    power = xp.pow(xp.where(nothing, one, apart), exponent)
    return xp.where(nothing, beside(0.0, apart, apart.dtype), power)
