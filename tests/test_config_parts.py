"""Parts of a nested config.json: their types, and what a file leaves out."""

import copy
import pickle
import re
import sys
from types import SimpleNamespace

import pytest

from posref import from_config
from posref.models.arguments import Entry
from posref.models.model_types import model_type, table
from posref.models.parts import completed

TEXT = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "rope_theta": 5e5}


def test_a_key_by_another_of_its_names_is_not_missing() -> None:
    assert completed({"hidden_size": 8}, "gpt2")["n_embd"] == 8
    assert completed({}, "gpt2")["n_embd"] == 768
    assert completed({"n_embd": 16}, "gpt2")["n_embd"] == 16


def test_every_wrapper_is_answered_from_its_type_alone() -> None:
    """With all parts absent, every part that is not optional has a component, or the layers that no class states are named."""
    refused = set()
    for name in table("types"):
        row = model_type(model_type(name).get("like", name))
        if "stack" in model_type(name):
            continue  # no class gives it defaults
        try:
            found = from_config({"model_type": name}) if "parts" in row else {}
        except ValueError as error:
            refused.add((name, str(error)))
            continue
        for key, rule in row.get("parts", {}).items():
            part = key.removesuffix("_config").replace("_", " ")
            if not (isinstance(rule, dict) and rule.get("optional")):
                assert any(part.startswith(component.split()[0]) for component in found), (name, key)
    odd = [one for one in refused if not re.search(r"layer_types|rope_parameters|mrope_section|rotated channels", one[1])]
    assert odd == []
    assert len(refused) < 15


def test_a_convention_that_changes_values_stands_in_the_entry() -> None:
    """Muse Spark resizes its table to (width, height), as transformers' own function with a swapped grid."""
    for model in ("muse_spark_vision", "muse_glimmer_vision"):
        (entry,) = from_config({"model_type": model})["vision table"]
        assert entry.conventions["size"].startswith("(width, height)")
        assert copy.deepcopy(entry).conventions == entry.conventions == pickle.loads(pickle.dumps(entry)).conventions
        assert "conventions" in repr(entry)
        assert entry._replace(options=None).conventions == entry.conventions
        assert entry == tuple(entry)
    (other,) = from_config({"model_type": "vit"})["vision table"]
    assert not other.conventions


def test_a_type_that_only_transformers_knows_is_answered_as_its_parent_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Base:
        model_type = ""

    class Llama(Base):
        model_type = "llama"

    class Newer(Llama):
        model_type = "llama_of_tomorrow"

    class Alone(Base):
        model_type = "alone"

    kinds = {"llama_of_tomorrow": Newer, "alone": Alone}
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(CONFIG_MAPPING=kinds))
    found = from_config({"model_type": "llama_of_tomorrow", **TEXT})
    assert found == from_config({"model_type": "llama", **TEXT})
    assert found["text"][0].conventions["reviewed"] == "no: as its parent 'llama', by the class in transformers"
    assert "reviewed" not in (from_config({"model_type": "llama", **TEXT})["text"][0] or Entry("", None)).conventions
    for name in ("alone", "unknown"):
        with pytest.raises(ValueError, match="must be a known one"):
            from_config({"model_type": name, **TEXT})
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
    with pytest.raises(ValueError, match="must be a known one"):
        from_config({"model_type": "llama_of_tomorrow", **TEXT})
