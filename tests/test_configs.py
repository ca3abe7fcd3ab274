"""config.json -> parameters, on the configurations of released models, in both generations of the file."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import posref
from posref.configs import LAYOUTS, factors, rope_from_config
from posref.models.layers import ROTATES, TYPES
from posref.models.model_types import mropes, table
from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKAlpha, Proportional, YaRN

HEADS = {"hidden_size": 4096, "num_attention_heads": 32}
LLAMA31 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
LLAMA32 = LLAMA31 | {"factor": 32.0}
GPT_OSS = {
    "factor": 32.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 4096,
}
DEEPSEEK = {
    "factor": 40,
    "beta_fast": 32,
    "beta_slow": 1,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 4096,
}
DEEPSEEK_V3 = {"model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "qk_rope_head_dim": 64}


def both(model: dict[str, Any], base: float, kind: str, scaling: dict[str, Any]) -> list[dict[str, Any]]:
    """The same model in the old form, the old form's oldest key, and the form of version 5."""
    return [
        {**model, "rope_theta": base, "rope_scaling": {"rope_type": kind, **scaling} if scaling else None},
        {**model, "rope_theta": base, "rope_scaling": {"type": kind, **scaling} if scaling else None},
        {**model, "rope_parameters": {"rope_type": kind, "rope_theta": base, **scaling}},
    ]


LLAMA2 = {"model_type": "llama", **HEADS, "max_position_embeddings": 4096}
LLAMA_8B = {"model_type": "llama", **HEADS, "max_position_embeddings": 131072}
LLAMA_1B = {"model_type": "llama", "head_dim": 64, "hidden_size": 2048, "num_attention_heads": 32}
QWEN = {"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "max_position_embeddings": 32768}
OSS = {"model_type": "gpt_oss", "head_dim": 64, "hidden_size": 2880, "num_attention_heads": 64}
NEOX = {"model_type": "gpt_neox", "hidden_size": 6144, "num_attention_heads": 64, "max_position_embeddings": 2048}
GPTJ = {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_positions": 2048, "rotary_dim": 64}
PHI2 = {"model_type": "phi", "hidden_size": 2560, "num_attention_heads": 32}
GLM = {"model_type": "glm", "head_dim": 128, **HEADS}
YARN128K = {"factor": 4.0, "original_max_position_embeddings": 32768}

SHORT, LONG = [1 + i / 8 for i in range(48)], [1 + i for i in range(48)]  # the real lists are in posref/presets.py
PHI3 = {"model_type": "phi3", "hidden_size": 3072, "num_attention_heads": 32, "max_position_embeddings": 131072}
LISTS = {"short_factor": SHORT, "long_factor": LONG}
LONGROPE = LongRoPE(tuple(SHORT), tuple(map(float, LONG)), 4096, max_length=131072)
HUNYUAN = {"model_type": "hunyuan_v1_dense", "head_dim": 128, **HEADS, "max_position_embeddings": 32768}
ALPHA = {"alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.0}
CHATGLM = {"model_type": "chatglm", **HEADS, "kv_channels": 128, "original_rope": True, "seq_length": 1048576}

V4 = {"model_type": "deepseek_v4", "head_dim": 512, "qk_rope_head_dim": 64, "max_position_embeddings": 1048576}
V4 |= {"rope_theta": 10000, "compress_rope_theta": 160000}
V4_YARN = {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536}
STEP = {"model_type": "step3p5", "rope_theta": [5e6, 1e4, 1e4], "partial_rotary_factors": [0.5, 1.0, 1.0]}
STEP |= {"layer_types": ["full_attention", "sliding_attention"], "rope_scaling": {"rope_type": "llama3", **LLAMA31}}
MIMO = {"model_type": "mimo_v2_flash", "rope_theta": 5e6, "swa_rope_theta": 2e4, "partial_rotary_factor": 0.334}
ULTRA = {"model_type": "ultrabert", "head_dim": 64, "rope_theta": [2e6, 1e4], "attention_windows": [0, 128]}
DOTS = {"model_type": "dots3_note_text", "rope_theta": 4e6, "swa_rope_theta": 2e4, "swa_qk_rope_head_dim": 32}
BY_TYPE: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("DeepSeek-V4", V4 | {"rope_scaling": V4_YARN}, "main", {"base": 1e4, "rotary_dim": 64, "scaling": None}),
    (
        "DeepSeek-V4: no factor on cos and sin",
        V4 | {"rope_scaling": V4_YARN},
        "compress",
        {"base": 160_000.0, "rotary_dim": 64, "scaling": YaRN(16.0, 65536, 32, 1, attention_factor=1.0)},
    ),
    (
        "DeepSeek-V4, one new dict",
        V4 | {"rope_parameters": {**V4_YARN, "rope_theta": 10000}},
        "compress",
        {"base": 160_000.0, "rotary_dim": 64, "scaling": YaRN(16.0, 65536, 32, 1, attention_factor=1.0)},
    ),
    ("Step 3.5", STEP, "full_attention", {"base": 5e6, "rotary_dim": 64, "scaling": Llama3(8.0, 8192, 1.0, 4.0)}),
    ("Step 3.5", STEP, "sliding_attention", {"base": 1e4, "rotary_dim": 128, "scaling": None}),
    ("MiMo-V2-Flash", MIMO, "full_attention", {"base": 5e6, "rotary_dim": 64, "scaling": None}),
    ("MiMo-V2-Flash", MIMO, "sliding_attention", {"base": 2e4, "rotary_dim": 64, "scaling": None}),
    ("UltraBERT", ULTRA, "full_attention", {"base": 2e6, "rotary_dim": 64, "scaling": None}),
    ("UltraBERT", ULTRA, "sliding_attention", {"base": 1e4, "rotary_dim": 64, "scaling": None}),
    ("dots 3", DOTS, "indexed_attention", {"base": 4e6, "rotary_dim": 64, "scaling": None}),
    ("dots 3", DOTS, "sliding_attention", {"base": 2e4, "rotary_dim": 32, "scaling": None}),
]


@pytest.mark.parametrize(("config", "layer_type", "expected"), [case[1:] for case in BY_TYPE])
def test_layer_types_in_the_keys_of_their_models(config: dict[str, Any], layer_type: str, expected: dict[str, Any]) -> None:
    found = rope_from_config(config, layer_type=layer_type)
    assert {name: found[name] for name in expected} == expected


def test_what_rope_does_otherwise_is_in_the_options_of_the_models_that_need_it() -> None:
    assert rope_from_config(V4, layer_type="main")["lanes"] == "trailing"
    nano = rope_from_config({"model_type": "nanochat", **HEADS})
    assert (nano["inverse"], nano["layout"]) == (True, "half")
    assert set(rope_from_config(LLAMA2)) == {"layout", "base", "rotary_dim", "scaling"}


def test_names_of_sizes_differ() -> None:
    dbrx = {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "max_seq_len": 32768, "attn_config": {"rope_theta": 500_000}}
    assert rope_from_config(dbrx) == {"layout": "half", "base": 5e5, "rotary_dim": 128, "scaling": None}
    assert rope_from_config(dbrx | {"rope_scaling": {"type": "dynamic", "factor": 2.0}})["scaling"] == DynamicNTK(2.0, 32768)
    moonshine = {"model_type": "moonshine", "hidden_size": 288, "encoder_num_attention_heads": 8}
    assert rope_from_config(moonshine)["rotary_dim"] == 32
    zamba = {"model_type": "zamba2", "hidden_size": 2560, "num_attention_heads": 32, "kv_channels": 80, "use_mem_rope": True}
    assert rope_from_config(zamba)["rotary_dim"] == 160
    assert rope_from_config({"model_type": "jetmoe", **HEADS, "kv_channels": 64})["rotary_dim"] == 64


def test_the_text_part_of_a_multimodal_file_is_read() -> None:
    text = {"model_type": "deepseek_v3", "rope_scaling": {"type": "yarn", **DEEPSEEK}}
    assert rope_from_config({"model_type": "kimi_vl", "text_config": text}) == rope_from_config(text)
    assert factors({"model_type": "kimi_vl", "text_config": text}) == factors(text)


def test_lists_may_be_arrays() -> None:
    arrays = {name: np.asarray(values) for name, values in LISTS.items()}
    both_ways = [{**PHI3, "rope_scaling": {"type": "longrope", **lists}} for lists in (LISTS, arrays)]
    assert rope_from_config(both_ways[0]) == rope_from_config(both_ways[1])


REAL: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    (
        "Llama 2",
        [LLAMA2, *both(LLAMA2, 1e4, "default", {})],
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": None},
    ),
    (
        "Llama 3.1",
        both(LLAMA_8B, 500_000.0, "llama3", LLAMA31),
        {"layout": "half", "base": 500_000.0, "rotary_dim": 128, "scaling": Llama3(8.0, 8192, 1.0, 4.0)},
    ),
    (
        "Llama 3.2 1B",
        both(LLAMA_1B, 500_000.0, "llama3", LLAMA32),
        {"layout": "half", "base": 500_000.0, "rotary_dim": 64, "scaling": Llama3(32.0, 8192, 1.0, 4.0)},
    ),
    (
        "Qwen2.5 with YaRN",
        both(QWEN, 1e6, "yarn", YARN128K),
        {"layout": "half", "base": 1e6, "rotary_dim": 128, "scaling": YaRN(4.0, 32768)},
    ),
    (
        "gpt-oss",
        both(OSS, 150_000.0, "yarn", GPT_OSS),
        {"layout": "half", "base": 150_000.0, "rotary_dim": 64, "scaling": YaRN(32.0, 4096, 32, 1, truncate=False)},
    ),
    (
        "DeepSeek-V3",
        both(DEEPSEEK_V3, 1e4, "yarn", DEEPSEEK),
        {
            "layout": "interleaved_to_half",
            "base": 1e4,
            "rotary_dim": 64,
            "scaling": YaRN(40.0, 4096, mscale=1.0, mscale_all_dim=1.0),
        },
    ),
    (
        "GPT-NeoX-20B",
        [
            NEOX,
            {**NEOX, "rotary_pct": 0.25, "rotary_emb_base": 10000},
            {**NEOX, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}},
        ],
        {"layout": "half", "base": 1e4, "rotary_dim": 24, "scaling": None},
    ),
    ("GPT-J-6B", [GPTJ], {"layout": "interleaved", "base": 1e4, "rotary_dim": 64, "scaling": None}),
    (
        "phi-2",
        [
            {**PHI2, "partial_rotary_factor": 0.4, "rope_theta": 10000.0},
            {**PHI2, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.4}},
        ],
        {"layout": "half", "base": 1e4, "rotary_dim": 32, "scaling": None},
    ),
    (
        "GLM-4",
        [
            {**GLM, "partial_rotary_factor": 0.5},
            {**GLM, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
        ],
        {"layout": "interleaved", "base": 1e4, "rotary_dim": 64, "scaling": None},
    ),
    (
        "Phi-3.5-mini: the top level's original length wins over the dict's, and a silent file means 4096",
        [
            *both({**PHI3, "original_max_position_embeddings": 4096}, 1e4, "longrope", LISTS),
            *both({**PHI3, "original_max_position_embeddings": 4096}, 1e4, "su", LISTS),
            *both(PHI3, 1e4, "su", LISTS | {"original_max_position_embeddings": 8192}),
            *both(PHI3, 1e4, "yarn", LISTS),  # a mislabelled file, which Phi-3's configuration class reads as longrope
        ],
        {"layout": "half", "base": 1e4, "rotary_dim": 96, "scaling": LONGROPE},
    ),
    (
        "HunYuan: dynamic with alpha reads nothing else",
        both(HUNYUAN, 1e4, "dynamic", ALPHA),
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": NTKAlpha(1000.0)},
    ),
    (
        "GLM-4-9B-chat-1M",
        [CHATGLM | {"rope_ratio": 10000}],
        {"layout": "interleaved", "base": 1e8, "rotary_dim": 64, "scaling": None},
    ),
    ("ChatGLM2", [CHATGLM], {"layout": "interleaved", "base": 1e4, "rotary_dim": 64, "scaling": None}),
    (
        "Kimi K2",
        both(
            {"model_type": "kimi_k2", "hidden_size": 7168, "num_attention_heads": 64},
            50000.0,
            "yarn",
            DEEPSEEK | {"factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0},
        ),
        {
            "layout": "interleaved_to_half",
            "base": 50000.0,
            "rotary_dim": 64,
            "scaling": YaRN(32.0, 4096, 1, 1, mscale=1.0, mscale_all_dim=1.0),
        },
    ),
    (
        "dynamic NTK: the dict's own length is not read",
        both(LLAMA2, 1e4, "dynamic", {"factor": 2.0, "original_max_position_embeddings": 1024}),
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": DynamicNTK(2.0, 4096)},
    ),
    (
        "linear",
        both(LLAMA2, 1e4, "linear", {"factor": 8}),
        {"layout": "half", "base": 1e4, "rotary_dim": 128, "scaling": Linear(8.0)},
    ),
]


@pytest.mark.parametrize(("configs", "expected"), [case[1:] for case in REAL], ids=[case[0] for case in REAL])
def test_real_models_in_both_generations(configs: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    for config in configs:
        before = repr(config)
        got = rope_from_config(config)
        assert got == expected
        assert type(got["rotary_dim"]) is int
        assert repr(config) == before


GEMMA3_OLD = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "rope_theta": 1e6,
    "rope_local_base_freq": 1e4,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
}
GEMMA3_NEW = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
    },
}
MODERNBERT = {"model_type": "modernbert", "hidden_size": 768, "num_attention_heads": 12}
OLMO3 = {
    "model_type": "olmo3",
    **HEADS,
    "rope_theta": 500_000,
    "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192},
}


@pytest.mark.parametrize("config", [GEMMA3_OLD, GEMMA3_NEW], ids=["old", "v5"])
def test_gemma3_scales_the_full_layers_alone(config: dict[str, Any]) -> None:
    full = rope_from_config(config, layer_type="full_attention")
    local = rope_from_config(config, layer_type="sliding_attention")
    assert full == {"layout": "half", "base": 1e6, "rotary_dim": 256, "scaling": Linear(8.0)}
    assert local == {"layout": "half", "base": 1e4, "rotary_dim": 256, "scaling": None}


def test_models_that_always_had_two_bases() -> None:
    bases = {"global_rope_theta": 160_000.0, "local_rope_theta": 20_000.0}
    assert rope_from_config(MODERNBERT | bases, layer_type="full_attention")["base"] == 160_000.0
    assert rope_from_config(MODERNBERT | bases, layer_type="sliding_attention")["base"] == 20_000.0
    assert rope_from_config(OLMO3, layer_type="full_attention")["scaling"] == YaRN(8.0, 8192)
    assert rope_from_config(OLMO3, layer_type="sliding_attention")["scaling"] is None


GEMMA4 = {
    "model_type": "gemma4_text",
    "head_dim": 256,
    "hidden_size": 2304,
    "num_attention_heads": 8,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
    },
}


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"global_head_dim": 512},
        {
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "per_layer_config": {"1": {"head_dim": 512}, "03": {"head_dim": 512}},
        },
    ],
    ids=["silent", "first files", "v5 saved"],
)
def test_gemma4_full_layers_have_their_own_head_and_most_pairs_do_not_turn(sizes: dict[str, Any]) -> None:
    for config in (GEMMA4 | sizes, {**GEMMA4, **sizes, "rope_parameters": None}):
        full = rope_from_config(config, layer_type="full_attention")
        local = rope_from_config(config, layer_type="sliding_attention")
        assert full == {"layout": "half", "base": 1e6, "rotary_dim": 512, "scaling": Proportional(0.25)}
        assert local == {"layout": "half", "base": 1e4, "rotary_dim": 256, "scaling": None}


def test_truncate_false_is_honoured_in_the_dict_of_a_layer_type() -> None:
    layers = {"full_attention": {"rope_type": "yarn", "rope_theta": 1e4, **GPT_OSS}, "sliding_attention": {"rope_theta": 1e4}}
    scaling = rope_from_config({**LLAMA2, "rope_parameters": layers}, layer_type="full_attention")["scaling"]
    assert scaling == YaRN(32.0, 4096, truncate=False)


def test_silent_files_mean_what_the_configuration_classes_say() -> None:
    assert rope_from_config(OSS) == rope_from_config(both(OSS, 150_000.0, "yarn", GPT_OSS)[2])
    assert rope_from_config({"model_type": "apertus", **HEADS})["scaling"] == Llama3(8.0, 8192, 1.0, 4.0)
    ministral = rope_from_config({"model_type": "ministral3"})
    assert (ministral["base"], ministral["scaling"]) == (1e6, YaRN(16.0, 16384, mscale=1.0, mscale_all_dim=1.0))
    assert rope_from_config(OSS | {"rope_parameters": {"rope_type": "default"}})["scaling"] is None


def test_original_length_top_level_then_dict_then_maximum() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0}
    config = {**LLAMA2, "rope_scaling": yarn}
    assert rope_from_config(config)["scaling"].original_length == 4096
    inside = config | {"rope_scaling": yarn | {"original_max_position_embeddings": 2048}}
    assert rope_from_config(inside)["scaling"].original_length == 2048
    assert rope_from_config(inside | {"original_max_position_embeddings": 1024})["scaling"].original_length == 1024


def test_a_dict_by_layer_type_does_not_read_the_top_level() -> None:
    layers = {"full_attention": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}, "sliding_attention": None}
    config = {**LLAMA2, "original_max_position_embeddings": 1024, "rope_parameters": layers}
    assert rope_from_config(config, layer_type="full_attention")["scaling"] == YaRN(4.0, 4096)
    with pytest.raises(ValueError, match=r"one of \('full_attention',\), .* got 'sliding_attention'"):
        rope_from_config(config, layer_type="sliding_attention")


def test_zero_is_not_given_in_yarn_as_in_transformers() -> None:
    zeros = {
        "factor": 4.0,
        "mscale": 0,
        "mscale_all_dim": 0.0,
        "beta_fast": 0,
        "beta_slow": None,
        "attention_factor": None,
    }
    for config in both(LLAMA2, 1e4, "yarn", zeros):
        assert rope_from_config(config)["scaling"] == YaRN(4.0, 4096)


def test_layout_argument_wins_and_serves_unknown_models() -> None:
    assert rope_from_config(LLAMA2, layout="interleaved")["layout"] == "interleaved"
    unknown = {**HEADS, "model_type": "klingon", "rope_theta": 1e4}
    assert rope_from_config(unknown, layout="interleaved")["base"] == 1e4
    assert rope_from_config(DEEPSEEK_V3 | {"rope_interleave": False})["layout"] == "half"


def test_tables_agree_with_each_other() -> None:
    assert len(LAYOUTS) >= 100
    facts = {model: row["rope"] for model, row in table("types").items() if "rope" in row}
    known = {"layout", "half_unless", "lanes", "inverse", "mrope", "defaults", "silent", "bases", "flat", "yarn", "softmax"}
    known |= {"yarn_means", "alpha", "switch", "requires", "head_key", "hidden_times", "inside"}
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
    assert set().union(*rules) == {"never", "types", "key", "n", "last", "rotates", "names", "empty", "switch", "beside"}
    assert {rule["types"] for rule in rules if "types" in rule} == {*TYPES, "compressed", "listed"}
    assert {rule["rotates"] for rule in rules if "rotates" in rule} == set(ROTATES)


def g(factor: float, m: float) -> float:
    return m * math.log(factor) / 10 + 1


@pytest.mark.parametrize(
    ("config", "table", "softmax"),
    [
        (LLAMA_8B, 1.0, 1.0),
        (both(QWEN, 1e6, "yarn", YARN128K)[0], g(4, 1), 1.0),
        (both(OSS, 150_000.0, "yarn", GPT_OSS)[2], g(32, 1), 1.0),
        (both(DEEPSEEK_V3, 1e4, "yarn", DEEPSEEK)[0], 1.0, g(40, 1) ** 2),
        (
            both(DEEPSEEK_V3, 1e4, "yarn", DEEPSEEK | {"mscale": 0.5, "mscale_all_dim": 0.7})[2],
            g(40, 0.5) / g(40, 0.7),
            g(40, 0.7) ** 2,
        ),
        (both(DEEPSEEK_V3, 1e4, "yarn", DEEPSEEK | {"mscale": None})[0], g(40, 1), g(40, 1) ** 2),
        (both(DEEPSEEK_V3, 1e4, "yarn", DEEPSEEK | {"attention_factor": 1.5})[0], 1.5, g(40, 1) ** 2),
        (both(DEEPSEEK_V3, 1e4, "yarn", DEEPSEEK | {"factor": 1.0})[0], 1.0, 1.0),
        (both(LLAMA2, 1e4, "yarn", DEEPSEEK)[0], 1.0, 1.0),  # Llama's attention reads no mscale_all_dim
    ],
    ids=["default", "qwen", "gpt-oss", "deepseek", "two mscales", "one mscale", "given", "factor 1", "llama"],
)
def test_factors_say_where_they_go(config: dict[str, Any], table: float, softmax: float) -> None:
    found = factors(config)
    rounding = 16 * 2**-53  # two lines in a logarithm and their quotient or square, here and in the test
    assert abs(found["table"] - table) <= rounding * table
    assert abs(found["softmax"] - softmax) <= rounding * softmax
    assert found["input"] == 1.0


def test_factor_of_longrope_is_on_the_table_and_may_depend_on_the_length() -> None:
    root = math.sqrt(1 + math.log(32) / math.log(4096))
    config = {**PHI3, "rope_scaling": {"type": "longrope", **LISTS}}
    found = factors(config)
    assert abs(found["table"] - root) <= 8 * 2**-53 * root  # two logarithms, their quotient, a sum and a root
    assert (found["input"], found["softmax"]) == (1.0, 1.0)
    moe = {**PHI3, "model_type": "phimoe", "head_dim": 96, "original_max_position_embeddings": 4096}
    moe |= {"rope_scaling": {"type": "longrope", **LISTS, "short_mscale": 1.25, "long_mscale": 1.5}}
    assert [factors(moe, length=n)["table"] for n in (4096, 4097)] == [1.25, 1.5]
    with pytest.raises(ValueError, match=r"^factors: length must be given .* differ; got None\.$"):
        factors(moe)


def test_deepseek_softmax_factor_is_the_published_one() -> None:
    assert round(factors({**DEEPSEEK_V3, "rope_scaling": {"type": "yarn", **DEEPSEEK}})["softmax"], 5) == 1.87385


ERRORS: list[tuple[Any, dict[str, Any], str]] = [
    ([], {}, "rope_from_config: config must be a mapping, the path of a config.json, or have to_dict(); got list."),
    ({"model_type": "phi3_v", "text_config": {}}, {}, "config['model_type'] must be a known one; got None. Pass layout"),
    ({"model_type": "klingon"}, {}, "config['model_type'] must be a known one; got 'klingon'. Pass layout, one of ("),
    (STEP | {"layer_types": ["full_attention"] * 2}, {"layer_type": "full_attention"}, "rope_theta must be the same in all"),
    (STEP | {"layer_types": None}, {"layer_type": "full_attention"}, "one for each of layer_types; got 3 for 0 layers."),
    (MIMO | {"rope_scaling": V4_YARN}, {"layer_type": "full_attention"}, "must be null or a dict by layer type for this"),
    ({"model_type": "esm", **HEADS}, {}, "must have position_embedding_type 'rotary', or the model has no rotation; got"),
    (
        {"model_type": "granitemoehybrid", **HEADS},
        {},
        "must have position_embedding_type 'rope', or the model has no rotation; got",
    ),
    ({"model_type": "zamba2", **HEADS, "use_mem_rope": False}, {}, "must have use_mem_rope True, or the model has no "),
    (
        {**LLAMA2, "model_type": "falcon", "alibi": True},
        {},
        "config must describe a model with rotary embeddings; got 'alibi': True.",
    ),
    (
        {**HEADS, "model_type": "klingon"},
        {},
        "config['model_type'] must be a known one; got 'klingon'. Pass layout, one of (",
    ),
    ({**HEADS, "model_type": "klingon"}, {}, "If the model runs another type's code, set model_type to that type."),
    ({**HEADS, "model_type": "lama"}, {}, "Did you mean 'llama'"),
    ({"model_type": "gpt2"}, {}, "config of 'gpt2' has no rotary embedding; its positions are learned (see from_config)."),
    ({"model_type": "bloom"}, {}, "its positions are alibi (see from_config)."),
    (
        {**HEADS, "model_type": "klingon"},
        {"layout": "half"},
        "the file must have rope_theta or rotary_emb_base; got none.",
    ),
    (
        LLAMA2,
        {"layout": "neox"},
        "layout must be one of ('half', 'interleaved', 'interleaved_to_half') or None; got 'neox'.",
    ),
    ({}, {"layout": "half"}, "the file must have hidden_size or n_embd or d_model; got none."),
    ({**LLAMA2, "hidden_size": "4096"}, {}, "hidden_size or n_embd or d_model must be an int of at least 1; got '4096'."),
    ({**LLAMA2, "head_dim": 63}, {}, "the file must have an even number of rotated channels, at least 2; got 63."),
    ({**LLAMA2, "partial_rotary_factor": 1.5}, {}, "the partial rotary factor must be at most 1; got 1.5."),
    ({**LLAMA2, "rope_theta": -1}, {}, "base must be a number above 0; got -1."),
    ({**LLAMA2, "rope_theta": True}, {}, "base must be a number above 0; got True."),
    ({**LLAMA2, "rope_scaling": "linear"}, {}, "config['rope_scaling'] must be a dict or null; got 'linear'."),
    (
        LLAMA2,
        {"layer_type": "full_attention"},
        "layer_type must be None, since all layers of this config are alike; got",
    ),
    (
        GEMMA3_NEW,
        {},
        "layer_type must be one of ('sliding_attention', 'full_attention'), the layer types of this config; got None.",
    ),
    (
        GEMMA3_OLD,
        {},
        "layer_type must be one of ('full_attention', 'sliding_attention'), the layer types of this config; got None.",
    ),
]
SCALINGS: list[tuple[Any, str]] = [
    ({"type": "linear"}, "the file must have factor; got none."),
    ({"type": "linear", "factor": "8"}, "factor must be a number of at least 1; got '8'."),
    ({"type": "linear", "factor": 0.5}, "factor must be a number of at least 1; got 0.5."),
    ({"type": "linear", "factor": math.inf}, "factor must be a number of at least 1; got inf."),
    ({"type": "llama3", "factor": 8.0, "high_freq_factor": 4}, "the file must have low_freq_factor; got none."),
    ({"type": "yarn", "factor": 4, "truncate": 0}, "truncate must be true or false; got 0."),
    ({"type": "yarn", "factor": 4, "beta_fast": "32"}, "beta_fast must be a number of at least 0; got '32'."),
    (
        {"type": "dynamic", "factor": 1, "alpha": 1000.0},
        "parameters of rope_type 'dynamic' must be among ('factor',); got ['alpha']",
    ),
    (
        {"type": "default", "mrope_section": [16, 24, 24]},
        "config must describe a model with one position for each token; got a dict with 'mrope_section' (M-RoPE). "
        "Use mrope_from_config.",
    ),
    ({"type": "longrope", "short_factor": [1.0] * 64}, "long_factor must be a list of 64 numbers above 0, one for each "),
    ({"type": "su", "short_factor": [1.0] * 48, "long_factor": [1.0] * 64}, "short_factor must be a list of 64 numbers"),
    ({"type": "su", "short_factor": [0.0] * 64}, "short_factor must be a list of 64 numbers above 0, one for each rotated"),
    ({"type": "proportional", "partial_rotary_factor": 2}, "the partial rotary factor must be at most 1; got 2.0."),
    *(
        (
            {"rope_type": kind},
            "rope_type must be one of ('default', 'linear', 'dynamic', 'yarn', 'llama3', 'longrope', 'proportional'), "
            f"or su or mrope or deepseek_yarn or telechat3-yarn; got {kind!r}.",
        )
        for kind in ("ntk", "axial", "xdrope", ["yarn"])
    ),
]
ERRORS += [
    (
        {"model_type": "qwen2_vl", **HEADS},
        {},
        "config must describe a model with one position for each token; got 'qwen2_vl' (M-RoPE). Use mrope_from_config.",
    ),
    ({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text"}}, {}, "got 'qwen3_vl_text' (M-RoPE). Use"),
    ({**LLAMA2, "rope_ratio": 2, "rope_theta": 1e4}, {}, "a model with rope_ratio must have no rope_theta, since its base"),
    (
        {"model_type": "gemma4_text", "rope_theta": 1e4},
        {"layer_type": "full_attention"},
        "rope_theta without a rope dict must be by layer type for this model, as in transformers; got 10000.0.",
    ),
    (GEMMA4 | {"per_layer_config": [512]}, {"layer_type": "full_attention"}, "per_layer_config must be dicts by layer number"),
    ({"model_type": "chatglm", **HEADS, "position_encoding_2d": True}, {}, "config of 'chatglm' must have kv_channels"),
    (
        {"model_type": "ministral3", "rope_theta": 1e4},
        {},
        "rope_theta without a rope dict must be 1000000.0 for this model, as in transformers; got 10000.0.",
    ),
    (
        GEMMA3_NEW | {"rope_parameters": {**GEMMA3_NEW["rope_parameters"], "truncate": False}},
        {"layer_type": "full_attention"},
        "got ['truncate']. Move them inside.",
    ),
    (
        GEMMA4 | {"per_layer_config": {"0": {"head_dim": 512}}, "layer_types": ["full_attention"] * 2},
        {"layer_type": "full_attention"},
        "per_layer_config must give all 'full_attention' layers of layer_types one head_dim; got ",
    ),
]
ERRORS += [
    (STEP | {key: values}, {"layer_type": "full_attention"}, "must be one number, or one for each of layer_types; got")
    for key, values in (("rope_theta", [5e6]), ("partial_rotary_factors", [0.5]))
]
ERRORS += [({**LLAMA2, "rope_scaling": scaling}, {}, message) for scaling, message in SCALINGS]


@pytest.mark.parametrize(("config", "options", "message"), ERRORS)
def test_what_cannot_be_read_is_refused(config: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^rope_from_config: ") as error:
        rope_from_config(config, **options)
    assert message in str(error.value)


def test_factors_are_not_guessed_for_an_unknown_model() -> None:
    config = {**HEADS, "model_type": "klingon", "rope_scaling": {"type": "yarn", **DEEPSEEK}}
    message = r"^factors: config\['model_type'\] must be a known one when mscale_all_dim is given; got 'klingon'\."
    with pytest.raises(ValueError, match=message):
        factors(config)
    assert factors(config | {"model_type": "deepseek_v3"})["softmax"] > 1


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


SIZED = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 6}
STILL: list[tuple[dict[str, Any], list[int]]] = [  # what files without layer_types say: the layers that do not rotate
    ({"model_type": "bamba", "attn_layer_indices": [1, 4]}, [0, 2, 3, 5]),
    ({"model_type": "lfm2", "full_attn_idxs": [1, 4]}, [0, 2, 3, 5]),
    ({"model_type": "recurrent_gemma"}, [0, 1, 3, 4]),
    ({"model_type": "zamba2", "use_mem_rope": True, "layers_block_type": ["mamba", "hybrid"] * 3}, [0, 2, 4]),
    ({"model_type": "olmo_hybrid"}, [0, 1, 2, 4, 5]),
    ({"model_type": "olmo_hybrid", "rope_parameters": {"rope_theta": None}}, list(range(6))),
]


@pytest.mark.parametrize(("config", "still"), STILL)
def test_layers_without_attention_or_base_are_none(config: dict[str, Any], still: list[int]) -> None:
    assert [i for i in range(6) if rope_from_config({**SIZED, **config}, layer=i) is None] == still


def test_muse_has_one_base_whatever_its_entries() -> None:
    file = {"model_type": "muse_glimmer_text", **SIZED, "rope_theta": 2e4, "layer_rope_theta": [0, 1e4, 5e5] * 2}
    assert [one and one["base"] for one in (rope_from_config(file, layer=i) for i in range(6))] == [None, 2e4, 2e4] * 2
    assert rope_from_config(file)["base"] == 2e4


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (
            {"model_type": "lfm2_moe"},
            "config of 'lfm2_moe' must have layer_types, since some of its layers have no attention; got none.",
        ),
        ({"model_type": "llama", "layer_rope_theta": [1e4]}, "layer_rope_theta must be null for 'llama', whose code is not"),
    ],
)
def test_what_the_layers_of_a_file_are_is_not_guessed(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=r"^rope_from_config: ") as error:
        rope_from_config({**SIZED, **config}, layer=0)
    assert problem in str(error.value)
