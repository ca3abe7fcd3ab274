"""Cases of encodings made of sines, besides sinusoidal: timestep."""

from typing import Any

import numpy as np

from ..model import Case, Flag
from .forms import places
from .making import cases_of

FLAGS = {
    "timestep-flip": Flag("sines first where cosines are, or the reverse", "diffusers #1369"),
    "timestep-shift": Flag("the exponent divided by h where it is h - 1, or the reverse", "hojonathanho/diffusion #15"),
    "timestep-scale": Flag("timesteps multiplied by 1000 twice, or not at all"),
    "timestep-odd": Flag("the column of zeros of an odd width in another place, or left out"),
    "timestep-period": Flag("the longest period 10000 whatever is asked"),
    "timestep-fraction": Flag("fractional timesteps truncated or rounded"),
    "timestep-half": Flag("timesteps or their multiples in half precision: 2049 is no float16"),
    "timestep-true-size": Flag("a model's own width and options not reproduced"),
    "timestep-rows": Flag("the first timestep used for the whole batch"),
    "timestep-empty": Flag("no timesteps: a crash or another shape"),
    "timestep-refuse": Flag("options accepted with which an exponent is divided by zero"),
}

DDPM = {"flip": False, "shift": 1, "scale": 1.0}
GUIDED = {"flip": True, "shift": 0, "scale": 1.0}
FLUX = {"flip": True, "shift": 0, "scale": 1000.0}
ERNIE = {"flip": False, "shift": 0, "scale": 1.0}
STEPS = (999.5, 0.25, 37, 500)
FAR = (0, 1, 255, 257, 999, 2047, 2049, 4097, 65537, 1048575)
UNIT = (0.5, 0.03125, 1, 0.998046875)

_timestep = cases_of("timestep", "timestep-")


def _steps(
    name: str, flags: str, timesteps: Any, dim: int, params: dict[str, Any], comment: str = "", **rest: Any
) -> Case:  # fmt: skip
    return _timestep(name, flags, {"dim": dim, **params}, {"timesteps": timesteps}, comment, **rest)


TIMESTEP = (
    _steps("ddpm/small", "shift flip", (7, 0, 500), 6, DDPM, tier="smoke"),
    _steps("ddpm/fraction", "shift fraction", STEPS, 12, DDPM),
    _steps("ddpm/odd", "odd shift flip", STEPS, 7, DDPM),
    _steps("ddpm/true-size", "true-size shift", (0, 1, 257, 999), 128, DDPM, "the authors' CIFAR10 model"),
    _steps("ddpm/one-beyond", "shift", (3, 900), 4, DDPM, "h - 1 is 1: frequencies 1 and 1/P"),
    _steps("guided/small", "flip fraction", STEPS, 6, GUIDED),
    _steps("guided/odd", "odd flip", STEPS, 9, GUIDED, "zeros after the flip"),
    _steps("guided/far", "half", FAR, 10, GUIDED),
    _steps("guided/true-size", "true-size flip", (0, 1.5, 981, 999), 256, GUIDED, "DiT and SD3"),
    _steps("guided/rows", "rows", ((1, 20, 981), (0.5, 7, 300)), 14, GUIDED, "(B, T): a timestep for every token"),
    _steps("guided/scalar", "rows", 77, 10, GUIDED, "a timestep without axes"),
    _steps("guided/period", "period", STEPS, 12, {**GUIDED, "max_period": 500.0}),
    _steps("guided/shift", "shift flip", (3, 41.5, 800), 20, {**GUIDED, "shift": 1}),
    _steps("guided/one-pair", "odd flip", (2, 0.75), 3, GUIDED, "one frequency, and zeros"),
    _steps("flux/small", "scale flip", UNIT, 6, FLUX),
    _steps("flux/24-bits", "scale half", (0.3333333432674408, 0.8999999761581421, 0.0009999999310821295), 10, FLUX),
    _steps("flux/true-size", "true-size scale", (0.75, 0.99609375, 0.0625), 256, FLUX, "Qwen-Image and AuraFlow"),
    _steps("flux/odd", "odd scale", UNIT, 11, FLUX),
    _steps("flux/period", "period scale", UNIT, 8, {**FLUX, "max_period": 2e4}),
    _steps("ernie/small", "flip shift", (3, 250, 999.5, 1), 10, ERNIE),
    _steps("ernie/odd", "odd flip", (20, 1), 5, ERNIE),
    _steps("ernie/far", "half scale", FAR, 6, {**ERNIE, "scale": 0.5}),
    _steps("empty/none", "empty", np.zeros(0, dtype=np.int64), 6, GUIDED),
    _steps("empty/odd", "empty odd", np.zeros((2, 0), dtype=np.int64), 7, DDPM),
    _steps("refused/one-pair", "refuse", (0, 1, 5), 2, DDPM, "h - 1 divides by zero", kind="reject"),
    _steps("refused/one-pair-odd", "refuse odd", (0, 1, 5), 3, DDPM, "h - 1 divides by zero", kind="reject"),
    _steps("refused/one-column", "refuse odd", (0, 1, 5), 1, GUIDED, "there is no frequency", kind="reject"),
    _steps("refused/scale", "refuse scale", (0, 1, 5), 6, {**GUIDED, "scale": 0.0}, "all rows would be equal", kind="reject"),
    *places("timestep", "timesteps", {"dim": 6, **DDPM}),
)  # fmt: skip

CASES: tuple[Case, ...] = TIMESTEP
