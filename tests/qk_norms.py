"""
Norms of queries and keys, by running the classes of transformers.

    python tests/qk_norms.py            # print the rows of every type, and types that differ from the table
    python tests/qk_norms.py qwen3      # of these alone
    python tests/qk_norms.py --write    # renew posref/models/tables/qk_norms.json

A small model of each type is built from its configuration class and run once. Hooks see in which order an attention module
normalizes and rotates, in which layers, and how wide its norms are. Each norm is then run alone: on one vector with weights of
zeros and of ones, which tells its kind, whether its weights are stored less 1, and its epsilon.

`posref.models.qk_norms` describes the rows.
"""

import contextlib
import copy
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from loaded_models import limited, small_config
from replaced_models import class_of
from rotary_modules import code_of
from transformers import CONFIG_MAPPING

from posref.conformance.loaded.recording import ROTATES
from posref.models.model_types import table

TABLE = Path(__file__).parents[1] / "posref" / "models" / "tables" / "qk_norms.json"
NORM = re.compile(r"^(q|k|qk|query|key)_?(layer_?)?norm$")
SWITCH = re.compile(r"qk.*norm|norm.*qk|normalize_q", re.I)
EPSILON = re.compile(r"(^|_)eps$|epsilon$")
CHANGES: dict[str, dict[str, Any]] = {
    "esmc": {"num_key_value_heads": 4},
    "ernie4_5_vl_moe_text": {"moe_intermediate_size": [16, 16]},
    "diffusion_gemma_text": {"global_head_dim": 16, "top_k_experts": 2},
    "embedding_gemma2_text": {"global_head_dim": 16},
    "gemma3n_text": {"num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "gemma4_text": {"global_head_dim": 16},
    "gemma4_unified_text": {"global_head_dim": 16},
    "dots3_note_vision_encoder": {"per_layer_config": {}, "adapter_in_dim": 64},
    "inkling_text": {"swa_head_dim": 16},
    "nemotron3_5_transcribe_asr_audio": {"num_key_value_heads": 4},
    "nemotron3_5_transcribe_word_timestamp": {"num_key_value_heads": 4, "blank_token_id": 3},
    "qwen4_exp_text": {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 16,
        "indexer_budget": 16,
        "indexer_compress_ratio": 4,
    },
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "zamba2": {"layer_types": ["mamba", "hybrid"] * 2},
}
# Attention of types whose models do not read tokens, or do not build small: it runs alone.
ALONE = {
    "cohere": "CohereAttention",
    "muse_glimmer_assistant": "MuseGlimmerAssistantAttention",
    "nemotron3_5_transcribe_asr_audio": "Nemotron3_5TranscribeAttention",
    "nemotron3_5_transcribe_word_timestamp": "Nemotron3_5TranscribeAttention",
    "qwen3_omni_moe_talker_code_predictor": "Qwen3OmniMoeTalkerCodePredictorAttention",
    "qwen3_omni_moe_talker_text": "Qwen3OmniMoeThinkerTextAttention",
    "qwen4_exp_text": "Qwen4ExpTextAttention",
    "t5gemma2_decoder": "T5Gemma2MergedAttention",
    "t5gemma2_text": "T5Gemma2SelfAttention",
    "timesfm2_5": "TimesFm2_5Attention",
}
WIDE = {"molmo2_text": ("qk_norm_type", "olmo")}  # a key, and its value for norms over all heads together
SCORES = "shaw_scores"
Row = dict[str, Any]


def judged_types() -> list[str]:
    """Return the types whose text rotates by RoPE or M-RoPE, or has scores by distance."""
    rows = table("types")
    scored = [name for name, row in rows.items() if any(one["component"] == "text" and one["operation"] == SCORES
                                                        for one in row.get("rows", ()))]  # fmt: skip
    names = [
        name for name, row in rows.items() if name in scored or "rope" in row or "rope" in rows.get(row.get("like", ""), {})
    ]
    return [name for name in names if name in CONFIG_MAPPING and "parts" not in rows[rows[name].get("like", name)]]


def switches(model_type: str) -> list[str]:
    """Return the keys of a configuration that turn norms on."""
    keys = vars(CONFIG_MAPPING[model_type]())
    return [name for name, value in keys.items() if SWITCH.search(name) and isinstance(value, bool)]


def row_of(model_type: str) -> Row | None:
    """Return the row of a type; None if it has no norms of queries and keys that posref's operations describe."""
    rows = {None: _run(model_type, {})}
    for name in switches(model_type):
        default = bool(getattr(CONFIG_MAPPING[model_type](), name))
        rows[name, not default] = _run(model_type, {name: not default})
        rows[name, default] = rows[None]
    on = [(key, row) for key, row in rows.items() if row is not None and key is not None]
    off = [key for key, row in rows.items() if row is None and key is not None]
    if rows[None] is None and not on:
        return None
    if model_type in WIDE and rows[None] is not None:
        name, value = WIDE[model_type]
        if _run(model_type, {name: value}) != {**rows[None], "over": "heads"}:
            raise ValueError(f"its norms are not over all heads if {name} is {value}")
        return {**rows[None], "wide": [name, value, getattr(CONFIG_MAPPING[model_type](), name)]}
    key, row = next((one for one in on if any(other[0] == one[0][0] for other in off)), (None, rows[None]))
    return row if row is None or key is None else {**row, "when": [*key, getattr(CONFIG_MAPPING[model_type](), key[0])]}


def _run(model_type: str, changes: dict[str, Any]) -> Row | None:
    """Run a small model and return its row without switches."""
    names = [name for name in vars(CONFIG_MAPPING[model_type]()) if EPSILON.search(name)]
    values = {name: 2.0 ** -(8 + n) for n, name in enumerate(names)}
    config = config_of(model_type, **values, **changes)
    with torch.no_grad(), limited(60):
        model = model_of(config)
        events, norms = _events(model)
    if not norms:
        return None
    orders = [tuple(dict.fromkeys(seen)) for seen in events.values()]
    alone = ("norm",) in orders
    both = {order for order in orders if len(order) == 2} or {("norm", "no rope")}
    if len(both) != 1 or ("rope",) in orders:
        raise ValueError(f"its layers differ, or its rotation is not seen: {sorted(set(orders))}")
    ((first, _),) = both
    default = CONFIG_MAPPING[model_type]()
    found = [
        _alone(norm, width, {name: (value, getattr(default, name)) for name, value in values.items()}) for norm, width in norms
    ]
    if any(one != found[0] for one in found):
        raise ValueError(f"norms of queries and keys differ: {found}")
    head = _head(config)
    widths = {width for _, width in norms}
    if not (widths == {head} or head not in widths):
        raise ValueError(f"norms have widths {widths}, and a head {head}")
    layers = "all" if alone or not _has_still_layers(config) else "rotating"
    return {"first": first, "over": "head" if widths == {head} else "heads", **found[0], "layers": layers}


def config_of(model_type: str, **changes: Any) -> Any:
    """Return a small configuration that builds."""
    return small_config(model_type, **CHANGES.get(model_type, {}), **changes)


def model_of(config: Any) -> Any:
    """Build the smallest class that reads tokens: that of AutoModel, else one of the modeling file with this configuration."""
    if config.model_type in ALONE:
        return Alone(config, ALONE[config.model_type]).eval()
    code, errors = code_of(config), []
    own = [kind for name, kind in vars(code).items() if name.endswith("Model") and "Pre" not in name and inspect.isclass(kind)]
    own = [kind for kind in own if getattr(kind, "config_class", None) is type(config)]
    if "input_ids" not in inspect.signature(class_of(config).forward).parameters:
        return class_of(config)._from_config(config).eval()
    own += [kind for name, kind in vars(code).items() if name.endswith("ForCausalLM")]
    for build in (transformers.AutoModel.from_config, *(kind._from_config for kind in own)):
        try:
            model = build(copy.deepcopy(config), attn_implementation="eager").eval()
        except Exception as error:  # whatever a class raises
            errors.append(f"{type(error).__name__}: {str(error)[:80]}")
            continue
        if "input_ids" in inspect.signature(model.forward).parameters:
            return model
    raise ValueError(f"not built: {'; '.join(errors) or 'it reads no tokens'}")


class Alone(torch.nn.Module):
    """The attention of layer 0, on random hidden states."""

    def __init__(self, config: Any, name: str) -> None:
        super().__init__()
        config._attn_implementation = "eager"
        kind = getattr(code_of(config), name)
        self.config, self.attention = config, kind(config, layer_idx=0)

    def forward(self, input_ids: torch.Tensor) -> Any:
        x, table = (torch.randn(1, input_ids.shape[1], n) for n in (self.config.hidden_size, _head(self.config)))
        given = {
            "hidden_states": x,
            "position_embeddings": (table.cos(), table.sin()),
            "attention_mask": torch.zeros(1, 1, *[input_ids.shape[1]] * 2),
        }
        given |= {"encoder_hidden_states": x, "merged_attention_mask": None, "context_hidden_states": x[:, :0]}
        return self.attention(
            **{name: given[name] for name in inspect.signature(self.attention.forward).parameters if name in given}
        )


def _head(config: Any) -> int:
    head = config.to_dict().get("head_dim")
    return int(head) if head else config.hidden_size // config.num_attention_heads


def _has_still_layers(config: Any) -> bool:
    import posref

    listed = posref.from_config(config.to_dict()).get("text", [])
    return any(entry is None for entry in listed)


def _events(model: Any) -> tuple[dict[str, list[str]], list[tuple[torch.nn.Module, int]]]:
    """Return what every attention module does, norm or rope, in order, and the norms with their widths; not of indexers."""
    events: dict[str, list[str]] = {}
    widths: dict[torch.nn.Module, int] = {}
    stack: list[str] = []
    with contextlib.ExitStack() as undo:
        for name, module in model.named_modules():
            own = name.rpartition(".")[2]
            if re.search(r"Attention|Attn$|Indexer$", type(module).__name__):
                _hook(undo, module, lambda module, args, name=name: stack.append(name), lambda *_: stack.pop() and None)
            if NORM.match(own) and not isinstance(module, torch.nn.Identity):

                def enter(module: Any, args: Any) -> None:
                    if stack and "index" not in stack[-1]:
                        events.setdefault(stack[-1], []).append("norm")
                        widths[module] = args[0].shape[-1] if len(args) == 1 else 0

                _hook(undo, module, enter)
        for code, name, function in _rotations(model):

            def rotate(*args: Any, function: Any = function, **options: Any) -> Any:
                if stack and "index" not in stack[-1]:
                    events.setdefault(stack[-1], []).append("rope")
                return function(*args, **options)

            undo.callback(setattr, code, name, function)
            setattr(code, name, rotate)
        model(input_ids=torch.arange(5, 28)[None])
    return events, list(widths.items())


def _rotations(model: Any) -> list[tuple[Any, str, Any]]:
    """Return the functions that rotate in the modules of a model's code, with their names there."""
    codes = {sys.modules[type(module).__module__] for module in model.modules()}
    return [(code, name, f) for code in codes for name, f in vars(code).items() if callable(f) and ROTATES.match(name)]


def _hook(undo: contextlib.ExitStack, module: torch.nn.Module, enter: Any, leave: Any = None) -> None:
    undo.callback(module.register_forward_pre_hook(enter).remove)
    if leave is not None:
        undo.callback(module.register_forward_hook(leave, always_call=True).remove)


def _alone(norm: torch.nn.Module, width: int, epsilons: dict[str, tuple[float, float]]) -> Row:
    """Return the kind of a norm, its weight and its epsilon, from its values."""
    if width == 0 or any(x.shape[-1] != width for x in norm.parameters()):
        raise ValueError(f"{type(norm).__name__} takes several tensors")
    norm = copy.deepcopy(norm).double().requires_grad_(False)
    x = torch.linspace(-1, 3, width, dtype=torch.float64)[None, None, None] / 8
    ones = [_filled(norm, value)(x).reshape(-1, width)[0] for value in (1.0, 0.0)]  # a weight for each head: those of the first
    weighted = any(True for _ in norm.parameters())
    offset = int(weighted and bool(ones[1].any()))
    y = ones[offset]  # the values with a factor of 1
    flat = x.flatten()
    for kind, middle in (("rms", 0.0), ("layer", float(flat.mean()))):
        ratio = (flat - middle) / y
        square = float(ratio[0] ** 2)
        eps = square - float(((flat - middle) ** 2).mean())
        if bool(torch.allclose(ratio**2, torch.full_like(ratio, square), rtol=1e-4)):
            near = [[name, usual] for name, (value, usual) in epsilons.items() if abs(eps - value) < 1e-4 * value + 1e-7]
            return {"kind": kind, "weight": weighted, "weight_offset": offset, "eps": near[0] if near else _short(eps)}
    raise ValueError(f"{type(norm).__name__} is no RMS norm and no layer norm")


def _filled(norm: torch.nn.Module, value: float) -> torch.nn.Module:
    for name, x in norm.named_parameters():
        x.data.fill_(0.0 if "bias" in name else value)
    return norm


def _short(eps: float) -> float:
    """Return a constant of the code, a power of ten."""
    return next((10.0**-n for n in range(4, 9) if abs(eps - 10.0**-n) < 0.2 * 10.0**-n), 0.0)


def main(arguments: list[str]) -> None:
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    wanted = [name for name in arguments if not name.startswith("--")]
    rows: dict[str, Row] = {}
    for model_type in wanted or judged_types():
        try:
            row = row_of(model_type)
        except Exception as error:  # whatever a class raises
            print(f"{model_type}: {type(error).__name__}: {str(error)[:160]}", flush=True)
            continue
        if row is not None:
            rows[model_type] = row
            print(f"{model_type}: {json.dumps(row)}", flush=True)
    if "--write" in arguments:
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items()))
        TABLE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
