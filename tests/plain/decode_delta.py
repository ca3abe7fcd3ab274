"""As Qwen2-VL has it in transformers (5.23.0): models/qwen2_vl/modeling_qwen2_vl.py, lines 957-994; 0 for an empty row."""

import torch

backend = "torch"


def decode_delta(positions, mask, /):
    rows = mask.shape[:-1]
    deltas = []
    flat_mask = mask.reshape(-1, mask.shape[-1]) if mask.numel() else mask.new_zeros((rows.numel(), mask.shape[-1]))
    flat = positions.reshape(positions.shape[0], rows.numel(), mask.shape[-1])
    for batch_idx, kept in enumerate(flat_mask):
        llm_positions = flat[:, batch_idx, kept.bool()]
        deltas.append(llm_positions.max() + 1 - llm_positions.shape[1] if llm_positions.numel() else torch.tensor(0))
    return torch.stack(deltas).reshape(rows) if deltas else torch.zeros(rows, dtype=torch.int64)
