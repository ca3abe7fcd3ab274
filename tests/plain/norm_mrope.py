"""As transformers 5.23.0 computes it: models/qwen3_vl/modeling_qwen3_vl.py, lines 393-415 and 508-513 (interleaved sections),
and for "rope_first" models/hunyuan_vl/modeling_hunyuan_vl.py, lines 539-542; chunked sections as models/qwen2_vl has them, in
modeling_qwen2_vl.py, lines 146-176. With offset 1 the norm is that of models/qwen3_5/modeling_qwen3_5.py."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def norm(x, weight, eps, weight_offset):
    if weight_offset == 1:
        output = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)
        return (output * (1.0 + weight.float())).type_as(x)
    hidden_states = x.to(torch.float32)
    variance = hidden_states.pow(2).mean(-1, keepdim=True)
    hidden_states = hidden_states * torch.rsqrt(variance + eps)
    return weight * hidden_states.to(x.dtype)


def rotate_half(x):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def angles(positions, sections, arrangement, base):
    dim = 2 * sum(sections)
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim))
    freqs = positions[..., None].float() * inv_freq
    if arrangement == "chunked":
        return torch.cat([m[i] for i, m in enumerate(freqs.split(list(sections), dim=-1))], dim=-1)
    time, *others = freqs.clone()
    for axis, other in enumerate(others, start=1):
        where = slice(axis, sections[axis] * 3, 3)
        time[..., where] = other[..., where]
    return time


def rotate(x, freqs):
    emb = torch.cat((freqs, freqs), dim=-1)
    cos, sin = emb.cos().to(x.dtype), emb.sin().to(x.dtype)
    rot, passed = x[..., : emb.shape[-1]], x[..., emb.shape[-1] :]
    return torch.cat([(rot * cos) + (rotate_half(rot) * sin), passed], dim=-1)


def norm_mrope(x, weight, positions, /, *, sections, arrangement, layout, base, eps, weight_offset, precedence):
    if arrangement not in ("chunked", "interleaved") or layout != "half":
        raise NotImplementedError(arrangement, layout)
    freqs = angles(positions, sections, arrangement, base)
    if precedence == "rope_first":
        return norm(rotate(x, freqs), weight, eps, weight_offset)
    return rotate(norm(x, weight, eps, weight_offset), freqs)
