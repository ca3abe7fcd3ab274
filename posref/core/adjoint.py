"""
The gradient of a rotation, which is the inverse rotation of the cotangents: x is not kept for it.

Automatic differentiation of the definition keeps x and several results of its size. The inverse needs the table alone, and is
evaluated in blocks (`posref.core.blocks`), with the same bits. This is done for plain tensors of PyTorch that record a gradient
in x alone. Everywhere else the definition is differentiated as it is written: where tables record gradients too, under
compilation, export, tracing, transforms of torch.func and forward-mode differentiation, and for subclasses of tensors. With
``POSREF_BLOCKS=0`` in the environment it is differentiated so everywhere.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

from posref.core import blocks

F = TypeVar("F", bound=Callable[..., Any])


def inverse_is_adjoint(function: F) -> F:
    """
    Differentiate a definition of (x, ...) by calling it with the other `inverse`.

    It is linear in x, its one result has the shape and the dtype of x, and its option `inverse` gives the transpose.
    """

    @wraps(function)
    def evaluated(*arrays: Any, **options: Any) -> Any:
        if len(arrays) > 1 and getattr(arrays[0], "requires_grad", False) and _records_x_alone(arrays):
            return _rotation().apply(evaluated, function, options, *arrays)
        return function(*arrays, **options)

    return evaluated  # type: ignore[return-value]  # it has the signature of what it wraps


def _records_x_alone(arrays: tuple[Any, ...]) -> bool:
    """Return whether all are plain tensors, the first records a gradient, and nothing else does or watches."""
    if type(arrays[0]).__module__ != "torch":  # an array of another library that knows this word, or a parameter
        return False
    import torch

    if not blocks.ON or torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    if not all(type(array) is torch.Tensor for array in arrays):
        return False
    recorded = [array.requires_grad for array in arrays]
    x, *tables = recorded
    return x and not any(tables) and blocks.is_eager() and torch.autograd.forward_ad._current_level < 0


@cache
def _rotation() -> Any:
    """Return the function of autograd. It is made when it is first used, since PyTorch is imported then at the earliest."""
    import torch

    class Rotation(torch.autograd.Function):  # type: ignore[misc]
        """A rotation that keeps its table. A gradient in the cotangents is made by calling itself in the other direction."""

        @staticmethod
        def forward(ctx: Any, again: Any, function: Any, options: dict[str, Any], x: Any, *tables: Any) -> Any:
            ctx.again, ctx.function, ctx.options = again, function, options
            ctx.save_for_backward(*tables)
            return function(x, *tables, **options)

        @staticmethod
        def backward(ctx: Any, cotangents: Any) -> Any:
            tables, options = ctx.saved_tensors, ctx.options | {"inverse": not ctx.options.get("inverse", False)}
            if torch._C._functorch.is_legacy_batchedtensor(cotangents):  # of is_grads_batched, which knows few functions
                found = _as_written(ctx.function, cotangents, tables, ctx.options)
            else:
                found = ctx.again(cotangents, *tables, **options)
            return (None, None, None, found, *(None for _ in tables))

    return Rotation


def _as_written(function: Any, cotangents: Any, tables: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the gradient by automatic differentiation at x = 0: the rotation is linear, and so has the same one everywhere."""
    import torch

    with torch.enable_grad():
        x = torch.zeros(cotangents.shape, dtype=cotangents.dtype, device=cotangents.device, requires_grad=True)
        y = function(x, *tables, **options)
    return torch.autograd.grad(y, x, cotangents, create_graph=torch.is_grad_enabled())[0]
