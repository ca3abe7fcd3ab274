"""Nested Python lists as arrays: their shape, an element with NumPy's broadcasting, and building one."""

from collections.abc import Callable, Sequence
from typing import Any


def shape(x: Any) -> tuple[int, ...]:
    """Return the sizes of the nested list `x`; a bare scalar has none."""
    sizes = []
    while isinstance(x, list):
        sizes.append(len(x))
        x = x[0] if x else None
    return tuple(sizes)


def at(x: Any, index: Sequence[int]) -> Any:
    """Return the element of `x` at `index`, aligned from the right; axes of size 1 and missing leading axes stretch."""
    depth, first = 0, x
    while isinstance(first, list):
        depth, first = depth + 1, first[0] if first else None
    for i in index[len(index) - depth :]:
        x = x[0 if len(x) == 1 else i]
    return x


def build(sizes: Sequence[int], element: Callable[..., Any], *index: int) -> Any:
    """Return the nested list of shape `sizes` that holds ``element(*index)`` at every index."""
    if len(index) == len(sizes):
        return element(*index)
    return [build(sizes, element, *index, i) for i in range(sizes[len(index)])]


def build_both(sizes: Sequence[int], elements: Callable[..., Sequence[Any]]) -> tuple[Any, Any]:
    """Return two nested lists of shape `sizes`, of the first and of the second of ``elements(*index)``."""
    both = build(sizes, elements)

    def part(which: int, nested: Any, depth: int) -> Any:
        return [part(which, row, depth - 1) for row in nested] if depth else nested[which]

    return part(0, both, len(sizes)), part(1, both, len(sizes))


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the common shape of `shapes`, aligned from the right."""
    common: list[int] = []
    for axis in range(1, max(map(len, shapes), default=0) + 1):
        sizes = {s[-axis] for s in shapes if len(s) >= axis} - {1} or {1}
        (size,) = sizes  # two different sizes do not broadcast
        common.insert(0, size)
    return tuple(common)


def over_pairs(q_positions: Any, k_positions: Any, allowed: Callable[[int, int], bool]) -> Any:
    """Return 1 where `allowed` holds of the position of a query and of a key, else 0."""
    (*q_lead, rows), (*k_lead, columns) = shape(q_positions), shape(k_positions)

    def element(*index: int) -> int:
        *lead, m, n = index
        return int(allowed(at(q_positions, (*lead, m)), at(k_positions, (*lead, n))))

    return build((*broadcast(q_lead, k_lead), rows, columns), element)
