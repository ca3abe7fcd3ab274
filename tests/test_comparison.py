"""The table of encodings: its facts are what the definitions do, and known ones are as papers have them."""

import json
import re

import pytest
from commands import run
from sampling import few

from posref.conformance.comparison.facts import facts
from posref.conformance.comparison.table import COMPUTED, encodings, matching, operations, parts_matching, rows, uses
from posref.spec import REGISTRY

STORED = json.loads(COMPUTED.read_text(encoding="utf-8"))
KNOWN = {  # by papers and proofs: only offsets count, before differs from after, bounded, falls with the distance
    "rope": ("yes", "yes", "yes", "no"),
    "t5_bias": ("yes", "yes", "yes", "no"),
    "alibi": ("form=distance or form=causal", "form=causal or form=key", "no", "form=distance or form=causal"),
    "sinusoidal": ("no", "yes", "yes", ""),
    "fire": ("no", "yes", "yes", "no"),
    "sandwich": ("yes", "no", "yes", "no"),  # cosines of few channels come back
    "kerple": ("yes", "no", "form=weight", "yes"),
    "chunked_window": ("no", "", "yes", ""),
    "shifted_window_mask": ("no", "", "", ""),
    "sliding_window": ("yes", "", "yes", ""),
}
TOKENS = re.compile(r"(?<!\S)~?(\*\w|[TQKIJBN])(?!\S)|=")
RELATIVE = ("window_bias", "levit_bias", "continuous_position_bias", "residue_bins", "sandwich", "camera_transform")


@few(1, "op", encodings())
def test_facts_are_what_the_definition_does(op: str) -> None:
    assert facts(op) == STORED[op]


def test_the_table_has_every_encoding_and_what_most_models_use_first() -> None:
    assert set(STORED) == set(encodings()) == {row["name"] for row in rows()}
    order = [uses()[str(row["name"])] for row in rows()]
    assert order == sorted(order, reverse=True)
    assert {rows()[0]["name"], rows()[1]["name"]} == {"learned", "rope"}
    assert {"t5_bias", "sinusoidal", "sliding_window"} <= set(encodings()[:16])
    assert all(REGISTRY[str(row["name"])].title == row["title"] for row in rows())


@pytest.mark.parametrize("op", KNOWN)
def test_known_facts_are_as_papers_have_them(op: str) -> None:
    assert tuple(STORED[op][name] for name in ("relative", "direction", "bounded", "decays")) == KNOWN[op]


def test_encodings_of_offsets_are_relative() -> None:
    assert [op for op in RELATIVE if STORED[op]["relative"] != "yes"] == []
    stated = {op for op, record in REGISTRY.items() if {"shift invariant", "relative"} & set(record.invariants)}
    assert [op for op in stated & set(STORED) if STORED[op]["relative"] == "no"] == []


def test_the_table_tells_learned_numbers_and_where_a_table_ends() -> None:
    assert {"window_bias", "levit_bias", "axial_learned"} <= {op for op in STORED if STORED[op]["past its table"] == "no"}
    assert STORED["continuous_position_bias"]["past its table"] == "yes"
    weights = {op: set(filter(None, known["weights"].split(", "))) for op, known in STORED.items()}
    drawn = {("random_fourier", "matrix"), ("cumulative_rope", "start")}  # reals without an axis of tokens, and not learned
    for op, names in weights.items():
        arrays = REGISTRY[op].arrays
        fixed = {name for name, axes in arrays.items() if axes.kind in ("real", "wide") and not TOKENS.search(axes.shape)}
        assert fixed - names - {name for owner, name in drawn if owner == op} == set(), op


def test_list_finds_operations_by_a_word() -> None:
    listed = [line.split()[0] for line in run("list").output.splitlines() if line[:1].strip()]
    assert listed[1:] == list(operations())
    assert listed[1:6] == ["rope", "rope_frequencies", "rope_table", "apply_rope", "learned"]
    shown = run("list", "graphormer")
    assert shown.exit_code == 0
    assert "graph_bias" in shown.output
    for op in REGISTRY:
        assert (op in {row["name"] for row in matching(op)}) != (op in parts_matching(op)), op
    shown = run("list", "path")
    assert [line.split()[0] for line in shown.output.splitlines() if "_" in line[:12]] == ["graph_bias", "path_logits"]
    printed = run("list", "mask", "--json")
    assert [row["name"] for row in json.loads(printed.output)] == [row["name"] for row in matching("mask")]
    record = run("list", "yarn")
    assert record.exit_code == 0
    assert "scaling=YaRN(factor, original_length, " in record.output
    nothing = run("list", "qwertyuiop")
    assert nothing.exit_code == 2
    assert "nothing has the word" in nothing.output
