"""What the readers of configurations answer, against snapshots: see tests/snapshot.py."""

import pytest
from sampling import few
from snapshot import FOLDER, difference, load, text_of

FILES = sorted(path.stem for path in FOLDER.glob("*.json"))
TITLES = [(file, title) for file in FILES for title in load(file)]


@few(51, ("file", "title"), TITLES)
def test_answers_are_those_of_the_snapshot(file: str, title: str) -> None:
    text = difference(load(file)[title])
    assert not text, text


@pytest.mark.parametrize("file", FILES)
def test_a_snapshot_is_written_one_row_a_line(file: str) -> None:
    """As `python tests/snapshot.py --write` writes it, so that a diff has whole rows. No row is there twice."""
    titles = load(file)
    assert (FOLDER / f"{file}.json").read_text(encoding="utf-8") == text_of(titles)
    for title, rows in titles.items():
        asked = [str([row.get(key) for key in ("name", "call", "config", "options", "layers")]) for row in rows]
        assert len(asked) == len(set(asked)), title
        assert all(("gives" in row) != ("error" in row) for row in rows), title


def test_another_answer_is_shown_whole() -> None:
    (row,) = [row for row in load("whole")["Components"] if row["config"] == {"model_type": "opt"}]
    wrong = {**row, "gives": {"text": ["Entry(operation='learned', options={'offset': 0})"]}}
    text = difference([wrong])
    assert "'offset': 0" in text
    assert "'offset': 2" in text
    assert not difference([row])
