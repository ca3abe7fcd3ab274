"""The record of which cases catch which deviation is that of the suite and the registry as they are."""

from pathlib import Path

import posref.conformance.evidence.deviations
from posref.conformance.diagnosis import strength


def test_the_record_is_current() -> None:
    record = Path(posref.conformance.evidence.deviations.__path__[0]) / "caught.json"
    assert record.read_text(encoding="utf-8") == strength.record(), "python docs/generate.py --measure"
