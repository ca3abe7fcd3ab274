"""Parts and defaults of configurations against the classes of transformers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import model_tables
import pytest
from config_versions import altered, answer, changed, outcome, plain
from transformers import CONFIG_MAPPING

from posref.models.model_types import table


@pytest.mark.thorough(dear=True)
def test_defaults_are_those_of_the_configuration_classes() -> None:
    """In a process of its own: a class of transformers may share a dictionary of defaults with its objects, which change it."""
    program = "import json, model_tables; print(json.dumps(model_tables.defaults()))"
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = table("class_defaults")
    assert len(theirs) > 600
    assert {name: ours.get(name) for name in theirs} == theirs


@pytest.fixture(scope="module")
def outcomes() -> list[tuple[str, str, str, Any]]:
    """What becomes of every file: type, how it was made, the word for it, and the answer."""
    files = []
    for name in CONFIG_MAPPING:
        try:
            config = CONFIG_MAPPING[name]()
            other = CONFIG_MAPPING[name](**altered(plain(config.to_dict())))
        except Exception:  # (classes whose defaults or altered sizes do not fit together)
            continue
        named = {"model_type": name}
        files += [
            [name, "default complete", named | plain(config.to_dict())],
            [name, "default sparse", named | plain(config.to_diff_dict())],
            [name, "altered complete", named | plain(other.to_dict())],
            [name, "altered sparse", named | plain(other.to_diff_dict())],
        ]
    found = []
    for name, how, file in [*files, *changed(files)]:
        try:
            rewritten = {**plain(CONFIG_MAPPING[name].from_dict(file).to_dict()), "model_type": name}
        except Exception:  # transformers refuses the file
            rewritten = None
        direct = answer(file)
        found.append((name, how, outcome(direct, rewritten), direct))
    return found


@pytest.mark.thorough(dear=True)
def test_no_file_is_read_as_less_or_otherwise_than_transformers_reads_it(outcomes: list[tuple[str, str, str, Any]]) -> None:
    wrong = [one[:3] for one in outcomes if one[2] in ("smaller", "other components", "different", "refused rewritten")]
    assert sum(one[2] == "alike" for one in outcomes) > 4000
    assert wrong == []


@pytest.mark.thorough(dear=True)
def test_files_that_transformers_writes_are_read(outcomes: list[tuple[str, str, str, Any]]) -> None:
    """Only the layers of a text that is null, absent or empty are refused, where the class computes them."""
    refused = {(name, how) for name, how, word, _ in outcomes if word == "refused" and "of the parent's type" not in how}
    assert {name for name, _ in refused} <= {"dots3_note"}
    assert {how.split()[0] for _, how in refused} <= {"text_config"}


def test_proposals_for_types_that_the_table_would_lack() -> None:
    """The layout by the hash of the apply function is right wherever it is given, and most types have the right parent."""
    types = {name: row for name, row in model_tables.table("types").items() if "layout" in row.get("rope", {})}
    folders = {name: type(CONFIG_MAPPING[name]()).__module__.split(".")[-2] for name in types if name in CONFIG_MAPPING}
    asked = sorted(set(folders.values()))[::6]  # each is proposed from all the others
    found = [
        proposal
        for folder in asked
        for proposal in model_tables.propose(model_tables.table("types"), lambda name, own=folder: folders.get(name) == own)
    ]
    given = [one for one in found if one["layout"] is not None]
    assert len(given) > len(found) / 2 > 10
    assert [one["type"] for one in given if one["layout"] != types[one["type"]]["rope"]["layout"]] == []
    assert sum(one["parent"] is not None for one in found) > len(found) / 2
