"""What is true of an encoding whatever the numbers are: the invariants that the registry names."""

import pytest
from test_invariants import GENERIC, PROPERTIES

from .encoding import Encoding, part


@part(dear=True)
def invariants_hold(encoding: Encoding) -> None:
    for invariant in encoding.record.invariants:
        with encoding.at(invariant), pytest.MonkeyPatch.context() as monkeypatch:
            assert_holds(encoding.op, invariant, monkeypatch)


def assert_holds(op: str, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Try an invariant by what tests it of any operation, of this one, or both."""
    of_any, of_this = GENERIC.get(invariant), PROPERTIES.get(invariant, {}).get(op)
    remedy = "write it in tests/invariants.py, for any operation, and add it to GENERIC there"
    assert of_any or of_this, f"{op} names {invariant!r}, which nothing tests: {remedy}."
    if of_any:
        of_any(op, monkeypatch)
    if of_this:
        of_this(op)
