"""As ALiBi's authors compute them (ofirpress/attention_with_linear_biases, commit 4b92f28): fairseq/models/transformer.py,
lines 742-756."""

import math

import torch

backend = "torch"


def alibi_slopes(heads, /):
    def power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    def slopes(n):
        if math.log2(n).is_integer():
            return power_of_two(n)
        below = 2 ** math.floor(math.log2(n))
        return power_of_two(below) + slopes(2 * below)[0::2][: n - below]

    return torch.tensor(slopes(heads), dtype=torch.float32)
