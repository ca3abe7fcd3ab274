"""
Records what the layers of a PyTorch model do in a forward pass: the heads they rotate and the attention they compute.

Functions are replaced while the pass runs and restored after it. A stack of modules says which layer calls a function.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

ROTATES = re.compile(r"^_?(apply_.*(rot|rope)|rotate_queries_or_keys)")
ROTATING_MODULE = re.compile(r"[Rr]ot(ary|ation)|R[oO][pP][eE]")
PROJECTS = re.compile(
    r"(^|[._])(w?q|w?k|query|key|q_?proj|k_?proj|qkv|qkv_proj|query_key_value|w?qkv|c_attn|q_lin|k_lin|to_q|to_k)$", re.I
)
QUERIES = re.compile(r"(^|[._])(w?q|query|q_?proj|q_lin|to_q)$", re.I)
NORMALIZES = re.compile(r"(^|\.)(q|k|qk|query|key)_?(layer_?)?norm$")
MOST = 4  # calls that are kept of a module that runs several times


@dataclass(frozen=True)
class Rotation:
    """A tensor of heads before and after a function rotated it."""

    module: torch.nn.Module
    function: str
    which: int  # 0 is the query of a function that rotates both
    before: torch.Tensor
    after: torch.Tensor


@dataclass(frozen=True)
class Norm:
    """Queries or keys before and after a norm of the attention `owner`; `rotated`, whether it had rotated them before."""

    module: torch.nn.Module
    owner: torch.nn.Module
    before: torch.Tensor
    after: torch.Tensor
    rotated: bool


@dataclass(frozen=True)
class Attention:
    """
    A call of an attention function, its tensors in at least float32.

    `visible` says which query sees which key, (H, Q, K): the weights of a call with heads of zeros are positive there. None
    if the function does not take such a call.
    """

    module: torch.nn.Module
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor  # (1, H, Q, E)
    visible: torch.Tensor | None
    options: dict[str, Any]
    projected: torch.Tensor | None = None  # its queries as their projection gave them


@dataclass(frozen=True)
class Softmax:
    """A softmax over keys that a module computes itself, not by an attention function."""

    module: torch.nn.Module
    logits: torch.Tensor  # (1, H, Q, K)
    visible: torch.Tensor  # (H, Q, K)


@dataclass
class Recording:
    """The calls of one forward pass."""

    rotations: list[Rotation] = field(default_factory=list)
    norms: list[Norm] = field(default_factory=list)
    attentions: list[Attention] = field(default_factory=list)
    softmaxes: list[Softmax] = field(default_factory=list)
    projected: dict[torch.nn.Module, torch.Tensor] = field(default_factory=dict)  # queries, by the module that projects them
    rows: list[range] = field(default_factory=list)  # of tables of which a lookup reads rows one after another
    misread: dict[str, str] = field(default_factory=dict)  # calls that could not be read: function and why
    ran: list[torch.nn.Module] = field(default_factory=list)
    stack: list[torch.nn.Module] = field(default_factory=list)
    depth: int = 0

    def counts(self, calls: list[Any]) -> bool:
        """Return whether a call by the current module is kept."""
        return bool(self.stack) and sum(call.module is self.stack[-1] for call in calls) < 2 * MOST


@contextmanager
def recorded(model: torch.nn.Module, *, silent: bool = False, functions: Collection[str] = ()) -> Iterator[Recording]:
    """
    Record the calls that a model makes in a ``with`` block; `functions` rotate too, whatever their names.

    With `silent`, queries and keys are zeros as they are projected, so that the logits of attention are its bias and mask.
    """
    recording = Recording()
    with ExitStack() as undo:
        for name, module in model.named_modules():
            _follow(module, recording, undo)
            if NORMALIZES.search(name):
                undo.callback(module.register_forward_hook(_normalizing_heads(recording)).remove)
            if QUERIES.search(name):
                undo.callback(module.register_forward_hook(_projecting(recording)).remove)
            if silent and PROJECTS.search(name):
                undo.callback(module.register_forward_hook(lambda module, args, result: torch.zeros_like(result)).remove)
        for code in {sys.modules[type(module).__module__] for module in model.modules()}:
            for name, function in list(vars(code).items()):
                if inspect.isfunction(function) and (ROTATES.match(name) or name in functions):
                    _replace(code, name, _rotating(function, name, recording), undo)
        _replace_interface(recording, undo)
        _replace(torch.nn.functional, "embedding", _looking_up(torch.nn.functional.embedding, recording), undo)
        yield recording


def _replace(owner: Any, name: str, value: Any, undo: ExitStack) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


def _follow(module: torch.nn.Module, recording: Recording, undo: ExitStack) -> None:
    """Keep the stack of modules; record a module that rotates queries and keys itself."""
    before: list[list[torch.Tensor]] = []
    rotates = bool(ROTATING_MODULE.search(type(module).__name__))

    def enter(module: torch.nn.Module, args: Any) -> None:
        recording.stack.append(module)
        recording.ran.append(module)
        if rotates:
            before.append([x.detach().clone() for x in args if isinstance(x, torch.Tensor) and x.ndim > 2])

    def leave(module: torch.nn.Module, args: Any, result: Any) -> None:
        recording.stack.pop()
        if rotates and len(before[-1]) > 1 and isinstance(result, tuple) and _shapes(before[-1]) == _shapes(result):
            _keep(recording, type(module).__name__, before[-1], result)
        if rotates:
            before.pop()

    undo.callback(module.register_forward_pre_hook(enter).remove)
    undo.callback(module.register_forward_hook(leave, always_call=True).remove)


def _projecting(recording: Recording) -> Callable[..., None]:
    """Return a hook that keeps queries. It runs after the module has left the stack."""

    def keep(module: torch.nn.Module, args: Any, result: Any) -> None:
        if recording.stack and isinstance(result, torch.Tensor):
            recording.projected[recording.stack[-1]] = result.detach().clone()

    return keep


def _looking_up(function: Callable[..., Any], recording: Recording) -> Callable[..., Any]:
    def embedding(indices: Any, *args: Any, **options: Any) -> Any:
        flat = indices.reshape(-1)
        if flat.numel() > 1 and bool((flat.diff() == 1).all()):
            recording.rows.append(range(int(flat[0]), int(flat[-1]) + 1))
        return function(indices, *args, **options)

    return embedding


def _normalizing_heads(recording: Recording) -> Callable[..., None]:
    """Return a hook that records a norm of queries or keys. It runs after the module has left the stack."""

    def record(module: torch.nn.Module, args: Any, result: Any) -> None:
        same = len(args) == 1 and isinstance(result, torch.Tensor) and result.shape == args[0].shape
        if same and recording.stack and sum(norm.module is module for norm in recording.norms) < MOST:
            owner = recording.stack[-1]
            before = args[0].detach().clone()
            rotated = any(rotation.module is owner and _is_same(rotation.after, before) for rotation in recording.rotations)
            recording.norms.append(Norm(module, owner, before, result.detach().clone(), rotated))

    return record


def _is_same(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Return whether two tensors of heads have the same values, their heads before or after tokens."""
    ways = (x, x.transpose(1, 2)) if x.ndim > 2 and x.numel() == y.numel() else ()
    return any(torch.equal(way.reshape(y.shape), y) for way in ways)


def _shapes(tensors: Any) -> list[Any]:
    return [getattr(x, "shape", None) for x in tensors]


def _keep(recording: Recording, name: str, before: list[torch.Tensor], result: Any) -> None:
    """Keep the results that have the shape of the argument at their place."""
    after = [x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, torch.Tensor)]
    if not recording.counts(recording.rotations):
        return
    like = len(before) >= len(after) and all(x.shape == y.shape for x, y in zip(before, after, strict=False))
    if not like or not after:
        recording.misread[name] = "its results do not have the shapes of its first arguments"
        return
    for which, (x, y) in enumerate(zip(before, after, strict=False)):
        recording.rotations.append(Rotation(recording.stack[-1], name, which, x, y.detach().clone()))


def _rotating(function: Callable[..., Any], name: str, recording: Recording) -> Callable[..., Any]:
    def rotate(*args: Any, **options: Any) -> Any:
        arguments = inspect.signature(function).bind(*args, **options).arguments.values()
        before = [x.detach().clone() for x in arguments if isinstance(x, torch.Tensor)] if recording.depth == 0 else []
        recording.depth += 1
        try:
            result = function(*args, **options)
        finally:
            recording.depth -= 1
        if recording.depth == 0:
            _keep(recording, name, before, result)
        return result

    return rotate


def _replace_interface(recording: Recording, undo: ExitStack) -> None:
    """Record attention where transformers chooses its function, else where PyTorch computes it."""
    inside: list[bool] = []

    def attend(real: Callable[..., Any], module: Any, tensors: tuple[Any, ...], rest: tuple[Any, ...], options: Any) -> Any:
        """Call an attention function, and record the call unless another one made it."""
        inside.append(True)
        try:
            result = real(*tensors, *rest, **options)
            if len(inside) == 1 and recording.counts(recording.attentions):
                _keep_attention(recording, real, module, tensors, rest, options, result)
        finally:
            inside.pop()
        return result

    product = torch.nn.functional.scaled_dot_product_attention

    def with_heads_first(*args: Any, **options: Any) -> Any:
        def real(q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> Any:
            return (product(q, k, v, *rest, **options).transpose(1, 2),)

        names = ("query", "key", "value")
        tensors = (*args[:3], *(options[name] for name in names[len(args[:3]) :]))
        others = {name: value for name, value in options.items() if name not in names}
        module = recording.stack[-1] if recording.stack else None
        if inside or tensors[0].ndim != 4:
            return product(*args, **options)
        return attend(real, module, tensors, args[3:], others)[0].transpose(1, 2)

    _replace(torch.nn.functional, "scaled_dot_product_attention", with_heads_first, undo)
    for owner in (torch, torch.nn.functional):
        _replace(owner, "softmax", _normalizing(owner.softmax, recording, inside), undo)
    try:
        from transformers.modeling_utils import AttentionInterface
    except ImportError:
        return
    choose = AttentionInterface.get_interface

    def get_interface(self: Any, implementation: Any, default: Any) -> Callable[..., Any]:
        function = choose(self, implementation, default)

        def attention(module: torch.nn.Module, query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> Any:
            return attend(lambda *args, **rest: function(module, *args, **rest), module, (query, key, value), rest, options)

        return attention

    _replace(AttentionInterface, "get_interface", get_interface, undo)


def _normalizing(function: Callable[..., Any], recording: Recording, inside: list[bool]) -> Callable[..., Any]:
    def softmax(logits: Any, *args: Any, **options: Any) -> Any:
        weights = function(logits, *args, **options)
        square = getattr(logits, "ndim", 0) == 4 and logits.shape[0] == 1
        if square and not inside and recording.counts(recording.softmaxes):
            recording.softmaxes.append(Softmax(recording.stack[-1], logits.detach().clone(), weights.detach()[0] > 0))
        return weights

    return softmax


def _keep_attention(
    recording: Recording, real: Callable[..., Any], module: Any, tensors: tuple[Any, ...], rest: tuple[Any, ...],
    options: dict[str, Any], result: Any,
) -> None:  # fmt: skip
    """Keep a call; where its tensors are narrower than float32, the result of the same call on wide copies."""
    q, k, v = (_wide(x.detach().clone()) for x in tensors)
    try:
        out = result[0]
        if tensors[0].dtype != q.dtype:
            out = real(q, k, v, *map(_wide, rest), **{name: _wide(x) for name, x in options.items()})[0]
        visible = _visible(real, tensors, rest, options)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        recording.misread["attention"] = f"its function does not take another call: {str(error).splitlines()[0][:120]}"
        return
    kept = {name: x.detach().clone() if isinstance(x, torch.Tensor) else x for name, x in options.items()}
    module = module if isinstance(module, torch.nn.Module) else recording.stack[-1]
    projected = recording.projected.get(module)
    recording.attentions.append(Attention(module, q, k, v, out.detach().clone().transpose(1, 2), visible, kept, projected))


def _wide(x: Any) -> Any:
    return x.float() if isinstance(x, torch.Tensor) and x.dtype in (torch.bfloat16, torch.float16) else x


def _visible(real: Callable[..., Any], tensors: tuple[Any, ...], rest: tuple[Any, ...], options: Any) -> torch.Tensor | None:
    """Return which query sees which key: the weights of a call with heads of zeros, each key with its own value."""
    q, k, v = tensors
    count = k.shape[-2]
    rows = torch.eye(count, dtype=v.dtype, device=v.device).expand(*v.shape[:-2], count, count).contiguous()
    weights: torch.Tensor = real(torch.zeros_like(q), torch.zeros_like(k), rows, *rest, **options)[0].transpose(1, 2)
    return weights[0] > 0 if weights.shape == (1, q.shape[1], q.shape[-2], count) else None
