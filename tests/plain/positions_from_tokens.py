"""As RoBERTa has it in transformers (5.23.0): models/roberta/modeling_roberta.py, lines 153-155."""

import torch

backend = "torch"


def positions_from_tokens(tokens, /, *, padding_idx):
    mask = tokens.ne(padding_idx).int()
    incremental_indices = torch.cumsum(mask, dim=-1).type_as(mask) * mask
    return incremental_indices.long() + padding_idx
