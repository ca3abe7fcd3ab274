"""Presets against `rope_from_config` of the files that they come from, and the sources' own limits."""

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_configs import DEEPSEEK, GPT_OSS, LLAMA31, LLAMA32

import posref
from posref import mrope_from_config, presets, rope_from_config
from posref.cli import cli
from posref.configs import factors
from posref.presets import MARKS
from posref.scaling import LongRoPE


def llama(heads: int, width: int, base: float, kind: str = "llama", /, **others: Any) -> dict[str, Any]:
    return {
        "model_type": kind,
        "hidden_size": heads * width,
        "num_attention_heads": heads,
        "rope_theta": base,
        **others,
    }


def scaled(kind: str, **values: Any) -> dict[str, Any]:
    return {"rope_scaling": {"rope_type": kind, **values}}


def mla(kind: str, base: float, **yarn: Any) -> dict[str, Any]:
    return {
        "model_type": kind,
        "qk_rope_head_dim": 64,
        "rope_theta": base,
        "rope_scaling": {"type": "yarn", **DEEPSEEK, **yarn},
    }


def phi3(heads: int, head_dim: int, preset: str, **others: Any) -> dict[str, Any]:
    """A file of the Phi-3 family; its lists can be checked against nothing but their length and order, below."""
    scaling = presets[preset].rope["scaling"]
    rope = {"type": "longrope", "short_factor": list(scaling.short_factor), "long_factor": list(scaling.long_factor)}
    lengths = {"original_max_position_embeddings": 4096, "max_position_embeddings": 131072}
    return {**llama(heads, head_dim, 1e4, "phi3"), "rope_scaling": rope, **lengths, **others}


LLAMA31_FILE = llama(32, 128, 5e5, **scaled("llama3", **LLAMA31))
SCOUT = LLAMA31 | {"factor": 16.0, "high_freq_factor": 1.0}
OSS = llama(64, 45, 150000, "gpt_oss", head_dim=64, **scaled("yarn", **GPT_OSS))
LINEAR = {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_local_base_freq": 1e4}
MRSECTION = {"type": "mrope", "mrope_section": [16, 24, 24]}
QWEN3VL = scaled("default", mrope_section=[24, 20, 20], mrope_interleaved=True)
QWEN35 = {"rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10], "mrope_interleaved": True}
GEMMA4 = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}}
GEMMA4 |= {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
MODERNBERT = llama(12, 64, 0, "modernbert", global_rope_theta=160000, local_rope_theta=10000)
ALPHA = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}
GLM = {"model_type": "chatglm", "kv_channels": 128, "rope_ratio": 10000, "seq_length": 1048576}
V4_YARN = {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 65536}
V4 = {"model_type": "deepseek_v4", "head_dim": 512, "qk_rope_head_dim": 64, "rope_theta": 10000, "compress_rope_theta": 160000}
V4 |= {"max_position_embeddings": 1048576, "rope_scaling": V4_YARN}
GLM5 = {"model_type": "glm_moe_dsa", "qk_rope_head_dim": 64, "rope_interleave": True}
MINIMAX = llama(48, 64, 5e6, "minimax_m2", head_dim=128, rotary_dim=64)
MIMO = llama(64, 64, 5e6, "mimo_v2_flash", head_dim=192, swa_rope_theta=10000, partial_rotary_factor=0.334)
EXAONE4 = scaled("llama3", **LLAMA31 | {"factor": 16.0})
OLMO3 = {"factor": 8.0, "original_max_position_embeddings": 8192, "beta_fast": 32.0, "beta_slow": 1.0}
OLMO3 |= {"attention_factor": 1.2079441541679836}
FILES: dict[str, dict[str, Any]] = {  # real fields of the files and classes that the rows were read from
    "llama-2-7b": llama(32, 128, 1e4),
    "code-llama-7b": llama(32, 128, 1e6),
    "llama-3-8b": llama(32, 128, 5e5),
    **dict.fromkeys(("llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.3-70b"), LLAMA31_FILE),
    "llama-3.2-1b": llama(32, 64, 5e5, **scaled("llama3", **LLAMA32)),
    "llama-3.2-3b": llama(24, 128, 5e5, **scaled("llama3", **LLAMA32)),
    "llama-4-scout": llama(
        40, 128, 5e5, "llama4_text", **scaled("llama3", **LLAMA31 | {"factor": 16.0, "high_freq_factor": 1.0})
    ),
    "mistral-7b-v0.1": llama(32, 128, 1e4, "mistral"),
    "mistral-7b-v0.3": llama(32, 128, 1e6, "mistral"),
    "mixtral-8x7b": llama(32, 128, 1e6, "mixtral"),
    "mixtral-8x22b": llama(48, 128, 1e6, "mixtral"),
    "ministral-3": {"model_type": "ministral3"},
    "mistral-4": {"model_type": "mistral4"},
    "qwen2-7b": llama(28, 128, 1e6, "qwen2"),
    "qwen2.5-7b": llama(28, 128, 1e6, "qwen2"),
    "qwen2.5-7b-yarn": llama(28, 128, 1e6, "qwen2", **scaled("yarn", factor=4.0, original_max_position_embeddings=32768)),
    "qwen2.5-7b-1m": llama(28, 128, 1e7, "qwen2", dual_chunk_attention_config={"chunk_size": 262144}),
    "qwen3-8b": llama(32, 128, 1e6, "qwen3"),
    "qwen3-30b-a3b": llama(32, 128, 1e6, "qwen3_moe"),
    "qwen3-4b-2507": llama(32, 128, 5e6, "qwen3"),
    "qwen3-next-80b": llama(16, 128, 1e7, "qwen3_next", head_dim=256, partial_rotary_factor=0.25, rope_scaling=None),
    "gemma-7b": llama(16, 256, 1e4, "gemma"),
    "gemma-2-9b": llama(16, 256, 1e4, "gemma2"),
    "gemma-2-27b": llama(32, 144, 1e4, "gemma2", head_dim=128),
    "gemma-3-1b": llama(4, 288, 1e6, "gemma3_text", head_dim=256, rope_scaling=None, rope_local_base_freq=1e4),
    "gemma-3-4b": llama(8, 320, 1e6, "gemma3_text", head_dim=256, **LINEAR),
    "gemma-3-12b": llama(16, 240, 1e6, "gemma3_text", head_dim=256, **LINEAR),
    "gemma-3-27b": llama(32, 168, 1e6, "gemma3_text", head_dim=128, **LINEAR),
    "gemma-4": {"model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "rope_parameters": GEMMA4},
    "modernbert-base": {key: value for key, value in MODERNBERT.items() if key != "rope_theta"},
    "phi-1.5": llama(32, 64, 1e4, "phi", partial_rotary_factor=0.5),
    "phi-2": llama(32, 80, 1e4, "phi", partial_rotary_factor=0.4),
    "phi-3-mini-4k": llama(32, 96, 1e4, "phi3", max_position_embeddings=4096),
    "phi-3-vision-128k": phi3(32, 96, "phi-3-vision-128k"),
    "phi-3.5-mini": phi3(32, 96, "phi-3.5-mini"),
    "phi-4-mini": phi3(24, 128, "phi-4-mini", partial_rotary_factor=0.75),
    "phi-4": llama(40, 128, 250000, "phi3"),
    "deepseek-v2-lite": mla("deepseek_v2", 1e4, mscale=0.707, mscale_all_dim=0.707),
    "deepseek-v3": mla("deepseek_v3", 1e4),
    "deepseek-r1": mla("deepseek_v3", 1e4),
    "kimi-k2-0711": mla("kimi_k2", 50000, factor=32.0, beta_fast=1.0, beta_slow=1.0),
    "kimi-k2-0905": mla("kimi_k2", 50000, factor=64.0, beta_fast=1.0, beta_slow=1.0),
    "kimi-k2.5": mla("kimi_k2", 50000, factor=64.0, beta_fast=32.0, beta_slow=1.0),
    "deepseek-v3.2": mla("deepseek_v32", 1e4),
    "deepseek-v4-flash": V4,
    "deepseek-v4-pro": V4,
    "longcat-flash": {"model_type": "longcat_flash", "qk_rope_head_dim": 64, "rope_theta": 1e7},
    **dict.fromkeys(
        ("gpt-oss-20b", "gpt-oss-120b"), llama(64, 45, 150000, "gpt_oss", head_dim=64, **scaled("yarn", **GPT_OSS))
    ),
    "gpt-neox-20b": llama(64, 96, 0, "gpt_neox", rotary_pct=0.25, rotary_emb_base=10000),
    "gpt-j-6b": {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "rotary_dim": 64},
    "codegen": {"model_type": "codegen", "n_embd": 4096, "n_head": 16, "rotary_dim": 64},
    "glm-4-9b-chat-1m": GLM,
    "stablelm-3b": llama(32, 80, 1e4, "stablelm", partial_rotary_factor=0.25),
    **dict.fromkeys(("glm-4.5", "glm-4.5-air"), llama(96, 53, 1e6, "glm4_moe", head_dim=128, partial_rotary_factor=0.5)),
    **dict.fromkeys(("glm-5", "glm-5.1"), GLM5 | {"rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}}),
    "glm-5.2": GLM5 | {"rope_parameters": {"rope_theta": 8000000, "rope_type": "default"}},
    **dict.fromkeys(("minimax-m2", "minimax-m2.5", "minimax-m2.7"), MINIMAX),
    "mimo-v2-flash": MIMO,
    "command-a": llama(96, 128, 50000, "cohere2", head_dim=128),
    "command-r7b": llama(32, 128, 50000, "cohere2", head_dim=128),
    "exaone-4-32b": llama(40, 128, 1e6, "exaone4", head_dim=128, **EXAONE4),
    "exaone-4-1.2b": llama(32, 64, 1e6, "exaone4", head_dim=64, **EXAONE4),
    "k-exaone-236b": llama(64, 96, 1e6, "exaone_moe", head_dim=128, rope_scaling=None),
    "ernie-4.5-0.3b": llama(16, 64, 5e5, "ernie4_5", head_dim=128),
    "ernie-4.5-21b": llama(20, 128, 5e5, "ernie4_5_moe"),
    "seed-oss-36b": llama(80, 64, 1e7, "seed_oss", head_dim=128, **scaled("default")),
    "apertus-8b": llama(32, 128, 12e6, "apertus", **scaled("llama3", **LLAMA31)),
    "smollm3-3b": llama(16, 128, 5e6, "smollm3"),
    "olmo-2-7b": llama(32, 128, 5e5, "olmo2"),
    "olmo-3-7b": llama(32, 128, 5e5, "olmo3", **scaled("yarn", **OLMO3)),
    "hunyuan-dense": llama(32, 128, 1e4, "hunyuan_v1_dense", head_dim=128, rope_scaling=ALPHA),
    "falcon-7b": llama(71, 64, 1e4, "falcon", alibi=False),
    "qwen2-vl-7b": llama(28, 128, 1e6, "qwen2_vl", rope_scaling=MRSECTION),
    "qwen2.5-vl-7b": llama(28, 128, 1e6, "qwen2_5_vl", rope_scaling=MRSECTION),
    "qwen3-vl-4b": llama(32, 80, 5e6, "qwen3_vl_text", head_dim=128, **QWEN3VL),
    "qwen3-vl-8b": llama(32, 128, 5e6, "qwen3_vl_text", head_dim=128, **QWEN3VL),
    "qwen3-omni-30b": llama(32, 64, 1e6, "qwen3_omni_moe_text", head_dim=128, **QWEN3VL),
    "qwen3.5-27b": {"model_type": "qwen3_5_text", "head_dim": 256, "rope_parameters": QWEN35},
    "qwen3.5-27b-yarn": {
        "model_type": "qwen3_5_text",
        "head_dim": 256,
        "rope_parameters": {**QWEN35, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 262144},
    },
    "ernie-4.5-vl": llama(20, 128, 5e5, "ernie4_5_vl_moe_text"),
}
FILES["gpt-neox-20b"].pop("rope_theta")
LAYERS = {"full": "full_attention", "sliding": "sliding_attention", "main": "main", "compress": "compress"}


def file_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file of a preset, and the layer type as an option."""
    model, _, layers = name.rpartition("-")
    return (FILES[model], {"layer_type": LAYERS[layers]}) if layers in LAYERS else (FILES[name], {})


def test_every_file_has_its_preset() -> None:
    models = {name.rpartition("-")[0] if name.rpartition("-")[2] in LAYERS else name for name in presets}
    assert models == set(FILES)
    assert len(presets) == len(set(presets))


@pytest.mark.parametrize("name", presets)
def test_a_preset_is_what_its_file_means(name: str) -> None:
    preset = presets[name]
    config, options = file_of(name)
    assert preset.name == name
    if preset.rope is None:
        assert preset.mrope == mrope_from_config(config)
    else:
        assert preset.mrope is None
        assert preset.rope == rope_from_config(config, **options)
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
    done = CliRunner().invoke(cli, ["list", "--presets"])
    assert done.exit_code == 0
    assert all(f"\n{name} " in done.output for name in presets)
    assert all(meaning in " ".join(done.output.split()) for meaning in MARKS.values())


def test_a_notebook_shows_the_presets_as_a_table() -> None:
    from posref.presets import presets

    shown = presets._repr_html_()
    assert shown.count("<tr>") == len(presets) + 1
    assert "<td>llama-2-7b</td><td>posref.rope</td>" in shown
    assert "base=10000.0" in shown
