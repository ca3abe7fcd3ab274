"""Every issue that a deviation names can be linked."""

import re
from pathlib import Path
from runpy import run_path

import pytest

from posref.conformance.evidence.deviations import DEVIATIONS

NAMES = run_path(str(Path(__file__).parents[1] / "docs" / "site" / "trackers.py"))
TRACKERS, references = NAMES["TRACKERS"], NAMES["references"]
SEEN = {d.seen_in: name for name, d in DEVIATIONS.items()}


def test_every_issue_has_an_address() -> None:
    for seen_in, name in SEEN.items():
        try:
            found = references(seen_in)
        except KeyError as error:
            pytest.fail(f"{name} is seen in {seen_in!r}: add {error} to docs/site/trackers.py, with its repository")
        assert len(found) == seen_in.count("#"), f"{name} is seen in {seen_in!r}: a number is without a name"
        for written, address in found:
            assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/issues/\d+", address)
            assert written in seen_in


def test_every_tracker_is_named_somewhere() -> None:
    text = " ".join(SEEN)
    unused = [name for name in TRACKERS if not re.search(rf"(?<![\w./-]){re.escape(name)} ?#\d", text)]
    assert not unused, f"no deviation names these of docs/site/trackers.py: {unused}"


def test_a_number_without_a_name_is_of_the_repository_before_it() -> None:
    assert references("candle#3520, sglang #22052, #34013; swiss-ai/Megatron-LM#80, in the gradient") == [
        ("candle#3520", "https://github.com/huggingface/candle/issues/3520"),
        ("sglang #22052", "https://github.com/sgl-project/sglang/issues/22052"),
        ("#34013", "https://github.com/sgl-project/sglang/issues/34013"),
        ("swiss-ai/Megatron-LM#80", "https://github.com/swiss-ai/Megatron-LM/issues/80"),
    ]


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(KeyError, match="candel"):
        references("candel#3520")
