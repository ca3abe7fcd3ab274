"""All cases and flags, in the order of the sources. Cases live in the modules of this package, one a family."""

from collections.abc import Iterator, Sequence
from importlib import import_module

from ..model import Case, Flag
from . import twice
from .usual_options import operations

MODULES = (
    "absolute", "sines", "fourier", "learned", "resample", "rope_stages", "rope", "rope_extended", "rope_cos_sin",
    "axes", "axial", "mixed", "lie", "xpos", "pope", "fope", "convolution", "weights", "bias", "relative", "attention",
    "rotated", "scores", "distances", "positions", "forms", "gradients", "long", "twice", "again", "usual",
)  # fmt: skip


def all_cases() -> Iterator[Case]:
    """Return every case of the core tier (smoke cases included), in the order of the sources."""
    small: set[str] = set()
    for module in MODULES:
        if module == "twice":  # after the cases of the families
            yield from (twice.small(op) for op in operations() if op not in small)
        for case in import_module(f"posref.conformance.cases.{module}").CASES:
            small |= {case.op} if case.tier == "smoke" else set()
            yield case


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
