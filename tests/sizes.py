"""What the axes of an operation say of the sizes of its calls, for tests of all operations."""

from posref.conformance.evidence.every.made_calls import has_one_position
from posref.conformance.vocabulary.axes import alternatives
from posref.spec import REGISTRY


def takes_matrices_alone(op: str) -> bool:
    """Return whether every array is a square matrix, or many of them: there are no tokens."""
    ways = [way for axes in REGISTRY[op].arrays.values() for way in alternatives(axes.shape)]
    return bool(ways) and all(len(way) > 1 and way[-1] == way[-2] for way in ways)


def is_called_with_few(op: str) -> bool:
    """Return whether cases have one position, or one or two matrices: there is little to cut."""
    return has_one_position(op) or takes_matrices_alone(op)
