"""What a config.json says of attention besides rotations: masks, temperatures, scales, sinks and values, by layer."""

from typing import Any

import numpy as np
import pytest

import posref
from posref import from_config
from posref.models.layers import ON
from posref.models.model_types import model_table
from posref.spec import REGISTRY


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


def test_options_can_be_given_to_the_operations() -> None:
    """What every default configuration says of a mask, a temperature or a scale has the names that posref's operations have."""
    seen = set()
    for name, row in model_table().items():
        for given in row.get("rows", ()):
            assert given.get("on", "all") in ON
            operation = given["operation"]
            if operation in REGISTRY and given["component"].split()[-1] in ("mask", "temperature", "scale", "softcap"):
                assert set(given.get("options", {})) <= set(REGISTRY[operation].domains), name
                seen.add(operation)
    assert seen >= {"sliding_window", "chunked_window", "attention_temperature", "learned_logn_scale", "attention"}


def test_softcaps_are_those_that_the_code_applies() -> None:
    """Gemma 3 and T5Gemma 2 store the key, and no call of theirs passes it (gemma3, 323; t5gemma2, 261)."""
    for name in ("gemma2", "vaultgemma", "videoprism_text_model"):
        part = {"model_type": name}
        for given, found in (({}, 50.0), ({"attn_logit_softcapping": 30}, 30.0), ({"attn_logit_softcapping": None}, None)):
            (entry,) = from_config({**part, **given}).get("text softcap", [None])
            assert (entry and entry.options) == (found and {"softcap": found})
    both = from_config({"model_type": "t5gemma"})
    assert both["encoder softcap"] == both["decoder softcap"] == [("attention", {"softcap": 50.0})]
    for name in ("gemma3_text", "t5gemma2_decoder"):
        assert "text softcap" not in from_config({"model_type": name, "attn_logit_softcapping": 50.0})


@pytest.mark.parametrize(
    ("file", "component", "sides"),
    [
        ({"model_type": "bert"}, "text", "both"),
        ({"model_type": "bert", "is_decoder": True}, "text", "causal"),
        ({"model_type": "bridgetower_text_model", "is_decoder": True}, "text", "causal"),
        ({"model_type": "blip", "architectures": ["BlipForConditionalGeneration"]}, "text", "causal"),
        ({"model_type": "blip", "architectures": ["BlipForImageTextRetrieval"]}, "text", "both"),
        ({"model_type": "gpt2"}, "text", "causal"),
        ({"model_type": "xlm", "causal": True}, "text", "causal"),
        ({"model_type": "xlnet", "attn_type": "uni"}, "text", "causal"),
        ({"model_type": "pop2piano", "is_decoder": True}, "encoder", "causal"),
        ({"model_type": "opt", "is_causal": False}, "text", "both"),
        ({"model_type": "t5"}, "encoder", "both"),
        ({"model_type": "t5"}, "decoder", "causal"),
        ({"model_type": "siglip_vision_model"}, "vision", "both"),
        ({"model_type": "jamba"}, "text attention", "causal"),  # it has no positions
        ({"model_type": "zamba"}, "text scale", "causal"),
    ],
)
def test_attention_is_causal_or_of_both_sides(file: dict[str, Any], component: str, sides: str) -> None:
    (entry, *_) = from_config(file)[component]
    assert entry.conventions["sides"] == sides


def test_models_without_attention_have_no_sides() -> None:
    for name in ("mamba", "rwkv", "fnet"):
        assert not any(
            entry and "sides" in entry.conventions for found in from_config({"model_type": name}).values() for entry in found
        )


def test_what_funnel_and_hubert_do_by_a_switch_is_said() -> None:
    (entry,) = from_config({"model_type": "funnel"})["text"]
    assert "[CLS] is at 1 - 2**b" in entry.conventions["positions"]
    assert "[CLS]" in entry.conventions["scores"]
    (entry,) = from_config({"model_type": "funnel", "separate_cls": False})["text"]
    assert "scores" not in entry.conventions
    for switch in (False, True):
        (entry,) = from_config({"model_type": "hubert", "conv_pos_batch_norm": switch})["audio"]
        assert ("batch normalisation" in entry.conventions.get("x", "")) is switch


def test_positions_of_compressed_keys_are_said() -> None:
    found = from_config({"model_type": "deepseek_v4", "num_hidden_layers": 2, "compress_ratios": [0, 4], "rope_theta": 10000.0})
    (entry,) = found["compressed keys"]
    assert "i m, the first of its tokens" in entry.conventions["positions"]
