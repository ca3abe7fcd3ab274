"""Every stored value: rebuilt byte for byte, and proved again."""

from pathlib import Path

from test_vectors import built, files

from posref.conformance.proof.verification import verify
from posref.conformance.suite.reader import INSTALLED


def test_rebuilding_gives_the_same_bytes(tmp_path: Path) -> None:
    assert files(built(tmp_path / "élsewhere")) == files(INSTALLED)


def test_installed_vectors_are_proved() -> None:
    assert verify(INSTALLED) == []
