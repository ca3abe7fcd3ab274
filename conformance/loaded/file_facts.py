"""Reads what a model's file says of each layer of a part: its rotation, mask, scale, sinks, softcap and bias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from posref.models.arguments import Entry
from posref.models.config import text_of
from posref.models.fields import parsed
from posref.models.whole import from_config

SCALE_KEYS = ("query_pre_attn_scalar", "attention_multiplier")  # where from_config has no scale, it does not read them
PLAIN_ATTENTION: tuple[str, dict[str, Any]] = ("attention", {})  # of parts without positions
TEMPERATURE = "attention_temperature"
BIASES = ("alibi", "t5_bias")
ROTATIONS = ("rope", "mrope")
PLAIN = ("rope", "mrope", "learned", "sinusoidal", "alibi", "t5_bias")  # attention is a softmax of q.k with at most a bias


@dataclass(frozen=True)
class LayerFacts:
    """
    What the file says of one layer.

    `position` is the encoding in the layer or, for learned tables, before it. None where the layer has none.
    """

    position: Entry | None
    mask: Entry | None
    scale: float | None
    sinks: bool
    softcap: float | None
    temperature: Entry | None
    unjudged: tuple[str, ...] = ()  # components that change attention and that are not judged

    @property
    def rotation(self) -> Entry | None:
        """The rotation of the layer, if it has one that can be computed."""
        return self.position if self.position is not None and self.position.operation in ROTATIONS else None

    @property
    def bias(self) -> Entry | None:
        """The bias of the layer's attention, if it has one that can be computed."""
        return self.position if self.position is not None and self.position.operation in BIASES else None


@dataclass(frozen=True)
class FileFacts:
    """The components of a file, as `posref.from_config` returns them, and its configuration."""

    config: Mapping[str, Any]
    components: Mapping[str, list[Entry | None]]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the model that a pass of tokens runs."""
        names = [name for name in ("text", "encoder", "decoder") if name in self.components]
        return tuple(names[:1] if "text" in names else names)

    def part(self, name: str) -> Mapping[str, Any]:
        """Return the configuration of a part: of its own, or that of the text."""
        inner = self.config.get(name)
        return inner if isinstance(inner, dict) else text_of(self.config)

    def entry(self, component: str, layer: int) -> Entry | None:
        """Return the entry of one layer of a component."""
        entries = self.components.get(component, [])
        return entries[0] if len(entries) == 1 else entries[layer] if layer < len(entries) else None

    def layer(self, part: str, number: int) -> LayerFacts:
        """Return what the file says of a layer."""
        scale, position = self.entry(f"{part} scale", number), self.entry(part, number)
        temperature = self.entry(f"{part} temperature", number)
        defined = temperature is not None and temperature.operation == TEMPERATURE and temperature.options is not None
        others = ("values", "attention", "horizontal", "layout", "bias", *(() if defined else ("temperature",)))
        unjudged = [
            name for name in (f"{part} {other}" for other in others) if self.entry(name, number) not in (None, PLAIN_ATTENTION)
        ]
        keys = [name for name in SCALE_KEYS if scale is None and self.part(part).get(name) is not None]
        unjudged += [f"{keys[0]}, which from_config does not read here"] if keys else []
        unjudged += [f"{part} scale"] if scale is not None and not (scale.options or {}).get("scale") else []
        sinks, softcap, mask = (self.entry(f"{part} {name}", number) for name in ("sinks", "softcap", "mask"))
        unjudged += [f"{part} sinks"] if sinks is not None and sinks.options is None else []
        if position is not None and (position.operation not in PLAIN or position.options is None):
            unjudged.append(f"{part} ({position.operation})")
        return LayerFacts(
            position,
            mask if mask is None or mask.options is not None else None,  # a pass without a cache is causal
            _scale(scale, position),
            sinks is not None,
            softcap and (softcap.options or {}).get("softcap"),
            temperature if defined else None,
            tuple(unjudged),
        )

    def distinct(self, part: str) -> dict[int, Entry]:
        """Return the different rotations of a part, by the first layer that has each."""
        entries: dict[int, Entry] = {}
        for number, entry in enumerate(self.components.get(part, [])):
            if entry is not None and entry.operation in ROTATIONS and entry not in entries.values():
                entries[number] = entry
        return entries


def _scale(entry: Entry | None, position: Entry | None) -> float | None:
    """Return the scale of a layer, None if it is 1/sqrt(D): T5 and its kin have none."""
    if entry is not None:
        return (entry.options or {}).get("scale")
    return 1.0 if position is not None and position.operation == "t5_bias" else None


def facts_of(config: Any, model: object) -> FileFacts:
    """
    Read a configuration, or its file.

    The class of a model of transformers, or of one that extends it, stands for the architectures of the file.
    """
    whole = dict(parsed(config))
    classes = [kind.__name__ for kind in type(model).__mro__ if kind.__module__.startswith("transformers.models.")]
    if classes:  # none for a wrapper, as PEFT's
        whole["architectures"] = classes[:1]
    return FileFacts(whole, from_config(whole))
