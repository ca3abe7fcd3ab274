"""
Small random models of transformers, built from configuration classes.

    python tests/loaded_models.py            # every language model that builds small, against its own file
    python tests/loaded_models.py llama opt  # these alone
    python tests/loaded_models.py --sdpa --bfloat16

A line for each says how many differences are reported (there must be none), and what was not judged.
"""

import contextlib
import copy
import math
import re
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

from posref.models.model_types import model_table
from posref.testing import assert_model

TINY: dict[str, Any] = {
    "vocab_size": 120, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "n_embd": 64, "n_head": 4, "n_layer": 4, "d_model": 64, "d_ff": 64, "d_kv": 16,
    "num_heads": 4, "num_layers": 4, "ffn_dim": 64, "n_layers": 4, "n_heads": 4, "num_experts": 4, "n_routed_experts": 4,
    "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "q_lora_rank": 32, "kv_lora_rank": 32,
    "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "shared_expert_intermediate_size": 16, "sliding_window": 9, "encoder_layers": 2, "decoder_layers": 2, "ffn_hidden_size": 64,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "embedding_size": 64, "word_embed_proj_dim": 64, "moe_topk": 2, "index_head_dim": 32, "index_n_heads": 2, "index_topk": 64,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "num_mem_blocks": 1, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 1, "n_inner": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0, "global_head_dim": 16,
    "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 120, "lru_width": 64, "mlp_hidden_size": 64, "dim_ff": 64,
}  # fmt: skip
BY_TYPE: dict[str, dict[str, Any]] = {
    "gptj": {"rotary_dim": 8},
    "codegen": {"rotary_dim": 8},
    "modernbert-decoder": {"local_attention": 18},
    "gpt_neo": {"num_layers": 4, "attention_types": [[["global", "local"], 2]], "window_size": 9},
    "minimax_m3_vl_text": {"rotary_dim": 16},
    "mistral4": {"head_dim": 32},
    "mimo_v2_flash": {"partial_rotary_factor": 0.5},
    "recurrent_gemma": {"attention_window_size": 9},
    "bamba": {"attn_layer_indices": [1, 3]},
    "dots1": {"n_shared_experts": 1},
    "falcon_h1": {"mamba_d_ssm": 128},
}
LATENT = {"num_key_value_heads": 4}  # of models whose heads share a latent vector


def small_config(model_type: str, **changes: Any) -> Any:
    """Return a small configuration of a type: the default with the sizes of TINY that its class has."""
    kind = CONFIG_MAPPING[model_type]
    default = kind()
    known = {*vars(default), *getattr(kind, "attribute_map", {})}
    sizes = {name: value for name, value in TINY.items() if name in known}
    if "kv_lora_rank" in known:
        sizes |= {name: value for name, value in LATENT.items() if name in known}
    for part, inner in getattr(kind, "sub_configs", {}).items():
        if getattr(inner, "model_type", "") in CONFIG_MAPPING and getattr(default, part, None) is not None:
            sizes[part] = small_config(inner.model_type).to_dict()
    mrope = model_table().get(model_type, {}).get("rope", {}).get("mrope")
    if mrope:
        rope = getattr(default, "rope_parameters", None) or {"rope_type": "default", "rope_theta": 1e6}
        own = {"mrope_section": of_pairs(mrope["sections"], 8), "mrope_interleaved": mrope["arrangement"] == "interleaved"}
        sizes["rope_parameters"] = {**rope, **own, "partial_rotary_factor": 1.0}
    sizes |= BY_TYPE.get(model_type, {})
    while True:
        try:
            return kind(**{**sizes, **changes})
        except Exception as error:  # a field that has a list where others have a number
            field = re.search(r"^Validation error for field '(\w+)'", str(error))
            if field is None or sizes.pop(field[1], None) is None:
                raise


def of_pairs(sections: list[int], pairs: int) -> list[int]:
    """Return sections in nearly the same proportion that add up to another number of pairs."""
    first, second = (math.ceil(pairs * section / sum(sections)) for section in sections[:2])
    return [first, second, pairs - first - second]


def small_model(
    config: Any, attention: str = "eager", dtype: torch.dtype = torch.float32, auto: str = "AutoModelForCausalLM"
) -> Any:
    """Return a model with random weights whose attention is not uniform, as a load would give it."""
    config._attn_implementation = attention
    with torch.device("meta"):
        size = sum(x.numel() for x in getattr(transformers, auto).from_config(copy.deepcopy(config)).parameters())
    if size > LARGEST:
        raise ValueError(f"{size:.1e} parameters")
    torch.manual_seed(0)
    model = getattr(transformers, auto).from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.15)
        else:
            weight.data += 0.05 * torch.randn_like(weight)
    return cast(model, dtype)


def cast(model: Any, dtype: torch.dtype) -> Any:
    """Cast weights as from_pretrained does: buffers keep their dtype."""
    for weight in model.parameters():
        weight.data = weight.data.to(dtype)
    return model


LARGEST = 2e7  # parameters of a model that is still small
AUTOS = {
    "AutoModelForCausalLM": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "AutoModelForImageTextToText": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    "AutoModelForSeq2SeqLM": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "AutoModelForMaskedLM": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
}
TYPES = {name: auto for auto, names in reversed(AUTOS.items()) for name in sorted(names)}  # a type once, the first way


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"{seconds} seconds")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def main(types: list[str]) -> None:
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    attention = "sdpa" if "--sdpa" in types else "eager"
    dtype = torch.bfloat16 if "--bfloat16" in types else torch.float32
    types = [name for name in types if not name.startswith("--")]
    counts = {"clean": 0, "differs": 0, "not built": 0, "not judged": 0}
    for model_type, auto in TYPES.items():
        if types and model_type not in types:
            continue
        try:
            with limited(120):
                config = small_config(model_type)
                file = config.to_dict()
                model = small_model(config, attention, dtype, auto)
        except Exception as error:
            counts["not built"] += 1
            print(f"{model_type}: not built: {type(error).__name__}: {str(error)[:100]}", flush=True)
            continue
        began = time.process_time()
        try:
            with limited(240):
                report = assert_model(model, file)
            rotations = sum(what == "rotation" for _, _, what in report.judged)
            kind, text = "clean", f"{rotations} rotations, {len(report.judged)} judged"
            text += "".join(f"\n    {line}" for line in str(report).splitlines() if line.startswith("not judged"))
        except AssertionError as error:
            kind, text = "differs", "\n    " + str(error).replace("\n", "\n    ")
        except Exception as error:
            kind, text = "not judged", f"{type(error).__name__}: {str(error)[:300]}"
        counts[kind] += 1
        print(f"{model_type}: {kind}, {time.process_time() - began:.2f} s: {text}", flush=True)
    print(counts)


if __name__ == "__main__":
    main(sys.argv[1:])
