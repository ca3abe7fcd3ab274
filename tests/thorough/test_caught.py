"""The record of which cases catch which deviation is that of the suite and the registry as they are."""

from posref.conformance.checking.narrow import RECORD
from posref.conformance.diagnosis import strength


def test_the_record_is_current() -> None:
    assert RECORD.read_text(encoding="utf-8") == strength.record(), "python docs/generate.py --measure"
