"""What a config.json says of attention besides rotations: masks, temperatures, scales, sinks and values, by layer."""

from typing import Any

import numpy as np
import pytest

import posref
from posref import from_config
from posref.models.layers import ON
from posref.models.model_types import model_table
from posref.spec import REGISTRY

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 8, "head_dim": 16}
CAUSAL = {"counting": "with_query", "sides": "causal"}
BOTH = {"counting": "without_query", "sides": "both"}
MLA = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "original_max_position_embeddings": 4096}


def layers_of(config: dict[str, Any], component: str) -> str:
    """The layers that have a component, as 1 and 0."""
    entries = from_config({**SIZES, **config}).get(component, [None])
    return "".join("0" if entry is None else "1" for entry in (entries * 8 if len(entries) == 1 else entries))


WINDOWS = [
    ({"model_type": "mistral", "sliding_window": 7}, "11111111"),
    ({"model_type": "mistral", "sliding_window": None}, "00000000"),
    ({"model_type": "qwen2", "sliding_window": 7, "max_window_layers": 5}, "00000000"),  # without its switch
    ({"model_type": "qwen2", "sliding_window": 7, "max_window_layers": 5, "use_sliding_window": True}, "00000111"),
    ({"model_type": "qwen2_moe", "sliding_window": 7, "max_window_layers": 5, "use_sliding_window": True}, "10101000"),
    ({"model_type": "qwen3_moe", "sliding_window": 7, "use_sliding_window": True}, "11111111"),
    ({"model_type": "qwen3_moe", "sliding_window": 7, "use_sliding_window": False}, "00000000"),
    ({"model_type": "dots1", "sliding_window": 7, "max_window_layers": 5}, "00000111"),
    ({"model_type": "smollm3", "sliding_window": 7, "use_sliding_window": True}, "00010001"),  # those that do not rotate
    ({"model_type": "gemma2", "sliding_window": 7}, "10101010"),
    ({"model_type": "gemma2", "sliding_window": 7, "layer_types": ["full_attention"] * 7 + ["sliding_attention"]}, "00000001"),
    ({"model_type": "gemma3_text", "sliding_window": 7}, "11111011"),
    ({"model_type": "beam", "sliding_window": 7}, "11111010"),
    ({"model_type": "cwm", "sliding_window": 7}, "01110111"),
    ({"model_type": "modernbert", "local_attention": 14}, "01101101"),
    ({"model_type": "laguna", "sliding_window": 7}, "00000000"),
    ({"model_type": "ministral", "sliding_window": 7}, "11111111"),
    ({"model_type": "recurrent_gemma", "attention_window_size": 7}, "00100100"),
]


@pytest.mark.parametrize(("config", "expected"), WINDOWS, ids=[f"{c['model_type']}-{i}" for i, (c, _) in enumerate(WINDOWS)])
def test_layers_with_a_window(config: dict[str, Any], expected: str) -> None:
    assert layers_of(config, "text mask") == expected
    for entry in from_config({**SIZES, **config}).get("text mask", ()):
        assert entry is None or (entry.operation, (entry.options or {})["window"]) == ("sliding_window", 7)


def test_windows_are_counted_as_the_model_counts() -> None:
    def options(**config: Any) -> Any:
        return next(entry for entry in from_config({**SIZES, **config})["text mask"] if entry is not None).options

    assert options(model_type="gemma3_text", sliding_window=512) == {"window": 512, **CAUSAL}
    assert options(model_type="gemma3_text", sliding_window=512, use_bidirectional_attention=True) == {"window": 256, **BOTH}
    assert options(model_type="modernbert", local_attention=128) == {"window": 64, **BOTH}
    assert options(model_type="modernbert-decoder", local_attention=128) == {"window": 64, **CAUSAL}
    assert options(model_type="llama4_text", attention_chunk_size=32) == {"chunk_size": 32, "sides": "causal"}


def test_temperatures() -> None:
    tuned = {"model_type": "llama4_text", "attn_scale": 0.2, "floor_scale": 100}
    assert layers_of(tuned, "text temperature") == "00010001"  # those that do not rotate
    assert layers_of(tuned, "text mask") == "11101110"
    (found,) = {
        str(entry): entry for entry in from_config({**SIZES, **tuned})["text temperature"] if entry is not None
    }.values()
    assert found == ("attention_temperature", {"form": "steps", "beta": 0.2, "original_length": 100, "offset": 1})
    assert layers_of({**tuned, "attn_temperature_tuning": False}, "text temperature") == "00000000"
    rope = {**YARN, "llama_4_scaling_beta": 0.1}
    for key in ("rope_parameters", "rope_scaling"):
        every = from_config({**SIZES, "model_type": "ministral3", key: rope})["text temperature"]
        assert every == [("attention_temperature", {"form": "steps", "beta": 0.1, "original_length": 4096, "offset": 0})]
    assert "text temperature" not in from_config({**SIZES, "model_type": "ministral3", "rope_parameters": YARN})
    learned = from_config({"model_type": "mistral_large4_text"})["text temperature"]
    assert learned == [("learned_logn_scale", {})]


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        (YARN | {"mscale_all_dim": 1.0}, 0.1352337788608801),  # transformers 5.23, run
        (YARN | {"mscale_all_dim": 0}, 0.0721687836487032),
        ({"rope_type": "linear", "rope_theta": 1e4, "factor": 40.0, "mscale_all_dim": 1.0}, 0.1352337788608801),
        ({"rope_type": "default", "rope_theta": 1e4}, 0.0721687836487032),
    ],
)
def test_scale_of_latent_attention(rope: dict[str, Any], expected: float) -> None:
    found = from_config({"model_type": "deepseek_v3", **MLA, "rope_parameters": rope})["text scale"]
    (entry,) = found
    assert entry is not None
    assert entry.operation == "mla_logits"
    assert abs((entry.options or {})["scale"] - expected) < 1e-15


def test_scales_sinks_and_values() -> None:
    assert from_config({**SIZES, "model_type": "granite", "attention_multiplier": 0.25})["text scale"] == [
        ("attention", {"scale": 0.25})
    ]
    assert from_config({**SIZES, "model_type": "gemma2", "query_pre_attn_scalar": 64})["text scale"] == [
        ("attention", {"scale": 0.125})
    ]
    assert from_config({**SIZES, "model_type": "gpt_oss"})["text sinks"] == [("attention", {})]
    mimo = {**SIZES, "model_type": "mimo_v2_flash", "head_dim": 192}
    assert layers_of(mimo, "text sinks") == "01111011"
    assert from_config(mimo)["text values"] == [("values times attention_value_scale", None)]
    v4 = {"model_type": "deepseek_v4", "num_hidden_layers": 2, "compress_ratios": [0, 4], "rope_theta": 1e4}
    found = from_config(v4)
    assert [entry and entry.operation for entry in found["text values"]] == ["rotated_values", "rotated_values"]
    assert [entry and entry.options for entry in found["text values"]] == [entry and entry.options for entry in found["text"]]


def waves(shape: tuple[int, ...], start: float) -> Any:
    return np.sin(0.7 * np.arange(np.prod(shape)).reshape(shape) + start)


@pytest.mark.parametrize(
    ("kind", "row"),  # of BertSelfAttention in transformers 4.57.1, run
    [
        ("relative_key", (0.2442704, -0.1843805, -0.3069476, 0.0800385)),
        ("relative_key_query", (-0.1504080, -0.3353047, -0.6002715, -0.1886953)),
    ],
)
def test_relative_keys_of_bert(kind: str, row: tuple[float, ...]) -> None:
    found = from_config({"model_type": "bert", "position_embedding_type": kind, "max_position_embeddings": 4})
    ((component, (entry,)),) = found.items()
    assert component == "text attention"
    assert entry is not None
    x, places = waves((4, 2), 0.3), np.arange(4)
    q, k, table = x @ waves((2, 2), 1.1).T, x @ waves((2, 2), 2.2).T, waves((7, 2), 2)
    scores = getattr(posref, entry.operation)(q, k, table, places, places, **(entry.options or {}))
    assert np.abs(scores[0] / 2**0.5 - row).max() < 1e-7


def test_relative_keys_of_its_kin() -> None:
    """All of transformers 4.57 that had them. ALBERT and ESM scale the terms in their own way, and say so."""
    assert from_config({"model_type": "bert", "position_embedding_type": "absolute"}) == from_config({"model_type": "bert"})
    kin = [name for name, row in model_table().items() if "relative_key_query" in str(row)]
    assert len(kin) == 25
    for name in kin:
        given = {"model_type": name, "position_embedding_type": "relative_key_query", "max_position_embeddings": 9}
        found = from_config(given)
        (entry,) = (e for entries in found.values() for e in entries if e is not None and e.operation == "shaw_scores")
        assert entry.options == {"left": 8, "right": 8, "order": "query_minus_key", "terms": "query_and_key"}
        assert set(entry.conventions) == {"albert": {"key_table"}, "esm": {"q"}}.get(name, set())
        assert (found.get("text") == [("learned", {"offset": 0})]) == (name == "bert-generation")  # which adds both
    with pytest.raises(ValueError, match=r"^from_config: config\['position_embedding_type'\] must be one of"):
        from_config({"model_type": "bert", "position_embedding_type": "rotary"})


def test_vits_has_a_window_of_relative_keys_and_values() -> None:
    window = {"left": 4, "right": 4, "order": "key_minus_query", "outside": "zero"}
    assert from_config({"model_type": "vits"}) == {
        "text": [("shaw_scores", window)],
        "text values": [("shaw_values", window)],
    }
    assert from_config({"model_type": "vits", "window_size": None}) == {"text": [None]}


def test_a_model_without_them_has_no_such_component() -> None:
    assert from_config({**SIZES, "model_type": "llama"}).keys() == {"text"}


def test_options_can_be_given_to_the_operations() -> None:
    """What every default configuration says of a mask, a temperature or a scale has the names that posref's operations have."""
    seen = set()
    for name, row in model_table().items():
        for given in row.get("rows", ()):
            assert given.get("on", "all") in ON
            operation = given["operation"]
            if operation in REGISTRY and given["component"].split()[-1] in ("mask", "temperature", "scale"):
                assert set(given.get("options", {})) <= set(REGISTRY[operation].domains), name
                seen.add(operation)
    assert seen >= {"sliding_window", "chunked_window", "attention_temperature", "learned_logn_scale", "attention"}
