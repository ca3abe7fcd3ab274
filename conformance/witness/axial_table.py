"""
Tables over several axes: which axis a pair turns with.

chunked      torch.split(mrope_section) of Qwen2-VL's apply_multimodal_rotary_pos_emb: section by section
interleaved  Qwen3-VL's apply_interleaved_mrope: freqs_t with [1 : 3 s_h : 3] from height and [2 : 3 s_w : 3] from width
round_robin  SGLang's "mrope_interleaved_glm": pair i starts at axis i mod 3 and goes on to one that has room
ernie        Ernie4_5_VLMoe's recomposition_frequencies: stack([freq_h, freq_w], -1).flatten, then freq_t
"""

from typing import Any

from mpmath import mp, mpf

from .lists import at, build_both, shape


def axial_table(
    positions: Any, inv_freq: Any, *, sections: Any, arrangement: str, attention_factor: Any = 1.0
) -> tuple[Any, Any]:
    """Return cos and sin, each of shape (*positions.shape[1:], len(inv_freq))."""
    axis = axis_map(sections, arrangement)

    def waves(*index: int) -> list[Any]:
        *where, i = index
        return [wave * mpf(attention_factor) for wave in mp.cos_sin(at(positions[axis[i]], where) * inv_freq[i])]

    return build_both((*shape(positions)[1:], len(inv_freq)), waves)


def axis_map(sections: Any, arrangement: str) -> list[int]:
    """Return the axis of each pair."""
    half = sum(sections)
    if arrangement == "chunked":
        ends = [sum(sections[: a + 1]) for a in range(len(sections))]
        return [next(a for a, end in enumerate(ends) if i < end) for i in range(half)]
    axes = [0] * half
    if arrangement == "interleaved":
        for axis in (1, 2):
            for i in range(axis, min(3 * sections[axis], half), 3):
                axes[i] = axis
    if arrangement == "ernie":
        for j in range(sections[1]):
            axes[2 * j], axes[2 * j + 1] = 1, 2
    if arrangement == "round_robin":
        left = list(sections)
        for i in range(half):
            axis = i % len(left)
            while not left[axis]:
                axis = (axis + 1) % len(left)
            axes[i] = axis
            left[axis] -= 1
    return axes
