"""As transformers 5.23.0 computes it for SAM, with tables of the right size: models/sam/modeling_sam.py, `get_rel_pos`, lines
755-759, and `get_decomposed_rel_pos`, lines 794-799. Sizes for which float32 is a row off are refused."""

import math

import torch

backend = "torch"


def get_rel_pos(q_size, k_size, rel_pos):
    q_coords = torch.arange(q_size)[:, None] * max(k_size / q_size, 1.0)
    k_coords = torch.arange(k_size)[None, :] * max(q_size / k_size, 1.0)
    relative_coords = (q_coords - k_coords) + (k_size - 1) * max(q_size / k_size, 1.0)
    under = min(q_size, k_size) // math.gcd(q_size, k_size)
    if under & (under - 1):
        raise NotImplementedError(under)
    return rel_pos[relative_coords.long()]


def decomposed_bias(q, table_h, table_w, /, *, k_rows, k_columns):
    height = get_rel_pos(q.shape[-3], k_rows, table_h)
    width = get_rel_pos(q.shape[-2], k_columns, table_w)
    rel_h = torch.einsum("...hwc,hkc->...hwk", q, height)
    rel_w = torch.einsum("...hwc,wkc->...hwk", q, width)
    return rel_h[..., :, None] + rel_w[..., None, :]
