"""All cases and flags, in the order of the sources. Cases live in the modules of this package, one a family."""

from collections.abc import Iterator, Sequence
from importlib import import_module

from ..model import Case, Flag

MODULES = (
    "absolute", "sines", "fourier", "learned", "resample", "rope_stages", "rope", "rope_extended", "rope_cos_sin",
    "axes", "axial", "mixed", "lie", "xpos", "pope", "fope", "convolution", "weights", "bias", "relative", "attention",
    "rotated", "scores", "distances", "positions", "forms", "gradients", "long", "twice", "usual",
)  # fmt: skip


def all_cases() -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included), in the order of the sources."""
    for module in MODULES:
        yield from import_module(f"posref.conformance.cases.{module}").CASES


def all_flags() -> dict[str, Flag]:
    """Return every flag by name."""
    flags: dict[str, Flag] = {}
    for module in MODULES:
        flags |= import_module(f"posref.conformance.cases.{module}").FLAGS
    return flags


def groups(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return cases by the id of their group, both in order of first appearance."""
    by_group: dict[str, list[Case]] = {}
    for case in cases:
        by_group.setdefault(case.group, []).append(case)
    return by_group
