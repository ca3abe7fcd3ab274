"""
ONNX operators that are one of these operations: opset 23, with its inputs and attributes made of a call's.

A function of an operation's name returns the node of a call, or says in a sentence why ONNX has none for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Arrays

OPSET = 23
Reals = npt.NDArray[Any]


@dataclass(frozen=True)
class Node:
    """An operator, its inputs by name in their order (a missing one is None), its attributes, and its dtypes."""

    operator: str
    inputs: Mapping[str, npt.NDArray[Any] | None]
    shape: tuple[int, ...]  # of its output
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32", "bfloat16", "float16")


def apply_rope(inputs: Arrays, params: Mapping[str, Any]) -> Node | str:
    """Return RotaryEmbedding, with cosines and sines of shape (B, T, d/2)."""
    layout = params["layout"]
    if layout not in ("half", "interleaved") or params["inverse"] or params["lanes"] != "leading":
        return f"RotaryEmbedding has no layout {layout}, inverse {params['inverse']} and lanes {params['lanes']} together"
    x, cos, sin = (inputs[n] for n in ("x", "cos", "sin"))
    rows, pairs = x.shape[:-1], cos.shape[-1]
    four = (1,) * (4 - x.ndim) + x.shape
    by_token = x.ndim <= 4 and (cos.ndim < 3 or cos.shape[-3] == 1) and cos.shape[-2:-1] != (1,)
    if by_token:  # one table for all heads
        tables = [
            np.broadcast_to(t.reshape((1,) * (4 - t.ndim) + t.shape)[:, 0], (four[0], four[2], pairs)) for t in (cos, sin)
        ]
    else:  # each row of x is a token of one head
        four = (1, 1, int(np.prod(rows)), x.shape[-1])
        tables = [np.broadcast_to(t, (*rows, pairs)).reshape(1, -1, pairs) for t in (cos, sin)]
    attributes = {"interleaved": int(layout == "interleaved")}
    if 2 * pairs != x.shape[-1]:
        attributes["rotary_embedding_dim"] = 2 * pairs
    named = dict(zip(("X", "cos_cache", "sin_cache"), (x.reshape(four), *tables), strict=True))
    return Node("RotaryEmbedding", named, four, attributes)


def attention(inputs: Arrays, params: Mapping[str, Any]) -> Node | str:
    """Return Attention, with a bias or a mask as its attn_mask."""
    q, k, v = (inputs[n] for n in ("q", "k", "v"))
    bias, mask, scale = inputs.get("bias"), inputs.get("mask"), params.get("scale")
    if inputs.get("sinks") is not None:
        return "Attention has no sinks"
    if bias is not None and mask is not None:
        return "Attention takes a bias or a mask, and not both"
    if not 2 <= q.ndim <= 4 or not q.ndim == k.ndim == v.ndim:
        return "Attention takes q, k and v of the same axes, at most four"
    if scale is not None and float(np.float32(scale)) != scale:
        return f"Attention has its scale in float32, which has no {scale!r}"
    if mask is not None and not np.all(np.any(mask, axis=-1)):
        return "Attention leaves open what a query gets that may attend to no key"
    four = [x.reshape((1,) * (4 - x.ndim) + x.shape) for x in (q, k, v)]
    if not four[0].shape[0] == four[1].shape[0] == four[2].shape[0]:
        return "Attention takes q, k and v of the same batch"
    added = bias if mask is None else mask
    if added is not None:
        added = np.broadcast_to(added, np.broadcast_shapes(added.shape, (q.shape[-2], k.shape[-2])))
    attributes = {} if scale is None else {"scale": float(scale)}
    shape = (*four[0].shape[:-1], v.shape[-1])
    named = dict(zip(("Q", "K", "V", "attn_mask"), (*four, added), strict=True))
    return Node("Attention", named, shape, attributes, ("float64", "float32", "bfloat16", "float16"))


OPERATORS: dict[str, Callable[[Arrays, Mapping[str, Any]], Node | str]] = {f.__name__: f for f in (apply_rope, attention)}


def node_of(op: str, inputs: Arrays, params: Mapping[str, Any]) -> Node | str:
    """Return the node that computes a call, or why there is none."""
    return OPERATORS[op](inputs, params) if op in OPERATORS else f"opset {OPSET} has no operator for {op}"
