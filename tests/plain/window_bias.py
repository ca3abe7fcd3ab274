"""As transformers 5.23.0 computes Swin's and BEiT's: models/swin/modeling_swin.py, lines 350-370, and
models/beit/modeling_beit.py, lines 199-219, without resampling."""

import torch

backend = "torch"


def window_bias(table, /, *, height, width, depth, order, class_token):
    if depth != 1 or order != "query_minus_key":
        raise NotImplementedError(depth, order)
    coords = torch.stack(torch.meshgrid([torch.arange(height), torch.arange(width)], indexing="ij"))
    coords_flatten = torch.flatten(coords, 1)
    relative_coords = coords_flatten[:, :, None] - coords_flatten[:, None, :]
    relative_coords = relative_coords.permute(1, 2, 0).contiguous()
    relative_coords[:, :, 0] += height - 1
    relative_coords[:, :, 1] += width - 1
    relative_coords[:, :, 0] *= 2 * width - 1
    index = relative_coords.sum(-1)
    if class_token:
        count = table.shape[0]
        within, index = index, torch.zeros((height * width + 1,) * 2, dtype=index.dtype)
        index[1:, 1:] = within
        index[0, 0:] = count - 3
        index[0:, 0] = count - 2
        index[0, 0] = count - 1
    bias = table[index.view(-1)].view(*index.shape, -1)
    return bias.permute(2, 0, 1).contiguous()
