"""As ReRoPE's author computes it (bojone/rerope, commit acfe788): rerope_patch.py, line 56."""

import math

import torch

backend = "torch"


def logn_scale(positions, /, *, original_length, offset, at_least_one, dtype=None):
    if offset != 1 or not at_least_one:
        raise NotImplementedError(offset, at_least_one)
    return torch.clip((positions + 1).clip(min=1).log() / math.log(original_length), 1).to(dtype)
