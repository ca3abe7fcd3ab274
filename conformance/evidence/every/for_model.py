"""
The model of ``check --for``: what each kind of its layers does, and at which sizes, by a preset, a config.json or a GGUF file.

Where a file does not say how many heads or tokens there are, HEADS, KEY_HEADS and LENGTH stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import posref
from posref.core.composition import parts_of
from posref.models.arguments import Entry
from posref.models.config import check as facts_of
from posref.models.config import dicts_of, head_dim, text_of, type_of_layer
from posref.models.fields import first, parsed, refuse
from posref.models.layers import COUNT, number_of_layers
from posref.models.model_types import model_table
from posref.models.parts import completed
from posref.models.whole import OWN_NAMES
from posref.presets import Preset, Sizes, presets
from posref.spec import REGISTRY

from ...calls import parameters_of
from ...errors import TargetError, VectorError
from ...suite import gguf_file
from ...suite.safe_files import read_object

HEADS, KEY_HEADS, LENGTH, SIDE = 8, 2, 4096, 24  # query heads, key heads, tokens, cells of an image: if a file does not say
NAMES = {
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "longest": ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_source_positions"),
    "hidden": ("embed_dim", "hidden_size", "n_embd", "d_model"),
}
MADE = ({"x", "positions"}, {"x", "weight"}, {"x", "weight", "cos", "sin"}, {"x", "weight", "positions"}, {"positions"},
        {"q_positions", "k_positions"})  # fmt: skip  # arrays of the operations that are asked: `model_cases` makes these

Components: TypeAlias = Mapping[str, list[Entry | None]]
Measure: TypeAlias = Callable[[str, int | None, Mapping[str, Any]], tuple[Sizes, tuple[int, int] | None]]


@dataclass(frozen=True)
class Kind:
    """
    Layers of a component that do the same: the operation, its options, and the sizes of heads.

    `original` counts the tokens that the model was trained on before its context was extended, `longest` those of the whole
    context. `layers` are their numbers, empty if all layers of the component are alike. `grid` are the cells of an image, for
    components that read images. `rotation` has the options of the rotation of layers whose norm is asked. A norm that is
    `joined` is over all heads together, and one that is not `weighted` is asked with weights of 1. `label` is in the names of
    its calls where other kinds are asked too.
    """

    component: str
    op: str
    options: Mapping[str, Any]
    sizes: Sizes
    original: int
    longest: int
    layers: tuple[int, ...] = ()
    grid: tuple[int, int] | None = None
    rotation: Mapping[str, Any] = field(default_factory=dict)
    joined: bool = False
    weighted: bool = True
    label: str = ""

    @property
    def where(self) -> str:
        """Its layers, in words."""
        layers = f" layer{'s' * (len(self.layers) > 1)} {ranges(self.layers)}" if self.layers else ""
        return f"{self.component}{layers}"

    @property
    def text(self) -> str:
        """The sizes of its cases, in words."""
        heads = f"{self.sizes.heads} heads of queries and {self.sizes.key_heads} of keys"
        return f"{heads}, {self.sizes.head_size} lanes, {self.longest} tokens"

    def is_like(self, other: Kind) -> bool:
        """Whether it makes the calls of another kind."""
        return replace(self, component="", layers=()) == replace(other, component="", layers=())

    @property
    def operations(self) -> tuple[str, ...]:
        """The operation, and of a rotation by positions its stages too."""
        return (
            (self.op, *parts_of(self.op)) if self.has_frequencies and "weight" not in REGISTRY[self.op].arrays else (self.op,)
        )

    @property
    def source(self) -> Mapping[str, Any]:
        """The options that give its frequencies."""
        return self.rotation or self.options

    @property
    def has_frequencies(self) -> bool:
        """Whether its frequencies follow from a base and a scaling."""
        return {"base", "scaling"} <= self.source.keys()

    @cached_property
    def lanes(self) -> int:
        """How many lanes rotate."""
        return _lanes(self.source)

    @property
    def needs_length(self) -> bool:
        """Whether its frequencies depend on the length of the sequence."""
        return "length is not None" in getattr(self.source.get("scaling"), "requires", ())

    def arguments(self, op: str, length: int) -> dict[str, Any]:
        """Return the options of the operation or of one of its stages, in a sequence of `length` tokens."""
        known = REGISTRY[op].domains
        chosen = {name: value for name, value in self.options.items() if name in known}
        if chosen.get("rotary_dim") == self.sizes.head_size:
            del chosen["rotary_dim"]
        if "attention_factor" in known:
            chosen["attention_factor"] = self.frequencies(length)[1]
        if "dim" in parameters_of(REGISTRY[op].function):
            chosen["dim"] = self.options.get("dim") or self.lanes
        if "length" in known and self.needs_length:
            chosen["length"] = length
        return chosen

    def frequencies(self, length: int) -> tuple[npt.NDArray[np.float64], float]:
        """Return the frequencies, as a buffer in float32 holds them, and the factor on cosines and sines."""
        inv_freq, factor = posref.rope_frequencies(
            self.lanes, base=self.source["base"], scaling=self.source["scaling"], length=length if self.needs_length else None
        )
        return np.asarray(inv_freq, dtype=np.float32).astype(np.float64), float(factor)


@dataclass(frozen=True)
class Model:
    """
    What a model does, by kinds of layers.

    `still` are the layers that do not rotate; `layer` is the one layer that is asked. `others` are kinds of the same file that
    are not asked: their options are tried as explanations.
    """

    name: str
    kinds: tuple[Kind, ...]
    others: tuple[Kind, ...] = ()
    still: tuple[int, ...] = ()
    layer: int | None = None

    @property
    def is_still(self) -> bool:
        """Whether the chosen layer does not rotate."""
        return self.layer in self.still

    @property
    def text(self) -> str:
        """The choice in words."""
        of = "" if self.layer is None else f", layer {self.layer}"
        some = f"; layers {ranges(self.still)} do not rotate (--layer asks one)" if self.still and self.layer is None else ""
        asked = "; ".join(f"{kind.op} of {kind.where}: {kind.text}" for kind in self.kinds)
        return f"{self.name}{of}: {self.kinds[0].text if len(self.kinds) == 1 else asked}{some}"

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations of all kinds, with their stages."""
        every = (op for kind in self.kinds for op in ((kind.op,) if self.is_still else kind.operations))
        return tuple(dict.fromkeys(every))

    @property
    def scalings(self) -> tuple[str, ...]:
        """The kinds of scalings that it has."""
        scalings = (kind.options.get("scaling") for kind in self.kinds)
        return tuple(dict.fromkeys(type(scaling).__name__ for scaling in scalings if scaling is not None))


@dataclass(frozen=True)
class Choice:
    """A part of a file: one layer, the layers of a type, or a component; a layout in place of the file's."""

    layer_type: str | None = None
    layer: int | None = None
    layout: Any = None
    component: str | None = None

    @property
    def is_of_text(self) -> bool:
        """Whether it is of the text alone."""
        return self.layer is not None or self.layer_type is not None


# ---- reading --------------------------------------------------------------------------------------------------------------
def read(name: str, layer: int | None = None, layout: str | None = None, component: str | None = None) -> Model:
    """
    Return a model: a preset's name, or the path of its config.json or GGUF file, with ``:layer_type`` for layers of one type.

    `layer` is the number of one layer, and `component` the name of a component, of the text by default. `layout` is taken in
    place of the file's.

    Raise TargetError if there is no such preset, file, component or layer, or nothing of it can be asked.
    """
    path, _, layer_type = name.partition(":")
    if path in presets:
        chosen = {"layer": layer, "layout": layout, "component": component}
        what = next((option for option, value in chosen.items() if value is not None), None)
        if what is not None:
            msg = f"for: {what} must not be given for a preset, which has one; got {name}. Give the path of a config.json."
            raise TargetError(msg)
        return _of_preset(presets[path])
    choice = Choice(layer_type or None, layer, layout, component)
    if path.endswith(".gguf"):
        return _of_gguf(name, Path(path), choice)
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
    return of_config(name, config, choice)


def of_config(name: str, config: Mapping[str, Any], choice: Choice) -> Model:
    """Return the model of a parsed config.json; `TargetError` for what its readers refuse."""
    try:
        layers = _count(COUNT, 1, [text_of(parsed(config))])
        return _model(name, _components(config, choice), choice, layers, partial(_measured, config))
    except (ValueError, TypeError, AttributeError) as error:
        msg = f"for: {name}: {error}"
        raise TargetError(msg) from error


def _components(config: Mapping[str, Any], choice: Choice) -> dict[str, list[Entry | None]]:
    """
    Return the entries of all layers by component.

    Of a file whose model type is not known, those of its text. Of one that does not say which layer is of which type, by type.
    """
    options: Any
    if choice.layer_type is not None:
        options = posref.rope_from_config(config, layer_type=choice.layer_type, layout=choice.layout)
        return {"text": [Entry(posref.rope.__name__, {**options})]}
    try:
        components = posref.from_config(config)
    except ValueError:
        if str(config.get("model_type")) not in model_table():
            return {"text": [_of_unknown(config, choice.layout)]}
        text = text_of(parsed(config))
        types = dicts_of(text, facts_of(text)[1])[1]
        if choice.layer is not None or not types:
            raise
        options = {kind: posref.rope_from_config(config, layer_type=kind, layout=choice.layout) for kind in types}
        return {f"text {kind}": [Entry(posref.rope.__name__, {**options[kind]})] for kind in types}
    return {component: [_with_layout(entry, choice.layout) for entry in listed] for component, listed in components.items()}


def _of_unknown(config: Mapping[str, Any], layout: Any) -> Entry:
    """Return the rotation of a file whose model type is not known."""
    if _has_axes(config):
        return Entry(posref.mrope.__name__, {**posref.mrope_from_config(config, layout=layout)})
    return Entry(posref.rope.__name__, {**posref.rope_from_config(config, layout=layout)})


def _with_layout(entry: Entry | None, layout: Any) -> Entry | None:
    if entry is None or layout is None or "scaling" not in (entry.options or {}):
        return entry
    return entry._replace(options={**(entry.options or {}), "layout": layout})


def _model(name: str, components: Components, choice: Choice, layers: int, measure: Measure) -> Model:
    """Return the model of a file's components and number of layers; `measure` gives the sizes of a component's layers."""
    asked = [component for component in components if choice.component in (None, component)]
    if not asked:
        refuse(f"component must be one of {', '.join(components)}; got {choice.component!r}.")
    if choice.is_of_text and choice.component is None:
        asked = [component for component in asked if component.partition(" ")[0] == "text"] or asked[:1]
    kinds = {component: list(_kinds(component, components, measure)) for component in components if component in asked}
    main = next(
        (component for component in kinds if any("x" in REGISTRY[kind.op].arrays for kind in kinds[component])), asked[0]
    )
    count = len(components[main])
    last = max(count, layers) - 1
    if choice.layer is not None and not (0 <= choice.layer <= last):
        refuse(f"layer must be an int from 0 to {last}, the last layer of {main}; got {choice.layer}.")
    others = [kind for component in components for kind in kinds.get(component, _kinds(component, components, measure))]
    still = tuple(n for n, entry in enumerate(components[main]) if entry is None) if count > 1 else ()
    if choice.layer is not None:
        rotating = [kind for component in kinds for kind in kinds[component] if not kind.layers or choice.layer in kind.layers]
        rotating = [kind for kind in rotating if not (choice.layer in still and kind.component != main)]
        rotating = rotating or kinds[main][:1]  # what code would rotate by that does not know that the layer is still
        rotating = [replace(kind, layers=(choice.layer,) if kind.layers else ()) for kind in rotating]
    else:
        rotating = [kind for component in kinds for kind in kinds[component]]
    if not rotating:
        described = "; ".join(f"{component} has {_operations(listed)}" for component, listed in components.items())
        refuse(f"nothing of {', '.join(asked)} can be asked: {described}.")
    rotating = [kind for n, kind in enumerate(rotating) if not any(kind.is_like(other) for other in rotating[:n])]
    rest = [kind for kind in others if not any((kind.op, kind.options) == (other.op, other.options) for other in rotating)]
    return Model(name, tuple(_labelled(rotating)), tuple(rest), still, choice.layer)


def _operations(listed: list[Entry | None]) -> str:
    return ", ".join(dict.fromkeys("none" if entry is None else entry.operation for entry in listed))


def _kinds(component: str, components: Components, measure: Measure) -> Iterator[Kind]:
    """Yield the kinds of layers of a component whose operation has cases."""
    listed = components[component]
    turns = components.get(component.removesuffix(" norm"), []) if component.endswith(" norm") else []
    listed = listed * len(turns) if len(listed) == 1 and turns else listed
    groups: dict[str, list[int]] = {}
    for number, entry in enumerate(listed):
        if entry is not None and entry.operation in REGISTRY and _can_be_asked(entry):
            groups.setdefault(repr((entry, turns and turns[min(number, len(turns) - 1)])), []).append(number)
    for layers in groups.values():
        entry, turn = listed[layers[0]], turns and turns[min(layers[0], len(turns) - 1)]
        assert entry is not None
        options, rotation = entry.options or {}, {**(turn.options or {})} if turn else {}
        sizes, grid = measure(component, layers[0] if len(listed) > 1 else None, rotation or options)
        numbers = tuple(layers) if len(listed) > 1 else ()
        kind = Kind(component, entry.operation, options, sizes, sizes.longest, sizes.longest, numbers, grid, rotation)
        yield _sized(replace(kind, joined="width" in entry.conventions, weighted="weight" not in entry.conventions))


def _can_be_asked(entry: Entry) -> bool:
    """Whether the file decides all options of an operation, and its arrays can be made without a checkpoint or an image."""
    if entry.options is None or set(REGISTRY[entry.operation].arrays) not in MADE:
        return False
    needed = {
        name
        for name, parameter in parameters_of(REGISTRY[entry.operation].function).items()
        if parameter.default is parameter.empty and name not in REGISTRY[entry.operation].arrays
    }
    return needed <= entry.options.keys() and ("dims" not in entry.options or "x" in REGISTRY[entry.operation].arrays)


def _labelled(kinds: list[Kind]) -> Iterator[Kind]:
    """Yield kinds with labels: none for the only kind of an operation, else its layer, and its component if several have it."""
    for kind in kinds:
        peers = [other for other in kinds if {*other.operations} & {*kind.operations}]
        component = kind.component.replace(" ", "-") if any(other.component != kind.component for other in peers) else ""
        layer = f"layer-{kind.layers[0]}" if kind.layers and len(peers) > 1 else ""
        yield replace(kind, label="-".join(part for part in (component, layer) if part))


def _measured(
    config: Mapping[str, Any], component: str, layer: int | None, options: Mapping[str, Any]
) -> tuple[Sizes, tuple[int, int] | None]:
    """Return the sizes of a component's heads in a layer, and the cells of its images."""
    part = _part(config, component)
    kind = None
    if layer is not None:
        with suppress(ValueError):  # layers of a part whose file does not name their types
            kind = type_of_layer(part, layer, number_of_layers(part, layer))
    slides, lanes = kind in ("sliding_attention", "swa"), _lanes(options)
    heads = ("swa_num_attention_heads",) if slides else ()
    number = _count((*heads, f"{component}_attention_heads", *NAMES["heads"]), HEADS, [part])
    keys = ("swa_num_key_value_heads",) if slides else ("num_global_key_value_heads",) if kind == "full_attention" else ()
    key_heads = _count((*keys, "num_key_value_heads"), number, [part])
    longest = _count(NAMES["longest"], LENGTH, [part])
    if component.startswith("indexer"):
        number, key_heads = _count(("index_n_heads",), number, [part]), 1
        width = _count(("index_head_dim",), lanes, [part])
    elif first(("qk_rope_head_dim",), part) is not None and options.get("lanes", "leading") == "leading":
        width, key_heads = lanes, 1  # the rotated slice alone, and one key for all heads
    else:
        known = _width(part, kind, slides=slides)
        width = known or _count(NAMES["hidden"], lanes * number, [part]) // number
    side = _count(("image_size",), 0, [part]) // _count(("patch_size",), 1, [part]) or SIDE
    grid = (min(side, SIDE), min(side, SIDE)) if "dims" in options else None
    return Sizes(number, key_heads, max(width, lanes), longest), grid


def _width(part: Mapping[str, Any], kind: str | None, *, slides: bool) -> int:
    """Return the width of a head in layers of a type; 0 if the file does not say."""
    size = first(("swa_head_dim",), part) if slides else None
    try:
        return int(size) if size is not None else head_dim(part, facts_of(part)[1], kind)
    except ValueError:
        return 0


def _part(config: Mapping[str, Any], component: str) -> Mapping[str, Any]:
    """Return the part of a file that describes a component, with the defaults of its class."""
    whole = parsed(config)
    if component in OWN_NAMES or component.partition(" ")[0] == "text":
        return text_of(whole)
    while True:
        inner = {key.removesuffix("_config").replace("_", " "): part for key, part in whole.items() if isinstance(part, dict)}
        name = max((part for part in inner if f"{component} ".startswith(f"{part} ")), key=len, default=None)
        if name is None:
            return completed(whole, str(whole.get("model_type")))
        whole, component = inner[name], component[len(name) + 1 :]


def ranges(numbers: tuple[int, ...]) -> str:
    """Return increasing numbers in commas, with ranges: 0-2,4."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _of_gguf(name: str, path: Path, choice: Choice) -> Model:
    try:
        metadata, divisors = gguf_file.read(path)
        layers = _count((f"{metadata['general.architecture']}.block_count",), 1, [metadata])
        components = _gguf_components(metadata, divisors or None, choice)
        return _model(name, components, choice, layers, partial(_gguf_sizes, metadata))
    except (ValueError, VectorError) as error:
        msg = f"for: {name}: {error}"
        raise TargetError(msg) from error


def _gguf_components(metadata: Mapping[str, Any], divisors: Any, choice: Choice) -> dict[str, list[Entry | None]]:
    """Return the entries of a GGUF file by component: of its text alone with a layout, a layer type, or no number of layers."""
    known = f"{metadata['general.architecture']}.block_count" in metadata
    if choice.layer_type is None and choice.layout is None and (known or choice.layer is not None):
        return posref.from_gguf(metadata, rope_factors=divisors)
    options = posref.rope_from_gguf(metadata, rope_factors=divisors, layer_type=choice.layer_type, layout=choice.layout)
    return {"text": [Entry(posref.rope.__name__, {**options})]}


def _gguf_sizes(
    metadata: Mapping[str, Any], component: str, layer: int | None, options: Mapping[str, Any]
) -> tuple[Sizes, tuple[int, int] | None]:
    """Return the sizes of heads in a layer of a GGUF file."""
    architecture = str(metadata["general.architecture"])
    prefix, lanes = f"{architecture}.", _lanes(options)
    heads = _count((f"{prefix}attention.head_count",), HEADS, [metadata])
    key_heads = _count((f"{prefix}attention.head_count_kv",), heads, [metadata])
    longest = _count((f"{prefix}context_length",), LENGTH, [metadata])
    grid = (SIDE, SIDE) if "dims" in options else None
    if f"{prefix}attention.kv_lora_rank" in metadata and options.get("lanes", "leading") == "leading":
        return Sizes(
            heads, 1, lanes, longest
        ), grid  # the sizes of keys are those of the compressed cache; only a slice rotates
    width = _count((f"{prefix}embedding_length",), lanes * heads, [metadata]) // heads
    width = _count((f"{prefix}attention.key_length",), width, [metadata])
    return Sizes(heads, key_heads, max(width, lanes), longest), grid


def _of_preset(preset: Preset) -> Model:
    sizes = preset.sizes or Sizes(HEADS, KEY_HEADS, _lanes(preset.options), LENGTH)
    kind = _sized(Kind("text", preset.op, preset.options, sizes, sizes.longest, sizes.longest))
    return Model(preset.name, (kind,))


def _lanes(options: Mapping[str, Any]) -> int:
    """Return how many channels rotate by the options of an operation; 0 if none do."""
    return 2 * sum(options.get("sections", ())) or sum(options.get("dims", ())) or int(options.get("rotary_dim") or 0)


def _sized(kind: Kind) -> Kind:
    """Return a kind whose original length is that of its scaling; its context is no shorter than the scaling makes it."""
    scaling = kind.source.get("scaling")
    original = getattr(scaling, "original_length", None)
    if original is None:
        return kind
    extended = getattr(scaling, "max_length", None) or original * float(getattr(scaling, "factor", None) or 1)
    longest = max(kind.longest, int(extended))
    return replace(kind, original=min(original, longest), longest=longest)


def _has_axes(config: Mapping[str, Any]) -> bool:
    places = [config, config.get("text_config") or {}]
    dicts = [place.get(key) for place in places if isinstance(place, Mapping) for key in ("rope_scaling", "rope_parameters")]
    return any(isinstance(entry, Mapping) and "mrope_section" in entry for entry in dicts)


def _count(names: tuple[str, ...], default: int, places: list[Mapping[str, Any]]) -> int:
    """Return the first whole number under one of several names, or the default."""
    number = first(names, *places)
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else default
