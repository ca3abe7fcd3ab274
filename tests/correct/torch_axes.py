"""Rotary embedding over several axes in float32 PyTorch, after the multimodal models of transformers and SGLang."""

import math

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def axial_frequencies(dims, /, *, base, allocation, unit="radians", endpoint=False, first_frequency=1.0):
    less = 2 if endpoint else 0
    if allocation == "own":
        ladders = [1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float) / (dim - less))) for dim in dims]
    else:
        whole = 1.0 / (base ** (torch.arange(0, sum(dims), 2, dtype=torch.float) / (sum(dims) - less)))
        ladders = [whole[axis :: len(dims)] for axis in range(len(dims))]
    return torch.cat(ladders) * (2 * math.pi * first_frequency if unit == "turns" else first_frequency)


def chunked(freqs, sections):
    return torch.cat([m[i] for i, m in enumerate(freqs.split(list(sections), dim=-1))], dim=-1)


def interleaved(freqs, sections):
    out = freqs[0].clone()
    for axis, start in ((1, 1), (2, 2)):
        where = slice(start, sections[axis] * 3, 3)
        out[..., where] = freqs[axis, ..., where]
    return out


def ernie(freqs, sections):
    both = sections[1] + sections[2]
    hw = torch.stack([freqs[1, ..., 0:both:2], freqs[2, ..., 1:both:2]], dim=-1).flatten(-2)
    return torch.cat([hw, freqs[0, ..., both:]], dim=-1)


def round_robin(freqs, sections):
    of_pair, counts = [], [0] * len(sections)
    for i in range(sum(sections)):
        current = i % len(sections)
        while counts[current] >= sections[current]:
            current = (current + 1) % len(sections)
        counts[current] += 1
        of_pair.append(current)
    return torch.stack([freqs[axis, ..., i] for i, axis in enumerate(of_pair)], dim=-1)


ARRANGEMENTS = {"chunked": chunked, "interleaved": interleaved, "ernie": ernie, "round_robin": round_robin}


def axial_table(positions, inv_freq, /, *, sections, arrangement, attention_factor=1.0, dtype=None):
    if sum(sections) != inv_freq.shape[0] or len(sections) != positions.shape[0]:
        raise ValueError(sections)
    freqs = ARRANGEMENTS[arrangement](positions[..., None].float() * inv_freq.float(), sections)
    dtype = dtype or torch.float32
    return (freqs.cos() * attention_factor).to(dtype), (freqs.sin() * attention_factor).to(dtype)


def mrope(x, positions, /, *, sections, arrangement, layout, base):
    d = 2 * sum(sections)
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2, dtype=torch.float) / d))
    cos, sin = axial_table(positions, inv_freq, sections=sections, arrangement=arrangement)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    rotated, passed = x[..., :d], x[..., d:]
    if layout == "half":
        x1, x2 = rotated.chunk(2, dim=-1)
        turned = torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)
    elif layout == "interleaved":
        x1, x2 = rotated[..., 0::2], rotated[..., 1::2]
        turned = torch.stack((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1).flatten(-2)
    else:
        raise NotImplementedError(layout)
    return torch.cat((turned, passed), dim=-1)


def permute_qk_weights(weight, /, *, heads, source, target, rotary_dim=None):
    n = weight.shape[0] // heads
    r = n if rotary_dim is None else rotary_dim
    of_pairs = {"half": lambda i: (i, i + r // 2), "interleaved": lambda i: (2 * i, 2 * i + 1)}
    read, write = (of_pairs["half" if layout == "half" else "interleaved"] for layout in (source, target))
    rows = list(range(n))
    for i in range(r // 2):
        for old, new in zip(read(i), write(i), strict=True):
            rows[new] = old
    return torch.cat([weight[head * n + row][None] for head in range(heads) for row in rows])
