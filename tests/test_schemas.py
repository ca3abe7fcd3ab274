"""Documents that were found right are remembered by their bytes, nothing else is, and an unusable cache is no error."""

from pathlib import Path

import pytest

from posref.conformance.errors import VectorError
from posref.conformance.suite import schemas

RIGHT, WRONG, DATA = [], {}, b"[]"  # errata are a list


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Begin with nothing remembered, and list the schemas that are asked."""
    seen: list[str] = []
    validator = schemas.validator

    def noted(name: str) -> object:
        seen.append(name)
        return validator(name)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(schemas, "_VALID", set())
    monkeypatch.setattr(schemas, "validator", noted)
    return seen


def test_a_document_is_asked_once_by_this_and_by_another_process(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        schemas.validate_once("errata", RIGHT, DATA, Path("ERRATA.json"))
    monkeypatch.setattr(schemas, "_VALID", set())  # as another process begins
    schemas.validate_once("errata", RIGHT, DATA, Path("ERRATA.json"))
    assert asked == ["errata"]


def test_other_bytes_and_wrong_documents_are_asked_every_time(asked: list[str]) -> None:
    schemas.validate_once("errata", RIGHT, DATA, Path("ERRATA.json"))
    schemas.validate_once("errata", RIGHT, b"[ ]", Path("ERRATA.json"))
    for _ in range(2):
        with pytest.raises(VectorError, match=r"ERRATA\.json: at the top level"):
            schemas.validate_once("errata", WRONG, b"{}", Path("ERRATA.json"))
    assert asked == ["errata"] * 4


def test_a_cache_that_cannot_be_used_is_an_empty_one(asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    schemas.validate_once("errata", RIGHT, DATA, Path("ERRATA.json"))
    monkeypatch.setattr(schemas, "_VALID", set())
    schemas.validate_once("errata", RIGHT, DATA, Path("ERRATA.json"))
    assert asked == ["errata"] * 2


def test_a_full_cache_is_emptied(asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "LIMIT", 2)
    for data in (b"[]", b"[ ]", b"[  ]"):
        schemas.validate_once("errata", RIGHT, data, Path("ERRATA.json"))
    assert len(asked) == 3
    assert len(list((tmp_path / "cache" / "posref" / "valid").iterdir())) == 1
