"""As transformers 5.23.0 computes it for Qwen: models/qwen2_vl/modeling_qwen2_vl.py, lines 120-142 and 146-176 (chunked),
models/qwen3_vl/modeling_qwen3_vl.py, lines 406-415 (interleaved), and models/qwen3_5/modeling_qwen3_5.py, lines 690-702, where
only the leading channels rotate."""

import torch

backend = "torch"


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def recomposed(freq, sections, arrangement):
    if arrangement == "chunked":
        freq = torch.cat([m[i] for i, m in enumerate(freq.split(list(sections), dim=-1))], dim=-1)
    else:
        time, *others = freq.clone()
        for axis, other in enumerate(others, start=1):
            where = slice(axis, sections[axis] * 3, 3)
            time[..., where] = other[..., where]
        freq = time
    return torch.cat((freq, freq), dim=-1)


def mrope(x, positions, /, *, sections, arrangement, layout, base):
    if arrangement not in ("chunked", "interleaved") or layout != "half":
        raise NotImplementedError(arrangement, layout)
    dim = 2 * sum(sections)
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    freqs = positions[..., None].float() * inv_freq
    cos, sin = (recomposed(wave, sections, arrangement).to(dtype=x.dtype) for wave in (freqs.cos(), freqs.sin()))
    rot, passed = x[..., :dim], x[..., dim:]
    return torch.cat([(rot * cos) + (rotate_half(rot) * sin), passed], dim=-1)
