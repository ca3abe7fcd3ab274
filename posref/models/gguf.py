"""
Read the metadata of a GGUF file: the keyword arguments of `posref.rope`.

A row of tables/gguf.json says what is known of an architecture:

- ``layout`` of the weights in the file: LLAMA_ROPE_TYPE_NORM, NEOX, MROPE and IMROPE of llama_model_rope_type, but for
  deepseek2-ocr, whose graph has NEOX in its place (deepseek2.cpp, 475). Left out are architectures that may have ALiBi or a
  learned table instead (baichuan, starcoder, bert). ``betas`` are those of a file without the keys of YaRN. ``over`` divides
  the width of full layers; ``whole`` heads rotate whatever the file says. ``indexer`` has the options in which the indexer
  differs, ``beside`` a convention.
- ``axes`` of M-RoPE: how ``dimension_sections`` are arranged. With "chunked, or none" a file without sections has RoPE.
- ``sliding``: sliding layers may have a base of their own, ``freq_base_swa``. If the file does not say, it is ``base`` of
  this dict, else that of the full layers. ``scaled`` is false if they are not scaled. ``window`` is the window of a file
  that has none.
- ``mask`` of sliding layers: "window", "chunks", "both sides" (half of the window on each), or "window of all" layers with
  attention. ``literal`` is the window of every file that has one, whatever its key says.
- ``period``: one layer in this many is full, if the file does not say: the last of them, or the first (``first``).
- ``interval``: one layer in this many has attention, if the file does not say.
- ``rotates``: a rule of `rotates`. These rules are not keys of the file. They are literals in llama.cpp's models (src/models,
  src/llama-hparams.cpp), and `general.architecture` selects them.
- ``log_multiplier``: ``scaling.yarn_log_multiplier`` is ``unit`` times mscale_all_dim; ``mscale`` is "same" if mscale is that
  too, else 1 (llama-context.cpp, 177). ``latent``: multi-head latent attention, so that ``dimension_count`` must be there.

The keys are from gguf-py 0.19.0 (gguf/constants.py). Their meaning is from llama.cpp: llama_model::load_hparams,
llama_model_rope_type, llama_context (the attention factor) and ggml's rope_yarn.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, overload

from posref.models.arguments import RopeArguments
from posref.models.config import WORDS
from posref.models.fields import even, first, integer, number, positives, refuse, speaking_as
from posref.models.model_types import table
from posref.scaling import Linear, LongRoPE, NTKAware, Scaling, YaRN
from posref.types import Layout

FULL_LAYERS, SLIDING_LAYERS = "full_attention", "sliding_attention"
TYPES = ("none", "linear", "yarn", "longrope")
BETAS = {"beta_fast": "scaling.yarn_beta_fast", "beta_slow": "scaling.yarn_beta_slow"}
SWA = ("freq_base_swa", "dimension_count_swa")  # what sliding layers with a base of their own have instead
ALPHA = "scaling.alpha"  # HunYuan's NTK-aware scaling
EXT, ATTN = "scaling.yarn_ext_factor", "scaling.yarn_attn_factor"  # read at the values that change nothing
KNOWN = (
    *("dimension_count", "freq_base", "scale_linear", "dimension_sections", "scaling.type", "scaling.factor"),
    *("scaling.attn_factor", "scaling.original_context_length", "scaling.finetuned", "scaling.yarn_log_multiplier"),
    *(EXT, ATTN),
    *BETAS.values(),
)
BOTH = ("rope_factors_short.weight", "rope_factors_long.weight")
ALWAYS = "rope_freqs.weight"
STEP = 4  # n_no_rope_layer_step: no key sets it
EXAONE4_32B = 64  # layers; a smaller EXAONE 4 has no window


Factors = Mapping[str, Sequence[float]]


@cache
def layouts() -> dict[str, Layout]:
    """Return the layout of every known architecture, interleaved ones first."""
    known = {name: row["layout"] for name, row in table("gguf").items()}
    return dict(sorted(known.items(), key=lambda item: item[1] != "interleaved"))


@overload
def rope_from_gguf(
    metadata: Mapping[str, Any], /, *, rope_factors: Factors | None = None, layer_type: str | None = None,
    layout: Layout | None = None,
) -> RopeArguments: ...  # fmt: skip
@overload
def rope_from_gguf(
    metadata: Mapping[str, Any], /, *, rope_factors: Factors | None = None, layer: int, layout: Layout | None = None
) -> RopeArguments | None: ...
def rope_from_gguf(
    metadata: Mapping[str, Any],
    /,
    *,
    rope_factors: Factors | None = None,
    layer_type: str | None = None,
    layer: int | None = None,
    layout: Layout | None = None,
) -> RopeArguments | None:
    """
    Return the keyword arguments of `posref.rope` for a GGUF file, or None for a layer that does not rotate.

    Parameters
    ----------
    metadata : mapping
        The file's key-value pairs as Python values, such as "general.architecture" and "<architecture>.rope.freq_base".
    rope_factors : mapping, optional
        The file's tensors by name: "rope_freqs.weight" (Llama 3.1 and later, Gemma 4), with divisors for every length, or
        "rope_factors_short.weight" and "rope_factors_long.weight" (Phi-3: LongRoPE). No key says that a file has
        "rope_freqs.weight", so look for the tensor. Without its divisors the frequencies of Llama 3.1 are wrong.
    layer_type : {"full_attention", "sliding_attention"}, optional
        Which layers to read, if sliding layers have a base, a width or a scaling of their own: by the architecture (Gemma 3 and
        4, EmbeddingGemma, MiMo-V2), or by the keys of the file (gpt-oss, Cohere 2, Laguna, OLMo 3 and others). Required then,
        unless you give `layer`. An error for other files.
    layer : int, optional
        The number of one layer, from 0, instead of `layer_type`. The result is None if the layer does not rotate. These do not:

        - the last of every four in SmolLM3, AFMoE and Llama 4 (in Llama 4 unless ``attention.sliding_window`` is 0);
        - the first of every four in SmallThinker with a window;
        - layers without attention in Qwen3-Next, Qwen3.5, MiniMax-Text-01, LFM2, Granite 4 and PLaMo 2;
        - layers without a window in Cohere 2, Cohere 2 MoE (except its leading dense layers), EXAONE MoE and EXAONE 4 with 64
          layers.

        Most of these rules are in llama.cpp, not in the file's keys.
    layout : {"half", "interleaved", "interleaved_to_half"}, optional
        Overrides the layout that `GGUF_LAYOUTS` has for the architecture. Required for architectures that are not in it.

    Returns
    -------
    dict
        ``layout``, ``base``, ``rotary_dim`` and ``scaling``. Divisors become a `posref.scaling.LongRoPE`, with the same list
        twice if they apply at every length. Then add the ``length`` of your call.

    Raises
    ------
    ValueError
        If a key is missing, of the wrong type or unknown, or `posref.rope` cannot do what it says. Also for several position
        axes: see `from_gguf`. posref never guesses.

    Notes
    -----
    The layout describes the weights in this file. Converters permute Llama's weights, so it may differ from the layout of
    `rope_from_config`. ggml always rounds YaRN's correction dimensions. gpt-oss does not, so its frequencies here differ
    slightly from those of `rope_from_config`. llama.cpp reads ``yarn_beta_fast`` and ``yarn_beta_slow`` for some architectures
    only, and chooses LongRoPE's list once, by the size of its context. posref always reads both keys, and chooses the list by
    the length of the call. Softmax factors (DeepSeek) are not part of the result. Without `layer` the result describes the
    layers that rotate.

    Examples
    --------
    >>> metadata = {"general.architecture": "qwen2", "qwen2.embedding_length": 3584, "qwen2.attention.head_count": 28}
    >>> rope_from_gguf(metadata | {"qwen2.context_length": 32768, "qwen2.rope.freq_base": 1000000.0})
    {'layout': 'half', 'base': 1000000.0, 'rotary_dim': 128, 'scaling': None}
    """
    with speaking_as("rope_from_gguf"):
        name = architecture(metadata)
        if layer is not None and layer_type is not None:
            refuse(f"layer must be given without layer_type; got layer {layer!r} and layer_type {layer_type!r}. Give one.")
        if sections_of(metadata, name):
            refuse(f"metadata must describe a model with one position for each token; got {name!r} (M-RoPE). Use from_gguf.")
        return read_gguf(metadata, name, rope_factors, layer_type, layer, layout)


def architecture(metadata: Any) -> str:
    """Return the architecture of a file. Refuse what is not the metadata of one."""
    if not isinstance(metadata, Mapping):
        refuse(f"metadata must be a mapping, the file's key-value pairs; got {type(metadata).__name__}.")
    name = metadata.get("general.architecture")
    if not isinstance(name, str):
        refuse(f"metadata must have general.architecture, a string; got {name!r}.")
    return name


def read_gguf(
    metadata: Mapping[str, Any], name: str, rope_factors: Factors | None, layer_type: str | None, layer: int | None,
    layout: Layout | None,
) -> RopeArguments | None:  # fmt: skip
    """Return the arguments of `posref.rope` for some layers or for one."""
    if layer is not None:
        check_layer(metadata, name, layer)
        if not rotates(metadata, name, layer):
            return None
        if _has_types(metadata, name):
            layer_type = SLIDING_LAYERS if has_window(metadata, name, layer) else FULL_LAYERS
    rope = _of_layers(_rope_keys(metadata, name), metadata, name, layer_type)
    lanes = _lanes(metadata, rope, name)
    if layer_type == SLIDING_LAYERS:
        rope_factors = None  # Gemma 4's and Step 3.5's divisors are for full layers
    elif "over" in table("gguf").get(name, {}):
        lanes //= table("gguf")[name]["over"]
        rope_factors = rope_factors and {key: list(values)[: lanes // 2] for key, values in rope_factors.items()}
    return {
        "layout": _layout(name, layout),
        "base": number("freq_base", ("freq_base",), rope, {"freq_base": 10_000.0}, low=0, strict=True),
        "rotary_dim": lanes,
        "scaling": _scaling(rope, _context(metadata, rope, name), name, _factors(rope_factors, lanes // 2)),
    }


def sections_of(metadata: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """Return the channel pairs of each position axis of M-RoPE. Empty for a file with one position for each token."""
    key = f"{name}.rope.dimension_sections"
    axes, listed = table("gguf").get(name, {}).get("axes"), metadata.get(key)
    listed = () if listed is None else listed
    if not isinstance(listed, Sequence) or not all(type(section) is int and section >= 0 for section in listed):
        refuse(f"{key} must be a list of ints of at least 0; got {listed!r}.")
    sections = tuple(listed[:3]) if len(listed) == 4 and listed[3] == 0 else tuple(listed)
    if axes is not None and len(sections) > 2 and sections[0] and sections[1]:
        return sections
    if axes is None and any(listed):
        refuse(f"metadata must describe a model with one position for each token; got {key} {listed!r} for {name!r}.")
    if axes is not None and not axes.endswith("or none"):
        refuse(f"metadata of {name!r} must have {key}, with channel pairs for time and height; got {listed!r}.")
    return ()


def _rope_keys(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the keys that begin with "<architecture>.rope.", without this prefix and null values. Refuse unknown keys."""
    prefix = f"{name}.rope."
    rope = {
        key.removeprefix(prefix): value
        for key, value in metadata.items()
        if isinstance(key, str) and key.startswith(prefix) and value is not None
    }
    sections_of(metadata, name)
    arch = table("gguf").get(name, {})
    if name.startswith("granite") and rope.get("scaling.finetuned") is False:
        refuse("metadata must describe a model with rotary embeddings; got Granite's scaling.finetuned false: it has none.")
    known = (*KNOWN, *SWA) if "sliding" in arch else (*KNOWN, ALPHA) if name == "hunyuan_vl" else KNOWN
    strange = [prefix + key for key in sorted(set(rope) - set(known))]
    if strange:
        refuse(f"rope keys of metadata must be among {KNOWN}; got {strange}, which rope cannot do.")
    return rope


def window_of(metadata: Mapping[str, Any], name: str) -> Any:
    """Return the window of a file, or the number of tokens in a chunk. None or 0 without one."""
    row = table("gguf").get(name, {})
    window = metadata.get(f"{name}.attention.sliding_window", row.get("window"))
    return row.get("literal", window) if window else window


def _has_types(metadata: Mapping[str, Any], name: str) -> bool:
    """Return whether the sliding layers of the file differ from the full ones in what rotates."""
    rule = table("gguf").get(name, {}).get("sliding")
    if rule is None or not window_of(metadata, name):
        return False
    rope = {key: metadata.get(f"{name}.rope.{key}") for key in ("freq_base", "dimension_count", "scaling.type", *SWA)}
    bases = [rope["freq_base_swa"] or rule.get("base"), rope["freq_base"] or 10_000.0]
    widths = [rope["dimension_count_swa"], rope["dimension_count"]]
    unscaled = rule.get("scaled") is False and rope["scaling.type"] not in (None, "none")
    return "base" in rule or unscaled or any(own_ not in (None, full) for own_, full in (bases, widths))


def _of_layers(rope: dict[str, Any], metadata: Mapping[str, Any], name: str, layer_type: str | None) -> dict[str, Any]:
    """Return the keys for these layers, under the names that other architectures use."""
    if not _has_types(metadata, name):
        if layer_type is not None:
            refuse(f"layer_type must be None, since all layers of this file are alike; got {layer_type!r}.")
        return rope
    if layer_type not in (FULL_LAYERS, SLIDING_LAYERS):
        refuse(f"layer_type must be one of {(FULL_LAYERS, SLIDING_LAYERS)}, the layer types of {name!r}; got {layer_type!r}.")
    if layer_type == FULL_LAYERS:
        return {key: value for key, value in rope.items() if key not in SWA}
    lanes = first(("dimension_count_swa", "dimension_count"), rope)
    sliding = table("gguf")[name]["sliding"]
    silent = sliding.get("base", first(("freq_base",), rope))
    scaling = {key: value for key, value in rope.items() if key not in (*SWA, "freq_base", "dimension_count")}
    scaled = {"scaling.type": "none"} if sliding.get("scaled") is False else scaling
    base = first(("freq_base_swa",), rope, {"freq_base_swa": silent})
    return {**scaled, **({"freq_base": base} if base else {}), **({"dimension_count": lanes} if lanes else {})}


def _layout(name: str, layout: Layout | None) -> Layout:
    if layout is None and name not in table("gguf"):
        known = ", ".join(sorted(table("gguf")))
        refuse(f"general.architecture must be a known one; got {name!r}. Pass layout, one of {WORDS}. Known: {known}.")
    if layout is not None and layout not in WORDS:
        refuse(f"layout must be one of {WORDS} or None; got {layout!r}.")
    stored: Layout = layout or table("gguf")[name]["layout"]
    return stored


def _lanes(metadata: Mapping[str, Any], rope: Mapping[str, Any], name: str) -> int:
    """Return the number of rotated channels: from its own key, else the key length, else embedding length / heads."""
    if "dimension_count" in rope and not table("gguf").get(name, {}).get("whole"):
        return even(integer(("dimension_count",), rope))
    if table("gguf").get(name, {}).get("latent"):
        refuse(f"metadata of {name!r} must have {name}.rope.dimension_count, since only a part of a head rotates; got none.")
    if metadata.get(f"{name}.attention.key_length") is not None:
        return even(integer((f"{name}.attention.key_length",), metadata))
    heads, *_ = by_layer(metadata, f"{name}.attention.head_count")  # those of the first layer
    if heads < 1:
        refuse(f"metadata of {name!r} must have {name}.attention.key_length, since its first layer has no heads; got none.")
    return even(integer((f"{name}.embedding_length",), metadata) // heads)


def _context(metadata: Mapping[str, Any], rope: Mapping[str, Any], name: str) -> tuple[int | None, bool]:
    """Return the original length, and whether it differs from the model's own."""
    trained = first((f"{name}.context_length",), metadata)
    original = first(("scaling.original_context_length",), rope)
    if trained is None and original is None:
        return None, False
    length = integer(("scaling.original_context_length",), rope) if original else integer((f"{name}.context_length",), metadata)
    return length, trained is not None and trained != length


def _factors(given: Mapping[str, Sequence[float]] | None, pairs: int) -> dict[str, tuple[float, ...]]:
    """Return the divisors by tensor name: one list for every length, or a short and a long one."""
    if given is not None and not isinstance(given, Mapping):
        refuse(f"rope_factors must be a mapping from tensor names to lists; got {type(given).__name__}.")
    result = {key: positives(key, values, pairs) for key, values in (given or {}).items()}
    if result and set(result) not in ({ALWAYS}, set(BOTH)):
        refuse(f"rope_factors must have {ALWAYS}, or {' and '.join(BOTH)}; got {sorted(result)}.")
    return result


def _scaling(
    rope: Mapping[str, Any], context: tuple[int | None, bool], name: str, factors: Mapping[str, tuple[float, ...]]
) -> Scaling | None:
    kind = rope.get("scaling.type", "linear")
    if not isinstance(kind, str) or kind not in TYPES:
        refuse(f"scaling.type must be one of {TYPES}; got {kind!r}.")
    slowed = number("scaling.factor", ("scaling.factor", "scale_linear"), rope, {"scaling.factor": 1.0}, low=0)
    s = 1.0 if kind == "none" or slowed == 0 else slowed  # llama.cpp reads 0 as not given
    gain = number("scaling.attn_factor", ("scaling.attn_factor",), rope, {"scaling.attn_factor": 1.0}, low=0, strict=True)
    original, extended = context
    if rope.get(ALPHA):
        return NTKAware(number(ALPHA, (ALPHA,), rope, low=0, strict=True))
    _check_factors(rope, kind, given=bool(factors))
    if factors and (kind == "yarn" or s != 1):
        refuse(f"rope_factors must be None if the file has another scaling; got scaling.type {kind!r} and factor {s}.")
    if factors:
        short, long = (factors[key] for key in (BOTH if BOTH[0] in factors else (ALWAYS, ALWAYS)))
        return LongRoPE(short, long, _length(original, name), attention_factor=gain)
    if kind == "yarn":
        return _yarn(rope, s, _length(original, name), name, gain)
    if kind == "longrope" or gain != 1 or (extended and kind != "none"):
        refuse(f"rope_factors must be given for this file (LongRoPE): the tensors {' and '.join(BOTH)}; got none.")
    return None if s == 1 else Linear(s)


def _check_factors(rope: Mapping[str, Any], kind: str, *, given: bool) -> None:
    """Refuse a scaling without its factor, and keys of YaRN that change what posref's does not have."""
    if rope.get("scaling.type") in ("linear", "yarn") and not given and not {"scaling.factor", "scale_linear"} & rope.keys():
        refuse(f"a file of scaling.type {kind!r} must have scaling.factor; got none.")
    for key, neutral in ((EXT, 1.0 if kind == "yarn" else 0.0), (ATTN, 1.0)):
        if rope.get(key, neutral) != neutral:
            refuse(f"{key} must be {neutral} for scaling.type {kind!r}, or not given; got {rope[key]!r}.")


def _length(original: int | None, name: str) -> int:
    if original is None:
        refuse(f"metadata must have {name}.rope.scaling.original_context_length or {name}.context_length; got none.")
    return original


def _yarn(rope: Mapping[str, Any], factor: float, length: int, name: str, gain: float) -> YaRN:
    """Return YaRN with llama.cpp's factor on cos and sin. With yarn_log_multiplier (DeepSeek) the softmax has a part of it."""
    silent = table("gguf").get(name, {}).get("betas", {})
    betas: dict[str, Any] = {
        field: number(key, (key,), rope, {key: silent.get(field)}, low=0, strict=True)
        for field, key in BETAS.items()
        if key in rope or field in silent
    }
    key = "scaling.yarn_log_multiplier"
    moved = number(key, (key,), rope, {key: 0.0}, low=0)
    unit: Mapping[str, Any] = table("gguf").get(name, {}).get("log_multiplier", {})
    if moved and not unit:
        known = [arch for arch, row in table("gguf").items() if "log_multiplier" in row]
        refuse(f"{key} must be 0 or not given, except for {' and '.join(known)}; got {moved} for {name!r}.")
    if moved:
        all_dim = moved / unit["unit"]
        ratio = 1.0 if unit.get("mscale") == "same" else gain_of(factor, 1.0) / gain_of(factor, all_dim)
        return YaRN(factor, length, **betas, attention_factor=gain * ratio)
    return YaRN(factor, length, **betas, attention_factor=None if gain == 1 else gain * gain_of(factor, 1.0))


def gain_of(factor: float, mscale: float) -> float:
    """Return g(mscale) of YaRN."""
    return 1 + mscale * math.log(factor) / 10 if factor > 1 else 1.0


# ---- layers ------------------------------------------------------------------------------------------------------------------
def check_layer(metadata: Mapping[str, Any], name: str, layer: int) -> None:
    """Refuse a layer number beyond the file's layers."""
    count = integer((f"{name}.block_count",), metadata)
    if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < count:
        refuse(f"layer must be an integer from 0 to {count - 1}, since {name}.block_count is {count}; got {layer!r}.")


def by_layer(metadata: Mapping[str, Any], key: str) -> Sequence[int]:
    """Return a number for each layer that the file lists, or one number for all of them."""
    numbers = metadata.get(key)
    if (
        isinstance(numbers, Sequence)
        and not isinstance(numbers, str | bytes)
        and numbers
        and all(type(n) is int for n in numbers)
    ):
        return numbers
    return (integer((key,), metadata),)


def has_window(metadata: Mapping[str, Any], name: str, layer: int) -> bool:
    """Return whether a layer has a sliding window: all but one of each period, or those that the file lists."""
    key, row = f"{name}.attention.sliding_window_pattern", table("gguf").get(name, {})
    pattern = metadata.get(key, row.get("period"))
    if isinstance(pattern, Sequence) and not isinstance(pattern, str | bytes) and len(pattern) > layer:
        return bool(pattern[layer])
    if isinstance(pattern, bool) or not isinstance(pattern, int) or pattern < 0:
        refuse(
            f"metadata must have {key}, a period or one number for every layer; got {pattern!r}. Without it give layer_type."
        )
    full = 0 if row.get("first") == "full" else pattern - 1
    return pattern == 0 or layer % pattern != full


def _has_attention(metadata: Mapping[str, Any], name: str, layer: int) -> bool:
    """Return whether a layer has softmax attention: by the file's list, else one in an interval, and all that predict ahead."""
    listed = metadata.get(f"{name}.attention.recurrent_layers")
    if isinstance(listed, Sequence) and len(listed) > layer:
        return not listed[layer]
    key, ahead = f"{name}.full_attention_interval", f"{name}.nextn_predict_layers"
    interval = integer((key,), metadata, {key: table("gguf")[name]["interval"]})
    return (layer + 1) % interval == 0 or layer >= metadata[f"{name}.block_count"] - metadata.get(ahead, 0)


def rotates(metadata: Mapping[str, Any], name: str, layer: int) -> bool:
    """Return whether a layer rotates its queries and keys."""
    window = window_of(metadata, name)
    last_of_step = (layer + 1) % STEP == 0
    match table("gguf").get(name, {}).get("rotates"):
        case "not the last of four":
            return not last_of_step
        case "not the last of four in chunks":  # without chunks all layers rotate
            return window == 0 or not last_of_step
        case "not the first of four with a window":
            return not window or layer % STEP != 0
        case "windows":
            return has_window(metadata, name, layer)
        case "windows and dense layers":
            return layer < metadata.get(f"{name}.leading_dense_block_count", 0) or has_window(metadata, name, layer)
        case "windows of 64 layers":
            return integer((f"{name}.block_count",), metadata) != EXAONE4_32B or has_window(metadata, name, layer)
        case "not recurrent":
            return _has_attention(metadata, name, layer)
        case "heads of keys":
            heads = by_layer(metadata, f"{name}.attention.head_count_kv")
            return bool(heads[min(layer, len(heads) - 1)])
        case "rope pattern":
            pattern = metadata.get(f"{name}.attention.rope_pattern", ())
            return layer >= len(pattern) or bool(pattern[layer])
        case _:
            return True
