"""
As transformers 5.23.0 computes DETR's learned positions: models/detr/modeling_detr.py, lines 389-394.

It adds Gemma 4's: models/gemma4/modeling_gemma4.py, lines 611-613.
"""

import torch

backend = "torch"


def axial_learned(positions, first, second, /, *, combine):
    a = torch.nn.functional.embedding(positions[0], first)
    b = torch.nn.functional.embedding(positions[1], second)
    return torch.cat((a, b), dim=-1) if combine == "concat" else a + b
