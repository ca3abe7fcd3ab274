"""2**(-8h/H) for every head count, also no power of two; discussed in Baichuan2 #225 and TensorRT-LLM #1611."""

import numpy as np

DEFECT = "closed form for heads not a power of two"
NAMES = ("slopes-closed-form",)


def alibi_slopes(heads, /, *, max_bias=8):
    return (2.0 ** (-max_bias * np.arange(1, heads + 1, dtype=np.float32) / heads)).astype(np.float32)
