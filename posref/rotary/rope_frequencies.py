"""Frequencies of RoPE and their context extensions. Source: Su et al., arXiv:2104.09864, section 3.2.2; `posref.scaling`."""

from typing import Any

from posref.arrays import Array, DType, Namespace, check_integer, check_positive, constants, created
from posref.rotary import llama3, yarn
from posref.scaling import DynamicNTK, Linear, Llama3, NTKAware, Scaling, YaRN
from posref.spec import Integer, Real, Record, encoding


@encoding(
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
)
def rope_frequencies(
    dim: int,
    /,
    *,
    base: float,
    scaling: Scaling | None = None,
    length: int | None = None,
    xp: Namespace | None = None,
    device: Any = None,
    dtype: DType | None = None,
) -> tuple[Array, float]:
    r"""
    Return the angle per token of every rotated pair, and the factor that multiplies cos and sin.

    .. math:: \theta_i = b^{-2i/d}, \qquad i = 0 \dots d/2-1

    A `scaling` changes them, with s its factor and L its original length:

    - ``Linear``: :math:`\theta_i / s`.
    - ``NTKAware``: b becomes :math:`b \, s^{d/(d-2)}`.
    - ``DynamicNTK``: as NTKAware with :math:`s l/L - (s - 1)` for s, where l = max(length, L).
    - ``Llama3``: see `posref.rotary.llama3`.  ``YaRN``: see `posref.rotary.yarn`.

    Parameters
    ----------
    dim : int
        Rotated lanes d, even; with NTK at least 4.
    base : float
        b ("rope_theta"), above 0. No default: 10000, 500000 and 1e6 are all in use.
    scaling : record of posref.scaling, optional
        A context extension.
    length : int, optional
        Tokens in the sequence, cached ones included; required by ``DynamicNTK``, ignored by the others.
    xp, device, dtype : optional
        Where the frequencies go; by default host NumPy float64, also when everything else is in another library.

    Returns
    -------
    inv_freq : array, shape ``(d/2,)``
        Radians per token.
    attention_factor : float
        Multiplies cos and sin; 1 except for YaRN.

    Raises
    ------
    ValueError
        If `dim` is odd, `base` or a factor is not positive, or ``DynamicNTK`` has no `length`.
    TypeError
        If `scaling` is not one of the records.

    Notes
    -----
    `transformers` keeps the largest length that dynamic NTK has seen; here a result depends on its arguments alone.

    Examples
    --------
    >>> rope_frequencies(4, base=10000.0)[0].tolist()
    [1.0, 0.01]
    """
    check_dim("rope_frequencies", dim)
    check_positive("rope_frequencies", "base", base)
    c = constants(xp)
    b = c.asarray(float(base), dtype=c.float64)
    factor: Any = 1.0
    match scaling:
        case None:
            inv_freq = powers(b, dim, c)
        case Linear():
            inv_freq = powers(b, dim, c) / _factor(scaling)
        case NTKAware():
            inv_freq = powers(_ntk_base(b, c.asarray(_factor(scaling), dtype=c.float64), dim, c), dim, c)
        case DynamicNTK():
            inv_freq = powers(_ntk_base(b, _dynamic_factor(scaling, length, c), dim, c), dim, c)
        case Llama3():
            inv_freq = llama3.scaled(powers(b, dim, c), scaling, c)
        case YaRN():
            inv_freq, factor = yarn.scaled(powers(b, dim, c), b, scaling, c), yarn.attention_factor(scaling, c)
        case _:
            msg = f"rope_frequencies: scaling must be a record of posref.scaling or None; got {scaling!r}."
            raise TypeError(msg)
    return created(inv_freq, xp, device, dtype), factor


def powers(base: Array, dim: int, c: Namespace) -> Array:
    """Return ``base**(-2i/dim)`` for every pair i."""
    return c.pow(base, -c.arange(0, dim, 2, dtype=c.float64) / dim)


def check_dim(function: str, dim: int) -> None:
    """Refuse a number of lanes that does not hold whole pairs."""
    check_integer(function, "dim", dim, 2)
    if dim % 2:
        msg = f"{function}: dim must be even (lanes rotate in pairs); got {dim}."
        raise ValueError(msg)


def _factor(scaling: Linear | NTKAware | DynamicNTK) -> float:
    """Return the record's factor, checked."""
    check_positive("rope_frequencies", f"{type(scaling).__name__}.factor", scaling.factor)
    return float(scaling.factor)


def _ntk_base(base: Array, factor: Array, dim: int, c: Namespace) -> Array:
    """Return ``base * factor**(dim/(dim-2))``."""
    if dim < 4:
        msg = f"rope_frequencies: dim must be at least 4 with NTK scaling (its exponent is dim/(dim-2)); got {dim}."
        raise ValueError(msg)
    return base * c.pow(factor, c.asarray(float(dim), dtype=c.float64) / (dim - 2))


def _dynamic_factor(scaling: DynamicNTK, length: int | None, c: Namespace) -> Array:
    """Return ``s l/L - (s - 1)``, which is 1 up to the original length."""
    if length is None:
        msg = "rope_frequencies: length must be given with DynamicNTK (the number of tokens, cached ones included); got None."
        raise ValueError(msg)
    check_integer("rope_frequencies", "length", length, 0)
    check_integer("rope_frequencies", "DynamicNTK.original_length", scaling.original_length, 1)
    s = c.asarray(_factor(scaling), dtype=c.float64)
    return s * max(length, scaling.original_length) / scaling.original_length - (s - 1)
