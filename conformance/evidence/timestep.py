"""Diffusion timestep embedding: cases and known mistakes."""

from typing import Any

import numpy as np

from .shared.absolute import FAR
from .tools import Case, cases_of, places
from .tools.deviation import Function, Real, after, always, argument, around, before, deviations_of, narrowed, option
from .tools.hints import BRANCH, DEFAULT, EACH_ROW, FRACTIONS, INTEGERS

USUAL: dict[str, Any] = {"dim": 7, "flip": True, "freq_shift": 0, "scale": 2.5}
KERNEL: tuple[dict[str, Any], ...] = ({"dim": 320, "flip": True, "freq_shift": 0, "scale": 1.0},)
KERNEL_SIZES: dict[str, Any] = {}

DDPM = {"flip": False, "freq_shift": 1, "scale": 1.0}
GUIDED = {"flip": True, "freq_shift": 0, "scale": 1.0}
FLUX = {"flip": True, "freq_shift": 0, "scale": 1000.0}
ERNIE = {"flip": False, "freq_shift": 0, "scale": 1.0}
STEPS = (999.5, 0.25, 37, 500)
UNIT = (0.5, 0.03125, 1, 0.998046875)
_timestep = cases_of("timestep")


def _case(name: str, timesteps: Any, dim: int, params: dict[str, Any], comment: str = "", **rest: Any) -> Case:
    return _timestep(name, {"dim": dim, **params}, {"timesteps": timesteps}, comment, **rest)


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    return (
        _case("ddpm/small", (7, 0, 500), 6, DDPM, tier="smoke"),
        _case("ddpm/true-size", (0, 1, 257, 999), 128, DDPM, "the authors' CIFAR10 model"),
        _case("ddpm/one-beyond", (3, 900), 4, DDPM, "h - 1 is 1: frequencies 1 and 1/P"),
        _case("guided/scalar", 77, 10, GUIDED, "a timestep without axes"),
        _case("guided/period", STEPS, 12, {**GUIDED, "base": 500.0}),
        _case("guided/shift", (3, 41.5, 800), 20, {**GUIDED, "freq_shift": 1}),
        _case("guided/one-pair", (2, 0.75), 3, GUIDED, "one frequency, and zeros"),
        _case("flux/24-bits", (0.3333333432674408, 0.8999999761581421, 0.0009999999310821295), 10, FLUX),
        _case("flux/true-size", (0.75, 0.99609375, 0.0625), 256, FLUX, "Qwen-Image and AuraFlow"),
        _case("flux/period", UNIT, 8, {**FLUX, "base": 2e4}),
        _case("ernie/far", FAR, 6, {**ERNIE, "scale": 0.5}),
        _case("refused/one-pair", (0, 1, 5), 2, DDPM, "h - 1 divides by zero", kind="reject"),
        _case("refused/one-pair-odd", (0, 1, 5), 3, DDPM, "h - 1 divides by zero", kind="reject"),
        _case("refused/one-column", (0, 1, 5), 1, GUIDED, "there is no frequency", kind="reject"),
        _case("refused/scale", (0, 1, 5), 6, {**GUIDED, "scale": 0.0}, "all rows would be equal", kind="reject"),
        *places("timestep", "timesteps", {"dim": 6, **DDPM}),
    )


SCALE_ONCE = "Multiply timesteps by the scale once: either in the model or in the embedding."
LAST_COLUMN = "An odd width ends in one column of zeros: pad after the halves are ordered."


@around
def _zeros_first(function: Function, t: Any, dim: int, /, *, flip: bool, **options: Any) -> Real:
    """The column of zeros is there before the halves are exchanged, so that it ends up between them."""
    if not (flip and dim % 2):
        return function(t, dim, flip=flip, **options)
    out = function(t, dim, flip=False, **options)
    return np.concatenate([out[..., dim // 2 :], out[..., : dim // 2]], axis=-1)


def _repeated(out: Real, t: Any, dim: int, /, **options: Any) -> Real:
    return np.concatenate([out[..., :-1], out[..., :1]], axis=-1) if dim % 2 else out


def _shifted(freq_shift: int) -> Function:
    """Return a change of the shift, where the width allows it."""
    return lambda t, dim, /, **options: ((t, dim), {**options, "freq_shift": freq_shift if dim > 3 else options["freq_shift"]})


_deviation = deviations_of("timestep")

DEVIATIONS = (
    _deviation("timestep-flipped", "cosines always come first", option(flip=always(True)),
               hint="flip_sin_to_cos is False by default in diffusers, and True in most of its models.",
               seen_in="diffusers#1369"),
    _deviation("timestep-not-flipped", "sines always come first", option(flip=always(False)), hint=BRANCH),
    _deviation("timestep-shift-1", "the exponent is always divided by h - 1", before(_shifted(1)),
               hint="downscale_freq_shift is 1 by default in diffusers, and 0 in most of its models."),
    _deviation("timestep-shift-0", "the exponent is always divided by h", before(_shifted(0)), hint=BRANCH,
               seen_in="hojonathanho/diffusion#15"),
    _deviation("timestep-unscaled", "timesteps are not multiplied by the scale", option(scale=always(1.0)), hint=SCALE_ONCE),
    _deviation("timestep-scale-1000", "timesteps are always multiplied by 1000", option(scale=always(1000.0)), hint=SCALE_ONCE),
    _deviation("timestep-scaled-twice", "timesteps are multiplied by the scale twice", option(scale=lambda s: s * s),
               hint=SCALE_ONCE),
    _deviation("timestep-scaled-waves", "the scale multiplies sines and cosines, not the timesteps",
               lambda f: lambda t, dim, /, *, scale, **o: scale * f(t, dim, scale=1.0, **o), hint=SCALE_ONCE),
    _deviation("timestep-zeros-before-flip", "the column of zeros is added before the halves are exchanged", _zeros_first,
               hint=LAST_COLUMN),
    _deviation("timestep-zeros-ahead", "the column of zeros is the first",
               after(lambda out, t, dim, /, **options: np.roll(out, 1, axis=-1) if dim % 2 else out), hint=LAST_COLUMN),
    _deviation("timestep-repeated-column", "the last column of an odd width repeats the first", after(_repeated),
               hint=LAST_COLUMN),
    _deviation("timestep-whole-width", "the exponent of an odd width is divided by d/2 rather than h",
               lambda f: lambda t, dim, /, **o: f(t, dim,
               **(o | {"base": o.get("base", 1e4) ** ((dim // 2 - o["freq_shift"]) / (dim / 2 - o["freq_shift"]))})),
               hint="h is d // 2: look for d / 2."),
    _deviation("timestep-period-10000", "the longest period is always 10000", option(base=always(10000.0)), hint=DEFAULT),
    _deviation("timestep-truncated", "timesteps are truncated to integers", argument(0, np.trunc), hint=FRACTIONS),
    _deviation("timestep-float16", "timesteps are held in float16",
               argument(0, lambda t: narrowed("float16")(np.clip(t, -6e4, 6e4))), hint=INTEGERS),
    _deviation("timestep-bfloat16", "timesteps are multiplied by the scale in bfloat16",
               lambda f: lambda t, dim, /, **o: f(narrowed("bfloat16")(t * o["scale"]), dim, **(o | {"scale": 1.0})),
               hint="Multiply timestep and scale in float32.", seen_in="diffusers' Flux, in a model in bfloat16"),
    _deviation("timestep-first-row", "the first timestep is used for the whole batch",
               argument(0, lambda t: np.broadcast_to(np.reshape(t, -1)[:1], np.shape(t)) if np.size(t) else t), hint=EACH_ROW),
)  # fmt: skip
