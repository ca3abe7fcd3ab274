"""As transformers 5.23.0 computes it for Ministral 3: models/ministral3/modeling_ministral3.py, lines 104-106, with the offset
of Llama 4: models/llama4/modeling_llama4.py, lines 362-363. Both divide in float32, so two kinds of positions are refused here:
from 2**24 on, where a quotient may round up to the next step, and negative ones, which give infinities."""

import torch

backend = "torch"


def attention_temperature(positions, /, *, form, beta, original_length, offset, dtype=None):
    if form != "steps" or (positions >= 2**24).any() or (positions < 0).any():
        raise NotImplementedError(form)
    return (1 + beta * torch.log(1 + torch.floor((positions.float() + offset) / original_length))).to(dtype)
