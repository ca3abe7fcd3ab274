"""
Read the metadata of a GGUF file: what attention has besides positions and a mask.

Keys of a row of tables/gguf.json, which are literals of llama.cpp's models (src/models) where the file has no key:

- ``softcap`` of a file without ``attn_logit_softcapping``;
- ``scale``: a number; "key", where ``attention.scale`` is read; "output", where ``attention.output_scale`` is, with a default;
  or a dict with ``large``, the layers of the size whose scale is by embedding_length / head_count, not by the head;
- ``sinks``: "all", or "optional" if the file may lack their tensors; ``temperature``: its options, or "key".
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.fields import integer, number
from posref.models.gguf import by_layer, rotates
from posref.models.model_types import table
from posref.models.rope_scaling import softmax_factor

OUTPUT_SCALE = 0.08838834764831845  # Grok's (grok.cpp, 7)
Entries = list[Entry | None]


def attention_of(metadata: Mapping[str, Any], name: str, count: int) -> dict[str, Entries]:
    """Return the scale, softcap, sinks and temperature of attention, by component: those that a file has."""
    row = table("gguf").get(name, {})
    found = {
        "text scale": _scale(metadata, name, row),
        "text softcap": _softcap(metadata, name, row),
        "text sinks": _sinks(row),
        "text temperature": _temperature(metadata, name, row, count),
    }
    return {component: entries for component, entries in found.items() if any(entries)}


def _scale(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any]) -> Entries:
    rule, unit = row.get("scale"), row.get("log_multiplier", {}).get("unit")
    if row.get("latent") and unit is not None:
        keys = {f"{name}.rope.scaling.{key}": silent for key, silent in (("yarn_log_multiplier", 0.0), ("factor", 1.0))}
        moved, factor = (number(key, (key,), metadata, keys, low=0) for key in keys)
        width = (f"{name}.attention.key_length_mla", f"{name}.attention.key_length")
        if not moved or not any(key in metadata for key in width):
            return []
        return [Entry("mla_logits", {"scale": integer(width, metadata) ** -0.5 * softmax_factor(factor, moved / unit)})]
    if isinstance(rule, dict):
        heads = by_layer(metadata, f"{name}.attention.head_count")[0]
        large = metadata.get(f"{name}.block_count") == rule["large"]
        return (
            [Entry("attention", {"scale": (integer((f"{name}.embedding_length",), metadata) / heads) ** -0.5})] if large else []
        )
    if rule in ("key", "output"):
        key = f"{name}.attention.{'scale' if rule == 'key' else 'output_scale'}"
        given = number(key, (key,), metadata, {key: 0.0 if rule == "key" else OUTPUT_SCALE}, low=0)
        return [Entry("attention", {"scale": given})] if given else []
    return [] if rule is None else [Entry("attention", {"scale": float(rule)})]


def _softcap(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any]) -> Entries:
    if "softcap" not in row:
        return []
    key = f"{name}.attn_logit_softcapping"
    return [Entry("attention", {"softcap": number(key, (key,), metadata, {key: row["softcap"]}, low=0, strict=True)})]


def _sinks(row: Mapping[str, Any]) -> Entries:
    beside = {"sinks": "attn_sinks.weight of each layer, where the file has it"} if row.get("sinks") == "optional" else {}
    return [Entry("attention", {}, beside)] if "sinks" in row else []


def _temperature(metadata: Mapping[str, Any], name: str, row: Mapping[str, Any], count: int) -> Entries:
    rule = row.get("temperature")
    if rule == "key":
        key, length = f"{name}.attention.temperature_scale", f"{name}.rope.scaling.original_context_length"
        beta = number(key, (key,), metadata, {key: 0.0}, low=0)
        options = {"form": "steps", "beta": beta, "original_length": integer((length,), metadata) if beta else 1, "offset": 0}
        return [Entry("attention_temperature", options)] if beta else []
    if rule is None:
        return []
    entry = Entry("attention_temperature", {"form": "steps", **rule})
    return [None if rotates(metadata, name, layer) else entry for layer in range(count)]
