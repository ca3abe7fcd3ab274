"""As vLLM 0.33.0 computes it, with given scales: model_executor/layers/quantization/input_quant_fp8.py, lines 215-221."""

import torch

backend = "torch"
dtypes = ("float32", "bfloat16", "float16")
FP8 = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e4m3fnuz": torch.float8_e4m3fnuz}


def to_float8(x, scale, /, *, format, direction):
    dtype = FP8[format]
    scales = scale.to(torch.float32)[..., None]
    if scale.ndim == x.ndim > 1:
        scales = scales.expand(*scale.shape, x.shape[-1] // scale.shape[-1]).reshape(x.shape)
    out = x.to(torch.float32) * (scales.reciprocal() if direction == "divide" else scales)
    limit = torch.finfo(dtype).max
    return out.clamp(-limit, limit).to(dtype).to(x.dtype)
