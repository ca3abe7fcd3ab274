"""Rotations on a GPU, beside a copy on the device. With `--small` they run on a CPU, with NumPy in the place of CuPy."""

from typing import Any

import numpy as np
import torch

from posref import apply_rope

from . import peers
from .lines import Line, Missing, Work
from .rotation import tables


def device(small: bool) -> str:
    """Return where tensors are."""
    if torch.cuda.is_available():
        return "cuda"
    if not small:
        msg = "no GPU that PyTorch knows"
        raise Missing(msg)
    return "cpu"


def waited(call: Any) -> Any:
    """Return a call that waits for the device."""

    def found() -> object:
        result = call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return result

    return found


def by_torch(small: bool, layout: Any, dtype: torch.dtype, *, compiled: bool) -> Work:
    """Rotate by a given table."""
    where = device(small)
    x = torch.randn(4, 32, 8 if small else 4096, 128, device=where).to(dtype)
    cos, sin = (t.to(where) for t in tables(torch.arange(x.shape[-2]), 128))

    def rotated(x: torch.Tensor) -> torch.Tensor:
        return apply_rope(x, cos, sin, layout=layout)

    if compiled:
        torch.compiler.reset()
        rotated = torch.compile(rotated, fullgraph=True, backend="eager" if small else "inductor")
    return Work(waited(lambda: rotated(x)), waited(x.clone))


def by_cupy(small: bool, layout: Any) -> Work:
    """Rotate in CuPy."""
    cp = peers.module("cupy") if device(small) == "cuda" else np
    host = np.random.default_rng(0).standard_normal((4, 32, 8 if small else 4096, 128), dtype=np.float32)
    x, cos, sin = (cp.asarray(np.asarray(t)) for t in (host, *tables(torch.arange(host.shape[-2]), 128)))
    return Work(waited(lambda: apply_rope(x, cos, sin, layout=layout)), waited(x.copy))


F32, BF16 = torch.float32, torch.bfloat16
LINES = (
    Line("GPU half float32", "a copy", None, lambda s: by_torch(s, "half", F32, compiled=False)),
    Line("GPU half bfloat16", "a copy", None, lambda s: by_torch(s, "half", BF16, compiled=False)),
    Line("GPU half float32, compiled", "a copy", None, lambda s: by_torch(s, "half", F32, compiled=True)),
    Line("GPU half bfloat16, compiled", "a copy", None, lambda s: by_torch(s, "half", BF16, compiled=True)),
    Line("GPU interleaved bfloat16, compiled", "a copy", None, lambda s: by_torch(s, "interleaved", BF16, compiled=True)),
    Line("GPU half float32, CuPy", "a copy", None, lambda s: by_cupy(s, "half")),
)
