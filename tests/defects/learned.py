"""Learned tables, implemented with one defect each."""

import torch
from planting import planted


@planted("learned offset ignored", names=("offset-ignored",), backend="torch")
def learned_offset_ignored():
    """The offset of the table is not added (OPT's and BART's +2); the RoBERTa offset of transformers #19265."""

    def learned(positions, table, /, *, offset=0):
        return torch.nn.functional.embedding(positions, table)

    return learned


@planted("positions mutated in place", names=())
def positions_mutated():
    """The offset is added to the caller's position ids in place; mlx-lm #1699 (offset mutated across update_and_fetch)."""

    def learned(positions, table, /, *, offset=0):
        positions += offset
        return table[positions]

    return learned
