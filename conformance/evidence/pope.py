"""Polar position embedding (PoPE): cases and known mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .shared.rotary import BASE, FAR, NEAR, OFFSETS, ROTATED_FORMS, UNSORTED
from .tools import Case, floats, form_case, gradient, reals, seed_of
from .tools.deviation import Deviation, Real, Wrap, after, always, argument, deviations_of, held, narrowed, option
from .tools.hints import BRANCH, DEFAULT, EACH_HEAD, EACH_ROW, FROM_ZERO, IGNORED, INTEGERS, ORDER, ROUND_ONCE

USUAL: dict[str, Any] = {"layout": "interleaved", "base": 10000.0}
KERNEL: tuple[dict[str, Any], ...] = ({"layout": "cos_sin", "base": 10000.0},)


def phases_of(name: str, *shape: int) -> npt.NDArray[np.float64]:
    """Return phases: most allowed, some below -2 pi, and some above 0."""
    return floats(*shape, seed=seed_of("phases" + name)) - 3.125 + (floats(*shape, seed=seed_of(name), bits=2) > 3) * 4


def _case(
    name: str, shape: tuple[int, ...], positions: Any, layout: str, comment: str = "", *,
    phases: tuple[int, ...] | None = None, spread: float = 1.0, bits: int = 8, kind: str = "value", tier: str = "core",
    **params: Any,
) -> Case:  # fmt: skip
    """Return a case with x between -4 and 4, times `spread`, and phases of this shape."""
    inputs = {"x": spread * floats(*shape, seed=seed_of("pope" + name), bits=bits), "positions": positions}
    if phases is not None:
        inputs["phases"] = phases_of(name, *phases)
    return Case(f"pope/{name}", {"base": BASE, "layout": layout, **params}, inputs, comment, kind, tier)


def _layout(layout: str) -> Iterator[Case]:
    """Yield the cases that both layouts have."""
    group = layout.replace("_", "-")
    yield _case(f"{group}/small", (3, 6), (0, 1, 5), layout, tier="smoke" if layout == "cos_sin" else "core")
    yield _case(f"{group}/far", (19, 3), FAR, layout)
    yield _case(f"{group}/unsorted", (2, 3, 5, 6), UNSORTED, layout, base=5e5)
    yield _case(f"{group}/rows", (3, 2, 5, 3), np.asarray(OFFSETS)[:, None].tolist(), layout, phases=(2, 1, 3))
    yield _case(f"{group}/keys", (5, 7), NEAR, layout, phases=(7,), base=500.0)
    yield _case(f"{group}/wide", (5, 6), NEAR, layout, "x from -32 to 32", spread=8.0)


def _pope_forms() -> Iterator[Case]:
    """Yield the forms of x."""
    for rotated in ROTATED_FORMS:
        layout = "cos_sin" if rotated.options["layout"] == "half" else "interleaved"
        inputs = {"x": reals("pope" + rotated.name, *rotated.x), "positions": rotated.positions}
        options = rotated.options | {"layout": layout}
        yield form_case("pope", rotated.name, inputs, options, rotated.comment, rotated.form)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        *_layout("cos_sin"),
        _case("positions/one-lane", (3, 1), (1, 2, 9), "interleaved", "d = 1: one frequency, which is 1", phases=(1,)),
        _case("models/124m", (2, 64), (7, 1023), "cos_sin", "heads of 64 lanes", phases=(64,)),
        _case("refused/layout", (3, 4), (0, 1, 2), "sin_cos", kind="reject"),
        _case("refused/phases", (3, 4), (0, 1, 2), "cos_sin", "phases of two lanes for four", kind="reject", phases=(2,)),
        _case("refused/positions", (2, 3, 4, 6), ((0, 1, 2, 3), (4, 5, 6, 7)), "cos_sin",
              "(B, T) for (B, H, T, d)", kind="reject"),
        *_pope_forms(),
        gradient("pope", "query", {"x": reals("pope-query", 2, 3, 3), "positions": (0, 4, 9)},
                 {"out": (2, 3, 6)}, layout="cos_sin", base=10000.0),
        gradient("pope", "key",
                 {"x": 4 * reals("pope-key", 3, 4), "positions": (100, 260, 7),
                 "phases": np.asarray((-1.25, -7.0, 0.5, -5.0))}, {"out": (3, 8)},
                 "phases of two lanes are clamped: no gradient", layout="interleaved", base=500.0),
        gradient("pope", "heads",
                 {"x": reals("pope-heads", 2, 2, 2, 3), "positions": (3, 8),
                 "phases": np.asarray((((-1.5, -2.0, -0.25),), ((-3.0, -0.75, -6.0),)))}, {"out": (2, 2, 2, 6)},
                 layout="cos_sin", base=100.0),
    )  # fmt: skip


PHASE_LIMITS = "Phases of keys are brought between -2 pi and 0."


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


def _sine_first(out: Real, x: Real, *rest: Any, layout: str, **options: Any) -> Real:
    d = x.shape[-1]
    if layout == "cos_sin":
        return np.concatenate([out[..., d:], out[..., :d]], axis=-1)
    return out.reshape(*x.shape, 2)[..., ::-1].reshape(out.shape)


def _places(change: Callable[[Any], Any]) -> dict[str, Wrap]:
    return {"pope": argument(1, change)}


_deviation = deviations_of("pope")

DEVIATIONS = (
    Deviation("pope-lane", "the magnitude is the channel itself", _formed(magnitude=lambda x: x), hint="Softplus is missing."),
    Deviation("pope-relu", "the magnitude is max(x, 0)", _formed(magnitude=lambda x: np.maximum(x, 0)),
              hint="The magnitude is softplus, ln(1 + exp(x))."),
    Deviation("pope-half-frequencies", "frequencies have the exponent 2c/d rather than c/d", _formed(exponent=2.0),
              hint="There are as many frequencies as channels."),
    Deviation("pope-rope-frequencies", "frequencies have the exponent c/2d rather than c/d", _formed(exponent=0.5),
              hint="The exponent is -c/d, with a frequency for every channel."),
    _deviation("pope-phases-ignored", "keys have no phases",
               lambda function: lambda x, p, /, *, phases=None, **options: function(x, p, **options), hint=IGNORED),
    Deviation("pope-phases-free", "phases are not brought between -2 pi and 0", _formed(phase=lambda p: p), hint=PHASE_LIMITS),
    Deviation("pope-phases-negated", "phases are subtracted", _formed(phase=lambda p: -_clamped(p)),
              hint="A key's phase is added to its angle."),
    Deviation("pope-phases-above-0", "phases are brought between 0 and 2 pi",
              _formed(phase=lambda p: np.clip(p, 0, 2 * np.pi)), hint=PHASE_LIMITS),
    Deviation("pope-first-head", "the first head's phases are used for every head",
              _formed(phase=lambda p: _clamped(p[:1] if np.ndim(p) == 3 else p)), hint=EACH_HEAD),
    _deviation("pope-cos-sin", "all cosines always come first, then all sines", option(layout=always("cos_sin")), hint=BRANCH,
               seen_in="the convention of x-transformers"),
    _deviation("pope-interleaved", "a channel's cosine and sine are always neighbours", option(layout=always("interleaved")),
               hint=BRANCH, seen_in="the convention of PoPE-pytorch"),
    _deviation("pope-sine-first", "sines come before cosines", after(_sine_first), hint=ORDER),
    Deviation("pope-positions-plus-1", "PoPE's positions are one too large", _places(lambda p: p + 1), hint=FROM_ZERO),
    Deviation("pope-positions-bfloat16", "PoPE's positions are held in bfloat16", _places(narrowed("bfloat16")), hint=INTEGERS),
    Deviation("pope-first-row", "row 0's positions are used for all of PoPE's rows",
              _places(lambda p: np.broadcast_to(p[:1], p.shape) if np.ndim(p) > 1 else p), hint=EACH_ROW),
    _deviation("pope-base-10000", "PoPE's base is always 10000", option(base=always(10000.0)), hint=DEFAULT),
    _deviation("pope-bfloat16", "PoPE's inputs are held in bfloat16", held("bfloat16", 0), hint=ROUND_ONCE),
)  # fmt: skip
