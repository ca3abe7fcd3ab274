"""A config.json read by posref and by transformers' own classes: the same frequencies and factors, within float32's bounds."""

from typing import Any

import numpy as np
import pytest
import torch
from rotary_modules import built, frequencies
from snapshot import load
from transformers import CONFIG_MAPPING

from posref import presets, rope_frequencies, rope_from_config
from posref.configs import LAYOUTS
from posref.conformance.proof.evaluation import golden
from posref.conformance.proof.witnesses import half_widths
from posref.models.config import HEADS, HIDDEN
from posref.models.model_types import table
from posref.scaling import Linear, YaRN

SIZES = {"hidden_size": 256, "num_attention_heads": 4, "max_position_embeddings": 131072}
VISION, MINI35 = (presets[name].rope["scaling"] for name in ("phi-3-vision-128k", "phi-3.5-mini"))
PHI3 = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072}


def phi(scaling: Any, kind: str, **others: Any) -> dict[str, Any]:
    """A file with released lists."""
    lists = {"short_factor": list(scaling.short_factor), "long_factor": list(scaling.long_factor)}
    return {**PHI3, "rope_theta": 1e4, "rope_scaling": {"type": kind, **lists}, **others}


OSS = {"factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 4096}
FULL, SLIDING = "full_attention", "sliding_attention"
CASES = load("frequencies")["Compared with the rotary modules of transformers"]  # in sequences of these lengths
CLASSES: dict[str, tuple[str, str | None]] = {  # presets whose values are the defaults of a configuration class
    "longcat-flash": ("longcat_flash", None),
    "apertus-8b": ("apertus", None),
    "stablelm-3b": ("stablelm", None),
    "gemma-7b": ("gemma", None),
    "ernie-4.5-0.3b": ("ernie4_5", None),
    "ernie-4.5-21b": ("ernie4_5_moe", None),
    "mimo-v2-flash-full": ("mimo_v2_flash", FULL),
    "mimo-v2-flash-sliding": ("mimo_v2_flash", SLIDING),
    "deepseek-v4-flash-main": ("deepseek_v4", "main"),
    "olmo-3-7b-sliding": ("olmo3", SLIDING),
    "ministral-3": ("ministral3", None),
    "mistral-4": ("mistral4", None),
    "gpt-oss-20b": ("gpt_oss", None),
    "gpt-neox-20b": ("gpt_neox", None),
    "gpt-j-6b": ("gptj", None),
    "codegen": ("codegen", None),
    "gemma-2-9b": ("gemma2", None),
    "gemma-3-1b-full": ("gemma3_text", FULL),
    "gemma-3-1b-sliding": ("gemma3_text", SLIDING),
    "gemma-4-full": ("gemma4_text", FULL),
    "gemma-4-sliding": ("gemma4_text", SLIDING),
    "modernbert-base-full": ("modernbert", FULL),
    "modernbert-base-sliding": ("modernbert", SLIDING),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_preset_is_what_its_configuration_class_says(name: str) -> None:
    model, layer_type = CLASSES[name]
    assert "H" in presets[name].verified
    assert presets[name].rope == rope_from_config(CONFIG_MAPPING[model](), layer_type=layer_type)


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["name"])
def test_frequencies_and_factor_are_those_of_transformers(row: dict[str, Any]) -> None:
    layers = row.get("options", {})
    options = rope_from_config(row["config"], **layers)
    for length in row["lengths"]:
        check(options, length, *frequencies(row["config"], length, **layers))


def check(options: dict[str, Any], length: int, inv_freq: np.ndarray, factor: float) -> None:
    """Compare with what is true of these options, within the bounds of an implementation in float32."""
    params = {"dim": options["rotary_dim"], "base": options["base"], "scaling": options["scaling"], "length": length}
    true = golden("rope_frequencies", {}, params)
    width = half_widths("rope_frequencies", {}, params, "angle32", true)
    assert inv_freq.shape == true["inv_freq"].shape
    assert np.all(np.abs(inv_freq - true["inv_freq"]) <= width["inv_freq"])
    assert abs(factor - true["attention_factor"]) <= width["attention_factor"]


def test_transformers_passes_over_a_nested_truncate_and_posref_does_not() -> None:
    """It looks for the key beside the dicts of the layer types (modeling_rope_utils.py, _compute_yarn_parameters)."""
    layers = {FULL: {"rope_type": "yarn", "rope_theta": 1e4, **OSS}, SLIDING: {"rope_type": "default", "rope_theta": 1e4}}
    config = {"model_type": "gemma3_text", **SIZES, "head_dim": 64, "rope_parameters": layers}
    options = rope_from_config(config, layer_type=FULL)
    assert options["scaling"] == YaRN(32.0, 4096, truncate=False)
    theirs = frequencies(config, 1, FULL)
    check(options | {"scaling": YaRN(32.0, 4096)}, 1, *theirs)
    with pytest.raises(AssertionError):
        check(options, 1, *theirs)


def test_phi_3_5_moe_in_transformers_has_the_long_factor_but_never_the_long_list() -> None:
    """PhimoeRotaryEmbedding.forward computes its frequencies without a length, and looks up long_mscale by it."""
    config = phi(MINI35, "longrope", model_type="phimoe")
    config["rope_scaling"] |= {"short_mscale": 1.25, "long_mscale": 1.5, "original_max_position_embeddings": 4096}
    scaling = rope_from_config(config)["scaling"]
    assert (scaling.short_mscale, scaling.long_mscale) == (1.25, 1.5)
    module, _ = built(config)
    cos, _ = module(torch.zeros(1), torch.tensor([[1, 4096]]))  # so that the length is 4097
    inv_freq, factor = rope_frequencies(96, base=1e4, scaling=scaling, length=4097)
    listed = {name: 1e4 ** (-np.arange(48) / 48) / getattr(scaling, name) for name in ("short_factor", "long_factor")}
    assert np.allclose(inv_freq, listed["long_factor"], rtol=1e-12, atol=0)
    assert factor == 1.5
    found = cos[0, 0, :48].to(torch.float64).numpy() / 1.5
    rounding = 8 * 2**-24  # of a frequency, its cosine and a product in float32; angles are at most 1
    assert np.all(np.abs(found - np.cos(listed["short_factor"])) <= rounding)
    assert np.max(np.abs(found - np.cos(listed["long_factor"]))) > 0.01


def test_three_models_pass_over_a_key_that_posref_reads() -> None:
    cohere = {"model_type": "cohere2_moe", **SIZES, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    assert built(cohere)[0].rope_type == "default"
    assert rope_from_config(cohere)["scaling"] == Linear(4.0)
    dbrx = {"model_type": "dbrx", "d_model": 256, "n_heads": 4, "attn_config": {"rope_theta": 500_000}}
    assert built(dbrx)[0].config.rope_parameters["rope_theta"] == 1e4
    assert rope_from_config(dbrx)["base"] == 5e5
    minimax = {"model_type": "minimax_m3_vl_text", "head_dim": 128, "rotary_dim": 64}
    assert built(minimax)[0].inv_freq.shape == (64,)
    assert rope_from_config(minimax)["rotary_dim"] == 64


def test_an_old_su_file_without_its_own_length_is_read_though_transformers_cannot() -> None:
    """Its configuration classes move the top level's length into the dict before they rename the type."""
    config = phi(VISION, "su", original_max_position_embeddings=4096)
    with pytest.raises(KeyError, match="original_max_position_embeddings"):
        built(config)
    assert rope_from_config(config)["scaling"] == VISION


ELSEWHERE = {"chatglm", "kimi_k2"}  # code that is with the weights, or in a serving stack
ELSEWHERE |= {model for model, row in table("types").items() if "stack" in {**table("types")[row.get("like", model)], **row}}
TABLES = {"codegen", "gptj", "roformer"}  # a sinusoidal table of base 10000 instead of a rotary module
LATER = {  # types that version 5.23 does not know by name
    "apertus1p5_text", "dory", "exaone", "lara_mini", "qwen3_omni_moe_code2wav", "sarvam_mla", "sarvam_moe", "telechat3",
}  # fmt: skip
# A silent file of the first would rotate 21 lanes; of the second, the class has a key that its own code does not read.
ODD = {"glm4_moe", "minimax_m3_vl_text"}
SWITCHED = {  # what a file must have, or the model does not rotate
    model: {key: words[0] for key, words in part["when"].items()}
    for model, row in table("types").items()
    for part in row.get("rows", ())
    if model in {"esm", "granitemoehybrid", "zamba2"} and part["operation"] == "rope"
}


@pytest.mark.parametrize("model", sorted(set(LAYOUTS) - ELSEWHERE - LATER - TABLES - ODD))
def test_a_silent_file_means_what_the_configuration_class_does(model: str) -> None:
    module, _ = built({"model_type": model})
    known = (*HIDDEN, *HEADS, "max_position_embeddings")
    sizes = {name: value for name, value in module.config.to_dict().items() if name in known}
    file = {"model_type": model, **SWITCHED.get(model, {}), **sizes}
    buffers = [name for name, _ in module.named_buffers() if name.endswith("inv_freq") and "original" not in name]
    assert buffers
    for name in buffers:
        prefix = name.removesuffix("inv_freq")
        options = rope_from_config(file, layer_type=prefix.removesuffix("_") or None)
        inv_freq = getattr(module, name).to(torch.float64).numpy()
        check(options, 1, inv_freq, float(getattr(module, f"{prefix}attention_scaling")))
