"""Model types that serving stacks have and transformers has not, by the values of the stacks' code."""

from typing import Any

import numpy as np
import pytest

import posref
from posref import from_config
from posref.models.model_types import model_table

SIZES = {"hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 8}
LATENT = {"qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512}
TYPES = {name: row for name, row in model_table().items() if "stack" in row}
Value = tuple[str, float, int] | None  # layout, base and channels of a rotation


def rotations(config: dict[str, Any], component: str = "text") -> list[Value]:
    entries = from_config({**SIZES, **config})[component]
    options = [entry and entry.options for entry in entries]
    return [own and (own["layout"], own["base"], own["rotary_dim"]) for own in options]


ALL: list[tuple[str, dict[str, Any], list[Value]]] = [
    ("internlm2", {}, [("half", 1e4, 64)]),
    ("dots_ocr", {"vision_config": {}}, [("half", 1e4, 64)]),
    ("step3_text", {}, [("half", 5e5, 256)]),
    ("bailing_moe", {"partial_rotary_factor": 0.5, "rope_theta": 6e5}, [("half", 6e5, 32)]),
    ("bailing_moe_v2", {"rotary_dim": 48}, [("half", 1e4, 48)]),
    ("bailing_moe_v3", {"layer_group_size": 4, "partial_rotary_factor": 0.5}, [None, None, None, ("interleaved", 6e6, 64)] * 2),
    ("bailing_moe_linear", {"layer_group_size": 4, "partial_rotary_factor": 0.5, "kv_lora_rank": 512},
     [*[("half", 6e5, 32)] * 3, ("interleaved", 6e5, 64)] * 2),
    ("bailing_moe_linear", {"layer_group_size": 4, "partial_rotary_factor": 0.5}, [("half", 6e5, 32)]),
    ("mimo_v2", {"head_dim": 192, "hybrid_layer_pattern": [0, 1] * 4, "swa_head_dim": 128},
     [("half", 1e7, 64), ("half", 1e4, 42)] * 4),
    ("minicpm", {"rope_theta": 1e6}, [("half", 1e6, 64)]),
    ("minicpm_sala", {"mixer_types": ["minicpm4", "lightning"], "lightning_use_rope": False}, [("half", 1e4, 64), None] * 4),
    ("minicpmv", {"version": 2.6}, [("half", 1e4, 64)]),
    ("qwen", {"kv_channels": 96, "rotary_emb_base": 1e6}, [("half", 1e6, 96)]),
    ("baichuan", {"hidden_size": 4096, "num_attention_heads": 32}, [("half", 1e4, 128)]),
    ("baichuan_m1", {"rope_theta": 1e6, "sliding_window_layers": [1, 3, 5, 7], "num_swa_attention_heads": 4,
                     "sliding_window": 8},
     [("half", 1e6, 64), ("half", 1e6, 128)] * 4),
    ("step5", {"layer_types": ["full_attention", "sliding_attention"] * 4, "rope_theta": [5e6, 1e4] * 4,
               "partial_rotary_factors": [0.5, 1.0] * 4, "use_rope_layers": [1, 1, 0, 1] * 2},
     [("half", 5e6, 32), ("half", 1e4, 64), None, ("half", 1e4, 64)] * 2),
    ("k2_horizon", {}, [("half", 1e7, 64)]),
    ("iquest_q1", {"first_layers_types": ["full_attention"], "last_layers_types": ["full_attention"] * 3,
                   "num_hybrid_layers_block": 1, "no_rope_layers": [0, 7]},
     [None, ("half", 1e6, 32), *[("half", 1e4, 32)] * 3, *[("half", 1e6, 32)] * 2, None]),
    ("iquestloopcoder", {"head_dim": 128}, [("half", 5e5, 128)]),
    ("nemotron-nas", {"block_configs": [{"attention": {"no_op": True}}, {"attention": {"n_heads_in_group": 8}}] * 4},
     [None, ("half", 5e5, 64)] * 4),
    ("phi3small", {}, [("half", 1e6, 64)]),
    ("phi3_v", {}, [("half", 1e4, 64)]),
    ("phi4mm", {}, [("half", 1e4, 48)]),
    ("phixtral", {}, [("half", 1e4, 32)]),
    ("plamo", {}, [("half", 1e4, 64)]),
    ("plamo2", {"hidden_size_per_head": 32, "rope_theta": 1e6}, [None, ("half", 1e4, 32)] * 4),
    ("plamo3", {"sliding_window": 8}, [*[("half", 1e4, 64)] * 7, ("half", 1e6, 64)]),
    ("openelm", {"head_dim": 32, "rope_freq_constant": 1e5}, [("half", 1e5, 32)]),
    ("youtu_llm", LATENT, [("interleaved", 1.6e6, 64)]),
    ("afm7", {"hidden_dim": 512, "num_heads": 4, "num_layers": 4}, [("half", 5e4, 64)]),
    ("talkie", {}, [("half", 1e6, 64)]),
    ("lille-130m", {"rope_theta": 1e5}, [("interleaved", 1e5, 64)]),
    ("xverse", {}, [("half", 1e4, 64)]),
    ("xverse", {"rope_is_neox_style": False}, [("interleaved", 1e4, 64)]),
    ("molmo", {"rope_impl": "interleave"}, [("half", 1e6, 64)]),
    ("moondream3_text", {}, [("half", 1.5e6, 32)]),
    ("jet_nemotron", {"layer_types": ["attn", "jet", "swa", "jet"] * 2,
                      "efficient_attention_config": {"swa": {"window_size": 9}}},
     [("half", 1e4, 64), None] * 4),
    ("gigachat3_5", {**LATENT, "layer_types": ["linear_attention", "attention"] * 4}, [None, ("interleaved", 1e5, 64)] * 4),
    ("gigachat3_5", {**LATENT, "rope_interleave": False, "layer_types": ["attention"] * 8}, [("half", 1e5, 64)]),
    ("grok", {}, [("half", 1e4, 64)]),
    ("grok", {"rope_rotate_half_dims": True}, [("half", 1e4, 32)]),
    ("nemotron-nas", {"position_embedding_type": "rope_llama4"}, [("interleaved", 5e5, 64)]),
    ("mistral_large3", LATENT, [("interleaved_to_half", 1e4, 64)]),
    ("RefinedWebModel", {}, [("half", 1e4, 64)]),
    *((name, {}, [("half", 1e4, 64)]) for name in ("deepseek", "mimo", "nanbeige", "Klear", "solar", "orion", "teleflm")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "config", "values"), ALL, ids=[f"{i}-{name}" for i, (name, *_) in enumerate(ALL)])
def test_rotations_are_those_of_the_stack(name: str, config: dict[str, Any], values: list[Value]) -> None:
    assert rotations({"model_type": name, **config}) == values
    stacks = {entry.conventions["stack"] for entry in from_config({**SIZES, "model_type": name, **config})["text"] if entry}
    assert len(stacks) == 1


def test_what_a_stack_has_besides_rotations() -> None:
    def read(name: str, component: str, **config: Any) -> Any:
        return from_config({**SIZES, "model_type": name, **config})[component]

    window = {"counting": "with_query", "sides": "causal"}
    assert read("spark2_5", "text mask")[:4] == [*[("sliding_window", {"window": 512, **window})] * 3, None]
    assert read("spark2_5", "text")[3].options["rotary_dim"] == 64
    assert read("baichuan", "text") == [("alibi", {"heads": 8, "form": "key"})]
    assert read("grok", "text softcap") == [("attention", {"softcap": 30.0})]
    (entry,) = read("grok", "text temperature", attn_temperature_len=1024)
    far = np.asarray([5, 1024, 1025, 65536])
    want = [1.0, 1.0, np.log2(1025) / 10, 1.6]
    np.testing.assert_allclose(posref.attention_temperature(far, **entry.options), want, rtol=1e-6)
    assert read("talkie", "text")[0].options["inverse"] is True
    assert read("phi3small", "text scale") == [("attention", {"scale": 1 / 64})]
    assert read("minicpm_sala", "text scale", mixer_types=["lightning"], lightning_scale="1/d") == [
        ("attention", {"scale": 1 / 64})
    ]
    sinks = read("mimo_v2", "text sinks", hybrid_layer_pattern=[0, 1] * 4)
    assert sinks == [None, ("attention", {})] * 4
    switches = {"add_swa_attention_sink_bias": False, "add_full_attention_sink_bias": True}
    sinks = read("mimo_v2", "text sinks", hybrid_layer_pattern=[0, 1] * 4, **switches)
    assert sinks == [("attention", {}), None] * 4
    with pytest.raises(ValueError, match="mla_use_nope"):
        from_config({"model_type": "kimi_k3", "text_config": {**SIZES, "mla_use_nope": False}})
    layers = [entry.options["base"] for entry in read("deepseek_v41", "text", compress_ratios=[0, 1, 2, 4] * 2)]
    assert layers == [1e4, 1.6e5, 1.6e5, 1.6e5] * 2
    images = {"vision_n_layers": 2, "vision_dim": 1024, "vision_n_heads": 16}
    (entry,) = read("deepseek_v41", "vision attention", compress_ratios=[0] * 8, **images)
    assert entry.options["dims"] == (32, 32)
    (entry,) = from_config({"model_type": "kimi_k3", "vision_config": {}})["vision attention"]
    assert entry.options["dims"] == (64, 64)


@pytest.mark.parametrize("kind", ["yarn", "llama3", "longrope"])
def test_scalings_that_the_stacks_refuse_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="no stack reads another"):
        rotations({"model_type": "internlm2", "rope_scaling": {"type": kind, "factor": 2.0}})


def test_the_first_pairs_of_a_whole_head_rotate_by_frequencies_of_their_share() -> None:
    """K2-Horizon (SGLang, xllm.py, 1144): channels i and i + D/2, i < R/2, by base^(-2i/R)."""
    head, lanes, base = 64, 24, 1e7
    (entry,) = from_config({**SIZES, "model_type": "k2_horizon", "head_dim": head, "rope_head_dim": lanes, "rope_theta": base})[
        "text"
    ]
    assert entry is not None
    x, positions = np.random.default_rng(0).standard_normal((5, head)), np.arange(5) * 7
    angles = positions[:, None] * np.where(np.arange(head // 2) < lanes // 2, base ** (-2 * np.arange(head // 2) / lanes), 0.0)
    low, high = x[:, : head // 2], x[:, head // 2 :]
    want = np.concatenate([low * np.cos(angles) - high * np.sin(angles), high * np.cos(angles) + low * np.sin(angles)], -1)
    assert np.abs(posref.rope(x, positions, **(entry.options or {})) - want).max() < 1e-12


def test_pairs_of_moonvit_rotate_with_the_column_first() -> None:
    """Pair 2i by the column, 2i + 1 by the row, both by base^(-4i/d) (SGLang, kimi_vl_moonvit.py, 245)."""
    found = from_config({"model_type": "moonvit", "hidden_size": 64, "num_attention_heads": 4})["vision attention"]
    entry = found[0]
    assert entry.conventions["positions"] == "columns, then rows"
    x, rows, columns = np.random.default_rng(1).standard_normal((6, 16)), np.arange(6) // 3, np.arange(6) % 3 + 4
    frequencies = 1e4 ** (-4 * np.arange(4) / 16)
    angles = np.stack([columns[:, None] * frequencies, rows[:, None] * frequencies], -1).reshape(6, 8)
    turned = (x[:, ::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)
    want = np.stack([turned.real, turned.imag], -1).reshape(6, 16)
    ours = posref.axial_rope(x, np.stack([columns, rows]), **(entry.options or {}))
    assert np.abs(ours - want).max() < 1e-12


def test_types_that_are_not_read_are_refused_with_a_reason() -> None:
    refused = {name: row["refused"] for name, row in TYPES.items() if "refused" in row}
    assert refused
    for name, reason in refused.items():
        with pytest.raises(ValueError, match="must be one that is read") as error:
            from_config({"model_type": name})
        assert reason in str(error.value)


def test_the_language_model_of_deepseek_vl2_is_plain_without_a_latent_vector() -> None:
    def text(**changes: Any) -> Any:
        return from_config({"model_type": "deepseek_vl_v2", "vision_config": {}, "language_config": {**SIZES, **changes}})[
            "text"
        ][0]

    assert text(**LATENT).options["layout"] == "interleaved"
    plain = text(kv_lora_rank=None, qk_rope_head_dim=0).options
    assert (plain["layout"], plain["rotary_dim"]) == ("half", 64)


def test_the_text_of_internvl_is_what_its_file_says() -> None:
    with pytest.raises(ValueError, match="architectures"):
        from_config({"model_type": "internvl_chat", "llm_config": {**SIZES, "architectures": ["PhiForCausalLM"]}})
    kinds = {"Qwen3Moe": "qwen3_moe", "Qwen3": "qwen3", "GptOss": "gpt_oss", "InternLM2": "internlm2", "Qwen2": "qwen2"}
    for name, kind in kinds.items():
        named = {**SIZES, "architectures": [f"{name}ForCausalLM"], "model_type": "internlm2"}
        found = from_config({"model_type": "internvl_chat", "vision_config": {}, "llm_config": named})
        want = from_config({**named, "model_type": kind})
        assert {name: found[name] for name in want} == want
    for kind in ("internlm2", "llama", "qwen2", "qwen3_moe"):
        found = from_config({"model_type": "internvl_chat", "vision_config": {}, "llm_config": {**SIZES, "model_type": kind}})
        assert found["text"] == from_config({**SIZES, "model_type": kind})["text"]
        assert found["vision"] == [("learned", {"offset": 0})]
