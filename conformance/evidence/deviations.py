"""
The registry of mistakes: the ways in which positional encodings go wrong, as transformations of the reference.

One list, three uses: hypotheses that explain a failure, mutants that measure the suite, and a page of the docs.
"""

from .index import deviations
from .tools.deviation import Deviation

DEVIATIONS: dict[str, Deviation] = deviations()

__all__ = ["DEVIATIONS", "Deviation"]
