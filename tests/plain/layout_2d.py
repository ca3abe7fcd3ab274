"""
As transformers 5.23.0 embeds boxes: models/layoutlmv3/modeling_layoutlmv3.py, lines 114-137.

LayoutLM adds the six, and does not clip: models/layoutlm/modeling_layoutlm.py, lines 95-115.
"""

import torch

backend = "torch"


def layout_2d(boxes, x_table, y_table, h_table, w_table, /, *, combine, clip_sizes):
    embedding = torch.nn.functional.embedding
    left, upper = embedding(boxes[..., 0], x_table), embedding(boxes[..., 1], y_table)
    right, lower = embedding(boxes[..., 2], x_table), embedding(boxes[..., 3], y_table)
    h, w = boxes[..., 3] - boxes[..., 1], boxes[..., 2] - boxes[..., 0]
    if clip_sizes:
        h, w = torch.clip(h, 0, len(h_table) - 1), torch.clip(w, 0, len(w_table) - 1)
    h, w = embedding(h, h_table), embedding(w, w_table)
    if combine == "sum":
        return left + upper + right + lower + h + w
    return torch.cat([left, upper, right, lower, h, w], dim=-1)
