"""A config.json to all encodings of a model: texts, towers, indexers, and models inside others."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import posref
from posref import from_config
from posref.models.model_types import model_table, table
from posref.models.qk_norms import LAYER_NORM, UNIT_NORM
from posref.models.whole import READERS
from posref.spec import REGISTRY

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "rope_theta": 5e5}


def test_a_path_reads_as_its_content(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    assert from_config(path) == from_config(LLAMA)


def test_equal_layers_are_read_once() -> None:
    """The work of 32 equal layers crosses few files: calls of a function in another file than the call before are counted."""
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32}
    files = [""]
    from_config(config)  # tables are read at the first call

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename != files[-1]:
            files.append(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        found = from_config(config)
    finally:
        sys.setprofile(None)
    assert len(found["text"]) == 1
    assert len(files) - 1 <= 90  # a crossing for each of 32 layers would be beyond it


KEYS = {"rows", "parts", "without", "defaults", "like", "rope", "layers", "sides", "stack", "names", "refused"}
COLUMNS = {"component", "operation", "options", "read", "axes", "keys", "when", "needs", "on", "conventions", "source"}


def test_the_table_is_sound() -> None:
    """Rows name operations and their options, or no options; parts and likenesses are in the table; sources are lines."""
    table = model_table()
    for model, known in table.items():
        assert set(known) <= KEYS, model
        assert known.get("like", model) in table
        for part in known.get("parts", {}).values():
            rule = part if isinstance(part, dict) else {"type": part}
            assert set(rule) <= {"type", "silent", "optional", "means", "also", "flat", "filled", "sets", "unless"}, model
            assert {rule.get("type", rule.get("silent"))} | set(rule.get("means", {}).values()) <= set(table), model
        for row in known.get("rows", ()):
            assert row.get("read", "axial") in READERS, model
            assert set(row) <= COLUMNS, model
            if "options" in row:
                assert set(row["options"]) <= set(inspect.signature(getattr(posref, row["operation"])).parameters), model
                assert row["operation"] in REGISTRY, model


def test_a_row_without_options_has_its_reason() -> None:
    """What posref does not define is named, with one reason, which the answer has too; operations have options."""
    rows = [row for known in model_table().values() for row in known.get("rows", ()) if row["operation"] is not None]
    named = {row["operation"] for row in rows if "options" not in row and "read" not in row}
    of_diffusers = {row["operation"] for known in table("diffusers").values() for name, row in known.items() if name != "by"}
    assert named <= set(table("undefined"))
    assert not set(table("undefined")) & set(REGISTRY)
    assert set(table("undefined")) <= named | of_diffusers | {LAYER_NORM, UNIT_NORM}
    assert all(set(row) == {"reason"} and len(row["reason"]) > 30 for row in table("undefined").values())
    (entry,) = from_config({"model_type": "vjepa2"})["vision"]
    assert "two different frequencies" in entry.conventions["not defined"]
    (entry,) = from_config({"model_type": "udop"})["encoder vertical"]
    assert "not defined" not in entry.conventions
