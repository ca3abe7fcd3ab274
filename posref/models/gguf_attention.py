"""
Read the metadata of a GGUF file: scales, softcaps, sinks and temperatures of attention.

Keys of a row of tables/gguf.json, which are literals of llama.cpp's models (src/models) where the file has no key:

- ``softcap`` of a file without ``attn_logit_softcapping``;
- ``scale``: a number; "key", where ``attention.scale`` is read; "output", where ``attention.output_scale`` is, with a default;
  "latent", where the factor on cosines and that of yarn_log_multiplier also act on logits; or a dict with ``large``, the layers
  of the size whose scale is by embedding_length / head_count, not by the head;
- ``sinks``: "all", or "optional" if the file may lack their tensors;
- ``temperature``: its options, or the keys of its length, for files that have ``attention.temperature_scale``.
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, number
from posref.models.gguf import by_layer, gain_of, rotates
from posref.models.model_types import table
from posref.scaling import Scaling

OUTPUT_SCALE = 0.08838834764831845  # Grok's (grok.cpp, 7)
Entries = list[Entry | None]


def attention_of(metadata: Mapping[str, Any], name: str, text: Entries) -> dict[str, Entries]:
    """Return the scale, softcap, sinks and temperature of attention, by component: those that a file has."""
    row = table("gguf").get(name, {})
    scaling = next((entry.options["scaling"] for entry in text if entry is not None and entry.options), None)
    parts = {
        "text scale": _scale(metadata, name, row, scaling),
        "text softcap": _softcap(metadata, name, row),
        "text sinks": _sinks(row),
        "text temperature": _temperature(metadata, name, row),
    }
    return {component: entries for component, entries in parts.items() if any(entries)}


def _scale(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any], scaling: Scaling | None) -> Entries:
    rule = row.get("scale")
    if rule == "latent":
        return [] if scaling is None else [Entry("mla_logits", {"scale": _latent(metadata, name, row, scaling)})]
    if isinstance(rule, dict):
        heads = by_layer(metadata, f"{name}.attention.head_count")[0]
        if metadata.get(f"{name}.block_count") != rule["large"]:
            return []
        return [Entry("attention", {"scale": (integer((f"{name}.embedding_length",), metadata) // heads) ** -0.5})]
    if rule in ("key", "output"):
        key = f"{name}.attention.{'scale' if rule == 'key' else 'output_scale'}"
        scale = number(key, (key,), metadata, {key: 0.0 if rule == "key" else OUTPUT_SCALE}, low=0)
        return [Entry("attention", {"scale": scale})] if scale else []
    return [] if rule is None else [Entry("attention", {"scale": float(rule)})]


def _latent(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any], scaling: Scaling) -> float:
    """Return the scale of latent attention (deepseek2.cpp, 437), of linear scaling too."""
    keys = {f"{name}.rope.scaling.{key}": silent for key, silent in (("yarn_log_multiplier", 0.0), ("factor", 1.0))}
    moved, factor = (number(key, (key,), metadata, keys, low=0) for key in keys)
    attention_factor = getattr(scaling, "attention_factor", None)
    gain = gain_of(factor, 1.0) if attention_factor is None else attention_factor
    all_dim = moved / row["log_multiplier"]["unit"] if moved else 0.0
    width = integer((f"{name}.attention.key_length_mla", f"{name}.attention.key_length"), metadata)
    return float(width**-0.5 * (gain * gain_of(factor, all_dim)) ** 2)


def _softcap(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any]) -> Entries:
    if "softcap" not in row:
        return []
    key = f"{name}.attn_logit_softcapping"
    return [Entry("attention", {"softcap": number(key, (key,), metadata, {key: row["softcap"]}, low=0, strict=True)})]


def _sinks(row: Mapping[str, Any]) -> Entries:
    beside = {"sinks": "attn_sinks.weight of each layer, where the file has it"} if row.get("sinks") == "optional" else {}
    return [Entry("attention", {}, beside)] if "sinks" in row else []


def _temperature(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any]) -> Entries:
    rule = row.get("temperature")
    if isinstance(rule, list):
        key, length = f"{name}.attention.temperature_scale", tuple(f"{name}.{key}" for key in rule)
        beta = number(key, (key,), metadata, {key: 0.0}, low=0)
        options = {"form": "steps", "beta": beta, "original_length": integer(length, metadata) if beta else 1, "offset": 0}
        return [Entry("attention_temperature", options)] if beta else []
    if rule is None:
        return []
    entry = Entry("attention_temperature", {"form": "steps", **rule})
    return [None if rotates(metadata, name, layer) else entry for layer in range(integer((f"{name}.block_count",), metadata))]
