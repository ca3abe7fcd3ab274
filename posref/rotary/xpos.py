"""xPos, rotary position embedding with an exponential decay. Source: Sun et al., arXiv:2212.10554."""

from posref.arrays import Array, namespace, wide
from posref.checks import check_lanes, check_positions, check_rows, check_word
from posref.rotary.apply_rope import LAYOUTS, apply_rope
from posref.rotary.rope_frequencies import rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.rotary.xpos_scales import NEAR, ROLES, xpos_scales
from posref.spec import Axes, Integer, OneOf, Real, encoding


@encoding(
    family="rotary",
    source="arXiv:2212.10554",
    models=("LEX",),
    domains={
        "role": OneOf(ROLES),
        "layout": OneOf(tuple(LAYOUTS)),
        "base": Real(0, usual=(2, 1e7)),
        "centre": Integer(0, usual=4096),
        "rotary_dim": Integer(2, step=2, optional=True, usual=64),
        "scale_base": Real(0, usual=(64, 2**20)),
        "gamma": Real(0, usual=(0.25, 64)),
    },
    invariants=("relative", "centre cancels", "tail unchanged", "decode"),
    stages=("rope_frequencies", "rope_table", "xpos_scales", "apply_rope"),
    arrays={"x": Axes("D | *R T D | B T H D"), "positions": Axes(" | ~*R ~T | T 1", "position", *NEAR)},
    requires=("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0", "H > 1"),
)
def xpos(
    x: Array,
    positions: Array,
    /,
    *,
    role: str,
    layout: str,
    base: float,
    centre: int,
    rotary_dim: int | None = None,
    scale_base: float = 512.0,
    gamma: float = 0.4,
) -> Array:
    r"""
    Return `x` rotated as by RoPE, where pairs of queries decay with the position and those of keys grow.

    .. math:: (X_p x)_a = s_{p,i} (x_a \cos p\theta_i - x_b \sin p\theta_i), \qquad
        (X_p x)_b = s_{p,i} (x_b \cos p\theta_i + x_a \sin p\theta_i), \qquad \theta_i = b^{-2i/d}

    so that :math:`\langle X_p q, X_n k \rangle` depends on p - n alone, not on the centre, and decays as
    :math:`\zeta_i^{(p-n)/S}` where p > n. It grows where p < n: the encoding is for causal attention.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens; P broadcasts from the right against R and never enlarges it.
    role : {"query", "key"}
        Which of the two x is.
    layout : {"half", "interleaved", "interleaved_to_half"}
        Which lanes are a pair: see `apply_rope`. Interleaved in torchscale, x-transformers and rotary-embedding-torch.
    base : float
        b of the frequencies; 10000 in torchscale.
    centre, scale_base, gamma
        The scales s: see `xpos_scales`, also for how far positions may be from the centre.
    rotary_dim : int, optional
        Leading lanes d that rotate and are scaled, even; None is all.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; lanes from `rotary_dim` on as they came.

    Raises
    ------
    ValueError
        If `rotary_dim` is odd or larger than D, positions do not broadcast or are half precision, or an option is unknown.

    Notes
    -----
    The paper has no context extension. Where libraries interpolate, rotary-embedding-torch divides the positions of rotation
    and decay, x-transformers those of the rotation alone.

    Examples
    --------
    >>> import numpy as np
    >>> options = {"layout": "half", "base": 10000.0, "centre": 0, "gamma": 1.0}
    >>> xpos(np.asarray([[1.0, 0.0]]), np.asarray([512]), role="key", **options).round(4).tolist()
    [[-1.9937, 0.159]]
    """
    check_word("xpos", "layout", layout, tuple(LAYOUTS))
    xp = namespace(x, positions)
    check_lanes("xpos", "x", x)
    check_positions("xpos", "positions", positions)
    check_rows("xpos", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    if isinstance(dim, bool) or not isinstance(dim, int) or dim % 2 or not 2 <= dim <= x.shape[-1]:
        msg = f"xpos: rotary_dim must be even and at most {x.shape[-1]} (the last axis of x); got {dim}."
        raise ValueError(msg)
    system = xp if getattr(xp, "computes_constants", False) else None
    inv_freq, _ = rope_frequencies(dim, base=base, xp=system)
    work = wide(x.dtype, xp)
    cos, sin = rope_table(positions, inv_freq, dtype=work)
    scales = xpos_scales(positions, dim, role=role, centre=centre, scale_base=scale_base, gamma=gamma, dtype=work)
    return apply_rope(x, cos * scales, sin * scales, layout=layout)
