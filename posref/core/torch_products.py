"""
Products of float32 matrices on PyTorch, without autocast and without TF32 or bfloat16 passes.

A plain product is PyTorch's own. Where a setting would narrow it, that setting is off while the product is computed, forwards
and backwards. The precision of products is a setting of the whole process: a lock keeps two calls from mistaking what one of
them set for what the user set. A compiled program reads it when it runs, so there such a product is one of float64, rounded.
"""

from threading import RLock
from typing import Any

import torch

EXACT = ("ieee", "none", "highest")
_LOCK = RLock()


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product of float32 tensors."""
    if a.device.type == "meta":  # shapes alone, for which there is no autocast
        return torch.matmul(a, b)
    autocast = torch.is_autocast_enabled(a.device.type)
    if torch.compiler.is_compiling():
        if torch.backends.cuda.matmul.allow_tf32:  # so is every precision below the highest, on each device
            return torch.matmul(a.to(torch.float64), b.to(torch.float64)).to(torch.float32)
        return _undisturbed(a, b) if autocast else torch.matmul(a, b)
    with _LOCK:
        narrowed = autocast or _precision(a) not in EXACT
    return _undisturbed(a, b) if narrowed else torch.matmul(a, b)


def _undisturbed(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a product that no setting narrows. A matrix on the right multiplies all rows at once, as in PyTorch's own."""
    if a.ndim > 2 and b.ndim == 2:
        return _undisturbed(a.flatten(0, -2), b).reshape(*a.shape[:-1], b.shape[-1])
    product: torch.Tensor = (_Compiled if torch.compiler.is_compiling() else _Product).apply(a, b)
    return product


class _Compiled(torch.autograd.Function):  # type: ignore[misc]  # mypy does not read PyTorch
    """A product that no setting narrows, nor those of its gradients, for a compiler, which takes no forward mode."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with torch.autocast(a.device.type, enabled=False):
            if torch.compiler.is_compiling():
                return torch.matmul(a, b)
            with _LOCK:
                held = _precision(a)
                _set_precision(a, EXACT[0])
                try:
                    return torch.matmul(a, b)
                finally:
                    _set_precision(a, held)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = ctx.saved_tensors
        of_a, of_b = matmul(gradient, b.mT), matmul(a.mT, gradient)
        return of_a.sum_to_size(a.shape), of_b.sum_to_size(b.shape)


class _Product(_Compiled):
    """The same product, with its derivative in forward mode."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, torch.Tensor], output: torch.Tensor) -> None:
        _Compiled.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx: Any, of_a: torch.Tensor, of_b: torch.Tensor) -> torch.Tensor:
        a, b = ctx.saved_tensors
        return matmul(of_a, b) + matmul(a, of_b)


def _settings(x: torch.Tensor) -> Any:
    """Return the module of settings for products on the device of a tensor."""
    return torch.backends.cuda.matmul if x.device.type == "cuda" else torch.backends.mkldnn.matmul


def _precision(x: torch.Tensor) -> str:
    """Return the precision of float32 products. Before PyTorch 2.9 there is one for all devices."""
    each = hasattr(torch.backends, "fp32_precision")
    return str(_settings(x).fp32_precision if each else torch.get_float32_matmul_precision())


def _set_precision(x: torch.Tensor, precision: str) -> None:
    if hasattr(torch.backends, "fp32_precision"):
        _settings(x).fp32_precision = precision
    else:
        torch.set_float32_matmul_precision("highest" if precision == EXACT[0] else precision)
