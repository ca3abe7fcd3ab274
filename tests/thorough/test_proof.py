"""Stored values: rebuilt byte for byte, with a cache and from it, and proved again; of some operations, or of all."""

from pathlib import Path

import pytest
from sampling import everything, share
from test_vectors import built, files

from posref.conformance.proof.build import Built, build, verify
from posref.conformance.suite.reader import INSTALLED
from posref.conformance.suite.writer import copy
from posref.spec import REGISTRY


@pytest.mark.thorough(dear=True)
def test_rebuilding_gives_the_same_bytes_and_so_does_what_is_reused(tmp_path: Path) -> None:
    ops = share(REGISTRY)
    place, cache = built(tmp_path / "élsewhere", f", ops={ops!r}, reuse=Path({str(tmp_path / 'cache')!r})"), tmp_path / "cache"
    count = copy(INSTALLED, tmp_path / "installed", ops)
    assert files(place) == files(tmp_path / "installed")
    assert len(list(cache.iterdir())) == count  # all were proved
    assert build(tmp_path / "again", ops=ops, reuse=cache) == Built(0, count, 0)
    assert files(tmp_path / "again") == files(place)


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", share(REGISTRY, part=0.5))
def test_installed_vectors_are_proved(op: str, tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "s", [op])
    assert verify(tmp_path / "s", jobs=1) == []


@everything
def test_the_installed_suite_is_proved_as_a_whole() -> None:
    assert verify(INSTALLED) == []
