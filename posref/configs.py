"""
From a model's config.json to parameters: what `posref.rope` is to be called with, and where the factors go.

Both generations of the file are read, by the rules of transformers 5.23.0 (modeling_rope_utils.py and the configuration
classes): `rope_theta` beside `rope_scaling`; since version 5 one `rope_parameters`, by layer type where layers differ.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from posref.scaling import DynamicNTK, Linear, Llama3, Scaling, YaRN

HALF = (
    "afmoe apertus arcee aria_text bamba bitnet chameleon csm cwm diffllama doge dots1 emu3_text_model eurobert "
    "exaone4 exaone_moe falcon falcon_h1 flex_olmo gemma gemma2 gemma3_text gemma3n_text glm4_moe gpt_neox "
    "gpt_neox_japanese gpt_oss granite granitemoe granitemoehybrid granitemoeshared gte hunyuan_v1_dense "
    "hunyuan_v1_moe hy_v3 hy_v4 hyperclovax idefics jais2 jina_embeddings_v3 lfm2 lfm2_moe llama mimi minicpm3 minimax "
    "minimax_m2 ministral ministral3 mistral mixtral mllama_text_model modernbert modernbert-decoder moshi nemotron "
    "nomic_bert olmo olmo2 olmo3 olmo_hybrid olmoe persimmon phi phi3 phi4_multimodal phimoe qwen2 qwen2_moe qwen3 "
    "qwen3_moe qwen3_next recurrent_gemma seed_oss smollm3 solar_open stablelm starcoder2 t5_gemma_module "
    "t5gemma2_decoder t5gemma2_text vaultgemma"
)
INTERLEAVED = (
    "codegen cohere cohere2 deepseek_v2 ernie4_5 ernie4_5_moe glm glm4 gptj helium llama4_text openai_privacy_filter roformer"
)
INTERLEAVED_TO_HALF = (
    "axk1 axk2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa longcat_flash mistral4 youtu"  # all of them MLA
)
# Model type -> layout, of weights as transformers stores them (Meta's own Llama files are interleaved). Each entry was
# checked by running that model's rotary module and apply function against the three layouts.
LAYOUTS: dict[str, str] = {
    **dict.fromkeys(HALF.split(), "half"),
    **dict.fromkeys(INTERLEAVED.split(), "interleaved"),
    **dict.fromkeys(INTERLEAVED_TO_HALF.split(), "interleaved_to_half"),
}
CHOOSES = ("axk1", "deepseek_v3", "glm4_moe_lite", "mistral4", "youtu")  # where "rope_interleave": false means half
# These multiply the softmax scale by g(mscale_all_dim) squared: yarn_apply_mscale in their modeling files.
SOFTMAX = (*INTERLEAVED_TO_HALF.split(), "deepseek_v2", "hy_v4", "minicpm3")
# What a silent file means, where it is not base 10000, the whole head, and hidden_size // num_attention_heads.
SILENT: tuple[tuple[dict[str, float], str], ...] = (
    ({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "head_dim": 256}, "gemma3_text gemma3n_text"),
    ({"rope_theta": 1e6, "rope_local_base_freq": 1e4, "head_dim": 256}, "t5gemma2_decoder t5gemma2_text"),
    ({"global_rope_theta": 160_000, "local_rope_theta": 1e4}, "modernbert modernbert-decoder"),
    ({"head_dim": 256}, "gemma gemma2 t5_gemma_module vaultgemma"),
    ({"head_dim": 128}, "afmoe cohere2 ministral3 qwen3 seed_oss"),
    ({"rope_theta": 1e6, "head_dim": 128}, "cwm solar_open"),
    ({"rope_theta": 1e6}, "emu3_text_model lfm2 lfm2_moe minimax mixtral phimoe"),
    ({"rope_theta": 500_000}, "bitnet cohere csm ernie4_5_moe flex_olmo mllama_text_model olmo3"),
    ({"rope_theta": 500_000, "head_dim": 128}, "ernie4_5 llama4_text"),
    ({"rope_theta": 150_000, "head_dim": 64}, "gpt_oss openai_privacy_filter"),
    ({"rope_theta": 160_000}, "gte"),
    ({"rope_theta": 20_000}, "jina_embeddings_v3"),
    ({"rope_theta": 1_000}, "nomic_bert"),
    ({"rope_theta": 12e6}, "apertus"),
    ({"rope_theta": 2e6}, "smollm3"),
    ({"rope_theta": 1e5, "head_dim": 128}, "helium"),
    ({"rope_theta": 5e6, "head_dim": 128}, "minimax_m2"),
    ({"rope_theta": 11_158_840, "head_dim": 128}, "hy_v3"),
    ({"partial_rotary_factor": 0.5}, "bamba glm4_moe nemotron persimmon phi recurrent_gemma"),
    ({"partial_rotary_factor": 0.5, "head_dim": 128}, "glm glm4"),
    ({"partial_rotary_factor": 0.25}, "gpt_neox stablelm"),
    ({"partial_rotary_factor": 0.25, "head_dim": 256}, "qwen3_next"),
    ({"rotary_dim": 64}, "codegen gptj"),
    ({"qk_rope_head_dim": 64}, "axk1 deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4"),
    ({"qk_rope_head_dim": 64}, "mistral4 youtu"),
    ({"qk_rope_head_dim": 64, "rope_theta": 1e7}, "longcat_flash"),
    ({"qk_rope_head_dim": 32}, "axk2 minicpm3"),
    ({"original_max_position_embeddings": 4096}, "phi3 phi4_multimodal"),
)
DEFAULTS = {model: values for values, models in SILENT for model in models.split()}
# Model types whose old files name one base per layer type; with "rope_local_base_freq" or for OLMo 3, `rope_scaling` is
# that of the full layers alone.
BY_LAYER = {
    **dict.fromkeys(("gemma3_text", "gemma3n_text", "t5gemma2_decoder", "t5gemma2_text"), "rope_local_base_freq"),
    **dict.fromkeys(("modernbert", "modernbert-decoder"), "local_rope_theta"),
    "olmo3": "rope_theta",
}
YARN = ("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate")
ROPE_TYPES: dict[str, tuple[str, ...]] = {  # and the keys that each one reads
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": YARN,
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
# Read elsewhere, or (the last three) no part of the rotation.
COMMON = (
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"),
    *("max_position_embeddings", "finetuned", "llama_4_scaling_beta"),
)
ALIKE = "Where the model runs another type's code, set model_type to that type."


class _ConfigError(ValueError):
    """What is wrong with a config; the public function adds its name."""


def _refuse(problem: str) -> NoReturn:
    raise _ConfigError(problem)


@contextmanager
def _speaking_as(function: str) -> Iterator[None]:
    try:
        yield
    except _ConfigError as problem:
        msg = f"{function}: {problem}"
        raise ValueError(msg) from None


def rope_from_config(
    config: Mapping[str, Any], /, *, layer_type: str | None = None, layout: str | None = None
) -> dict[str, Any]:
    r"""
    Return the keyword arguments of `posref.rope` that a model's config.json means.

    Parameters
    ----------
    config : mapping
        The parsed file; of a model with text and vision, its ``config["text_config"]``.
    layer_type : str, optional
        Which layers, where they differ ("full_attention", "sliding_attention"); needed there, refused elsewhere.
    layout : {"half", "interleaved", "interleaved_to_half"}, optional
        Overrides the layout that `LAYOUTS` has for the model type; needed for model types that are not in it.

    Returns
    -------
    dict
        ``layout``, ``base``, ``rotary_dim`` (an int, in lanes) and ``scaling`` (a record of `posref.scaling`, or None).
        Dynamic NTK also needs the call's own ``length``. Under multi-head latent attention (MLA: DeepSeek) `x` is the
        slice of ``qk_rope_head_dim`` lanes, not the whole head.

    Raises
    ------
    ValueError
        If a key is missing or ill-typed, or says something that `posref.rope` cannot: another rope type (longrope,
        mrope, proportional), or a key that changes one (alpha, mrope_section). Nothing is guessed.

    Notes
    -----
    The original length of YaRN and Llama 3 is the top-level ``original_max_position_embeddings``, then the
    dict's, then ``max_position_embeddings``; the top level is not read for a dict by layer type. Dynamic NTK reads
    ``max_position_embeddings`` alone. In YaRN a ``mscale``, ``mscale_all_dim``, ``beta_fast`` or ``beta_slow`` of 0
    counts as not given, as in transformers (DeepSeek's own code takes 0 at its word). Layers without any rotation
    (NoPE) are not told by these keys. A `layout` is that of the stored weights: Meta's own Llama files are interleaved.

    Examples
    --------
    >>> config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000.0}
    >>> rope_from_config(config)
    {'layout': 'half', 'base': 500000.0, 'rotary_dim': 128, 'scaling': None}
    """
    with _speaking_as("rope_from_config"):
        config, defaults = _check(config)
        rope = _rope_dict(config, defaults, layer_type)
        return {
            "layout": _layout(config, layout),
            "base": _base(rope, config, defaults),
            "rotary_dim": _rotary_dim(rope, config, defaults),
            "scaling": _scaling(rope, config, defaults, nested=layer_type is not None),
        }


def factors(config: Mapping[str, Any], /, *, layer_type: str | None = None) -> dict[str, float]:
    r"""
    Return the three factors of a context extension by where they go.

    .. math:: g(m) = \tfrac{m \ln s}{10} + 1 \;\text{for}\; s > 1, \text{else}\; 1

    Parameters
    ----------
    config, layer_type
        As in `rope_from_config`.

    Returns
    -------
    dict
        ``table``: on cos and sin, YaRN's attention factor (`posref.rope` already applies it). ``input``: on the vectors
        before the rotation, 1. ``softmax``: on the 1/sqrt(d) scale; ``g(mscale_all_dim)**2`` in the DeepSeek family,
        where d is ``qk_nope_head_dim + qk_rope_head_dim``, else 1. Logits of rotated lanes gain ``table**2 * softmax``.

    Raises
    ------
    ValueError
        As `rope_from_config`; also if ``mscale_all_dim`` is given and the model type is unknown: models differ on it.

    Examples
    --------
    >>> yarn = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}
    >>> config = {"model_type": "deepseek_v3", "rope_scaling": yarn, "original_max_position_embeddings": 4096}
    >>> round(factors(config)["softmax"], 5)
    1.87385
    """
    with _speaking_as("factors"):
        config, defaults = _check(config)
        rope = _rope_dict(config, defaults, layer_type)
        scaling = _scaling(rope, config, defaults, nested=layer_type is not None)
        if not isinstance(scaling, YaRN):
            return {"table": 1.0, "input": 1.0, "softmax": 1.0}
        s, mscale, all_dim = scaling.factor, scaling.mscale, scaling.mscale_all_dim
        model = config.get("model_type")
        if all_dim is not None and model not in LAYOUTS:
            _refuse(f"config['model_type'] must be a known one where mscale_all_dim is given; got {model!r}. {ALIKE}")
        table = _g(s, 1) if mscale is None or all_dim is None else _g(s, mscale) / _g(s, all_dim)
        table = table if scaling.attention_factor is None else scaling.attention_factor
        softmax = _g(s, all_dim) ** 2 if all_dim is not None and model in SOFTMAX else 1.0
        return {"table": table, "input": 1.0, "softmax": softmax}


def _g(factor: float, mscale: float) -> float:
    return 1.0 if factor <= 1 else mscale * math.log(factor) / 10 + 1


def _check(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, float]]:
    """Return `config` and what a silent file of its model type means; refuse a model that has no RoPE of its own."""
    if not isinstance(config, Mapping):
        _refuse(f"config must be a mapping, the parsed config.json; got {type(config).__name__}.")
    if "text_config" in config and config.get("model_type") not in LAYOUTS:
        _refuse(f"config must be that of the text model; got {config.get('model_type')!r}. Pass config['text_config'].")
    if config.get("alibi") is True:
        _refuse("config must be of a model with rotary embeddings; got 'alibi': True.")
    return config, DEFAULTS.get(str(config.get("model_type")), {})


def _rope_dict(config: Mapping[str, Any], defaults: Mapping[str, float], layer_type: str | None) -> dict[str, Any]:
    """Return the one dict of rope parameters that `layer_type` means, without the keys that are null."""
    key = "rope_scaling" if config.get("rope_scaling") is not None else "rope_parameters"
    given = config.get(key) or {}
    if not isinstance(given, Mapping):
        _refuse(f"config[{key!r}] must be a dict or null; got {given!r}.")
    layers: dict[str, Any] = {}
    local = BY_LAYER.get(str(config.get("model_type")))
    if any(isinstance(value, Mapping) for value in given.values()):
        layers = dict(given)
    elif local is not None:
        if key == "rope_parameters" and given:
            _refuse(f"config['rope_parameters'] must be a dict by layer type for this model; got {dict(given)!r}.")
        full = _first(("global_rope_theta", "rope_theta"), config, defaults)
        shared = given if local == "local_rope_theta" else {}
        layers["full_attention"] = {**given, "rope_theta": full}
        layers["sliding_attention"] = {**shared, "rope_theta": _first((local,), config, defaults)}
    if not layers and layer_type is not None:
        _refuse(f"layer_type must be None, since all layers of this config are alike; got {layer_type!r}.")
    if layers and not isinstance(layers.get(str(layer_type)), Mapping):
        known = tuple(name for name, value in layers.items() if isinstance(value, Mapping))
        _refuse(f"layer_type must be one of {known}, the layer types of this config; got {layer_type!r}.")
    rope = layers[str(layer_type)] if layers else given
    return {name: value for name, value in rope.items() if value is not None}


def _layout(config: Mapping[str, Any], layout: str | None) -> str:
    words = ("half", "interleaved", "interleaved_to_half")
    model = config.get("model_type")
    if layout is None and model not in LAYOUTS:
        known = ", ".join(sorted(LAYOUTS))
        _refuse(f"config['model_type'] must be a known one; got {model!r}. Pass layout, one of {words}. Known: {known}.")
    if layout is not None and layout not in words:
        _refuse(f"layout must be one of {words} or None; got {layout!r}.")
    if layout is not None:
        return layout
    return "half" if model in CHOOSES and config.get("rope_interleave") is False else LAYOUTS[str(model)]


def _base(rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, float]) -> float:
    names = ("rope_theta", "rotary_emb_base")
    silent = {"rope_theta": 10_000.0} if config.get("model_type") in LAYOUTS else {}
    return _number("base", names, rope, config, defaults, silent, low=0, strict=True)


def _rotary_dim(rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, float]) -> int:
    """Return the rotated lanes: MLA's slice, else a fraction of the head, else GPT-J's own key, else the head."""
    if _first(("qk_rope_head_dim",), config, defaults):
        return _even(_integer(("qk_rope_head_dim",), config, defaults))
    partial = ("partial_rotary_factor", "rotary_pct")
    if _first(partial, rope) is None and _first(("rotary_dim",), config, defaults) is not None:
        return _even(_integer(("rotary_dim",), config, defaults))
    fraction = _number("partial rotary factor", partial, rope, config, defaults, {"rotary_pct": 1.0}, low=0, strict=True)
    if fraction > 1:
        _refuse(f"the partial rotary factor must be at most 1; got {fraction!r}.")
    return _even(int(_head_dim(config, defaults) * fraction))


def _head_dim(config: Mapping[str, Any], defaults: Mapping[str, float]) -> int:
    if _first(("head_dim",), config, defaults) is not None:
        return _integer(("head_dim",), config, defaults)
    hidden, heads = _integer(("hidden_size", "n_embd"), config), _integer(("num_attention_heads", "n_head"), config)
    return hidden // heads


def _even(lanes: int) -> int:
    if lanes < 2 or lanes % 2:
        _refuse(f"config must have an even number of rotated lanes, at least 2; got {lanes}.")
    return lanes


def _scaling(
    rope: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, float], *, nested: bool
) -> Scaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if not isinstance(kind, str) or kind not in ROPE_TYPES:
        _refuse(f"rope_type must be one of {tuple(ROPE_TYPES)}; got {kind!r}.")
    strange = sorted(set(rope) - set(ROPE_TYPES[kind]) - set(COMMON))
    if strange:
        _refuse(f"parameters of rope_type {kind!r} must be among {ROPE_TYPES[kind]}; got {strange}, which rope cannot do.")
    if kind == "default":
        return None
    lengths = ("max_position_embeddings", "n_positions")
    factor = _number("factor", ("factor",), rope, low=1)
    if kind == "linear":
        return Linear(factor)
    if kind == "dynamic":
        return DynamicNTK(factor, _integer(lengths, config))
    original = ("original_max_position_embeddings",)
    places = [rope] if nested else [config, defaults, rope]
    found = _first(original, *places) is not None
    length = _integer(original, *places) if found else _integer(lengths, config)
    if kind == "llama3":
        low, high = (_number(name, (name,), rope, low=0, strict=True) for name in ("low_freq_factor", "high_freq_factor"))
        return Llama3(factor, length, low, high)
    truncate = rope.get("truncate", True)
    if not isinstance(truncate, bool):
        _refuse(f"truncate must be true or false; got {truncate!r}.")
    options = {name: _number(name, (name,), rope, low=0) for name in YARN[1:-1] if name in rope}
    given = {name: value for name, value in options.items() if value != 0 or name == "attention_factor"}
    return YaRN(factor, length, truncate=truncate, **given)


def _first(names: tuple[str, ...], *places: Mapping[str, Any]) -> Any:
    return next((place[n] for place in places for n in names if place.get(n) is not None), None)


def _number(what: str, names: tuple[str, ...], /, *places: Mapping[str, Any], low: float, strict: bool = False) -> float:
    """Return the first of `names` in `places`; it must be finite and at least `low`, or above it where `strict`."""
    value = _first(names, *places)
    if value is None:
        _refuse(f"config must have {' or '.join(names)}; got none.")
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < low or (strict and value == low):
        _refuse(f"{what} must be a number {'above' if strict else 'of at least'} {low}; got {value!r}.")
    return float(value)


def _integer(names: tuple[str, ...], /, *places: Mapping[str, Any]) -> int:
    value = _first(names, *places)
    if value is None:
        _refuse(f"config must have {' or '.join(names)}; got none.")
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        _refuse(f"{' or '.join(names)} must be an int of at least 1; got {value!r}.")
    return value
