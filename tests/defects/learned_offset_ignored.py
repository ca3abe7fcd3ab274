"""The offset of the table is not added (OPT's and BART's +2); the RoBERTa offset of transformers #19265."""

import torch

backend = "torch"
DEFECT = "learned offset ignored"
NAMES = ("offset-ignored",)


def learned(positions, table, /, *, offset=0):
    return torch.nn.functional.embedding(positions, table)
