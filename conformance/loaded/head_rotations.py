"""Compares the rotation of a layer with the options in the file. If they differ, finds near options that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import posref
from posref.models.arguments import Entry
from posref.spec import REGISTRY

from ..accuracy import DEFAULT_CLAIM
from ..checks.assertion import call_of, results_on_host
from ..judge import Judgement, judge
from .recording import Rotation

Change = Callable[[torch.Tensor], torch.Tensor]
Result = Callable[[], torch.Tensor]
HEADS = 4  # of a call that are judged: the first ones and the last
CLAIM = {**DEFAULT_CLAIM, "float64": "angle32"}  # transformers computes frequencies and angles in float32
BASES = (1e4, 1e5, 5e5, 1e6)
CLEARLY = 4  # times nearer than the file's options an explanation must be
FACTORS = 8  # the most that a near explanation may be off, in tolerances of the call


def rotation_text(entry: Entry | None) -> str:
    """Return a rotation in words, without options that have their default."""
    if entry is None:
        return "no rotation"
    options = {n: v for n, v in (entry.options or {}).items() if v is not None and (n, v) != ("lanes", "leading")}
    return f"{entry.operation} {', '.join(f'{name}={value}' for name, value in options.items())}"


class Positions:
    """The positions of a pass, and the token axis of its tensors."""

    def __init__(self, tokens: npt.NDArray[np.int64], axes: npt.NDArray[np.int64]) -> None:
        self.tokens, self.axes = tokens, axes

    def of(self, entry: Entry) -> npt.NDArray[np.int64]:
        """Return the positions that an operation takes: (T,), or (axes, T) for M-RoPE."""
        return self.axes[: len(entry.options["sections"])] if entry.operation == "mrope" else self.tokens  # type: ignore[index]

    def replaced(self, tokens: npt.NDArray[np.int64]) -> Positions:
        """Return other positions, the same on all axes."""
        return Positions(tokens, np.broadcast_to(tokens, self.axes.shape))


def difference(
    rotation: Rotation, entry: Entry | None, positions: Positions, others: Mapping[str, Entry]
) -> tuple[str, float | None] | None:
    """
    Return what a layer rotates otherwise than the file says, in words, and how far it is off; None if nothing.

    Raise ValueError if the call cannot be judged: the error says why.
    """
    before, after = _tokens_last(rotation.before, len(positions.tokens)), _tokens_last(rotation.after, len(positions.tokens))
    if not bool(before.isfinite().all()):
        msg = "its queries or keys are not finite before they rotate"
        raise ValueError(msg)
    if entry is None:
        return None if torch.equal(before, after) else _named(before, after, entry, positions, others, 0.0)
    width, rotated = before.shape[-1], _lanes(entry, before.shape[-1])
    if rotated > width:
        return f"at most {width} channels rotate; the file says {rotated}", None
    judgement = _judged(before, after, entry, positions)
    worst = judgement.worst
    return None if worst is None else _named(before, after, entry, positions, others, worst.tolerance)


def _tokens_last(x: torch.Tensor, tokens: int) -> torch.Tensor:
    """Return some heads of a tensor of heads in the shape (..., T, D)."""
    axes = [axis for axis in range(x.ndim - 1) if x.shape[axis] == tokens]
    if not axes:
        msg = f"a tensor of shape {tuple(x.shape)} has no axis of {tokens} tokens"
        raise ValueError(msg)
    x = x.movedim(axes[-1], -2)
    x = x.reshape(-1, *x.shape[-2:])
    return x if x.shape[0] <= HEADS else torch.cat([x[: HEADS - 1], x[-1:]])


def _lanes(entry: Entry, width: int) -> int:
    options: Mapping[str, Any] = entry.options or {}
    return 2 * sum(options["sections"]) if entry.operation == "mrope" else options.get("rotary_dim") or width


def _options(entry: Entry, positions: Positions) -> dict[str, Any]:
    """Return the options of a call, with its length where the scaling needs one."""
    options = dict(entry.options or {})
    if "length is not None" in getattr(options.get("scaling"), "requires", ()):
        options["length"] = int(positions.tokens.max()) + 1
    return options


def _judged(before: torch.Tensor, after: torch.Tensor, entry: Entry, positions: Positions) -> Judgement:
    op, dtype = entry.operation, str(after.dtype).removeprefix("torch.")
    call = call_of("assert_model", op, (before, positions.of(entry)), _options(entry, positions))
    outputs = {name: x for name, (x, _) in results_on_host(op, after, (before,)).items()}
    call = replace(call, expected={name: np.zeros(x.shape) for name, x in outputs.items()})
    judgement = judge(op, call, outputs, CLAIM[dtype], dtype, truth="live")
    if judgement.sample is None:
        raise ValueError(judgement.reason)
    return judgement


def _named(
    before: torch.Tensor, after: torch.Tensor, entry: Entry | None, positions: Positions, others: Mapping[str, Entry],
    tolerance: float,
) -> tuple[str, float | None]:  # fmt: skip
    """Return the options that give what the model did, in words, and how far it is off."""
    x, y = before.double(), after.double()
    size = float(x.abs().max())
    if not bool(torch.isfinite(y).all()):
        return "the rotated values are not finite", None
    rounding = max(FACTORS * torch.finfo(after.dtype).eps, float(positions.axes.max()) * 2.0**-22)
    off = float((y - (x if entry is None else _rotated(x, entry, positions))).abs().max())
    errors: dict[str, float] = {}
    for words, value in _near(x, entry, positions, others):
        with suppress(ValueError):  # options that do not go together
            errors[words] = float((y - value()).abs().max())
    best = min(errors, key=lambda words: errors[words])
    if errors[best] <= min(max(FACTORS * tolerance, size * rounding), off / CLEARLY):
        return best, off / size
    return "no near option gives these values", off / size


def _near(
    x: torch.Tensor, entry: Entry | None, positions: Positions, others: Mapping[str, Entry]
) -> Iterator[tuple[str, Result]]:
    """Yield what nearby options give, each with its words."""
    if entry is None:
        plain = {"layout": "half", "rotary_dim": x.shape[-1], "scaling": None}
        near = {**others, **{f"base {base:g}": Entry("rope", {**plain, "base": base}) for base in BASES}}
        for words, other in near.items():
            yield f"it rotates, with {words}; the file says no rotation", partial(_rotated, x, other, positions)
        return
    yield "it does not rotate", lambda: x
    yield "it does not rotate: all frequencies are 0", partial(_rotated, x, entry, positions, frequencies=torch.zeros_like)
    yield "it rotates in the other direction", partial(_rotated, x, entry, positions, frequencies=torch.neg)
    for words, other in others.items():
        if other != entry:
            yield f"it rotates with {words}", partial(_rotated, x, other, positions)
    for words, other in _variants(entry, x.shape[-1]):
        if other == entry:
            continue
        yield words, partial(_rotated, x, other, positions)
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        rounding = partial(_rounded, dtype=dtype)
        yield f"its frequencies are rounded to {name}", partial(_rotated, x, entry, positions, frequencies=rounding)
        rounded = torch.as_tensor(positions.tokens).to(dtype).to(torch.int64).numpy()
        yield f"positions are rounded to {name}", partial(_rotated, x, entry, positions.replaced(rounded))
    for words, tokens in (
        ("positions begin at 0, not where the caller says", positions.tokens - positions.tokens[0]),
        ("positions are 1 too large", positions.tokens + 1),
        ("positions are 1 too small", positions.tokens - 1),
    ):
        yield words, partial(_rotated, x, entry, positions.replaced(tokens))
    for axis in range(len(positions.axes) if entry.operation == "mrope" else 0):
        yield (
            f"all axes have the positions of axis {axis}",
            partial(_rotated, x, entry, positions.replaced(positions.axes[axis])),
        )


def _variants(entry: Entry, width: int) -> Iterator[tuple[str, Entry]]:
    """Yield near options with their words: another scaling, layout, base or number of channels."""
    options: dict[str, Any] = dict(entry.options or {})
    domains = REGISTRY[entry.operation].domains
    if options.get("scaling") is not None:
        yield "unscaled frequencies: the scaling of the file is missing", entry._replace(options={**options, "scaling": None})
    for layout in ("half", "interleaved", "interleaved_to_half"):
        yield f"layout {layout}", entry._replace(options={**options, "layout": layout})
    for arrangement in ("chunked", "interleaved") if "arrangement" in domains else ():
        yield f"arrangement {arrangement}", entry._replace(options={**options, "arrangement": arrangement})
    for base in BASES:
        yield f"base {base:g}", entry._replace(options={**options, "base": base})
        yield f"base {base:g} and no scaling", entry._replace(options={**options, "base": base, "scaling": None})
    if "rotary_dim" in options:
        for lanes in dict.fromkeys((width, width // 2, width // 4)):
            if lanes >= 2 and lanes % 2 == 0 and lanes != options["rotary_dim"]:
                yield f"{lanes} channels rotate", entry._replace(options={**options, "rotary_dim": lanes})
        for side in ("leading", "trailing"):
            yield f"the {side} channels rotate", entry._replace(options={**options, "lanes": side})


def _rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x.to(dtype).to(x.dtype)


def _rotated(x: torch.Tensor, entry: Entry, positions: Positions, frequencies: Change | None = None) -> torch.Tensor:
    """Return what posref gives for x in float64; with `frequencies`, a function changes the frequencies first."""
    options = _options(entry, positions)
    at = torch.as_tensor(np.ascontiguousarray(positions.of(entry)), device=x.device)
    if frequencies is None:
        result: torch.Tensor = getattr(posref, entry.operation)(x, at, **options)
        return result
    if entry.operation == "mrope":
        return _rotated_by_axes(x, at, options, frequencies)
    lanes = {name: options[name] for name in ("layout", "inverse", "lanes") if name in options}
    inner = {name: options[name] for name in ("base", "scaling", "length") if name in options}
    inv_freq, factor = posref.rope_frequencies(_lanes(entry, x.shape[-1]), xp=torch, dtype=torch.float64, **inner)
    table = posref.rope_table(at, frequencies(inv_freq).to(x.device), attention_factor=factor, dtype=torch.float64)
    return posref.apply_rope(x, *table, **lanes)


def _rotated_by_axes(x: torch.Tensor, at: torch.Tensor, options: dict[str, Any], frequencies: Change) -> torch.Tensor:
    """Return M-RoPE of x with other frequencies."""
    sections = options["sections"]
    inner = {name: options[name] for name in ("base", "scaling", "length") if name in options}
    inv_freq, factor = posref.rope_frequencies(2 * sum(sections), xp=torch, dtype=torch.float64, **inner)
    inv_freq = frequencies(inv_freq).to(x.device)
    cos, sin = posref.axial_table(at, inv_freq, sections=sections, arrangement=options["arrangement"], dtype=torch.float64)
    return posref.apply_rope(x, factor * cos, factor * sin, layout=options["layout"])
