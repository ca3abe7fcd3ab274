"""Frequencies of RoPE and their context extensions. Source: Su et al., arXiv:2104.09864, section 3.2.2; `posref.scaling`."""

from typing import Any

from posref.core.arrays import Array, DType, Namespace, constants, created, once
from posref.core.checks import check_flag, check_integer, check_positive, quoted
from posref.rotary import llama3, longrope, ntk, yarn
from posref.scaling import (
    Clipped,
    DynamicNTK,
    DynamicYaRN,
    Linear,
    Llama3,
    LongRoPE,
    NTKAlpha,
    NTKAware,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRN,
    YaRNByTurns,
)
from posref.spec import Integer, Real, Record, encoding
from posref.types import HOST, AnyArray, N, NamespaceOf


@encoding(
    title="RoPE frequencies and context scaling",
    idea=(
        "With base 10000, RoPE rotates the first channel pair by 1 radian per token and the last by about 0.0001. This gives "
        "the angle per token of every pair. Scalings such as YaRN slow pairs down, so that a model can read longer texts."
    ),
    family="rotary",
    source="arXiv:2104.09864, section 3.2.2",
    models=("Llama", "Qwen", "Mistral", "Gemma", "DeepSeek", "gpt-oss"),
    outputs=("inv_freq", "attention_factor"),
    domains={
        "dim": Integer(2, step=2, usual=128),
        "base": Real(0, usual=(2, 1e7)),
        "scaling": Record(),
        "length": Integer(0, optional=True, usual=2**20),
    },
    result=("dim//2", ""),
)
@once
def rope_frequencies(
    dim: int,
    /,
    *,
    base: float,
    scaling: Scaling | None = None,
    length: int | AnyArray | None = None,
    xp: NamespaceOf[N] | None = HOST,
    device: Any = None,
    dtype: DType | None = None,
) -> tuple[N, float]:
    r"""
    Return the angle per token of every channel pair, and the factor that multiplies cos and sin.

    .. math:: \theta_i = b^{-2i/d}, \qquad i = 0 \dots d/2-1

    A `scaling` changes these frequencies. Here s is its factor, L its original length, and l = max(length, L):

    - ``Linear``: :math:`\theta_i / s`.
    - ``NTKAware``, ``NTKAlpha``: b becomes :math:`b \, s^{d/(d-2)}`, with s the factor or alpha.
    - ``DynamicNTK``: as NTKAware, with :math:`s l/L - (s - 1)` in place of s.
    - ``NTKFixed``: :math:`(b s)^{-2i/d} / s^{2/d}`.
    - ``NTKMixed``: :math:`\theta_i \, s^{-(2(i+1)/d)^{\beta}}`, where beta is `mix`.
    - ``Llama3``: :math:`(1 - \sigma_i) \theta_i / s + \sigma_i \theta_i`, where :math:`\sigma_i` is
      :math:`(L \theta_i / 2\pi - t) / (h - t)` clipped to [0, 1], t is `low_freq_factor` and h is `high_freq_factor`.
    - ``YaRN``: :math:`r_i \theta_i / s + (1 - r_i) \theta_i`, where :math:`r_i` is (i - low) / (high - low) clipped to [0, 1],
      low = max(floor(n(beta_fast)), 0), high = min(ceil(n(beta_slow)), d - 1),
      :math:`n(\beta) = d \ln(L / 2\pi\beta) / (2 \ln b)`. With ``truncate=False`` there is no floor and no ceil.
    - ``YaRNByTurns``: as YaRN, but :math:`1 - r_i` is
      :math:`(L \theta_i / 2\pi - \beta_{slow}) / (\beta_{fast} - \beta_{slow})` clipped to [0, 1].
    - ``DynamicYaRN``: as YaRN, with l / L in place of s.
    - ``LongRoPE``: :math:`\theta_i` divided by entry i of `long_factor` if length > L, else by entry i of `short_factor`.
    - ``Proportional``: :math:`\theta_i / s` for the first :math:`\lfloor p d / 2 \rfloor` pairs and 0 for the others, where p
      is `rotated`.
    - ``Clipped``: :math:`\theta_i g_i`, where :math:`g_{d/2-n+j} = \frac{1}{2} (1 + \cos(\pi j/(n-1)))`, or 0 if `hard`, for
      the last n = min(`pairs`, d/2) pairs, j from 0 to n - 1, and 1 for the others.

    Beside this file, llama3.py and yarn.py say what happens if a denominator is 0. yarn.py and longrope.py define the factor on
    cos and sin.

    Parameters
    ----------
    dim : int
        d, the number of channels that rotate. Even, and at least 4 for ``NTKAware``, ``NTKAlpha`` and ``DynamicNTK``.
    base : float
        b ("rope_theta" in configurations), above 0; above 1 for YaRN. No default: 10000, 500000 and 1e6 are all in use.
    scaling : record of posref.scaling, optional
        A context extension. None keeps theta as above.
    length : int or integer array without axes, optional
        The number of tokens in the sequence, cached ones included. ``DynamicNTK``, ``DynamicYaRN`` and ``LongRoPE`` need it;
        the others ignore it. Only ``DynamicNTK`` takes an array, so that one compiled graph serves every length. The
        frequencies are then computed in the library and on the device of that array.
    xp : module, optional
        The array library of the frequencies, such as ``torch``. None means host NumPy, which `rope_table` takes with positions
        of any library.
    device : optional
        The device of the frequencies, such as "cuda". Without `xp` it has no effect.
    dtype : data type, optional
        The dtype of the frequencies. None means float64, or float32 if `xp` does not compute in float64 (JAX without x64).

    Returns
    -------
    inv_freq : array, shape ``(d/2,)``
        Radians per token.
    attention_factor : float
        Multiplies cos and sin. It is 1 except for YaRN and LongRoPE with s > 1: :math:`0.1 \ln s + 1` for YaRN,
        :math:`\sqrt{1 + \ln s / \ln L}` for LongRoPE. Fields of these records can set it to another number.

    Raises
    ------
    ValueError
        If `dim` is odd, `base` or a factor is not positive, a list does not have d/2 entries, or a required `length` is
        missing.
    TypeError
        If `scaling` is not one of the records.

    Notes
    -----
    With dynamic NTK, `transformers` remembers the largest length so far. Here the result depends only on the arguments.

    Examples
    --------
    >>> rope_frequencies(4, base=10000.0)[0].tolist()
    [1.0, 0.01]
    """
    check_dim("rope_frequencies", dim)
    base = check_scaling("rope_frequencies", dim, base=base, scaling=scaling, length=length)
    c = constants(xp, length if isinstance(scaling, DynamicNTK) else None)
    b = c.asarray(float(base), dtype=c.float64)
    if isinstance(scaling, NTKAware | NTKAlpha | DynamicNTK):
        b = ntk.raised(b, ntk.factor_of(scaling, length, c), dim, c)
    inv_freq: Any = powers(b, dim, c)
    factor: Any = 1.0
    match scaling:
        case Linear():
            inv_freq = inv_freq / float(scaling.factor)
        case NTKFixed():
            inv_freq = ntk.fixed(b, dim, scaling, c)
        case NTKMixed():
            inv_freq = ntk.mixed(inv_freq, scaling, c)
        case Llama3():
            inv_freq = llama3.scaled(inv_freq, scaling, c)
        case YaRN() | YaRNByTurns() | DynamicYaRN():
            inv_freq, factor = yarn.scaled(inv_freq, b, scaling, length, c), yarn.attention_factor(scaling, length, c)
        case LongRoPE():
            inv_freq = longrope.scaled(inv_freq, scaling, length, c)
            factor = longrope.attention_factor(scaling, length, c)
        case Proportional():
            inv_freq = proportional(inv_freq, scaling, c)
        case Clipped():
            inv_freq = clipped(inv_freq, scaling, c)
    return created("rope_frequencies", inv_freq, xp, device, dtype), factor


def check_scaling(function: str, dim: int, *, base: Any, scaling: Any = None, length: Any = None) -> float:
    """Return the base. Raise, in the name of `function`, if it, a field of the scaling or the length is out of range."""
    base = check_positive(function, "base", base)
    match scaling:
        case None:
            pass
        case Linear():
            check_positive(function, "Linear.factor", scaling.factor)
        case NTKAware() | NTKAlpha() | DynamicNTK() | NTKFixed() | NTKMixed():
            ntk.check(function, scaling, dim, length)
        case Llama3():
            llama3.check(function, scaling)
        case YaRN() | YaRNByTurns() | DynamicYaRN():
            yarn.check(function, base, scaling, length)
        case LongRoPE():
            longrope.check(function, scaling, dim // 2, length)
        case Proportional():
            if not 0 <= scaling.rotated <= 1:
                shares = "must be a share of the head, from 0 to 1"
                msg = f"rope_frequencies: Proportional.rotated {shares}; got {scaling.rotated}."
                raise ValueError(msg)
            check_positive(function, "Proportional.factor", scaling.factor)
        case Clipped():
            check_integer(function, "Clipped.pairs", scaling.pairs, 0)
            check_flag(function, "Clipped.hard", scaling.hard)
        case _:
            of_dict = " To read a configuration's dict, call posref.rope_from_config."
            of_class = " Pass an instance, such as posref.scaling.YaRN(factor=4.0, original_length=32768)."
            remedy = of_dict if isinstance(scaling, dict) else of_class if isinstance(scaling, str | type) else ""
            msg = f"{function}: scaling must be a record of posref.scaling or None; got {quoted(scaling)}.{remedy}"
            raise TypeError(msg)
    return base


def powers(base: Array, dim: int, c: Namespace) -> Array:
    """Return ``base**(-2i/dim)`` for every pair i."""
    return c.pow(base, -c.arange(0, dim, 2, dtype=c.float64) / dim)


def check_dim(function: str, dim: int) -> int:
    """Return the number of channels as an int. Raise if it is odd or below 2."""
    dim = check_integer(function, "dim", dim, 2)
    if dim % 2:
        msg = f"{function}: dim must be even (channels rotate in pairs); got {dim}."
        raise ValueError(msg)
    return dim


def proportional(inv_freq: Array, scaling: Proportional, c: Namespace) -> Array:
    """
    Return the frequencies of the first pairs, divided by the factor, then zeros. The exponent has the d of the whole head.

    Every number system rotates the same number of pairs: `rotated` times d in binary64, halved and rounded down.
    """
    pairs = inv_freq.shape[0]
    rotating = c.asarray([i < int(float(scaling.rotated) * (2 * pairs)) // 2 for i in range(pairs)])
    return c.where(rotating, inv_freq / float(scaling.factor), c.asarray(0.0, dtype=c.float64))


def clipped(inv_freq: Array, scaling: Clipped, c: Namespace) -> Array:
    """Return the frequencies, the last of them slowed down by half a period of a cosine, or 0. The end of it is 0 exactly."""
    pairs = inv_freq.shape[0]
    n = min(int(scaling.pairs), pairs)
    first, last = pairs - n, max(n - 1, 1)
    kept = c.asarray([i < first or (i - first < last and not scaling.hard) for i in range(pairs)])
    turns = c.asarray([float(max(i - first, 0)) for i in range(pairs)], dtype=c.float64) / last
    return c.where(kept, inv_freq * (c.cos(c.pi * turns) + 1) / 2, c.asarray(0.0, dtype=c.float64))
