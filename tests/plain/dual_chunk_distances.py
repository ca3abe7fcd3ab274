"""As dual chunk attention's authors have them (HKUNLP/ChunkLlama, commit 2add4d7): chunkllama_attn_replace.py, lines 47-52
and 151-192. A key of a later chunk, which their code never asks for, counts as of the query's own."""

import torch

backend = "torch"


def dual_chunk_distances(q_positions, k_positions, /, *, chunk_size, window):
    chunk = chunk_size - window
    own = q_positions % chunk
    successive = (own + chunk).clamp(max=chunk_size)
    inter = torch.full_like(own, chunk - 1 + chunk).clamp(max=chunk_size)
    behind = (q_positions // chunk)[..., :, None] - (k_positions // chunk)[..., None, :]
    query = torch.where(behind > 1, inter[..., :, None], successive[..., :, None])
    query = torch.where(behind < 1, own[..., :, None], query)
    return query - (k_positions % chunk)[..., None, :]
