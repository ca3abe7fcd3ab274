"""
The model of ``check --for``: options, heads, sizes and lengths, read from a preset, a config.json or a GGUF file.

Where a file does not say how many heads or tokens there are, HEADS, KEY_HEADS and LENGTH stand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import posref
from posref.core.composition import parts_of
from posref.models.config import text_of
from posref.models.fields import first, parsed, refuse
from posref.models.gguf import check_layer
from posref.models.layers import number_of_layers
from posref.presets import Preset, Sizes, presets
from posref.spec import REGISTRY, Flag, OneOf, Record

from ...calls import parameters_of
from ...errors import TargetError, VectorError
from ...model import LoadedCase
from ...suite import gguf_file
from ...suite.safe_files import read_object

HEADS, KEY_HEADS, LENGTH = 8, 2, 4096  # of queries, of keys, and tokens, where a file does not say


@dataclass(frozen=True)
class Model:
    """
    The rotary encoding of a model, and its sizes.

    `op` is the operation that rotates heads and `options` are its keyword arguments. `original` counts the tokens that the
    model was trained on before its context was extended, `longest` those of the whole context. `still` are the layers that do
    not rotate; `layer` is the one layer that is asked.
    """

    name: str
    op: str
    options: Mapping[str, Any]
    sizes: Sizes
    original: int
    longest: int
    still: tuple[int, ...] = ()
    layer: int | None = None

    @property
    def is_still(self) -> bool:
        """Whether the layer that is asked does not rotate."""
        return self.layer in self.still

    @property
    def text(self) -> str:
        """What is asked, in words."""
        heads = f"{self.sizes.heads} heads of queries and {self.sizes.key_heads} of keys"
        of = "" if self.layer is None else f", layer {self.layer}"
        some = f"; layers {ranges(self.still)} do not rotate (--layer asks one)" if self.still and self.layer is None else ""
        return f"{self.name}{of}: {heads}, {self.sizes.head_size} lanes, {self.longest} tokens{some}"

    @property
    def operations(self) -> tuple[str, ...]:
        """The operation, its stages, and the table that some of these make of positions and its options alone."""
        return (self.op,) if self.is_still else (self.op, *parts_of(self.op))

    @property
    def scalings(self) -> tuple[str, ...]:
        """The kind of its scaling, if it has one."""
        return () if self.options["scaling"] is None else (type(self.options["scaling"]).__name__,)

    @cached_property
    def lanes(self) -> int:
        """How many lanes rotate."""
        return _lanes(self.options)

    @property
    def needs_length(self) -> bool:
        """Whether its frequencies depend on the length of the sequence."""
        return "length is not None" in getattr(self.options["scaling"], "requires", ())

    def arguments(self, op: str, length: int) -> dict[str, Any]:
        """Return the options of the operation or of one of its stages, in a sequence of `length` tokens."""
        known = REGISTRY[op].domains
        found = {name: value for name, value in self.options.items() if name in known}
        if found.get("rotary_dim") == self.sizes.head_size:
            del found["rotary_dim"]
        if "attention_factor" in known:
            found["attention_factor"] = self.frequencies(length)[1]
        if "dim" in parameters_of(REGISTRY[op].function):
            found["dim"] = self.lanes
        if "length" in known and self.needs_length:
            found["length"] = length
        return found

    def frequencies(self, length: int) -> tuple[npt.NDArray[np.float64], float]:
        """Return the frequencies, as a buffer in float32 holds them, and the factor on cosines and sines."""
        inv_freq, factor = posref.rope_frequencies(
            self.lanes,
            base=self.options["base"],
            scaling=self.options["scaling"],
            length=length if self.needs_length else None,
        )
        return np.asarray(inv_freq, dtype=np.float32).astype(np.float64), float(factor)

    def asks(self, case: LoadedCase) -> bool:
        """Return whether a case of the suite has the words, the kind of scaling and the form of the model's options."""
        return case.op in self.operations and all(self._is_like(case.op, call.params) for call in case.calls)

    def _is_like(self, op: str, params: Mapping[str, Any]) -> bool:
        own, defaults = self.arguments(op, self.longest), parameters_of(REGISTRY[op].function)
        for name, domain in REGISTRY[op].domains.items():
            mine, asked = (given.get(name, defaults[name].default) for given in (own, params))
            if isinstance(domain, OneOf | Flag) and mine != asked:
                return False
            if isinstance(domain, Record) and type(mine) is not type(asked):
                return False
            if name == "rotary_dim" and (mine is None) != (asked is None):
                return False
            if name == "sections" and len(mine) != len(asked):
                return False
        return True


# ---- reading --------------------------------------------------------------------------------------------------------------
def read(name: str, layer: int | None = None, layout: str | None = None) -> Model:
    """
    Return a model: a preset's name, or the path of its config.json or GGUF file, with ``:layer_type`` where layers differ.

    `layer` is the number of one layer. `layout` is taken in place of the file's.

    Raises
    ------
    TargetError
        If there is no such preset or file, or it is of no rotary encoding.
    """
    path, _, layer_type = name.partition(":")
    if path in presets:
        if layer is not None or layout is not None:
            what = "layer" if layer is not None else "layout"
            msg = f"for: {what} must not be given for a preset, which has one; got {name}. Give the path of a config.json."
            raise TargetError(msg)
        return _of_preset(presets[path])
    if path.endswith(".gguf"):
        return _of_gguf(name, Path(path), layer_type or None, layer, layout)
    if not (path.endswith(".json") or Path(path).exists()):
        try:
            presets[path]
        except KeyError as error:
            msg = f"for: {str(error.args[0]).removeprefix('presets: ')} Or give the path of a config.json."
            raise TargetError(msg) from None
    try:
        config = read_object(Path(path))
    except VectorError as error:
        msg = f"for: {path} cannot be read: {error}"
        raise TargetError(msg) from error
    return of_config(name, config, layer_type or None, layer, layout)


def of_config(
    name: str, config: Mapping[str, Any], layer_type: str | None = None, layer: int | None = None, layout: Any = None
) -> Model:
    """Return the model of a parsed config.json; `TargetError` for what its readers refuse."""
    still: tuple[int, ...] = ()
    try:
        if _has_axes(config):
            if layer is not None:
                refuse("layer must not be given: all layers of a model with several position axes are alike.")
            op, options = posref.mrope.__name__, {**posref.mrope_from_config(config, layout=layout)}
        else:
            still = _still_layers(config, layout)
            op, options = posref.rope.__name__, {**_of_layer(config, layer_type, layer, layout, still)}
    except (ValueError, TypeError, AttributeError) as error:
        msg = f"for: {name}: {error}"
        raise TargetError(msg) from error
    places = [text_of(parsed(config))]
    heads = _count(("num_attention_heads", "n_head", "num_heads"), HEADS, places)
    lanes = _lanes(options)
    latent = first(("qk_rope_head_dim",), *places) is not None  # the rotated slice alone, and one key for all heads
    known = first(("qk_rope_head_dim", "head_dim"), *places)
    width = known if isinstance(known, int) else _count(("hidden_size", "n_embd"), lanes * heads, places) // heads
    longest = _count(("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"), LENGTH, places)
    key_heads = 1 if latent else _count(("num_key_value_heads",), heads, places)
    return _sized(name, op, options, Sizes(heads, key_heads, max(width, lanes), longest), still, layer)


def _of_layer(
    config: Mapping[str, Any], layer_type: str | None, layer: int | None, layout: Any, still: tuple[int, ...]
) -> Mapping[str, Any]:
    """Return the options of a layer. Those of one that does not rotate are what code would rotate by that does not know it."""
    if layer is None:
        return posref.rope_from_config(config, layer_type=layer_type, layout=layout)
    found = posref.rope_from_config(config, layer=layer, layout=layout)
    others = (n for n in range(layer + 1 + len(still)) if n not in still)
    return found or posref.rope_from_config(config, layer=next(others), layout=layout) or {}


def _still_layers(config: Mapping[str, Any], layout: Any) -> tuple[int, ...]:
    """Return the layers that do not rotate. Empty if the file does not say how many layers there are."""
    try:
        count = number_of_layers(text_of(parsed(config)), 0)
        return tuple(n for n in range(count) if posref.rope_from_config(config, layer=n, layout=layout) is None)
    except ValueError:
        return ()


def ranges(numbers: tuple[int, ...]) -> str:
    """Return increasing numbers in commas, with ranges: 0-2,4."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _of_gguf(name: str, path: Path, layer_type: str | None, layer: int | None, layout: Any) -> Model:
    try:
        metadata, divisors = gguf_file.read(path)
        count = metadata.get(f"{metadata['general.architecture']}.block_count", 0)
        by_number = {
            n: posref.rope_from_gguf(metadata, rope_factors=divisors or None, layer=n, layout=layout)
            for n in (range(count) if layer is not None else ())
        }
        still = tuple(n for n, own in by_number.items() if own is None)
        if layer is None:
            options = {**posref.rope_from_gguf(metadata, rope_factors=divisors or None, layer_type=layer_type, layout=layout)}
        else:
            check_layer(metadata, metadata["general.architecture"], layer)
            options = {**(by_number[layer] or next(own for own in by_number.values() if own is not None))}
    except (ValueError, VectorError) as error:
        msg = f"for: {name}: {error}"
        raise TargetError(msg) from error
    own = f"{metadata['general.architecture']}."
    heads = _count((f"{own}attention.head_count",), HEADS, [metadata])
    key_heads = _count((f"{own}attention.head_count_kv",), heads, [metadata])
    lanes = _lanes(options)
    longest = _count((f"{own}context_length",), LENGTH, [metadata])
    if f"{own}attention.kv_lora_rank" in metadata:  # the sizes of keys are those of the compressed cache; only a slice rotates
        return _sized(name, posref.rope.__name__, options, Sizes(heads, 1, lanes, longest), still, layer)
    width = _count((f"{own}embedding_length",), lanes * heads, [metadata]) // heads
    width = _count((f"{own}attention.key_length",), width, [metadata])
    return _sized(name, posref.rope.__name__, options, Sizes(heads, key_heads, max(width, lanes), longest), still, layer)


def _of_preset(preset: Preset) -> Model:
    lanes = _lanes(preset.options)
    return _sized(preset.name, preset.op, preset.options, preset.sizes or Sizes(HEADS, KEY_HEADS, lanes, LENGTH))


def _lanes(options: Mapping[str, Any]) -> int:
    """Return how many channels rotate by the options of an operation."""
    return 2 * sum(options["sections"]) if "sections" in options else int(options["rotary_dim"])


def _sized(
    name: str, op: str, options: Mapping[str, Any], sizes: Sizes, still: tuple[int, ...] = (), layer: int | None = None
) -> Model:
    """Return a model whose original length is that of its scaling; its context is no shorter than the scaling makes it."""
    scaling = options["scaling"]
    original = getattr(scaling, "original_length", None)
    if original is None:
        return Model(name, op, options, sizes, sizes.longest, sizes.longest, still, layer)
    extended = getattr(scaling, "max_length", None) or original * float(getattr(scaling, "factor", None) or 1)
    longest = max(sizes.longest, int(extended))
    return Model(name, op, options, sizes, min(original, longest), longest, still, layer)


def _has_axes(config: Mapping[str, Any]) -> bool:
    places = [config, config.get("text_config") or {}]
    dicts = [place.get(key) for place in places if isinstance(place, Mapping) for key in ("rope_scaling", "rope_parameters")]
    return any(isinstance(one, Mapping) and "mrope_section" in one for one in dicts)


def _count(names: tuple[str, ...], default: int, places: list[Mapping[str, Any]]) -> int:
    """Return the first whole number under one of several names, or the default."""
    found = first(names, *places)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else default
