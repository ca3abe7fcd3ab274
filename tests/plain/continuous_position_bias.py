"""As transformers 5.23.0 computes Swin v2's: models/swinv2/modeling_swinv2.py, lines 370-380, 416-426 and 454-496; form "cr" as
timm 1.0.31: timm/layers/pos_embed_rel.py, lines 391-419 and 483-491. Both divide by 0 for some windows of one
row or column, which here are not divided."""

import math

import torch
from torch.nn import functional as F

backend = "torch"


def continuous_position_bias(w1, b1, w2, /, *, b2=None, height, width, form, pretrained_height=None, pretrained_width=None):
    coords_h = torch.arange(-(height - 1), height, dtype=torch.int64).float()
    coords_w = torch.arange(-(width - 1), width, dtype=torch.int64).float()
    table = torch.stack(torch.meshgrid([coords_h, coords_w], indexing="ij")).permute(1, 2, 0).contiguous()
    work = torch.float64 if w1.dtype == torch.float64 else torch.float32
    table = table.to(work)
    if form == "swin":
        windows = (pretrained_height or height, pretrained_width or width)
        if windows[0] > 1:
            table[:, :, 0] /= windows[0] - 1
        if windows[1] > 1:
            table[:, :, 1] /= windows[1] - 1
        table *= 8
        table = torch.sign(table) * torch.log2(torch.abs(table) + 1.0) / math.log2(8)
    else:
        table = torch.sign(table) * torch.log(1.0 + table.abs())
    hidden = F.relu(F.linear(table, w1.to(work), b1.to(work)))
    table = F.linear(hidden, w2.to(work), None if b2 is None else b2.to(work)).flatten(0, 1)
    coords = torch.stack(torch.meshgrid([torch.arange(height), torch.arange(width)], indexing="ij"))
    coords_flatten = torch.flatten(coords, 1)
    relative_coords = coords_flatten[:, :, None] - coords_flatten[:, None, :]
    relative_coords = relative_coords.permute(1, 2, 0).contiguous()
    relative_coords[:, :, 0] += height - 1
    relative_coords[:, :, 1] += width - 1
    relative_coords[:, :, 0] *= 2 * width - 1
    index = relative_coords.sum(-1)
    bias = table[index.view(-1)].view(height * width, height * width, w2.shape[0]).permute(2, 0, 1).contiguous()
    return (16 * torch.sigmoid(bias) if form == "swin" else bias).to(w1.dtype)
