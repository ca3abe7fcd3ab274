"""
Rotations on a GPU, beside a copy on the device and beside others' kernels.

With `--small` they run on a CPU, with NumPy in CuPy's place. A call waits until the device is done. Queries of the large lines
are larger than any cache of a GPU. What waits for a GPU by itself, and what runs in a CUDA graph, tests say (tests/gpu).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from posref import apply_rope, rope, rope_frequencies, rope_table

from . import peers
from .lines import Line, Missing, Work
from .rotation import tables

LARGE, ONE_TOKEN = (4, 32, 4096, 128), (64, 32, 1, 128)
F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16


def device(small: bool) -> str:
    """Return where tensors are."""
    if torch.cuda.is_available():
        return "cuda"
    if not small:
        raise Missing("no GPU that PyTorch knows")
    return "cpu"


def waited(call: Callable[[], object]) -> Callable[[], object]:
    """Return a call that waits for the device."""

    def found() -> object:
        result = call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return result

    return found


def given(small: bool, dtype: torch.dtype, shape: tuple[int, ...] = LARGE) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return queries, and cosines and sines in float32, on the device."""
    where = device(small)
    shape = (*shape[:-2], min(shape[-2], 8), shape[-1]) if small else shape
    cos, sin = (t.to(where) for t in tables(torch.arange(shape[-2]), shape[-1]))
    return torch.randn(shape, device=where).to(dtype), cos, sin


def rotation(small: bool, layout: Any, *, compiled: bool) -> Callable[..., torch.Tensor]:
    """Return apply_rope of PyTorch, compiled if asked."""

    def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return apply_rope(x, cos, sin, layout=layout)

    if not compiled:
        return rotated
    torch.compiler.reset()
    result: Callable[..., torch.Tensor] = torch.compile(rotated, fullgraph=True, backend="eager" if small else "inductor")
    return result


def by_torch(small: bool, layout: Any, dtype: torch.dtype, *, compiled: bool, shape: tuple[int, ...] = LARGE) -> Work:
    """Rotate by a given table."""
    x, cos, sin = given(small, dtype, shape)
    rotated = rotation(small, layout, compiled=compiled)
    return Work(waited(lambda: rotated(x, cos, sin)), waited(x.clone))


def whole(small: bool) -> Work:
    """Rotate by positions: frequencies are made on the host, and the table on the device."""
    x, _, _ = given(small, BF16)
    positions = torch.arange(x.shape[-2], device=x.device)
    return Work(waited(lambda: rope(x, positions, layout="half", base=10_000.0)), waited(x.clone))


def table(small: bool) -> Work:
    """Make cosines and sines from frequencies on the device, in float64. The peer computes in float32."""
    positions = torch.arange(8 if small else 131_072, device=device(small))
    frequencies = torch.asarray(rope_frequencies(128, base=10_000.0)[0], device=positions.device)
    narrow = frequencies.to(F32)

    def naive() -> object:
        angles = positions[:, None].to(F32) * narrow
        return angles.cos(), angles.sin()

    return Work(waited(lambda: rope_table(positions, frequencies, dtype=F32)), waited(naive))


# ---- others' kernels --------------------------------------------------------------------------------------------------------
def both(small: bool) -> tuple[Callable[[], object], list[torch.Tensor]]:
    """Return the compiled rotation of queries and keys in bfloat16, and what it takes."""
    q, cos, sin = given(small, BF16)
    k = torch.randn_like(q)
    rotated = rotation(small, "half", compiled=True)
    return waited(lambda: (rotated(q, cos, sin), rotated(k, cos, sin))), [q, k, cos, sin]


def beside_transformers(small: bool) -> Work:
    """Rotate queries and keys. The peer's tables have the dtype of the model."""
    ours, (q, k, cos, sin) = both(small)
    _, rotate = peers.llama(q.shape[1], q.shape[-1])
    wide = [torch.cat([t, t], -1)[None].to(BF16) for t in (cos, sin)]
    return Work(ours, waited(lambda: rotate(q, k, *wide)))


def on_a_gpu(name: str) -> Any:
    """Return a module whose kernels need a GPU."""
    result = peers.module(name)
    if not torch.cuda.is_available():
        raise Missing(f"{name.partition('.')[0]} needs a GPU")
    return result


def beside_liger(small: bool) -> Work:
    """Rotate queries and keys. The peer overwrites them, which keeps their size."""
    function = on_a_gpu("liger_kernel.ops.rope").LigerRopeFunction
    ours, (q, k, cos, sin) = both(small)
    wide = [torch.cat([t, t], -1)[None].to(BF16) for t in (cos, sin)]
    theirs = q.clone(), k.clone()
    return Work(ours, waited(lambda: function.apply(*theirs, *wide)))


def beside_flash_attn(small: bool) -> Work:
    """Rotate queries and keys. The peer's have tokens before heads."""
    rotate = on_a_gpu("flash_attn.layers.rotary").apply_rotary_emb
    ours, (q, k, cos, sin) = both(small)
    theirs = [x.transpose(1, 2).contiguous() for x in (q, k)]
    narrow = cos.to(BF16), sin.to(BF16)
    return Work(ours, waited(lambda: [rotate(x, *narrow) for x in theirs]))


# ---- CuPy -------------------------------------------------------------------------------------------------------------------
class KernelOfNumPy:
    """What CuPy's ElementwiseKernel computes, in NumPy: C and Python write these sums in the same way."""

    def __init__(self, inputs: str, outputs: str, operation: str, name: str) -> None:
        self.names = [[part.split()[-1] for part in text.split(",")] for text in (inputs, outputs)]
        self.operation = compile(operation, name, "exec")

    def __call__(self, *arrays: Any) -> None:
        inputs, outputs = self.names
        scope = dict(zip(inputs, arrays, strict=False))
        exec(self.operation, scope)
        for name, out in zip(outputs, arrays[len(inputs) :], strict=True):
            out[...] = scope[name]


def sums() -> list[str]:
    """Return both channels of a rotated pair (a, b), in terms of its cosine c and sine s, as the definition computes them."""
    terms_of_channels: list[list[str]] = [[], []]
    for pair, x in (("a", [1.0, 0.0]), ("b", [0.0, 1.0])):
        for value, cos, sin in (("c", 1.0, 0.0), ("s", 0.0, 1.0)):
            rotated = apply_rope(np.asarray([x]), np.asarray([[cos]]), np.asarray([[sin]]), layout="half")
            for terms, factor in zip(terms_of_channels, rotated[0].tolist(), strict=True):
                if factor:
                    terms.append(f"{'-' if factor < 0 else '+'} {pair} * {value}")
    return [" ".join(terms) for terms in terms_of_channels]


def kernel(cp: Any) -> Callable[..., Any]:
    """Return a rotation of layout half in one kernel of CuPy, made from the definition."""
    first, second = sums()
    makes = getattr(cp, "ElementwiseKernel", KernelOfNumPy)
    rotate = makes("T a, T b, T c, T s", "T first, T second", f"first = {first}; second = {second}", "rotate_pairs")

    def rotated(x: Any, cos: Any, sin: Any) -> Any:
        out, half = cp.empty_like(x), x.shape[-1] // 2
        rotate(x[..., :half], x[..., half:], cos, sin, out[..., :half], out[..., half:])
        return out

    return rotated


def by_cupy(small: bool, *, one_kernel: bool) -> Work:
    """Rotate in CuPy: each product and sum is a kernel of its own, or all are one."""
    cp = peers.module("cupy") if device(small) == "cuda" else np
    x, cos, sin = (cp.asarray(t.cpu().numpy()) for t in given(small, F32))
    function = kernel(cp) if one_kernel else lambda *arrays: apply_rope(*arrays, layout="half")
    right = apply_rope(x[:1, :1], cos, sin, layout="half")
    # two products and a sum of numbers up to the largest, each rounded once or not at all
    if not cp.allclose(function(x[:1, :1], cos, sin), right, rtol=0.0, atol=4 * 2.0**-24 * float(abs(x[:1, :1]).max())):
        raise ArithmeticError("the kernel made from the definition gives other values")
    return Work(waited(lambda: function(x, cos, sin)), waited(x.copy))


def line(name: str, layout: str, dtype: torch.dtype, shape: tuple[int, ...] = LARGE, *, compiled: bool = False) -> Line:
    """Return a line beside a copy."""
    of = f"{'one token, ' if shape == ONE_TOKEN else ''}{name}{', compiled' if compiled else ''}"
    return Line(f"GPU {of}", "a copy", None, lambda s: by_torch(s, layout, dtype, compiled=compiled, shape=shape))


LINES = (
    line("half float32", "half", F32),
    line("half bfloat16", "half", BF16),
    line("half float16", "half", F16),
    line("interleaved bfloat16", "interleaved", BF16),
    line("half bfloat16", "half", BF16, ONE_TOKEN),
    line("half float32", "half", F32, compiled=True),
    line("half bfloat16", "half", BF16, compiled=True),
    line("half float16", "half", F16, compiled=True),
    line("interleaved bfloat16", "interleaved", BF16, compiled=True),
    line("half bfloat16", "half", BF16, ONE_TOKEN, compiled=True),
    Line("GPU rope() half bfloat16", "a copy", None, whole),
    Line("GPU rope_table 131072 x 64", "naive float32", None, table),
    Line("GPU half bfloat16, q and k, compiled", "transformers as it runs", None, beside_transformers),
    Line("GPU half bfloat16, q and k, compiled", "Liger, in place", None, beside_liger),
    Line("GPU half bfloat16, q and k, compiled", "flash-attn", None, beside_flash_attn),
    Line("GPU half float32, CuPy", "a copy", None, lambda s: by_cupy(s, one_kernel=False)),
    Line("GPU half float32, CuPy, one kernel", "a copy", None, lambda s: by_cupy(s, one_kernel=True)),
)
