"""Frequencies of axial RoPE. Source: Heo et al., RoPE for Vision Transformer, arXiv:2403.13298."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from posref.core.arrays import DType, constants, created
from posref.core.checks import check_flag, check_integers, check_positive, check_word
from posref.spec import Flag, Integers, OneOf, Real, encoding
from posref.types import HOST, N, NamespaceOf

Allocation = Literal["own", "shared"]
ALLOCATIONS: tuple[Allocation, ...] = get_args(Allocation)
Unit = Literal["radians", "turns"]
UNITS: tuple[Unit, ...] = get_args(Unit)


@encoding(
    title="Frequencies of axial RoPE",
    idea=(
        "A patch in row 3 and column 7 has two coordinates. Axial RoPE gives some channel pairs to the row and the others to "
        "the column. This gives the angle of every pair for one step along its axis."
    ),
    family="rotary",
    source="arXiv:2403.13298, section 3.2",
    models=("Qwen2-VL vision", "Pixtral", "Llama 4 vision", "EVA-02", "DINOv3", "CogVideoX", "Wan", "Flux", "LTX-Video"),
    domains={
        "dims": Integers(2, step=2),
        "base": Real(0),
        "allocation": OneOf(ALLOCATIONS),
        "unit": OneOf(UNITS),
        "endpoint": Flag(),
        "first_frequency": Real(0),
    },
    result="sum(dims)//2",
    requires=("allocation == 'own' or max(dims) == min(dims)", "min(dims) >= 4 or not endpoint"),
    read={
        "Llama 4 vision": "transformers 5.23.0, models/llama4/modeling_llama4.py:981-1008",
        "DINOv3": "transformers 5.23.0, models/dinov3_vit/modeling_dinov3_vit.py:153-207",
        "Qwen2-VL vision": "transformers 5.23.0, models/qwen2_vl/modeling_qwen2_vl.py:194-250",
        "Pixtral": "transformers 5.23.0, models/pixtral/modeling_pixtral.py:37-95",
        "EVA-02": "baaivision/EVA@5623d08, EVA-02/asuka/rope.py:109-125",
        "timm": "timm 1.0.31, timm/layers/pos_embed_sincos.py:1474-1502",
        "diffusers": (
            "diffusers 0.42.1, diffusers/models/transformers/transformer_ltx.py:256-266; "
            "diffusers/models/transformers/transformer_ltx2.py:1030-1034"
        ),
        "LTX-Video": "diffusers 0.42.1, diffusers/models/transformers/transformer_ltx.py:256-266",
    },
)
def axial_frequencies(
    dims: Sequence[int],
    /,
    *,
    base: float,
    allocation: Allocation,
    unit: Unit = "radians",
    endpoint: bool = False,
    first_frequency: float = 1.0,
    xp: NamespaceOf[N] | None = HOST,
    device: Any = None,
    dtype: DType | None = None,
) -> N:
    r"""
    Return the angle per position of every channel pair: first the pairs of axis 0, then those of axis 1, and so on.

    With A axes, d_a channels for axis a, base b and :math:`d = \sum_a d_a`, the frequency of pair k of axis a is

    .. math:: \text{own}: \; \theta_{a,k} = b^{-2k/d_a}, \qquad \text{shared}: \; \theta_{a,k} = b^{-2(kA + a)/d}, \qquad
        k = 0 \dots d_a/2 - 1

    With `endpoint` the exponents are :math:`-2k/(d_a - 2)` (own) and :math:`-2(kA + a)/(d - 2)` (shared). The last frequency is
    then 1/b: on every axis with "own", on the last axis with "shared". Every frequency is multiplied by `first_frequency`.

    Parameters
    ----------
    dims : sequence of A ints
        d_a, the number of channels of each axis, even: (d/2, d/2) for images. Flux has (16, 56, 56), CogVideoX
        (d/4, 3d/8, 3d/8), and Wan (d - 4 floor(d/6), 2 floor(d/6), 2 floor(d/6)).
    base : float
        b, above 0: 10000 (Qwen2-VL, Pixtral, Flux) or 100 (RoPE-ViT, DINOv3, Gemma 4's encoder). If b is below 1, the
        frequencies rise.
    allocation : {"own", "shared"}
        Which formula gives theta. Nearly all models have "own".

        - ``"own"``: Each axis has all frequencies of RoPE, from fast to slow, over its own d_a channels. Used by Qwen2-VL
          vision, Llama 4 vision, EVA-02, DINOv3.
        - ``"shared"``: The axes take turns in one list of frequencies, of RoPE over d channels: axis a takes every A-th,
          starting at number a. With two axes these are even ones for the height, odd ones for the width. All d_a must be equal.
          Used by Pixtral.
    unit : {"radians", "turns"}
        The unit of the formulas above. `posref.positions.centred` makes coordinates for "turns".

        - ``"radians"``: A frequency is an angle in radians for a step of 1.
        - ``"turns"``: The angle is multiplied by 2 pi, for coordinates from -1 to 1. Used by DINOv3.
    endpoint : bool
        False gives the exponents of RoPE. True spreads the frequencies from `first_frequency` to ``first_frequency / base``,
        both included (LTX-Video, and DINOv3 with a least and a greatest period). Every d_a must then be at least 4.
    first_frequency : float
        The first frequency, in `unit`, above 0. RoPE has 1.
    xp : module, optional
        The array library of the frequencies, such as ``torch``. None means host NumPy, which `axial_table` takes with positions
        of any library.
    device : optional
        The device of the frequencies, such as "cuda". Without `xp` it has no effect.
    dtype : data type, optional
        The dtype of the frequencies. None means float64, or float32 if `xp` does not compute in float64 (JAX without x64).

    Returns
    -------
    array, shape ``(d/2,)``
        Radians per unit of the coordinate. Pass them to `axial_table` with ``arrangement="chunked"`` and the sections d_a/2.

    Raises
    ------
    ValueError
        If `dims` is empty or has an odd entry (or a 2 with `endpoint`), entries differ and `allocation` is "shared", `base` or
        `first_frequency` is not positive, or an option is unknown.

    Notes
    -----
    **DINOv3 with periods** from p to P, in its code and in timm: pass ``endpoint=True``, ``first_frequency=1/p``, ``base=P/p``
    and ``unit="turns"``. In transformers it has only a base.

    **LTX-Video and LTX-2** in diffusers have frequencies from pi/2 up to 10000 pi/2 for coordinates from -1 to 1: pass
    ``endpoint=True``, ``first_frequency=1/4``, ``base=1e-4`` and ``unit="turns"``. Their pairs take frequency 0 of each axis,
    then frequency 1 of each axis, and so on. This result is ordered by axis: take the list of one axis, repeat each frequency
    once for each axis (``np.repeat(one_axis, axes)``), and pass that to `axial_table` with "round_robin". The pairs that are
    left over come first and do not rotate.

    **A base for each axis**: call this function once for each axis and concatenate the results. Cosmos has (44, 42, 42) with
    base :math:`10000 \rho^{d_a/(d_a - 2)}`, where rho is 2 for time and 1 for the others.

    Examples
    --------
    >>> axial_frequencies((4, 4), base=100.0, allocation="own").round(6).tolist()
    [1.0, 0.1, 1.0, 0.1]
    """
    name = "axial_frequencies"
    dims, base = check_axes(name, dims, base, allocation, unit)
    endpoint = check_flag(name, "endpoint", endpoint)
    first_frequency = check_positive(name, "first_frequency", first_frequency)
    if endpoint and min(dims) < 4:
        msg = f"{name}: dims must be at least 4 with endpoint=True (a first and a last frequency); got {tuple(dims)}."
        raise ValueError(msg)
    c = constants(xp)
    b, axes, less = c.asarray(float(base), dtype=c.float64), len(dims), 2 if endpoint else 0
    if allocation == "own":
        exponents = [(2 * k, dim - less) for dim in dims for k in range(dim // 2)]
    else:
        exponents = [(2 * (k * axes + axis), sum(dims) - less) for axis, dim in enumerate(dims) for k in range(dim // 2)]
    over, under = (c.asarray([float(pair[n]) for pair in exponents], dtype=c.float64) for n in (0, 1))
    inv_freq = c.pow(b, -over / under) if first_frequency == 1 else c.pow(b, -over / under) * float(first_frequency)
    return created(name, 2 * c.pi * inv_freq if unit == "turns" else inv_freq, xp, device, dtype)


def check_axes(
    function: str, dims: Sequence[int], base: float, allocation: Allocation, unit: Unit
) -> tuple[tuple[int, ...], float]:
    """Return widths and base. Raise if an option is out of range."""
    check_word(function, "allocation", allocation, ALLOCATIONS)
    check_word(function, "unit", unit, UNITS)
    base = check_positive(function, "base", base)
    dims = check_integers(function, "dims", dims, 2)
    if not dims or any(dim % 2 for dim in dims) or (allocation == "shared" and len(set(dims)) > 1):
        equal = " and equal with allocation='shared'" if allocation == "shared" else ""
        msg = f"{function}: dims must have at least one entry, all even (channels rotate in pairs){equal}; got {tuple(dims)}."
        raise ValueError(msg)
    return dims, base
