"""As DeepSeek-V4 has it in transformers (5.23.0): models/deepseek_v4/modeling_deepseek_v4.py, lines 448 and 589."""

import torch

backend = "torch"


def visible_windows(q_positions, /, *, rate):
    return torch.div(q_positions + 1, rate, rounding_mode="floor")
