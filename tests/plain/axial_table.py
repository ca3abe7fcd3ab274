"""As transformers 5.23.0 computes them: models/qwen2_vl/modeling_qwen2_vl.py, lines 125-142 (chunked),
models/qwen3_vl/modeling_qwen3_vl.py, lines 394-415 (interleaved), and models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py,
lines 94-101 and 107-125 (ernie, whose sections are height, width, time)."""

import torch

backend = "torch"


def chunked(freq, sections):
    return torch.cat([m[i] for i, m in enumerate(freq.split(list(sections), dim=-1))], dim=-1)


def interleaved(freq, sections):
    out = freq[0].clone()
    for axis, offset in ((1, 1), (2, 2)):
        where = slice(offset, sections[axis] * 3, 3)
        out[..., where] = freq[axis, ..., where]
    return out


def ernie(freq, sections):
    time, height, width = sections
    h, w, t = (m[(i + 1) % 3] for i, m in enumerate(freq.split([height, width, time], dim=-1)))
    return torch.cat([torch.stack([h, w], dim=-1).flatten(-2), t], dim=-1)


def axial_table(positions, inv_freq, /, *, sections, arrangement, attention_factor=1.0, dtype=None):
    if arrangement == "round_robin":
        raise NotImplementedError(arrangement)
    if arrangement == "ernie":
        both = sections[1] + sections[2]
        inv_freq = torch.cat([inv_freq[:both][0::2], inv_freq[:both][1::2], inv_freq[both:]])
    freqs = positions[..., None].float() * inv_freq.to(dtype=torch.float)
    recomposed = {"chunked": chunked, "interleaved": interleaved, "ernie": ernie}[arrangement]
    cos, sin = freqs.cos() * attention_factor, freqs.sin() * attention_factor
    return recomposed(cos, sections).to(dtype=dtype), recomposed(sin, sections).to(dtype=dtype)
