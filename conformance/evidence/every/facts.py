"""What each operation says of its generated calls: usual options, sizes, and which of the generated cases it leaves out."""

from collections.abc import Mapping
from typing import Any

from posref.spec import REGISTRY

from ..order import evidence_of

Options = Mapping[str, Any]


def operations() -> tuple[str, ...]:
    """Return the operations that have generated cases."""
    return tuple(op for op in REGISTRY if usual(op) is not None)


def usual(op: str) -> Options | None:
    """Return the options of a generated call (USUAL); None if an operation has none of the generated cases."""
    found: Options | None = getattr(evidence_of(op), "USUAL", {})
    return found


def own_sizes(op: str) -> Mapping[str, Any]:
    """Return the sizes of an operation's axes, by letter, where they differ from those of other operations (SIZES)."""
    found: Mapping[str, Any] = getattr(evidence_of(op), "SIZES", {})
    return found


def way(op: str) -> int | None:
    """Return which alternative of its axes an operation is called with (WAY); None is the first one with tokens."""
    found: int | None = getattr(evidence_of(op), "WAY", None)
    return found


def left_out(op: str) -> frozenset[str]:
    """Return the generated cases that an operation leaves out: its own cases ask for the same, or it has no use for them."""
    return frozenset(getattr(evidence_of(op), "LEFT_OUT", ()))


def axis_counts(op: str) -> tuple[int, ...]:
    """Return the other numbers of position axes that an operation is called with (AXES)."""
    found: tuple[int, ...] = getattr(evidence_of(op), "AXES", ())
    return found


def gaps(op: str) -> tuple[str, ...]:
    """Return the mistakes that fewer than two cases of an operation catch (GAPS)."""
    found: tuple[str, ...] = getattr(evidence_of(op), "GAPS", ())
    return found


def kernel(op: str) -> tuple[Options, ...]:
    """Return the options of an operation's calls in the kernel tier (KERNEL); without any it has no such calls."""
    found: tuple[Options, ...] = getattr(evidence_of(op), "KERNEL", ())
    return found


def every_size(op: str) -> bool:
    """Return whether an operation is called at all sizes of the kernel tier (EVERY_SIZE), since many kernels compute it."""
    return bool(getattr(evidence_of(op), "EVERY_SIZE", False))
