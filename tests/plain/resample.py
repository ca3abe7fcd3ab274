"""As transformers 5.23.0 takes its taps: vision_utils.py, lines 187-228.

With antialias as PyTorch 2.13 computes its weights: aten/src/ATen/native/cpu/UpSampleKernel.cpp,
_compute_indices_min_size_weights_aa and aa_filter. The prefix is kept as timm 1.0.31 keeps it: layers/pos_embed.py,
lines 43-62. The scale with an offset is that of DINOv2's interpolate_pos_encoding.
"""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")


def near(x, a):
    return ((a + 2) * x - (a + 3)) * x * x + 1


def far(x, a):
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def taps_and_weights(n, m, method, align_corners, offset, boundary):
    index = torch.arange(m).to(torch.float32)
    if align_corners:
        src = index * (n - 1) / max(m - 1, 1)
    elif offset is None:
        src = (index + 0.5) * n / m - 0.5
    else:
        src = (index + 0.5) * (1.0 / (float(m + offset) / n)) - 0.5
    floor = torch.floor(src)
    offsets = torch.arange(0, 2) if method == "linear" else torch.arange(-1, 3)
    raw = floor.long()[:, None] + offsets
    distance = (src[:, None] - floor[:, None] - offsets).abs()
    if method == "linear":
        weights = (1 - distance).clamp(min=0)
    else:
        weights = torch.where(distance <= 1, near(distance, -0.75), far(distance, -0.75))
    if boundary == "zeros":
        weights = weights * ((raw >= 0) & (raw <= n - 1))
    return raw.clamp(0, n - 1), weights


def filtered(x, method):
    x = x.abs()
    if method == "linear":
        return torch.where(x < 1, 1 - x, 0.0)
    return torch.where(x < 1, near(x, -0.5), torch.where(x < 2, far(x, -0.5), 0.0))


def antialiased(n, m, method, align_corners, offset):
    if align_corners:
        scale = (n - 1) / (m - 1) if m > 1 else 0.0
    else:
        scale = n / m if offset is None else 1.0 / (float(m + offset) / n)
    scale = torch.tensor(scale, dtype=torch.float32)
    support = (1 if method == "linear" else 2) * scale.clamp(min=1)
    center = scale * (torch.arange(m) + 0.5)
    first = (center - support + 0.5).long().clamp(min=0)
    last = (center + support + 0.5).long().clamp(max=n)
    j = torch.arange(n)
    weights = filtered((j - center[:, None] + 0.5) * (1 / scale.clamp(min=1)), method)
    weights = torch.where((j >= first[:, None]) & (j < last[:, None]), weights, 0.0)
    return j.expand(m, n), weights / weights.sum(dim=1, keepdim=True)


def resample(table, size, /, *, old_size, prefix, method, align_corners, antialias, interpolate_offset=None, boundary="border"):
    if method not in ("linear", "cubic"):
        raise ValueError(method)
    if len(size) != len(old_size) or min(size) < 1 or (interpolate_offset is not None and not 0 < interpolate_offset < 1):
        raise ValueError(size, interpolate_offset)
    if (interpolate_offset is not None and align_corners) or (boundary == "zeros" and antialias):
        raise ValueError(align_corners, antialias)
    kept, grid = table[:prefix], table[prefix:].float().reshape(*old_size, table.shape[-1])
    for axis, (n, m) in enumerate(zip(old_size, size, strict=True)):
        if antialias:
            taps, weights = antialiased(n, m, method, align_corners, interpolate_offset)
        else:
            taps, weights = taps_and_weights(n, m, method, align_corners, interpolate_offset, boundary)
        rows = grid.movedim(axis, 0)[taps]
        weights = weights.reshape(*weights.shape, *[1] * (rows.ndim - 2))
        grid = (rows * weights).sum(dim=1).movedim(0, axis)
    return torch.cat([kept, grid.reshape(-1, table.shape[-1]).to(table.dtype)], dim=0)
