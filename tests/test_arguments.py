"""A name of an argument has one meaning, in whatever signature it stands."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
OLD = {  # what an argument of a function was called before: the name means something else
    "dual_chunk": "local_size", "chunked_window": "chunk", "deberta_rows": "buckets", "sinusoidal_nd": "widths",
    "sandwich": "width", "timestep": "shift", "logn_scale": "length", "rms_norm": "offset", "lambda_window": "sinks",
}  # fmt: skip


@pytest.fixture(name="table")
def argument_table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that writes the page of arguments."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
    return importlib.import_module("argument_table")


def problems(known: Any, uses: Any) -> list[str]:
    """Return where the table of meanings and the signatures do not agree."""
    several = {name: of for name, of in uses.items() if len(of) > 1}
    found = [
        f"{name} is in several signatures: say in docs/arguments.json what it means" for name in several.keys() - known.keys()
    ]
    found += [f"{name} is in one signature at most: strike it off" for name in known.keys() - several.keys()]
    return found + [
        f"{use.function}: {name} is a {use.kind}, elsewhere a {known[name]['kind']}: give it another name"
        for name in several.keys() & known.keys()
        for use in several[name]
        if use.kind and use.kind not in known[name]["kind"].split(" or ")
    ]


def test_a_name_means_one_thing(table: Any) -> None:
    assert not problems(json.loads(table.MEANINGS.read_bytes()), table.uses())


def test_a_name_of_another_kind_is_a_problem(table: Any) -> None:
    """An array with the name of a number, a number with the name of a word, and a name that nobody explains."""
    known, uses = json.loads(table.MEANINGS.read_bytes()), table.uses()
    for name, kind in (("num_sinks", "array"), ("order", "number"), ("window", "word")):
        wrong = uses | {name: [*uses[name], table.Use("new_encoding", kind, "")]}
        assert [line.partition(":")[0] for line in problems(known, wrong)] == ["new_encoding"]
    twice = uses | {"stride": [*uses["stride"], table.Use("new_encoding", "number", "")]}
    assert [line.split()[0] for line in problems(known, twice)] == ["stride"]


def test_meanings_differ(table: Any) -> None:
    """Two names with one meaning would be one name."""
    meanings = [entry["meaning"] for entry in json.loads(table.MEANINGS.read_bytes()).values()]
    assert len(set(meanings)) == len(meanings)
    assert not any(use.function == function for function, name in OLD.items() for use in table.uses().get(name, ()))


def test_the_page_is_as_it_is_written(table: Any) -> None:
    page = (ROOT / "docs" / "guides" / "arguments.md").read_text(encoding="utf-8")
    assert page == table.page(), "python docs/generate.py"
