"""Presets against `rope_from_config` of the files that they come from, and the sources' own limits."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from commands import run
from snapshot import READERS, load

import posref
from posref import presets
from posref.configs import factors
from posref.presets import MARKS
from posref.scaling import LongRoPE

# Real fields of the files and classes that the rows were read from. The lists of Phi-3 can be checked against nothing but their
# length and order, below.
FILES = {row["name"]: row for row in load("presets")["Files of presets"]}


def test_every_file_has_its_preset() -> None:
    assert [*presets] == [*FILES]


@pytest.mark.parametrize("name", presets)
def test_a_preset_is_what_its_file_means(name: str) -> None:
    preset, row = presets[name], FILES[name]
    config, options = row["config"], row.get("options", {})
    assert preset.name == name
    assert row["call"] == f"{preset.op}_from_config"
    assert (preset.mrope, preset.rope)[preset.op == "mrope"] is None
    assert preset.options == READERS[row["call"]](config, **options)
    assert preset.factors == factors(config, **options)


@pytest.mark.parametrize("name", presets)
def test_a_preset_runs(name: str) -> None:
    preset = presets[name]
    if preset.mrope is not None:
        x = np.ones((3, 2 * sum(preset.mrope["sections"])))
        assert posref.mrope(x, np.zeros((3, 3), np.int64), **preset.mrope).shape == x.shape
        return
    x = np.ones((3, preset.rope["rotary_dim"]))
    length = {"length": 5000} if isinstance(preset.rope["scaling"], LongRoPE) else {}
    start = posref.rope(x, np.asarray([0, 1, 4999]), **preset.rope, **length)[0]
    assert np.all(np.abs(start - preset.factors["table"]) <= 2**-52 * preset.factors["table"])


@pytest.mark.parametrize("name", presets)
def test_a_preset_says_where_it_comes_from_and_cannot_be_changed(name: str) -> None:
    preset = presets[name]
    assert preset.verified
    assert set(preset.verified) <= set(MARKS)
    assert all(MARKS[mark] in preset.source for mark in preset.verified)
    with pytest.raises(FrozenInstanceError):
        preset.name = "mine"  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        (preset.rope or preset.mrope)["base"] = 1.0


@pytest.mark.parametrize("name", ["phi-3-vision-128k", "phi-3.5-mini", "phi-4-mini"])
def test_lists_are_complete_and_do_not_decrease(name: str) -> None:
    scaling = presets[name].rope["scaling"]
    for values in (scaling.short_factor, scaling.long_factor):
        assert len(values) == presets[name].rope["rotary_dim"] // 2
        assert list(values) == sorted(values)
    if name != "phi-4-mini":  # these files print float32 numbers
        assert all(float(np.float32(value)) == value for value in scaling.long_factor)


def test_unverified_models_are_not_there() -> None:
    for name in ("llama-4-maverick", "minimax-m1", "mistral-large-4", "kimi-k2.7"):
        with pytest.raises(KeyError, match=f"presets: name must be a preset's name; got '{name}'"):
            presets[name]


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(KeyError, match="deepseek-v3"):
        presets["deepseek_v3"]


def test_list_presets_names_all_of_them() -> None:
    done = run("list", "--presets")
    assert done.exit_code == 0
    assert all(f"\n{name} " in done.output for name in presets)
    assert all(meaning in " ".join(done.output.split()) for meaning in MARKS.values())


def test_a_notebook_shows_the_presets_as_a_table() -> None:
    from posref.presets import presets

    shown = presets._repr_html_()
    assert shown.count("<tr>") == len(presets) + 1
    assert "<td>llama-2-7b</td><td>posref.rope</td>" in shown
    assert "base=10000.0" in shown
