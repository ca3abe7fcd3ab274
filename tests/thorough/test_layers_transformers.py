"""Which layers rotate: as transformers' own models do, small ones with random weights."""

import importlib
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModel

from posref import rope_from_config

SMALL = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32,
    "moe_intermediate_size": 32, "num_hidden_layers": 10, "vocab_size": 64, "num_experts": 4, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 1, "shared_expert_intermediate_size": 32, "intermediate_size_mlp": 32,
    "sliding_window": 4, "n_group": 1, "topk_group": 1, "max_position_embeddings": 64, "linear_num_key_heads": 2,
    "linear_num_value_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
KINDS = ["full_attention", "sliding_attention"] * 5
CASES: list[tuple[str, dict[str, Any]]] = [
    *((model, {}) for model in ("llama4_text", "smollm3", "cohere2", "afmoe", "cohere2_moe", "exaone4", "exaone_moe")),
    *((model, {}) for model in ("kolibri1", "flint", "beam", "granite_swa", "granitemoe_swa", "muse_glimmer_text")),
    ("muse_spark_text", {}),
    ("olmo_hybrid", {}),
    ("olmo_hybrid", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}),
    ("olmo_hybrid", {"rope_parameters": {"rope_theta": None}}),
    ("olmo_hybrid", {"rope_parameters": None}),
    ("llama4_text", {"no_rope_layers": [1, 0] * 5}),
    ("smollm3", {"no_rope_layer_interval": 3}),
    ("cohere2", {"layer_types": KINDS}),
    ("cohere2_moe", {"first_k_dense_replace": 2}),
    ("afmoe", {"global_attn_every_n_layers": 3}),
    ("exaone4", {"layer_types": KINDS}),
    ("granite_swa", {"layer_rope_theta": [0, 5e5, 1e4, 0, 5e5, 1e4, 0, 5e5, 1e4, 0]}),
    ("muse_glimmer_text", {"num_hidden_layers": 9}),
    ("muse_spark_text", {"layer_rope_theta": [1e4] * 9 + [0]}),
    ("recurrent_gemma", {"num_key_value_heads": 1, "lru_width": 64}),
]


def counted(function: Any, seen: set[int], now: list[int]) -> Any:
    """Return a function that notes in which layer it is called."""

    def noting(*args: Any, **rest: Any) -> Any:
        seen.add(now[0])
        return function(*args, **rest)

    return noting


def rotating(model_type: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], list[bool]]:
    """Return a small configuration as a file, and which layers of its model call the rotary function."""
    known = CONFIG_MAPPING[model_type]().to_dict()
    config = CONFIG_MAPPING[model_type](**{name: value for name, value in SMALL.items() if name in known} | options)
    model = AutoModel.from_config(config).eval()
    module = importlib.import_module(type(model).__module__)
    seen, now = set[int](), [0]
    for number, layer in enumerate(model.layers):
        layer.register_forward_pre_hook(lambda own, inputs, number=number: now.__setitem__(0, number))
    for name in [name for name in dir(module) if name.startswith("apply_rotary")]:
        monkeypatch.setattr(module, name, counted(getattr(module, name), seen, now))
    with torch.no_grad():
        model(input_ids=torch.arange(6)[None])
    return config.to_dict(), [number in seen for number in range(config.num_hidden_layers)]


@pytest.mark.parametrize(("model_type", "options"), CASES, ids=[f"{m}-{k}" for k, (m, _) in enumerate(CASES)])
def test_layers_rotate_as_in_transformers(model_type: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    config, theirs = rotating(model_type, options, monkeypatch)
    read = [rope_from_config(config, layer=layer) for layer in range(len(theirs))]
    assert [arguments is not None for arguments in read] == theirs
    bases = config.get("layer_rope_theta") or []
    if "muse" in model_type:  # its one table has one base, whatever the entries
        bases = [base and config["rope_parameters"]["rope_theta"] for base in bases]
    assert [arguments["base"] for arguments in read if arguments] == [base for base in bases if base] or not bases
    without = {name: value for name, value in config.items() if name not in options and name not in DERIVED}
    assert [rope_from_config(without | options, layer=layer) for layer in range(len(theirs))] == read


V4 = {"sliding_attention": "main", "compressed_sparse_attention": "compress", "heavily_compressed_attention": "compress"}
DERIVED = ("layer_types", "no_rope_layers", "layer_rope_theta", "mlp_layer_types")  # what the classes fill in


@pytest.mark.parametrize(
    "model_type",
    ["gemma3_text", "gemma3n_text", "gemma4_text", "olmo3", "modernbert", "mimo_v2_flash", "lfm3", "t5gemma2_text", "ultrabert",
     "qwen3_next", "laguna", "mellum", "deepseek_v4"],
)  # fmt: skip
def test_layers_have_the_type_that_transformers_gives_them(model_type: str) -> None:
    """Each layer's arguments are those of its type, with the list of types in the file and without it."""
    config = CONFIG_MAPPING[model_type]().to_dict()
    count = config["num_hidden_layers"]
    bare = {name: value for name, value in config.items() if name not in ("layer_types", "per_layer_config")}
    for layer, kind in enumerate(config["layer_types"][:count]):
        found = rope_from_config(config, layer=layer)
        if model_type != "deepseek_v4":
            assert rope_from_config(bare, layer=layer) == found
        if kind in ("linear_attention", "conv"):
            assert found is None
        elif any(isinstance(value, dict) for value in (config.get("rope_parameters") or {}).values()):
            assert found == rope_from_config(config, layer_type=V4.get(kind, kind) if model_type == "deepseek_v4" else kind)
        else:
            assert found == rope_from_config(config)
