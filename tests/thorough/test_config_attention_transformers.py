"""Masks that from_config tells, against attention weights of small models of transformers with random weights."""

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModel

import posref
from posref import from_config

LAYERS, TOKENS, WINDOW = 8, 14, 3
SMALL = {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "num_key_value_heads": 2,
    "head_dim": 16, "vocab_size": 64, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "moe_intermediate_size": 16, "num_experts": 2, "num_local_experts": 2, "num_experts_per_tok": 1, "n_routed_experts": 2,
    "sliding_window": WINDOW, "use_sliding_window": True, "max_window_layers": 5, "attention_chunk_size": 5,
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "modernbert": {"local_attention": 2 * WINDOW},
    "modernbert-decoder": {"local_attention": 2 * WINDOW},
    "gemma3_text": {"query_pre_attn_scalar": 16},
    "qwen2_moe": {"decoder_sparse_step": 100, "shared_expert_intermediate_size": 16},
    "gemma2": {"query_pre_attn_scalar": 16},
    "recurrent_gemma": {"attention_window_size": WINDOW, "lru_width": 32},
    "llama4_text": {"intermediate_size_mlp": 32, "interleave_moe_layer_step": 100},
    "phi3": {"rope_scaling": None},
    "gpt_neo": {
        "num_layers": LAYERS,
        "num_heads": 2,
        "window_size": WINDOW,
        "attention_types": [[["global", "local"], 3], [["local"], 2]],
    },
    "dots3_note_text": {"first_k_dense_replace": LAYERS},
}
TYPES = [
    *("mistral", "mixtral", "phi3", "starcoder2", "ministral", "ministral3", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe"),
    *("smollm3", "gemma2", "gemma3_text", "vaultgemma", "olmo3", "cohere2", "exaone4", "cwm", "modernbert"),
    *("modernbert-decoder", "llama4_text", "gpt_oss", "laguna", "mellum", "afmoe", "granite_swa", "kolibri1", "flint"),
    *("gpt_neo", "dots3_note_text"),
]


def seen(name: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The configuration of a small model, and which keys each query of each layer attends to."""
    kind = CONFIG_MAPPING[name]
    given = {**SMALL, **OWN.get(name, {})}
    given = {key: value for key, value in given.items() if key in kind.__dataclass_fields__ or key in OWN.get(name, {})}
    config = kind(**given)
    torch.manual_seed(0)
    model = AutoModel.from_config(config, attn_implementation="eager").eval().float()
    with torch.no_grad():
        out = model(input_ids=torch.randint(3, 60, (1, TOKENS)), output_attentions=True, use_cache=False)
    weights = [w for w in out.attentions if w is not None]
    return {**config.to_dict(), "model_type": name}, [w[0].double().numpy().max(0)[:, :TOKENS] > 0 for w in weights]


@pytest.mark.parametrize("name", TYPES)
def test_masks_are_those_of_the_model(name: str) -> None:
    config, attended = seen(name)
    entries = from_config(config).get("text mask", [None])
    entries = entries * LAYERS if len(entries) == 1 else entries
    assert len(attended) == len(entries) == LAYERS
    places = np.arange(TOKENS)
    both = name == "modernbert"
    full = np.ones((TOKENS, TOKENS), dtype=bool) if both else places[None, :] <= places[:, None]
    for layer, (entry, theirs) in enumerate(zip(entries, attended, strict=True)):
        ours = full
        if entry is not None:
            ours = np.asarray(getattr(posref, entry.operation)(places, places, **(entry.options or {}))).reshape(TOKENS, TOKENS)
        assert np.array_equal(theirs, ours & full), (layer, entry)


ALONE = {"blt_patcher": ("blt", "BltPatcher"), "mimi": ("mimi", "MimiTransformerModel")}


@pytest.mark.parametrize("name", ALONE)
def test_a_mask_reaches_as_far_as_a_change_of_the_first_token(name: str) -> None:
    """Models that AutoModel does not build, and that return no weights: one layer, and which outputs move."""
    directory, class_name = ALONE[name]
    kind = CONFIG_MAPPING[name]
    given = {key: value for key, value in (SMALL | {"num_hidden_layers": 1}).items() if key in kind.__dataclass_fields__}
    config = kind(**given, attn_implementation="eager")  # without a word masks are passed over
    torch.manual_seed(0)
    model = getattr(import_module(f"transformers.models.{directory}.modeling_{directory}"), class_name)(config).eval().double()
    tokens = name == "blt_patcher"
    x = torch.randint(3, 60, (1, TOKENS)) if tokens else torch.randn(1, TOKENS, 32, dtype=torch.float64)
    other = x.clone()
    other[0, 0] = (x[0, 0] + 7) % 60 if tokens else torch.randn(32)
    with torch.no_grad():
        before, after = (
            next(t for t in model(each, use_cache=False).values() if t is not None and t.ndim > 1) if not tokens
            else next(t for t in model(each, use_cache=False) if t is not None and t.ndim > 1)
            for each in (x, other)
        )  # fmt: skip
    moved = (before - after).abs().reshape(TOKENS, -1).amax(-1) > 0
    (entry,) = next(
        entries for part, entries in from_config({**config.to_dict(), "model_type": name}).items() if "mask" in part
    )
    assert entry is not None
    places = np.arange(TOKENS)
    ours = np.asarray(getattr(posref, entry.operation)(places, places, **(entry.options or {}))).reshape(TOKENS, TOKENS)
    assert moved.tolist() == ours[:, 0].tolist()


@pytest.mark.parametrize("window", [1, 2, 7, 8])
def test_a_window_around_the_query_is_that_of_the_code(window: int) -> None:
    from transformers.models.t5gemma2.modeling_t5gemma2 import sliding_window_mask_function

    (entry, *_) = from_config({"model_type": "t5gemma2_text", "sliding_window": window})["text mask"]
    assert entry is not None
    places, ahead = np.arange(TOKENS), window // 2
    assert str(ahead) in entry.conventions.get("q_positions", "0")
    ours = posref.sliding_window(places + ahead, places, **(entry.options or {}))
    theirs = sliding_window_mask_function(window, is_causal=False)
    assert np.array_equal(ours, [[bool(theirs(0, 0, q, k)) for k in range(TOKENS)] for q in range(TOKENS)])


ONE = ("t5", "mt5", "umt5", "longt5", "switch_transformers", "pop2piano", "pix2struct_text_model", "dia_encoder", "dia_decoder")


@pytest.mark.parametrize("name", ONE)
def test_logits_that_are_not_scaled_are_said_so(name: str) -> None:
    directory = name.removesuffix("_text_model").removesuffix("_encoder").removesuffix("_decoder")
    code = inspect.getsource(import_module(f"transformers.models.{directory}.modeling_{directory}"))
    assert "self.scaling = 1" in code
    assert "self.scaling = self.head_dim" not in code
    scales = {part: entries for part, entries in from_config({"model_type": name}).items() if part.endswith(" scale")}
    assert scales
    assert all(entry is not None and entry.options == {"scale": 1.0} for entries in scales.values() for entry in entries)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("by_layer", [True, False])
@pytest.mark.parametrize("name", ["gpt2", "gpt-sw3"])
def test_scales_of_gpt2_are_those_of_its_layers(name: str, scaled: bool, by_layer: bool) -> None:
    from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

    more = {"scale_attn_weights": scaled, "scale_attn_by_inverse_layer_idx": by_layer}
    config = CONFIG_MAPPING["gpt2"](n_embd=32, n_head=2, n_layer=3, attn_implementation="eager", **more)
    torch.manual_seed(0)
    x = torch.randn(1, 2, 32, dtype=torch.float64)
    entries = from_config({**config.to_dict(), "model_type": name}).get("text scale", [None])
    assert (entries == [None]) is (scaled and not by_layer)
    for layer, entry in enumerate(entries * 3 if len(entries) == 1 else entries):
        attention = GPT2Attention(config, layer_idx=layer).eval().double()
        with torch.no_grad():
            q, k, _ = attention.c_attn(x).split(32, dim=-1)
            weights = attention(x, output_attentions=True)[1]
        q, k = (t.reshape(1, 2, 2, 16).transpose(1, 2) for t in (q, k))
        logits = (q @ k.mT)[0, :, 1] * (16**-0.5 if entry is None else (entry.options or {})["scale"])
        torch.testing.assert_close(weights[0, :, 1], logits.softmax(-1), rtol=1e-6, atol=1e-6)


LATENT = (
    *("deepseek_v2", "deepseek_v3", "deepseek_v32", "axk1", "glm4_moe_lite", "glm_moe_dsa", "longcat_flash", "minicpm3"),
    "mistral4",
)
SCALED = (
    *("granite", "granitemoe", "gemma2", "gemma3_text", "vaultgemma", "gemma3n_text", "gemma4_text", "inkling_text"),
    *LATENT,
)
YARN = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "original_max_position_embeddings": 64, "mscale": 1.0,
    "mscale_all_dim": 0.7, "beta_fast": 32.0, "beta_slow": 1.0, "llama_4_scaling_beta": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", SCALED)
def test_scales_are_those_of_the_model(name: str, scaled: bool) -> None:
    """The scale of every attention module of a model without weights."""
    kind = CONFIG_MAPPING[name]
    given = {"attention_multiplier": 0.25, "query_pre_attn_scalar": 64, "num_hidden_layers": 2}
    given |= {"num_hidden_layers": 35} if name == "gemma3n_text" else {}  # its last layers share the keys of others
    given |= {"rope_parameters": YARN} if scaled and name in LATENT else {}
    config = kind(**{key: value for key, value in given.items() if key in kind.__dataclass_fields__})
    with torch.device("meta"):
        model = AutoModel.from_config(config)
    theirs = {float(m.scaling) for n, m in model.named_modules() if "attn" in n and hasattr(m, "scaling")}
    (entry,) = from_config({**config.to_dict(), "model_type": name})["text scale"]
    assert entry is not None
    assert theirs
    assert np.allclose(sorted(theirs), (entry.options or {})["scale"], rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder", "exaone4_5_vision"])
def test_windows_of_an_image_are_those_of_the_code(name: str) -> None:
    from transformers.vision_utils import get_vision_window_index

    rows, columns = 20, 28
    order, ends = get_vision_window_index(torch.tensor([[1, rows, columns]]), 2, window_size=112, patch_size=14)
    windows = torch.zeros(rows * columns // 4, dtype=torch.long)
    for number, (start, end) in enumerate(zip(ends[:-1] // 4, ends[1:] // 4, strict=True)):
        windows[order[start:end]] = number
    theirs = windows.reshape(rows // 2, columns // 2).repeat_interleave(2, 0).repeat_interleave(2, 1).flatten().numpy()
    entries = from_config({"model_type": name})["vision mask"]
    assert [n for n, entry in enumerate(entries) if entry is None] == [7, 15, 23, 31]
    entry = entries[0]
    assert entry is not None
    places = np.divmod(np.arange(rows * columns), columns)
    ours = np.logical_and(*(posref.chunked_window(at, at, **(entry.options or {})) for at in places))
    assert np.array_equal(ours, theirs[:, None] == theirs)


def test_windows_of_sam_are_those_of_its_layers() -> None:
    from transformers.models.sam.modeling_sam import SamVisionEncoder

    config = CONFIG_MAPPING["sam_vision_model"](hidden_size=32, num_attention_heads=2, num_hidden_layers=4, image_size=64)
    entries = from_config({**config.to_dict(), "global_attn_indexes": [1, 3]})["vision mask"]
    config.global_attn_indexes = [1, 3]
    sizes = [layer.window_size for layer in SamVisionEncoder(config).layers]
    assert [entry and (entry.options or {})["chunk_size"] for entry in entries] == [size or None for size in sizes]


@pytest.mark.parametrize(("left", "right"), [(13, 0), (5, 2), (1, 0)])
def test_the_window_of_gemma3n_is_that_of_its_buffer(left: int, right: int) -> None:
    from transformers.models.gemma3n.modeling_gemma3n import Gemma3nAudioAttention

    sizes = {"conf_attention_context_left": left, "conf_attention_context_right": right}
    config = CONFIG_MAPPING["gemma3n_audio"](hidden_size=32, conf_num_attention_heads=2, **sizes)
    (entry,) = from_config(config.to_dict())["audio mask"]
    assert entry is not None
    theirs = Gemma3nAudioAttention(config).create_local_causal_valid_mask().numpy()
    queries, keys = np.arange(theirs.shape[0]), np.arange(theirs.shape[1]) - (left - 1)
    assert np.array_equal(theirs, posref.sliding_window(queries + right, keys, **(entry.options or {})))


@pytest.mark.parametrize("name", ["zamba", "zamba2"])
def test_scales_of_zamba_are_those_of_its_attention(name: str) -> None:
    config = CONFIG_MAPPING[name](hidden_size=64, num_attention_heads=4)
    module = import_module(f"transformers.models.{name}.modeling_{name}")
    attention = getattr(module, f"{name.capitalize()}Attention")(config, layer_idx=0)
    (entry,) = from_config(config.to_dict())["text scale"]
    assert (entry.options or {})["scale"] == pytest.approx(attention.scaling, rel=1e-12)


def test_windows_of_hiera_are_those_of_its_blocks() -> None:
    from transformers.models.sam2.modeling_sam2 import Sam2HieraDetModel

    config = CONFIG_MAPPING["sam2_hiera_det_model"](embed_dim_per_stage=[8, 16, 32, 64], hidden_size=8)
    sizes = [block.window_size for block in Sam2HieraDetModel(config).blocks]
    entries = from_config({"model_type": "sam2_hiera_det_model"})["vision mask"]
    assert [entry and (entry.options or {})["chunk_size"] for entry in entries] == [size or None for size in sizes]
