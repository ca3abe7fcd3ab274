"""
The registry of deviations: the ways in which positional encodings go wrong, as transformations of the reference.

One list, three uses: hypotheses that explain a failure, mutants that measure the suite, and a page of the docs.
"""

from dataclasses import replace

from . import (
    absolute,
    angles,
    attention,
    axes,
    bias,
    convolution,
    distances,
    extended,
    fope,
    fourier,
    learned,
    lie,
    pope,
    positions,
    relative,
    resample,
    rotated,
    rotation,
    scores,
    sines,
    weights,
    xpos,
)
from .compose import Deviation
from .hints import HINTS

MODULES = (
    rotation,
    angles,
    extended,
    axes,
    lie,
    xpos,
    pope,
    fope,
    weights,
    rotated,
    absolute,
    sines,
    fourier,
    learned,
    convolution,
    resample,
    bias,
    relative,
    attention,
    scores,
    distances,
    positions,
)
DEVIATIONS: dict[str, Deviation] = {
    d.name: d if d.hint else replace(d, hint=HINTS.get(d.name, "")) for module in MODULES for d in module.DEVIATIONS
}

__all__ = ["DEVIATIONS", "Deviation"]
