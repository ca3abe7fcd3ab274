"""Two deviations at once are recognised, or said to be unexplained."""

import os
from typing import Any

import numpy as np
import pytest
from quality import caught, diagnosed, pairs, together
from test_deviations import finite

from posref.conformance.diagnosis import strength
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation

SPARSE = 8009  # one pair in so many of which a share must be recognised: about 11
EVERY = int(os.environ.get("POSREF_PAIRS_EVERY", "601"))  # one pair in so many; 1 takes hours


@pytest.mark.sampled(part=0.5)
@pytest.mark.parametrize(("pair", "op"), pairs(EVERY), ids=lambda value: getattr(value, "name", value))
def test_two_at_once_are_recognised(pair: Deviation, op: str) -> None:
    """
    The diagnosis of a mutant of two deviations names both, or others that give the same values on every case asked.

    Or it says that it does not know: a search ends after some seconds. A wrong name is a failure.
    """
    if not caught(pair, op) or not finite(pair, op):
        return  # the two undo each other, the operation cannot express them, or both together leave the range of numbers
    found = diagnosed(pair, op)
    if found["text"].startswith("unexplained"):
        return
    if not found["names"]:  # one value of an option says it all, as `inverse` that is True for a transpose and no inverse
        assert found["text"].startswith("your output equals the definition"), f"{pair.name} in {op}: {found['text']}"
        return
    each_of_some = found.get("groups") and all(group["names"] for group in found["groups"])
    assert recognised(pair, found, op) or each_of_some, found["text"]


def recognised(pair: Deviation, found: dict[str, Any], op: str) -> bool:
    """Return whether a diagnosis names both of two mistakes, or one or two that give the same values."""
    planted = sorted(pair.name.split(" + "))
    return any(len(names) == 1 or sorted(names) == planted or are_equal(names, pair, op) for names in found["explanations"])


def are_equal(names: list[str], pair: Deviation, op: str) -> bool:
    """Return whether two named mistakes at once give the values of a pair in every case that can be measured."""
    if len(names) != 2:
        return False
    named = together(*(DEVIATIONS[name] for name in names))
    for case in strength.cases()[0][op]:
        for one, other in zip(strength.outputs(named, case), strength.outputs(pair, case), strict=True):
            if not all(np.array_equal(one[n], other[n], equal_nan=True) for n in one):
                return False
    return True


@pytest.mark.thorough
def test_most_pairs_are_recognised() -> None:
    """A search that always ended without a name would pass the test above."""
    shown = [(pair, op) for pair, op in pairs(SPARSE) if caught(pair, op) and finite(pair, op)]
    named = [pair.name for pair, op in shown if recognised(pair, diagnosed(pair, op), op)]
    assert len(shown) >= 8
    assert 2 * len(named) > len(shown), {pair.name for pair, _ in shown} - set(named)
