"""Deviations of PoPE."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .compose import Deviation, Function, Real, Wrap, after, always, argument, narrowed, option


def _softplus(x: Real) -> Real:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _clamped(phases: Real) -> Real:
    return np.clip(phases, -2 * np.pi, 0)


def _formed(
    magnitude: Callable[[Real], Real] = _softplus, phase: Callable[[Real], Real] = _clamped, exponent: float = 1.0
) -> dict[str, Wrap]:
    """Return a wrap that forms results anew, of another magnitude, phase, or exponent of the frequencies."""

    def deviating(x: Real, p: Any, /, *, layout: str, base: float, phases: Real | None = None) -> Real:
        d = x.shape[-1]
        angle = np.asarray(p, dtype=np.float64)[..., None] * float(base) ** (-exponent * np.arange(d) / d)
        angle = angle if phases is None else angle + phase(np.asarray(phases, dtype=np.float64))
        size = magnitude(np.asarray(x, dtype=np.float64))
        parts = np.broadcast_arrays(size * np.cos(angle), size * np.sin(angle))
        return np.concatenate(parts, -1) if layout == "cos_sin" else np.stack(parts, -1).reshape(*x.shape[:-1], 2 * d)

    return {"pope": lambda function: deviating}


def _first_head(phases: Real) -> Real:
    return phases[:1] if np.ndim(phases) == 3 else phases


def _sine_first(out: Real, x: Real, *rest: Any, layout: str, **options: Any) -> Real:
    d = x.shape[-1]
    if layout == "cos_sin":
        return np.concatenate([out[..., d:], out[..., :d]], axis=-1)
    return out.reshape(*x.shape, 2)[..., ::-1].reshape(out.shape)


def _places(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    return {"pope": argument(1, change)}


def _first_row(p: Any) -> Any:
    return np.broadcast_to(p[:1], p.shape) if np.ndim(p) > 1 else p


def _no_phases(function: Function) -> Function:
    return lambda x, p, /, *, phases=None, **options: function(x, p, **options)


CLAMP = "Phases of keys are brought between -2 pi and 0."

DEVIATIONS = (
    Deviation("pope-lane", "the magnitude is the channel itself", _formed(magnitude=lambda x: x), "Softplus is missing."),
    Deviation("pope-relu", "the magnitude is max(x, 0)", _formed(magnitude=lambda x: np.maximum(x, 0)),
              hint="The magnitude is softplus, ln(1 + exp(x))."),
    Deviation("pope-half-frequencies", "frequencies have the exponent 2c/d rather than c/d", _formed(exponent=2.0),
              "There are as many frequencies as channels."),
    Deviation("pope-rope-frequencies", "frequencies have the exponent c/2d rather than c/d", _formed(exponent=0.5),
              hint="The exponent is -c/d, with a frequency for every channel."),
    Deviation("pope-phases-ignored", "keys have no phases", {"pope": _no_phases}),
    Deviation("pope-phases-free", "phases are not brought between -2 pi and 0", _formed(phase=lambda p: p), CLAMP),
    Deviation("pope-phases-negated", "phases are subtracted", _formed(phase=lambda p: -_clamped(p)),
              hint="A key's phase is added to its angle."),
    Deviation("pope-phases-above-0", "phases are brought between 0 and 2 pi", _formed(phase=lambda p: np.clip(p, 0, 2 * np.pi)), CLAMP),
    Deviation("pope-first-head", "the first head's phases are used for every head", _formed(phase=lambda p: _clamped(_first_head(p)))),
    Deviation("pope-cos-sin", "all cosines always come first, then all sines",
              {"pope": option(layout=always("cos_sin"))}, "", "the convention of x-transformers"),
    Deviation("pope-interleaved", "a channel's cosine and sine are always neighbours",
              {"pope": option(layout=always("interleaved"))}, "", "the convention of PoPE-pytorch"),
    Deviation("pope-sine-first", "sines come before cosines", {"pope": after(_sine_first)}),
    Deviation("pope-positions-plus-1", "PoPE's positions are one too large", _places(lambda p: p + 1)),
    Deviation("pope-positions-bfloat16", "PoPE's positions are held in bfloat16", _places(narrowed("bfloat16"))),
    Deviation("pope-first-row", "row 0's positions are used for all of PoPE's rows", _places(_first_row)),
    Deviation("pope-base-10000", "PoPE's base is always 10000", {"pope": option(base=always(10000.0))}),
    Deviation("pope-bfloat16", "PoPE's inputs are held in bfloat16", {"pope": argument(0, narrowed("bfloat16"))}),
)  # fmt: skip
