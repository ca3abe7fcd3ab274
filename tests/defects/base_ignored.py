"""The base stays 10000 whatever the model says; airllm #368, llama.cpp #2773 (CodeLlama), penzai #102."""

import numpy as np

DEFECT = "base ignored: 10000"
NAMES = ("base-10000",)


def rope_frequencies(dim, /, *, base):
    return np.exp(np.arange(0, dim, 2, dtype=np.float32) * np.float32(-np.log(10000.0) / dim)), 1.0


def rope(x, positions, /, *, layout, base):
    if layout != "interleaved":
        raise NotImplementedError(layout)
    inv_freq, _ = rope_frequencies(x.shape[-1], base=base)
    angle = positions[..., None].astype(np.float32) * inv_freq
    cos, sin = np.repeat(np.cos(angle), 2, axis=-1), np.repeat(np.sin(angle), 2, axis=-1)
    turned = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * cos + turned * sin
