"""What to add to the number of cached tokens after a multimodal prompt. Source: transformers, mrope_position_deltas."""

from posref.core.arrays import beside, cast, library, whole
from posref.core.checks import check_numbers
from posref.positions.value_checks import counted
from posref.spec import Axes, encoding
from posref.types import ArrayOf, T


@encoding(
    title="Offset of the tokens after a multimodal prompt",
    idea=(
        "An image takes fewer positions than tokens, so the number of cached tokens does not say where the next token stands. "
        "Each row keeps the difference: one more than its largest position, less its number of tokens."
    ),
    family="positions",
    source="transformers 5.23.0, models/qwen2_5_omni/modeling_qwen2_5_omni.py, get_rope_index; Qwen2-VL, arXiv:2409.12191",
    models=("Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "GLM-4.5V", "Qwen2.5-Omni", "Qwen3-Omni"),
    arrays={"positions": Axes("A *R T", "integer", low="0"), "mask": Axes("*R T", "mask")},
    requires=("A >= 1",),
    result="*R",
    rows="*R",
    returns="integer",
    read={
        "Qwen2.5-Omni": "transformers 5.23.0, models/qwen2_5_omni/modeling_qwen2_5_omni.py:1814-1838",
        "Qwen3-Omni": "transformers 5.23.0, models/qwen3_omni_moe/modeling_qwen3_omni_moe.py:1906-1929",
    },
)
def decode_delta(positions: ArrayOf[T], mask: ArrayOf[T], /) -> T:
    r"""
    Return what to add to the number of cached tokens to get the positions of the tokens after an M-RoPE prompt.

    .. math:: \Delta = \max_{a, t} p_{a,t} + 1 - n

    The maximum is over all axes a and all tokens t of a row. The row has n tokens. Padding is ignored in both.

    Parameters
    ----------
    positions : array, integer or real floating, shape ``(A, *B, T)``
        p, positions of the whole prompt, at least 0: see `posref.positions.multimodal` and `posref.positions.tmrope`.
    mask : array, boolean or integer 0 and 1, shape ``(*B, T)``
        1 for tokens and 0 for padding.

    Returns
    -------
    array, shape ``(*B,)``
        Delta, in the dtype of floating positions, else in the indexing dtype. It is 0 for a row without tokens.

    Raises
    ------
    ValueError
        If the mask is neither boolean nor integer, or its shape is not ``(*B, T)``.

    Source
    ------
    transformers 5.23.0, models/qwen2_5_omni/modeling_qwen2_5_omni.py, get_rope_index (mrope_position_deltas).

    Notes
    -----
    The next tokens have positions ``posref.positions.decode(cached, new) + delta[..., None]`` on every axis, where `cached` is
    the number of tokens in the cache, padding not counted. Each request has its own delta, which never changes. Two mistakes
    are common: to use one delta for a mixed batch, and to keep it on the model, where the next request overwrites it. If you
    process a prompt in parts, compute its positions once and slice them.

    Examples
    --------
    >>> import numpy as np
    >>> prompt = np.asarray([[0, 1, 1, 1, 1, 3], [0, 1, 1, 2, 2, 3], [0, 1, 2, 1, 2, 3]])
    >>> delta = decode_delta(prompt, np.ones(6, dtype=bool))
    >>> int(delta), [6 + int(delta), 7 + int(delta)]  # the tokens after six
    (-2, [4, 5])
    """
    xp = library("decode_delta", positions=positions, mask=mask)
    if positions.ndim < 2 or tuple(positions.shape[1:]) != tuple(mask.shape):
        shapes = f"{tuple(mask.shape)} for positions {tuple(positions.shape)}"
        msg = f"decode_delta: mask must have the shape of positions without their first axis; got {shapes}."
        raise ValueError(msg)
    check_numbers("decode_delta", kinds=("integral", "real floating"), positions=positions)
    ones = counted("decode_delta", mask, xp, check=False)
    integers = whole("decode_delta", "positions", positions) if xp.isdtype(positions.dtype, "integral") else positions
    if not integers.shape[0]:
        msg = f"decode_delta: positions must have at least one axis before those of mask; got {tuple(positions.shape)}."
        raise ValueError(msg)
    none = beside(-1, integers, integers.dtype)  # stands for padding, and for a row without tokens
    largest, count = xp.broadcast_to(none, ones.shape), cast(ones, integers.dtype)
    for axis in range(integers.shape[0]):
        largest = xp.maximum(largest, xp.where(ones == 1, integers[axis, ...], none))
    if not ones.shape[-1]:
        return xp.broadcast_to(none + 1, ones.shape[:-1])
    while largest.shape[-1] > 1:  # halve the axis: exact numbers have no maximum of integers along an axis
        half, odd = divmod(largest.shape[-1], 2)
        larger = xp.maximum(largest[..., :half], largest[..., half : 2 * half])
        largest = xp.concat([larger, largest[..., 2 * half :]], axis=-1) if odd else larger
    return largest[..., 0] + 1 - xp.cumulative_sum(count, axis=-1)[..., -1]
