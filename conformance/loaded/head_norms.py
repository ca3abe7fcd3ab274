"""Judges the norms of queries and keys in a layer: values, and whether they come before the rotation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import posref
from posref.models.arguments import Entry
from posref.models.qk_norms import ORDER

from ..accuracy import DEFAULT_CLAIM
from ..checks.assertion import call_of, results_on_host
from ..judge import judge
from .recording import Norm

OP = posref.rms_norm.__name__
ROWS = 64  # of a norm that are judged
CLAIM = {**DEFAULT_CLAIM, "float64": "angle32"}  # transformers normalizes in float32
EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12)


def norm_text(entry: Entry) -> str:
    """Return a norm in words."""
    options = {name: (entry.options or {}).get(name) for name in ("eps", "weight_offset")}
    return f"{OP} {', '.join(f'{name}={value}' for name, value in options.items())}, {_order(entry)}"


def difference(norm: Norm, entry: Entry | None, *, rotates: bool) -> str | None:
    """
    Return what a norm does otherwise than the file says, in words; None if nothing.

    Raise ValueError if the norm cannot be judged: the error says why.
    """
    if entry is None:
        return None if torch.equal(norm.before, norm.after) else "it normalizes; the file says no norm here"
    if entry.options is None:
        raise ValueError(entry.conventions.get("not defined", "the file does not decide its options"))
    width = norm.before.shape[-1]
    weight = next((x.detach() for x in norm.module.parameters() if x.shape == (width,)), None)
    if weight is None:
        weight = torch.ones(width, dtype=norm.before.dtype, device=norm.before.device)
    x, y = (value.detach().reshape(-1, width)[:ROWS] for value in (norm.before, norm.after))
    options = {"eps": entry.options["eps"], "weight_offset": entry.options["weight_offset"]}
    tolerance = _outside(x, weight, y, options)
    if tolerance is not None:
        errors = {
            words: float((y.double() - value).abs().max()) for words, value in _near(x.double(), weight.double(), options)
        }
        best = min(errors, key=lambda words: errors[words])
        allowed = 8 * max(tolerance, torch.finfo(y.dtype).eps * float(y.abs().max()))
        return f"{best}; the file says {norm_text(entry)}" if errors[best] <= allowed else f"not {norm_text(entry)}"
    said, seen = _order(entry), ORDER["rope" if norm.rotated else "norm"]
    return f"it comes {seen}; the file says {said}" if rotates and said and said != seen else None


def _order(entry: Entry) -> str:
    """Return whether a norm comes before or after the rotation; empty if nothing rotates."""
    first = str((entry.options or {}).get("precedence", "")).removesuffix("_first")
    return ORDER[first] if first else entry.conventions.get("order", "")


def _outside(x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor, options: dict[str, Any]) -> float | None:
    """Return the largest tolerance of values that are outside of theirs; None if all are inside."""
    dtype = str(y.dtype).removeprefix("torch.")
    call = call_of("assert_model", OP, (x, weight), options)
    outputs = {name: value for name, (value, _) in results_on_host(OP, y, (x,)).items()}
    call = replace(call, expected={name: np.zeros(value.shape) for name, value in outputs.items()})
    judgement = judge(OP, call, outputs, CLAIM[dtype], dtype, truth="live")
    if judgement.sample is None:
        raise ValueError(judgement.reason)
    return None if judgement.worst is None else judgement.worst.tolerance


def _near(x: torch.Tensor, weight: torch.Tensor, options: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield what nearby norms give, each with its words."""
    yield "it does not normalize", x
    other = 1 - options["weight_offset"]
    yield f"weight_offset {other} fits", posref.rms_norm(x, weight, eps=options["eps"], weight_offset=other)
    for eps in EPSILONS:
        yield f"eps {eps:g} fits", posref.rms_norm(x, weight, eps=eps, weight_offset=options["weight_offset"])
    ones = torch.full_like(weight, 1.0 - options["weight_offset"])
    yield "its weight is missing", posref.rms_norm(x, ones, **options)
    centred = x - x.mean(-1, keepdim=True)
    yield "it subtracts the mean, as a layer norm", posref.rms_norm(centred, weight, **options)
