"""
The registry of deviations: the ways in which positional encodings go wrong, as transformations of the reference.

One list, three uses: hypotheses that explain a failure, mutants that measure the suite, and a page of the docs.
"""

from .order import evidence
from .tools.deviation import Deviation

DEVIATIONS: dict[str, Deviation] = {
    deviation.name: deviation for module in evidence() for deviation in getattr(module, "DEVIATIONS", ())
}

__all__ = ["DEVIATIONS", "Deviation"]
