"""RoPE, rotary position embedding. Source: Su et al., arXiv:2104.09864, section 3.2."""

from posref.arrays import Array, namespace, wide
from posref.checks import check_positions, check_rows, check_word
from posref.rotary.apply_rope import LANES, LAYOUTS, apply_rope
from posref.rotary.rope_frequencies import rope_frequencies
from posref.rotary.rope_table import rope_table
from posref.scaling import Scaling
from posref.spec import Axes, Flag, Integer, OneOf, Real, Record, encoding


@encoding(
    family="rotary",
    source="arXiv:2104.09864, section 3.2",
    models=("Llama", "Qwen", "Mistral", "Gemma", "GPT-NeoX", "GPT-J", "DeepSeek", "gpt-oss"),
    domains={
        "layout": OneOf(tuple(LAYOUTS)),
        "base": Real(0, usual=(2, 1e7)),
        "rotary_dim": Integer(2, step=2, optional=True, usual=64),
        "scaling": Record("rotary_dim or D"),
        "length": Integer(0, optional=True, usual=2**20),
        "inverse": Flag(),
        "lanes": OneOf(LANES),
    },
    invariants=("identity at 0", "relative", "norm kept", "tail unchanged", "batch equivariant", "chunks", "decode"),
    stages=("rope_frequencies", "rope_table", "apply_rope"),
    arrays={"x": Axes("D | *R T D | B T H D"), "positions": Axes(" | ~*R ~T | T 1", "position")},
    requires=("2 <= (rotary_dim or D) <= D", "(rotary_dim or D) % 2 == 0", "H > 1"),
)
def rope(
    x: Array,
    positions: Array,
    /,
    *,
    layout: str,
    base: float,
    rotary_dim: int | None = None,
    scaling: Scaling | None = None,
    length: int | None = None,
    inverse: bool = False,
    lanes: str = "leading",
) -> Array:
    r"""
    Return `x` with every pair of lanes rotated by an angle proportional to its position.

    .. math:: (R_p x)_a = x_a \cos p\theta_i - x_b \sin p\theta_i, \qquad
        (R_p x)_b = x_b \cos p\theta_i + x_a \sin p\theta_i, \qquad \theta_i = b^{-2i/d}

    so that :math:`\langle R_p q, R_n k \rangle` depends on p - n alone.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(*P,)``
        Positions in tokens; P broadcasts from the right against R and never enlarges it: (B, H, T, D) takes (T,) or (B, 1, T).
    layout : {"half", "interleaved", "interleaved_to_half"}
        Which lanes are a pair: see `apply_rope`. `posref.configs.LAYOUTS` lists it by model type.
    base, scaling, length
        Frequencies: see `rope_frequencies`.
    rotary_dim : int, optional
        Lanes d that rotate, even; None is all. The frequencies' exponent has this d, as in GPT-J and GPT-NeoX.
    inverse : bool
        The transpose: see `apply_rope`. A factor of the scaling still multiplies. In a layout that writes where it reads it is
        the rotation by the negative angle, of models that turn the other way, as NanoChat does.
    lanes : {"leading", "trailing"}
        Which of the D lanes rotate, where not all do: see `apply_rope`.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; lanes that do not rotate as they came.

    Raises
    ------
    ValueError
        If `rotary_dim` is odd or larger than D, positions do not broadcast or are half precision, or an option is unknown.

    Notes
    -----
    Where the pairs of the whole head keep their lanes and the slow ones stand still (Gemma 4's proportional rotation), give
    `posref.scaling.Proportional` and no `rotary_dim`.

    For many calls with the same positions, build the table once: `rope_frequencies`, `rope_table`, then `apply_rope`.

    Examples
    --------
    >>> import numpy as np
    >>> rope(np.asarray([[1.0, 0.0]]), np.asarray([1]), layout="half", base=10000.0).round(4).tolist()
    [[0.5403, 0.8415]]
    """
    check_word("rope", "layout", layout, tuple(LAYOUTS))
    check_word("rope", "lanes", lanes, LANES)
    xp = namespace(x, positions)
    check_positions("rope", "positions", positions)
    check_rows("rope", "positions", tuple(positions.shape), tuple(x.shape[:-1]))
    dim = x.shape[-1] if rotary_dim is None else rotary_dim
    if isinstance(dim, bool) or not isinstance(dim, int) or dim % 2 or not 2 <= dim <= x.shape[-1]:
        msg = f"rope: rotary_dim must be even and at most {x.shape[-1]} (the last axis of x); got {dim}."
        raise ValueError(msg)
    system = xp if getattr(xp, "computes_constants", False) else None
    inv_freq, factor = rope_frequencies(dim, base=base, scaling=scaling, length=length, xp=system)
    cos, sin = rope_table(positions, inv_freq, attention_factor=factor, dtype=wide(x.dtype, xp))
    return apply_rope(x, cos, sin, layout=layout, inverse=inverse, lanes=lanes)
