"""Axial RoPE for images and videos. Source: Heo et al., Rotary Position Embedding for Vision Transformer, arXiv:2403.13298."""

from collections.abc import Sequence
from typing import Literal, get_args

from posref.core.arrays import Array, constants, library, namespace, number_system, wide
from posref.core.checks import check_coordinates, check_flag, check_lanes, check_positions, check_word
from posref.core.decoder import by_tokens
from posref.rotary.apply_rope import apply_rope
from posref.rotary.axial_frequencies import ALLOCATIONS, UNITS, Allocation, Unit, axial_frequencies, check_axes
from posref.rotary.axial_table import axes_of_pairs, axial_table
from posref.spec import Axes, Flag, Integers, OneOf, Real, encoding, part
from posref.types import ArrayOf, T

Arrangement = Literal["chunked", "round_robin"]
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)
Layout = Literal["half", "interleaved", "half_by_axis"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


@encoding(
    title="Axial RoPE",
    idea=(
        "RoPE for images: some channel pairs rotate with the patch's row, the others with its column. The product of a query "
        "and a key then depends only on how many rows and columns are between them. Video adds pairs for time."
    ),
    family="rotary",
    source="arXiv:2403.13298, section 3.2",
    models=("Qwen2-VL vision", "Pixtral", "Llama 4 vision", "EVA-02", "DINOv3", "Gemma 4 vision", "SAM 3", "Flux", "Wan"),
    domains={
        "dims": Integers(2, step=2),
        "base": Real(0),
        "allocation": OneOf(ALLOCATIONS),
        "arrangement": OneOf(ARRANGEMENTS),
        "layout": OneOf(LAYOUTS),
        "unit": OneOf(UNITS),
        "inverse": Flag(),
    },
    invariants=("norm kept", "tail unchanged", "relative", "decode"),
    arrays={
        "x": Axes("sum(dims)+E | *R T sum(dims)+E | *R T sum(dims)+E"),  # E channels after the rotated ones
        "positions": Axes("len(dims) | len(dims) T | len(dims) ~*R ~T", "position"),
    },
    result="=x",
    rows="*R T",
    requires=("allocation == 'own' or max(dims) == min(dims)", "layout != 'half_by_axis' or arrangement == 'chunked'"),
    read={
        "EfficientLoFTR": "transformers 5.23.0, models/efficientloftr/modeling_efficientloftr.py:76-86, 273-278",
        "Qwen2-VL": "transformers 5.23.0, models/qwen2_vl/modeling_qwen2_vl.py:146-150, 180-191",
        "Pixtral in transformers": "transformers 5.23.0, models/pixtral/modeling_pixtral.py:99-103",
        "DINOv3": "transformers 5.23.0, models/dinov3_vit/modeling_dinov3_vit.py:210-214",
        "RoPE-ViT": "naver-ai/rope-vit@ce85c2e, models/vit_rope.py:79-85",
        "Llama 4": "transformers 5.23.0, models/llama4/modeling_llama4.py:747-758",
        "SAM 3": "transformers 5.23.0, models/sam3/modeling_sam3.py:467-482",
        "Gemma 4": "transformers 5.23.0, models/gemma4/modeling_gemma4.py:846-899",
        "Kimi's vision encoder": "transformers 5.23.0, models/kimi_k25/modeling_kimi_k25.py:229-235",
        "CogView4": "huggingface/diffusers@58eb52c080, src/diffusers/models/transformers/transformer_cogview4.py:161-164",
        "Wan": "huggingface/diffusers@58eb52c080, src/diffusers/models/transformers/transformer_wan.py:109-114",
        "EVA-02": "huggingface/pytorch-image-models@aa4b5850, timm/layers/pos_embed_sincos.py:230-231",
        "CogVideoX": (
            "huggingface/diffusers@58eb52c080, src/diffusers/models/attention_processor.py:2325-2327; "
            "src/diffusers/models/embeddings.py:1221-1224"
        ),
        "Pixtral in Mistral's code": "mistral-inference 1.6.0, mistral_inference/rope.py:13-57",
        "Flux": "black-forest-labs/flux@802fb47, src/flux/math.py:15-30",
        "HunyuanVideo": "Tencent-Hunyuan/HunyuanVideo@fa14b00, hyvideo/modules/posemb_layers.py:133-137, 165-188, 239-258",
        "Allegro": "rhymes-ai/Allegro@f395a54, allegro/models/transformers/rope.py:45-90",
    },
)
@by_tokens(x=(0, 1), positions=(1, 0))
def axial_rope(
    x: ArrayOf[T],
    positions: ArrayOf[T],
    /,
    *,
    dims: Sequence[int],
    base: float,
    allocation: Allocation,
    arrangement: Arrangement,
    layout: Layout,
    unit: Unit = "radians",
    inverse: bool = False,
) -> T:
    r"""
    Return `x` with every channel pair rotated by an angle proportional to the token's coordinate along one axis.

    .. math:: y_u = x_u \cos\alpha_i - x_v \sin\alpha_i, \qquad y_v = x_v \cos\alpha_i + x_u \sin\alpha_i, \qquad
        \alpha_i = p_{a(i)} \, \theta_i

    Pair i, from 0 to d/2 - 1, is channels u and v (see `layout`). It belongs to axis a(i) (see `arrangement`), and :math:`p_a`
    is the token's coordinate along axis a. If it is pair k of that axis, counted from 0, its frequency in `unit` is

    .. math:: \text{own}: \; \theta_i = b^{-2k/d_a}, \qquad \text{shared}: \; \theta_i = b^{-2(kA + a)/d}, \qquad
        a = a(i), \; d = \sum_a d_a

    So logits depend only on differences of coordinates.

    Parameters
    ----------
    x : array, real floating, shape ``(*R, D)``
        Queries or keys.
    positions : array, integer or at least float32, shape ``(A, *P)``
        Coordinates along each of the A axes, in the order of `dims`: height before width in nearly all models, width first in
        RoPE-ViT, Llama 4 and Kimi's vision encoder. `posref.positions` makes them (`grid`, `centred`, `scaled`). For x of
        (B, H, T, D) pass (A, T) or (A, B, 1, T). A token at 0 on every axis is not rotated, like the class and register tokens
        of DINOv3 and the class token of Llama 4 (`posref.positions.with_origin`).
        Integers must be below 2^53 in magnitude: float64 skips some of those beyond.
    dims : sequence of A ints
        d_a, the number of channels of each axis, even. Their sum d is the number of leading channels that rotate.
    base : float
        b, above 0. `axial_frequencies` names the models.
    allocation : {"own", "shared"}
        Which formula gives theta. `axial_frequencies` names the users.

        - ``"own"``: Each axis has all frequencies, from fast to slow, over its own d_a channels.
        - ``"shared"``: The axes take turns in one list of frequencies, as in `mrope`: with two axes, even ones for the height,
          odd ones for the width. All d_a must be equal.
    unit : {"radians", "turns"}
        The unit of theta. `axial_frequencies` names the users.

        - ``"radians"``: A frequency is an angle in radians for a step of 1.
        - ``"turns"``: The angle is multiplied by 2 pi, for coordinates from -1 to 1.
    arrangement : {"chunked", "round_robin"}
        The axis a(i) of each pair.

        - ``"chunked"``: The first d_0/2 pairs belong to axis 0, the next d_1/2 to axis 1, and so on.
        - ``"round_robin"``: Pair i belongs to axis i mod A or, if that axis has all its pairs, to the next axis, cyclically,
          that has room. Used by Kimi's vision encoder, EfficientLoFTR.
    layout : {"half", "interleaved", "half_by_axis"}
        The channels u and v of pair i.

        - ``"half"``: Pair i is channels i and i + d/2 of all axes together: [row column | row column]. Used by Qwen2-VL,
          Pixtral in transformers, DINOv3, CogView4.
        - ``"interleaved"``: Pair i is the neighbouring channels 2i and 2i + 1: [row row][column column]. Used by RoPE-ViT,
          EVA-02, Llama 4, SAM 3, Pixtral in Mistral's code, Flux, Wan, CogVideoX, HunyuanVideo.
        - ``"half_by_axis"``: Each axis has a block of channels, whose first half meets its second: [row | row][column |
          column]. Pair k of axis a is channels o + k and o + k + d_a/2, where the axes before it have o channels. It needs
          ``arrangement="chunked"``. Used by Gemma 4, Allegro.
    inverse : bool
        Rotate by the negative angle, which is the transpose and the inverse.

    Returns
    -------
    array, shape ``(*R, D)``
        In the dtype of `x`; channels from d on are unchanged.

    Raises
    ------
    ValueError
        If `dims` is empty, has an odd entry, or does not fit x or the positions, its entries differ and `allocation` is
        "shared", `base` is not positive, positions do not broadcast or are half precision, an option is unknown, or `layout` is
        "half_by_axis" with "round_robin".

    Notes
    -----
    Pixtral in transformers has ``allocation="shared"`` and ``layout="half"``. V-JEPA 2 multiplies channels 2i and 2i + 1 by the
    cosines and sines of two different frequencies. That is not a rotation, and no option here gives it.

    FLUX.1 has ``dims=(16, 56, 56)`` and coordinates (0, row, column). Text is at (0, 0, 0), so it does not rotate.

    For images of another resolution than in training, count the cells as usual, or scale them to the training grid with
    `posref.positions.scaled`, as EVA-02 does.

    Examples
    --------
    >>> import numpy as np
    >>> x, places = np.asarray([[1.0, 1.0, 0.0, 0.0]]), np.asarray([[0], [1]])
    >>> options = {"dims": (2, 2), "base": 100.0, "allocation": "own", "arrangement": "chunked"}
    >>> axial_rope(x, places, layout="half", **options).round(4).tolist()
    [[1.0, 0.5403, 0.0, 0.8415]]
    """
    name = "axial_rope"
    check_word(name, "arrangement", arrangement, ARRANGEMENTS)
    check_word(name, "layout", layout, LAYOUTS)
    if layout == "half_by_axis" and arrangement != "chunked":
        msg = f"{name}: arrangement must be 'chunked' with layout 'half_by_axis' (pairs lie within axes); got {arrangement!r}."
        raise ValueError(msg)
    xp = library(name, x=x, positions=positions)
    check_lanes(name, "x", x)
    check_positions(name, "positions", positions)
    dims, base = check_axes(name, dims, base, allocation, unit)
    inverse = check_flag(name, "inverse", inverse)
    inv_freq = axial_frequencies(dims, base=base, allocation=allocation, unit=unit, xp=number_system(xp))
    if not sum(dims) <= x.shape[-1]:
        msg = f"{name}: dims must add up to at most {x.shape[-1]} (the channels of x); got {tuple(dims)}."
        raise ValueError(msg)
    check_coordinates(name, tuple(positions.shape), len(dims), tuple(x.shape[:-1]))
    sections = [dim // 2 for dim in dims]
    inv_freq = in_pair_order(inv_freq, sections=sections, arrangement=arrangement)
    cos, sin = axial_table(positions, inv_freq, sections=sections, arrangement=arrangement, dtype=wide(x.dtype, xp))
    if layout != "half_by_axis":
        return apply_rope(x, cos, sin, layout=layout, inverse=inverse)
    parts, end = [], 0
    for dim in dims:
        start, end = end, end + dim
        pairs = (..., slice(start // 2, end // 2))
        parts.append(apply_rope(x[..., start:end], cos[pairs], sin[pairs], layout="half", inverse=inverse))
    return xp.concat([*parts, x[..., end:]], axis=x.ndim - 1)


@part(noun="inv_freq")
def in_pair_order(inv_freq: Array, /, *, sections: Sequence[int], arrangement: str) -> Array:
    """Return frequencies that are given axis by axis, in the order of the pairs."""
    if arrangement == "chunked":
        return inv_freq
    c = constants(namespace(inv_freq))
    places = in_turn(axes_of_pairs("axial_rope", sections, arrangement))
    return c.take(inv_freq, c.asarray(places, dtype=c.int64), axis=0)


def in_turn(axes: Sequence[int]) -> list[int]:
    """Return, for every pair, the index of its frequency in `axial_frequencies`. `axes` holds the axis of every pair."""
    return [sum(other < axis for other in axes) + axes[:i].count(axis) for i, axis in enumerate(axes)]
