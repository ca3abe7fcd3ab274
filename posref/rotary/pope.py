"""PoPE, polar coordinate position embedding. Source: Gopalakrishnan et al., arXiv:2509.10534."""

from typing import Literal, get_args

from posref.core.angles import cos_sin_of_pairs
from posref.core.arrays import Array, beside, by_sign, cast, clipped, has_float64, library, namespace, number_system, wide
from posref.core.checks import check_lanes, check_positions, check_positive, check_real, check_rows, check_word
from posref.rotary.rope_frequencies import rope_frequencies
from posref.spec import Axes, OneOf, Real, encoding
from posref.types import ArrayOf, T

Layout = Literal["cos_sin", "interleaved"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@encoding(
    title="Polar position embedding (PoPE)",
    idea=(
        "In PoPE the content gives every channel a length, and the position gives it an angle, so what a token says and "
        "where it stands do not mix. In RoPE the angle depends on both."
    ),
    longer="Perplexity stays stable beyond the training length without tuning.",
    family="rotary",
    source="arXiv:2509.10534",
    domains={"layout": OneOf(LAYOUTS), "base": Real(0, usual=(2, 1e7))},
    invariants=("relative", "decode"),
    arrays={
        "x": Axes("D | *R T D | *R T D | B H T D | B H T D"),
        "positions": Axes(" | ~*R ~T | ~*R ~T | B 1 T | T", "position"),
        "phases": Axes("D | ~*R ~T D | D | H 1 D | H 1 D", optional=True),
    },
    result="2*D | *R T 2*D | *R T 2*D | B H T 2*D | B H T 2*D",
    rows="*R B H T",
    requires=("D > 0",),
    closed=True,
    rounded=("result",),
    read={
        "x-transformers": "lucidrains/x-transformers@9252ed7, x_transformers/x_transformers.py:913-920",
        "PoPE-pytorch": "lucidrains/PoPE-pytorch@ee11cab, PoPE_pytorch/pope.py:69-78",
    },
)
def pope(x: ArrayOf[T], positions: ArrayOf[T], /, *, layout: Layout, base: float, phases: ArrayOf[T] | None = None) -> T:
    r"""
    Return every channel of `x` as a point in the plane. The content gives its magnitude, the position gives its angle.

    .. math:: y_{p,c} = \mathrm{softplus}(x_c) \, (\cos\alpha_c, \sin\alpha_c), \qquad \alpha_c = p \, \theta_c + \delta_c,
        \qquad \theta_c = b^{-c/d}, \; c = 0 \dots d-1

    Here p is the position, c the channel and :math:`\delta_c` its phase. Softplus is :math:`\ln(1 + e^x)`. With phases only on
    the keys, :math:`\langle y^q_p, y^k_n \rangle = \sum_c \mu^q_c \mu^k_c \cos((n - p)\theta_c + \delta_c)`, with
    :math:`\mu = \mathrm{softplus}(x)`. So logits depend on positions only through n - p.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, d)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens. For x of (B, H, T, d) pass (T,) or (B, 1, T).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    layout : {"cos_sin", "interleaved"}
        Where the two coordinates of channel c go.

        - ``"cos_sin"``: Channel c goes to c and d + c: all cosines before all sines. Used by x-transformers.
        - ``"interleaved"``: Channel c goes to 2c and 2c + 1: each cosine beside its sine. Used by PoPE-pytorch.
    base : float
        b, above 0; 10000 in both libraries. There are d frequencies, twice as many as RoPE has for d channels.
    phases : array, real floating, optional
        delta, in radians: learned, for keys. Pass them as (d,), or as (H, 1, d) for x of (B, H, T, d): they broadcast to the
        shape of `x`. They are clipped to [-2 pi, 0]. None means 0, as for queries.

    Returns
    -------
    array, shape ``(*R, 2d)``
        In the dtype of `x`.

    Raises
    ------
    ValueError
        If positions do not broadcast or are half precision, x or phases are not real floating, phases do not fit x, `base` is
        not positive, or `layout` is unknown.

    Notes
    -----
    Softplus is computed as max(x, 0) + log1p(exp(-\|x\|)), which neither overflows nor loses small values. PyTorch's softplus
    returns x above 20, which is too small by up to 2e-9. PoPE-pytorch's kernels compute ln(1 + exp(x)) in float32, which is 0
    below -17.

    Examples
    --------
    >>> import numpy as np
    >>> pope(np.asarray([[0.0]]), np.asarray([1]), layout="cos_sin", base=10000.0).round(4).tolist()
    [[0.3745, 0.5833]]
    """
    check_word("pope", "layout", layout, LAYOUTS)
    xp = library("pope", x=x, positions=positions)
    check_lanes("pope", "x", x)
    check_real("pope", x=x)
    check_positions("pope", "positions", positions)
    check_rows("pope", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    work = wide(x.dtype, xp)
    if phases is not None:
        library("pope", phases=phases)
        check_real("pope", phases=phases)
        _check_phases(tuple(phases.shape), tuple(x.shape))
        phases = _clamped(phases)
    check_positive("pope", "base", base)
    inv_freq = rope_frequencies(2 * x.shape[-1], base=base, xp=number_system(xp))[0]
    cos, sin = cos_sin_of_pairs(positions[..., None], inv_freq, dtype=work, phases=phases)
    size = softplus(cast(x, work))
    parts = [cast(size * wave, x.dtype) for wave in (cos, sin)]
    if layout == "cos_sin":
        return xp.concat(parts, axis=x.ndim - 1)
    return xp.reshape(xp.stack(parts, axis=-1), (*x.shape[:-1], 2 * x.shape[-1]))


def softplus(x: Array) -> Array:
    """Return ``ln(1 + exp(x))``, accurate and finite for every x."""
    xp = namespace(x)
    _, above, size = by_sign(x)
    result = above + xp.log1p(xp.exp(size))
    if number_system(xp) is not None:  # error bounds also cover the formula as written
        return xp.either(result, lambda: xp.log(xp.exp(x) + 1))
    return result


def _clamped(phases: Array) -> Array:
    """Return phases clipped to [-2 pi, 0]. In float32, which does not hold 2 pi, those outside become 0, the same angle."""
    xp = namespace(phases)
    if has_float64(phases):
        return clipped(cast(phases, xp.float64), -2 * xp.pi, 0.0)
    phases = cast(phases, xp.float32)
    return xp.where((phases < -2 * xp.pi) | (phases > 0), beside(0.0, phases, xp.float32), phases)


def _check_phases(shape: tuple[int, ...], full: tuple[int, ...]) -> None:
    """Raise if phases do not have a number for every channel, or do not broadcast to x."""
    fits = len(shape) <= len(full) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(full), strict=False))
    if not shape or shape[-1] != full[-1] or not fits:
        msg = f"pope: phases must broadcast to the shape of x, {full}, with {full[-1]} in the last axis; got {shape}."
        raise ValueError(msg)
