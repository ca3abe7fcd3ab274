"""config.json -> parameters, on the configurations of released models, in both generations of the file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import posref
from posref.configs import LAYOUTS, factors, rope_from_config
from posref.models import odd_layers
from posref.models.layer_rules import ROTATES, TYPES
from posref.models.model_types import mropes, table
from posref.models.odd_files import CHECKS, FILES
from posref.models.odd_rows import ROWS

DEEPSEEK = {
    "factor": 40,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
}
DEEPSEEK_V3 = {"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "qk_rope_head_dim": 64}


SHORT, LONG = [1 + i / 8 for i in range(48)], [1 + i for i in range(48)]  # the real lists are in posref/presets.py
PHI3 = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072}
LISTS = {"short_factor": SHORT, "long_factor": LONG}


def test_lists_may_be_arrays() -> None:
    arrays = {name: np.asarray(values) for name, values in LISTS.items()}
    both_ways = [{**PHI3, "rope_scaling": {"type": "longrope", **lists}} for lists in (LISTS, arrays)]
    assert rope_from_config(both_ways[0]) == rope_from_config(both_ways[1])


def test_tables_agree_with_each_other() -> None:
    assert len(LAYOUTS) >= 100
    facts = {model: row["rope"] for model, row in table("types").items() if "rope" in row}
    known = {"layout", "half_unless", "also", "mrope", "defaults", "silent", "bases", "softmax", "alpha"}
    known |= {"interleaved_if_false", "interleaved_if_true"}
    assert set().union(*facts.values()) == known
    assert {model for model, row in facts.items() if "defaults" in row} <= set(LAYOUTS) | set(mropes())
    assert {model for model, row in facts.items() if {"silent", "softmax"} & set(row)} <= set(LAYOUTS) | set(mropes())
    assert not set(mropes()) & set(LAYOUTS)
    assert LAYOUTS["llama"] == "half"
    assert LAYOUTS["cohere"] == "interleaved"
    assert LAYOUTS["deepseek_v2"] == "interleaved"  # complex numbers; version 3 writes halves
    assert LAYOUTS["minicpm3"] == "half"  # MLA, and still half


def test_rules_about_layers_have_words_that_are_known() -> None:
    rules = [row["layers"] for row in table("types").values() if "layers" in row]
    assert set().union(*rules) == {"never", "types", "key", "n", "last", "rotates"}
    assert {rule["types"] for rule in rules if isinstance(rule.get("types"), str)} == {*TYPES, "listed"}
    assert {rule["rotates"] for rule in rules if "rotates" in rule} == set(ROTATES)


def test_odd_models_are_in_the_table_and_have_no_rule_beside_their_own() -> None:
    types = table("types")
    assert {*FILES, *CHECKS, *odd_layers.TYPES, *odd_layers.ROTATES, *odd_layers.NAMES} <= set(types)
    assert not [model for model in odd_layers.TYPES if "types" in types[model].get("layers", {})]
    assert not [model for model in odd_layers.ROTATES if "rotates" in types[model].get("layers", {})]
    rows = [(model, row) for model, known in types.items() for row in known.get("rows", ())]
    assert {(model, row["component"]) for model, row in rows if row.get("read") == "odd"} == set(ROWS)


def test_deepseek_softmax_factor_is_the_published_one() -> None:
    assert round(factors({**DEEPSEEK_V3, "rope_scaling": {"type": "yarn", **DEEPSEEK}})["softmax"], 5) == 1.87385


class Object:
    """A configuration as transformers has it."""

    def to_dict(self) -> dict[str, Any]:
        return dict(LLAMA_FILE)


LLAMA_FILE = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0}


@pytest.mark.parametrize("read", [rope_from_config, factors])
def test_a_file_is_given_as_a_mapping_an_object_or_a_path(read: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_FILE), encoding="utf-8")
    assert read(Object()) == read(path) == read(str(path)) == read(LLAMA_FILE)


def test_a_multimodal_file_is_given_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    config = {**LLAMA_FILE, "model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}
    path.write_text(json.dumps(config), encoding="utf-8")
    assert posref.mrope_from_config(path) == posref.mrope_from_config(config)


@pytest.mark.parametrize("text", [None, "{", "[1]", "\xff"])
def test_a_path_that_cannot_be_read_is_named(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"rope_from_config: config must be a mapping, .*the path of a config\.json"):
        rope_from_config(path)
