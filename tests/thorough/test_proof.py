"""Every stored value: rebuilt byte for byte, with a cache and from it, and proved again."""

from pathlib import Path

import pytest
from sampling import everything, share
from test_vectors import built, files

from posref.conformance.proof.build import Built, build, verify
from posref.conformance.suite.reader import INSTALLED, load_manifest
from posref.conformance.suite.writer import copy
from posref.spec import REGISTRY


def test_rebuilding_gives_the_same_bytes_and_so_does_what_is_reused(tmp_path: Path) -> None:
    place, cache = built(tmp_path / "élsewhere", f", reuse=Path({str(tmp_path / 'cache')!r})"), tmp_path / "cache"
    assert files(place) == files(INSTALLED)
    count = len(load_manifest(INSTALLED)["groups"])
    assert len(list(cache.iterdir())) == count  # all were proved
    assert build(tmp_path / "again", reuse=cache) == Built(0, count, 0)
    assert files(tmp_path / "again") == files(place)


@pytest.mark.parametrize("op", share(REGISTRY))
def test_installed_vectors_are_proved(op: str, tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "s", [op])
    assert verify(tmp_path / "s", jobs=1) == []


@everything
def test_the_installed_suite_is_proved_as_a_whole() -> None:
    assert verify(INSTALLED) == []
