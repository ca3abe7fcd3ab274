"""Readers of rows of tables/types.json that many models share: each returns the encodings of a row, with a file's values."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from posref.models.arguments import Entry
from posref.models.config import check, dicts_of, read_mrope, read_rope
from posref.models.fields import ConfigError, even, first, integer, number, refuse
from posref.models.layers import COUNT, kinds_of_layers
from posref.models.model_types import ROTARY, model_type
from posref.models.options import options_of
from posref.models.reaches import MOST
from posref.models.rope_scaling import softmax_factor_of

Config = Mapping[str, Any]
Row = Mapping[str, Any]
Reader = Callable[[Config, Row, Config], list[Entry | None]]
HIDDEN = ("embed_dim", "hidden_size", "d_model")
HEADS = ("num_heads", "num_attention_heads")


def rotary(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return RoPE or M-RoPE: one entry if all layers are alike, else one for each."""
    count = integer(COUNT, config, defaults) if first(COUNT, config, defaults) is not None else None
    if count is not None and count > MOST:
        refuse(f"{' or '.join(COUNT)} must be at most {MOST}; got {count}.")
    if "mrope" in model_type(config["model_type"]).get("rope", {}):
        entry = Entry("mrope", {**read_mrope(config, None, None)})
        turns = [True] if count is None else [turning for _, turning, _ in kinds_of_layers(config, count)]
        return [entry if turning else None for turning in turns]
    if count is None:
        return [Entry("rope", {**alike}) if (alike := read_rope(config, None, None, None)) else None]
    sized = config if first(COUNT, config) is not None else {**config, "num_hidden_layers": count}
    kinds = _kinds(sized, count)
    options_of = {kind: read_rope(sized, None, kinds.index(kind), None) for kind in dict.fromkeys(kinds)}  # once for each kind
    if all(other == options_of[kinds[0]] for other in options_of.values()):
        kinds = kinds[:1]
    return [None if (options := options_of[kind]) is None else Entry("rope", {**options}) for kind in kinds]


def _kinds(config: Config, count: int) -> Sequence[Hashable]:
    """Return a key for every layer, equal for layers that are alike: its number if the file is wrong for some layer."""
    try:
        return kinds_of_layers(config, count)
    except ConfigError:
        return range(count)


def of_text(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the text's rotation with other options or another operation, those of the row, as an indexer has."""
    entries = []
    for entry in rotary(config, row, defaults):
        options = None if entry is None else {**(entry.options or {}), **row.get("options", {})}
        operation = None if entry is None else entry.operation if row["operation"] in ROTARY else row["operation"]
        entries.append(None if operation is None else Entry(operation, options))
    return entries


def latent(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return the softmax scale of multi-head latent attention, d**-0.5, with DeepSeek's factor of any scaling (405)."""
    checked, facts = check(config)
    places = (checked, facts.get("defaults", {}), defaults)
    size = integer(("qk_nope_head_dim",), *places) + integer(("qk_rope_head_dim",), *places)
    outer, layers = dicts_of(checked, facts)
    rope = next((inner for inner in layers.values() if isinstance(inner, dict)), {}) if layers else outer
    return [Entry("mla_logits", {"scale": size**-0.5 * softmax_factor_of(rope, facts)})]


def axial(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return a rotation by coordinates in an image or video. The head gives its widths, the file its base."""
    return axial_of(head_size(config, defaults), config, row, defaults)


def axial_of(head: int, config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return a rotation by coordinates for a head of this width."""
    axes, options = row["axes"], dict(row["options"])
    width = even(2 * (head // (2 * axes)))
    rope = config.get("rope_parameters")
    if rope is not None and (not isinstance(rope, dict) or rope.get("rope_type", "axial") not in ("axial", "default")):
        refuse(f"rope_parameters must be null or a dict of rope_type 'axial' or 'default' here; got {rope!r}.")
    places = [] if rope is None else [rope]
    base = number("base", ("rope_theta",), *places, config, defaults, low=0, strict=True)
    return [Entry("axial_rope", {"dims": (width,) * axes, "base": base, **options})]


def grid(config: Config, row: Row, defaults: Config) -> list[Entry | None]:
    """Return sinusoids of rows and columns, or of the four numbers of a box, each half as wide as the model."""
    options = options_of(row, config, defaults) or {}
    if options["dims"] % 4 or options["dims"] < 4:
        refuse(f"the width of sinusoids of rows and columns must be a multiple of 4; got {options['dims']}.")
    return [Entry("sinusoidal_nd", {**options, "dims": (options["dims"] // 2,) * row.get("axes", 2)})]


def head_size(config: Config, defaults: Config) -> int:
    """Return the width of a head."""
    if first(("head_dim",), config, defaults) is not None:
        return integer(("head_dim",), config, defaults)
    hidden = integer(HIDDEN, config) if first(HIDDEN, config) is not None else integer(HIDDEN, defaults)
    return hidden // integer(HEADS, config, defaults)
