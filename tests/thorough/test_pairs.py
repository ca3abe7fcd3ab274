"""Two deviations at once are recognised, or said to be unexplained."""

import os
from typing import Any

import numpy as np
import pytest
from quality import cases, caught, diagnosed, pairs, together
from sampling import everything, share
from test_deviations import finite

from posref.conformance.diagnosis import strength
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation
from posref.conformance.model import LoadedCase

SPARSE = 8009  # one pair in so many of which a share must be recognised: about 11
EVERY = int(os.environ.get("POSREF_PAIRS_EVERY", "601"))  # one pair in so many; 1 takes hours


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(("pair", "op"), share(pairs(EVERY), part=0.5), ids=lambda value: getattr(value, "name", value))
def test_two_at_once_are_recognised(pair: Deviation, op: str) -> None:
    """
    The diagnosis of a mutant of two deviations names both, or others that give the same values on every case asked.

    Or it says that it does not know all or the rest: a search ends after some work. A wrong name is a failure.
    """
    if not caught(pair, op) or not finite(pair, op):
        return  # the two undo each other, the operation cannot express them, or both together leave the range of numbers
    found = diagnosed(pair, op)
    if "o known mistake gives these values." in found["text"] or found["text"].startswith("unexplained"):
        return
    if not found["names"]:  # one value of an option says it all, as `inverse` that is True for a transpose and no inverse
        assert found["text"].startswith("Matches the reference"), f"{pair.name} in {op}: {found['text']}"
        return
    groups = found.get("groups") or []
    if groups and not groups[-1]["names"] and "No known mistake gives the other" in found["text"]:
        groups = groups[:-1]
    each_of_some = groups and all(gives(group, pair, op) for group in groups)
    assert recognised(pair, found, op) or each_of_some, found["text"]


def recognised(pair: Deviation, found: dict[str, Any], op: str) -> bool:
    """Return whether a diagnosis names both of two mistakes, or one or two that give the same values."""
    planted = sorted(pair.name.split(" + "))
    return any(len(names) == 1 or sorted(names) == planted or are_equal(names, pair, op) for names in found["explanations"])


def gives(group: dict[str, Any], pair: Deviation, op: str) -> bool:
    """Return whether one of the mistakes that are named of some cases gives the values of a pair there."""
    asked = [case for case in cases(op) if case.id in group["cases"]]
    return any(all(have_equal_values(DEVIATIONS[name], pair, case) for case in asked) for name in group["names"])


def have_equal_values(one: Deviation, other: Deviation, case: LoadedCase) -> bool:
    """Return whether two mutants give equal values in every call of a case."""
    outputs = zip(strength.outputs(one, case), strength.outputs(other, case), strict=True)
    return all(np.array_equal(a[n], b[n], equal_nan=True) for a, b in outputs for n in a)


def are_equal(names: list[str], pair: Deviation, op: str) -> bool:
    """Return whether two named mistakes at once give the values of a pair in every case that can be measured."""
    if len(names) != 2:
        return False
    named = together(*(DEVIATIONS[name] for name in names))
    for case in cases(op):
        for one, other in zip(strength.outputs(named, case), strength.outputs(pair, case), strict=True):
            if not all(np.array_equal(one[n], other[n], equal_nan=True) for n in one):
                return False
    return True


@everything
def test_most_pairs_are_recognised() -> None:
    """A search that always ended without a name would pass the test above."""
    shown = [(pair, op) for pair, op in pairs(SPARSE) if caught(pair, op) and finite(pair, op)]
    named = [pair.name for pair, op in shown if recognised(pair, diagnosed(pair, op), op)]
    assert len(shown) >= 8
    assert 2 * len(named) > len(shown), {pair.name for pair, _ in shown} - set(named)
