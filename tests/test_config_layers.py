"""Layers that do not rotate, or have a base of their own: rope_from_config with the number of a layer."""

from typing import Any

import pytest

from posref import rope_from_config

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "head_dim": 16}
KINDS = ["sliding_attention", "full_attention"] * 3


def none(config: dict[str, Any]) -> list[int]:
    """Return the layers that do not rotate."""
    whole = {"num_hidden_layers": 12, **SIZES, **config}
    return [layer for layer in range(whole["num_hidden_layers"]) if rope_from_config(whole, layer=layer) is None]


@pytest.mark.parametrize(
    ("config", "layers"),
    [
        ({"model_type": "llama"}, []),
        ({"model_type": "smollm3"}, [3, 7, 11]),
        ({"model_type": "smollm3", "no_rope_layers": [0, 1, 1], "num_hidden_layers": 3}, [0]),
        ({"model_type": "llama4_text", "no_rope_layers": []}, [3, 7, 11]),
        ({"model_type": "llama4_text", "no_rope_layer_interval": 5}, [4, 9]),
        ({"model_type": "cohere2"}, [3, 7, 11]),
        ({"model_type": "cohere2", "layer_types": KINDS * 2}, [1, 3, 5, 7, 9, 11]),
        ({"model_type": "cohere2", "sliding_window": None}, list(range(12))),
        ({"model_type": "exaone4"}, [3, 7, 11]),
        ({"model_type": "exaone4", "sliding_window": None}, []),
        ({"model_type": "cohere2_moe", "first_k_dense_replace": 2}, [5, 9]),
        ({"model_type": "cohere2_moe", "first_k_dense_replace": 2, "prefix_dense_sliding_window_pattern": 2}, [1, 5, 9]),
        ({"model_type": "kolibri1"}, [4, 9]),
        ({"model_type": "flint"}, [0, 1, 5, 9, 11]),
        ({"model_type": "beam", "num_hidden_layers": 8}, [5, 7]),
        ({"model_type": "muse_glimmer_text"}, [3, 7, 11]),
        ({"model_type": "muse_glimmer_text", "num_hidden_layers": 5}, [0, 4]),
        ({"model_type": "granite_swa"}, []),
        ({"model_type": "granite_swa", "layer_rope_theta": [0, 5e5, 0], "num_hidden_layers": 3}, [0, 2]),
        ({"model_type": "qwen3_next", "num_hidden_layers": 5}, [0, 1, 2, 4]),
        ({"model_type": "lfm2", "layer_types": ["conv", "full_attention"], "num_hidden_layers": 2}, [0]),
        ({"model_type": "jamba"}, list(range(12))),
    ],
)
def test_layers_that_do_not_rotate(config: dict[str, Any], layers: list[int]) -> None:
    assert none(config) == layers


def test_layers_may_have_bases_of_their_own() -> None:
    config = {"model_type": "granite_swa", "num_hidden_layers": 3, **SIZES, "layer_rope_theta": [5e5, 1e4, 0]}
    assert [(found or {}).get("base") for found in (rope_from_config(config, layer=n) for n in range(3))] == [5e5, 1e4, None]
    with pytest.raises(ValueError, match=r"layer must be given, .* \[10000\.0, 500000\.0\]"):
        rope_from_config(config)
    assert rope_from_config(config | {"layer_rope_theta": [5e5, 0, 5e5]})["base"] == 5e5


def test_layers_have_the_parameters_of_their_type() -> None:
    config = {"model_type": "gemma3_text", "num_hidden_layers": 6, **SIZES}
    found = [rope_from_config(config, layer=layer) for layer in range(6)]
    full, sliding = (rope_from_config(config, layer_type=kind) for kind in ("full_attention", "sliding_attention"))
    assert found == 5 * [sliding] + [full]


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        ({"model_type": "smollm3"}, {"layer": 12}, "layer must be an int from 0 to 11, the last layer of this config; got 12."),
        ({"model_type": "smollm3"}, {"layer": True}, "layer must be an int from 0 to 11"),
        ({"model_type": "smollm3", "num_hidden_layers": None}, {"layer": 0}, "the file must have num_hidden_layers or"),
        ({"model_type": "gemma3_text"}, {"layer": 0, "layer_type": "full_attention"}, "layer must be given without layer_type"),
        ({"model_type": "smollm3", "no_rope_layers": [1, 0, 1]}, {"layer": 0}, "no_rope_layers must have num_hidden_layers "
         "entries, 1 where a layer rotates; got 3 for 12."),
        ({"model_type": "granite_swa", "layer_rope_theta": [1e4]}, {"layer": 5}, "layer_rope_theta must have an entry for"),
        ({"model_type": "granite_swa", "layer_rope_theta": ["1e4"]}, {"layer": 0}, "layer_rope_theta must be a list of"),
        ({"model_type": "granite_swa", "layer_rope_theta": [0, 0]}, {}, "layer_rope_theta must have a base above 0"),
        ({"model_type": "cohere2", "layer_types": ["full_attention"]}, {"layer": 1}, "layer_types must be a list of 12 words"),
        ({"model_type": "jamba"}, {}, "must describe a model with rotary embeddings; got 'jamba', where no layer rotates."),
        ({"model_type": "kimi_linear"}, {}, "got 'kimi_linear', where no layer rotates."),
    ],
)  # fmt: skip
def test_a_layer_that_cannot_be_read_is_refused(config: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^rope_from_config: ") as caught:
        rope_from_config({"num_hidden_layers": 12, **SIZES, **config}, **options)
    assert message in str(caught.value)
