"""
The registry of deviations: the ways in which positional encodings go wrong, as transformations of the reference.

One list, three uses: hypotheses that explain a failure, mutants that measure the suite, and a page of the docs.
"""

from . import angles, extended, others, rotation
from .compose import Deviation

DEVIATIONS: dict[str, Deviation] = {
    d.name: d for d in (*rotation.DEVIATIONS, *angles.DEVIATIONS, *extended.DEVIATIONS, *others.DEVIATIONS)
}

__all__ = ["DEVIATIONS", "Deviation"]
