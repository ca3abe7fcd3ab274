"""As guolinke/TUPE (commit 000ded0) computes it: fairseq/modules/transformer_sentence_encoder.py, lines 126-133 and 240-254."""

import torch

backend = "torch"


def tupe_bias(p_q, p_k, /, *, cls):
    dtype, pos_scaling = p_q.dtype, float(p_q.shape[-1] * 2) ** -0.5
    abs_pos_bias = torch.matmul(p_q.float() * pos_scaling, p_k.float().transpose(-2, -1))
    cls_2_other = abs_pos_bias[..., 0, 0].clone()
    other_2_cls = abs_pos_bias[..., 1, 1].clone()
    abs_pos_bias = abs_pos_bias[..., 1:, 1:]
    if cls:
        abs_pos_bias[..., :, 0] = other_2_cls[..., None]
        abs_pos_bias[..., 0, :] = cls_2_other[..., None]
    return abs_pos_bias.to(dtype)
