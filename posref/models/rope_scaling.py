"""
The part of a rope dict that changes the frequencies, as a record of `posref.scaling`.

The base, the channels that rotate and the layout are read in `posref.models.config`.
"""

import math
from collections.abc import Mapping
from typing import Any

from posref.models.fields import first, integer, number, positives, refuse
from posref.rotary import longrope, yarn
from posref.scaling import DynamicNTK, Linear, Llama3, LongRoPE, NTKAlpha, Proportional, Scaling, YaRN

YARN = ("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate")
MSCALES = ("attention_factor", "short_mscale", "long_mscale")
ROPE_TYPES: dict[str, tuple[str, ...]] = {  # each type with the keys that it reads
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": YARN,
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("short_factor", "long_factor", "factor", *MSCALES),
    "proportional": ("factor",),
}
# From the first files of Phi-3 and Qwen2-VL; vLLM's name for DeepSeek's; TeleChat's name, with a factor of its own
TELECHAT = "telechat3-yarn"
ALIASES = {"su": "longrope", "mrope": "default", "deepseek_yarn": "yarn", TELECHAT: "yarn"}
TELECHAT_GAIN = 0.07  # in place of YaRN's 0.1 (vllm 0.33.0, transformers_utils/config.py:650-657; mlx-lm has 0.1)
# Keys that are read elsewhere; the last three do not change the rotation.
COMMON = (
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"),
    *("mrope_section", "mrope_interleaved", "max_position_embeddings", "finetuned", "llama_4_scaling_beta"),
)
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length")
ORIGINAL = ("original_max_position_embeddings",)


def rope_type(rope: Mapping[str, Any]) -> str:
    """Return the type of a rope dict, by its current name."""
    named = rope.get("rope_type", rope.get("type", "default"))
    kind = ALIASES.get(named, named) if isinstance(named, str) else named
    if not isinstance(kind, str) or kind not in ROPE_TYPES:
        refuse(f"rope_type must be one of {tuple(ROPE_TYPES)}, or {' or '.join(ALIASES)}; got {kind!r}.")
    return kind


def read_scaling(
    rope: Mapping[str, Any], config: Mapping[str, Any], facts: Mapping[str, Any], *, nested: bool, pairs: int
) -> Scaling | None:
    """Return the record of a rope dict; `nested` is true if the dict is for one layer type."""
    kind = rope_type(rope)
    _check_keys(rope, kind, facts)
    match kind:
        case "default":
            return None
        case "linear":
            return Linear(number("factor", ("factor",), rope, low=1))
        case "dynamic" if rope.get("alpha"):
            return NTKAlpha(number("alpha", ("alpha",), rope, low=0, strict=True))
        case "dynamic":
            return DynamicNTK(number("factor", ("factor",), rope, low=1), integer(LENGTHS, config))
        case "proportional":
            return Proportional(rotated_share(rope), number("factor", ("factor",), rope, {"factor": 1.0}, low=1))
    places = [rope] if nested else [config, facts.get("defaults", {}), rope]
    length = integer(ORIGINAL, *places) if first(ORIGINAL, *places) is not None else integer(LENGTHS, config)
    if kind == "longrope":
        return _longrope(rope, config, length, pairs)
    factor = number("factor", ("factor",), rope, low=1)
    if kind == "llama3":
        low, high = (number(name, (name,), rope, low=0, strict=True) for name in ("low_freq_factor", "high_freq_factor"))
        return Llama3(factor, length, low, high)
    if rope.get("rope_type", rope.get("type")) == TELECHAT:
        if first(ORIGINAL, *places) is None:
            refuse(f"a file of rope_type {TELECHAT!r} must have original_max_position_embeddings; got none.")
        rope = {"attention_factor": TELECHAT_GAIN * math.log(factor) + 1, **rope}
    return _yarn(rope, factor, length)


def rotated_share(*places: Mapping[str, Any]) -> float:
    """Return the share of the head that rotates, 1 if the file does not say."""
    names = ("partial_rotary_factor", "rotary_pct")
    share = number("partial rotary factor", names, *places, {"rotary_pct": 1.0}, low=0, strict=True)
    if share > 1:
        refuse(f"the partial rotary factor must be at most 1; got {share!r}.")
    return share


def table_factor(scaling: Scaling | None, length: int | None) -> float:
    """Return the factor on cos and sin. LongRoPE's may depend on the length."""
    if isinstance(scaling, YaRN):
        return float(yarn.attention_factor(scaling, None, None))
    if not isinstance(scaling, LongRoPE):
        return 1.0
    alike = scaling.attention_factor is not None or scaling.short_mscale == scaling.long_mscale
    if length is None and not alike:
        refuse("length must be given (the number of tokens), since short_mscale and long_mscale differ; got None.")
    longrope.check_factor("table_factor", scaling, length or 0)
    return float(longrope.attention_factor(scaling, length or 0, None))


def softmax_factor(factor: float | None, all_dim: float | None) -> float:
    """Return DeepSeek's factor on the softmax scale, ``g(mscale_all_dim)**2``, of a scaling by ``factor``."""
    return float((all_dim * math.log(factor) / 10 + 1) ** 2) if factor and all_dim and factor > 1 else 1.0


def softmax_factor_of(rope: Mapping[str, Any], facts: Mapping[str, Any]) -> float:
    """Return that factor for a rope dict. It is 1 unless the model type has it; all scalings have it, not YaRN alone."""
    if not facts.get("softmax") or rope_type(rope) == "default":
        return 1.0
    numbers = {name: number(name, (name,), rope, low=0) for name in ("factor", "mscale_all_dim") if rope.get(name) is not None}
    return softmax_factor(numbers.get("factor"), numbers.get("mscale_all_dim"))


def _check_keys(rope: Mapping[str, Any], kind: str, facts: Mapping[str, Any]) -> None:
    """Refuse keys that the type does not read, since they may change the rotation."""
    known = ROPE_TYPES[kind]
    if kind == "dynamic" and facts.get("alpha"):
        known = ("alpha", *YARN)  # HunYuan's files carry YaRN's keys too; with alpha its code reads none of them
    if facts.get("softmax"):
        known = (*known, "mscale", "mscale_all_dim")  # they change the scale of the softmax, whatever the type
    strange = sorted(set(rope) - set(known) - set(COMMON))
    if strange:
        refuse(f"parameters of rope_type {kind!r} must be among {known}; got {strange}, which rope cannot do.")


def _longrope(rope: Mapping[str, Any], config: Mapping[str, Any], length: int, pairs: int) -> LongRoPE:
    short, long = (positives(name, rope.get(name), pairs) for name in ("short_factor", "long_factor"))
    factors: dict[str, Any] = {name: number(name, (name,), rope, low=0, strict=True) for name in MSCALES if name in rope}
    if "factor" in rope:
        return LongRoPE(short, long, length, factor=number("factor", ("factor",), rope, low=0, strict=True), **factors)
    known = first(LENGTHS, config) is not None or "attention_factor" not in factors
    return LongRoPE(short, long, length, max_length=integer(LENGTHS, config) if known else None, **factors)


def _yarn(rope: Mapping[str, Any], factor: float, length: int) -> YaRN:
    truncate = rope.get("truncate", True)
    if not isinstance(truncate, bool):
        refuse(f"truncate must be true or false; got {truncate!r}.")
    options = {name: number(name, (name,), rope, low=0) for name in YARN[1:-1] if name in rope}
    settings: dict[str, Any] = {name: value for name, value in options.items() if value != 0 or name == "attention_factor"}
    return YaRN(factor, length, truncate=truncate, **settings)
