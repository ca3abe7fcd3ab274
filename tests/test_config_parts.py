"""Parts of a nested config.json: their types, and what a file leaves out."""

import copy
import math
import pickle
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from posref import from_config, mrope_from_config, rope_from_config
from posref.models.arguments import Entry
from posref.models.model_types import model_type, table
from posref.models.parts import completed
from posref.scaling import YaRN

TEXT = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "rope_theta": 5e5}
MROPE = {**TEXT, "head_dim": 128, "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20]}}
VISION = {"depth": 27, "hidden_size": 1152, "num_heads": 16}
QWEN = {"model_type": "qwen3_vl", "text_config": MROPE, "vision_config": VISION}
TOWER = {"vision input", "vision attention", "vision table"}


@pytest.mark.parametrize("named", ["qwen3_vl", "qwen3_vl_vision", "klingon", "", None])
def test_a_fixed_part_has_the_type_of_its_parent_whatever_it_says(named: Any) -> None:
    """transformers 4.57 writes the parent's type."""
    found = from_config({**QWEN, "vision_config": {**VISION, "model_type": named}})
    assert found == from_config(QWEN)
    assert found.keys() == {"text", *TOWER}


def test_a_part_that_chooses_has_the_type_of_the_file() -> None:
    llava = {"model_type": "llava", "text_config": TEXT, "vision_config": {}}
    assert from_config(llava)["text"] == from_config({**llava, "text_config": {**TEXT, "model_type": "llama"}})["text"]
    other = from_config({**llava, "text_config": {**TEXT, "model_type": "cohere"}})["text"]
    assert other != from_config(llava)["text"]
    kimi = {"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "qk_rope_head_dim": 64}}
    assert from_config(kimi)["text"] == from_config({"model_type": "deepseek_v3"})["text"]


@pytest.mark.parametrize("given", [{}, {"vision_config": None}], ids=["absent", "null"])
def test_a_part_that_is_not_given_has_the_defaults_of_its_class(given: dict[str, Any]) -> None:
    assert from_config({**{k: v for k, v in QWEN.items() if k != "vision_config"}, **given}) == from_config(QWEN)
    gemma = {"model_type": "gemma4", "text_config": {}, "vision_config": {}}
    assert from_config({"model_type": "gemma4", "vision_config": {}, **given}).keys() <= from_config(gemma).keys()


def test_an_optional_part_that_is_not_given_is_none() -> None:
    assert "vision" in {name.split()[0] for name in from_config({"model_type": "gemma4", "vision_config": {}})}
    for given in ({}, {"vision_config": None}):
        assert "vision" not in {name.split()[0] for name in from_config({"model_type": "gemma4", **given})}


def test_a_part_that_is_not_given_has_what_its_parent_gives() -> None:
    """AyaVision's Siglip has 1152 channels in 14 heads if the file has no vision_config, and Siglip's own sizes for {}."""
    absent = table("class_defaults")["aya_vision"]["parts"]["vision_config"]
    assert absent == {"hidden_size": 1152, "num_hidden_layers": 26, "num_attention_heads": 14}
    large = {"model_type": "mistral_large4", "text_config": {"layer_types": ["full_attention"] * 72}}
    (absent_,), (empty,) = (
        from_config(file)["vision"] for file in (large, {**large, "vision_config": {"model_type": "pixtral"}})
    )
    assert absent_ is not None
    assert empty is not None
    assert (absent_.options or {})["dims"] == (64, 64)
    assert (empty.options or {})["dims"] == (32, 32)
    voxtral = from_config({"model_type": "voxtral", "text_config": {}})["text"]
    assert voxtral == from_config({"model_type": "voxtral"})["text"]
    assert voxtral[0] is not None
    assert (voxtral[0].options or {})["base"] == 1e8


def test_missing_keys_of_a_part_have_the_defaults_of_its_class() -> None:
    """As in the files of LLaVA 1.5, whose text part does not say that it has 4096 channels in 32 heads."""
    sparse = {"model_type": "llava", "text_config": {"model_type": "llama"}, "vision_config": {}}
    assert rope_from_config(sparse)["rotary_dim"] == 128
    assert from_config(sparse)["text"] == [("rope", rope_from_config(sparse))]
    gemma = {"model_type": "gemma3", "text_config": {"rope_scaling": {"rope_type": "yarn", "factor": 8.0}}}
    found = rope_from_config(gemma, layer_type="full_attention")["scaling"]
    assert getattr(found, "original_length", None) == 131072


def test_a_key_by_another_of_its_names_is_not_missing() -> None:
    assert completed({"hidden_size": 8}, "gpt2")["n_embd"] == 8
    assert completed({}, "gpt2")["n_embd"] == 768
    assert completed({"n_embd": 16}, "gpt2")["n_embd"] == 16


def test_flat_files_of_the_types_that_read_them() -> None:
    """Keys of the text stand beside those of the parent, as transformers 4.46 wrote Qwen2-VL."""
    flat = {"model_type": "qwen2_vl", "hidden_size": 512, "num_attention_heads": 4, "rope_theta": 1e6, "vision_config": {}}
    nested = {"model_type": "qwen2_vl", "text_config": {**flat, "model_type": "qwen2_vl_text"}, "vision_config": {}}
    assert from_config(flat) == from_config(nested)
    assert mrope_from_config(flat) == mrope_from_config(nested)
    assert from_config(flat)["text"] == [("mrope", mrope_from_config(flat))]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"model_type": "qwen3_vl", **TEXT, "vision_config": VISION},
            "config['text_config'] must be given, since 'qwen3_vl' does not read its keys beside it; got none, but "
            "['hidden_size', 'num_attention_heads']. Move these and all like them into text_config.",
        ),
        ({**QWEN, "vision_config": 5}, "config['vision_config'] must be a dict or null; got 5."),
        (
            {"model_type": "llava", "text_config": TEXT, "vision_config": {"model_type": "llama"}},
            "config['vision_config'] must have an encoding of its vision; got text, from model_type 'llama'.",
        ),
        (
            {"model_type": "depth_anything", "backbone_config": {"hidden_size": 8}},
            "config['backbone_config'] must have model_type, since it may be of any type; got none. "
            "'depth_anything' itself takes 'dinov2' where the part is absent.",
        ),
        (
            {"model_type": "llava", "text_config": {**TEXT, "model_type": ""}},
            "config['text_config']['model_type'] must be a known one; got ''.",
        ),
    ],
)
def test_what_would_be_lost_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^from_config: ") as error:
        from_config(config)
    assert message in str(error.value)


def test_an_error_names_the_part() -> None:
    odd = {"model_type": "llava", "text_config": {"model_type": "llama", "head_dim": 73}, "vision_config": {}}
    with pytest.raises(ValueError, match=r"^from_config: config\['text_config'\]: .* rotated channels.*; got 73\.$"):
        from_config(odd)
    nested = {"model_type": "qwen2_5_omni", "thinker_config": {"text_config": {"head_dim": 73}}}
    with pytest.raises(ValueError, match=r"^from_config: config\['thinker_config'\]\['text_config'\]: "):
        from_config(nested)


def test_every_wrapper_is_answered_from_its_type_alone() -> None:
    """With all parts absent, every part that is not optional has a component, or the layers that no class states are named."""
    refused = set()
    for name in table("types"):
        row = model_type(model_type(name).get("like", name))
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


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("lama", ["llama"]),
        ("qwen_vl", []),
        ("minicpm", []),
        ("qwen5_vl", []),
        ("mistrall", ["mistral"]),
        ("lfm2-vl", ["lfm2_vl"]),
        ("Qwen2.5-VL", ["qwen2_5_vl"]),
    ],
)
def test_only_spellings_are_suggested(model: str, meant: list[str]) -> None:
    """Another version has other options: qwen2_vl another arrangement than qwen3_vl, minicpm3 latent attention."""
    for read in (from_config, rope_from_config):
        with pytest.raises(ValueError, match="set model_type to that type") as error:
            read({"model_type": model, **TEXT})
        found = str(error.value).partition("Did you mean ")[2]
        assert re.findall(r"'(\w+)'", found) == meant
        assert meant or str(error.value).endswith("No known type is close to this one.")


def test_other_names_of_yarn() -> None:
    rope = {"factor": 4.0, "original_max_position_embeddings": 8192, "rope_theta": 1e6}
    config = {"model_type": "telechat3", **TEXT, "rope_parameters": {"rope_type": "telechat3-yarn", **rope}}
    found = rope_from_config(config)["scaling"]
    assert found == YaRN(4.0, 8192, attention_factor=0.07 * math.log(4) + 1)
    plain, named = (
        rope_from_config({"model_type": "deepseek_v3", "rope_parameters": {"rope_type": kind, **rope}})
        for kind in ("yarn", "deepseek_yarn")
    )
    assert plain == named


def test_a_convention_that_changes_values_stands_in_the_entry() -> None:
    """Muse Spark resizes its table to (width, height), as transformers' own function with a swapped grid."""
    for model in ("muse_spark_vision", "muse_glimmer_vision"):
        (entry,) = from_config({"model_type": model})["vision table"]
        assert entry is not None
        assert entry.conventions["size"].startswith("(width, height)")
        assert copy.deepcopy(entry).conventions == entry.conventions == pickle.loads(pickle.dumps(entry)).conventions
        assert "conventions" in repr(entry)
        assert entry._replace(options=None).conventions == entry.conventions
        assert entry == tuple(entry)
    (other,) = from_config({"model_type": "vit"})["vision table"]
    assert other is not None
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
    assert found["text"][0] is not None
    assert found["text"][0].conventions["reviewed"] == "no: as its parent 'llama', by the class in transformers"
    assert "reviewed" not in (from_config({"model_type": "llama", **TEXT})["text"][0] or Entry("", None)).conventions
    for name in ("alone", "unknown"):
        with pytest.raises(ValueError, match="must be a known one"):
            from_config({"model_type": name, **TEXT})
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
    with pytest.raises(ValueError, match="must be a known one"):
        from_config({"model_type": "llama_of_tomorrow", **TEXT})
