"""Read a model's config.json: all its positional encodings, in the text model and in every tower."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from posref.models.arguments import Config, Entry
from posref.models.config import check, dicts_of, read_mrope, read_rope
from posref.models.diffusers import CLASS, read_diffusers
from posref.models.fields import ConfigError, even, first, integer, number, parsed, refuse, speaking_as, speaking_of
from posref.models.layers import COUNT, kinds_of_layers, layers_on
from posref.models.model_types import ROTARY, model_table, model_type, remedy, why_not
from posref.models.options import options_of, value_of
from posref.models.parts import completed, part_of
from posref.models.reaches import boxes, halves, reaches
from posref.models.relative import continuous, decomposed, disentangled, levit, shifts
from posref.models.rope_scaling import softmax_factor_of
from posref.models.unreviewed import parent_of

Reader = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], list[Entry | None]]
DICTS = ("rope_scaling", "rope_parameters")
MOST = 10_000  # layers of a model, since each is read
HIDDEN = ("embed_dim", "hidden_size", "d_model")
HEADS = ("num_heads", "num_attention_heads")
MODALITIES = ("text", "vision", "audio")
DEEPEST = 8  # levels of nested configurations
OWN_NAMES = ("indexer", "compressed keys")  # in the text part these keep their own names


def from_config(config: Config, /, *, layer: int | None = None) -> dict[str, list[Entry | None]]:
    """
    Return the positional encodings of a whole model, by component, from its config.json.

    Parameters
    ----------
    config : mapping, object with ``to_dict()``, or path
        The parsed file, a configuration object of transformers, or the path of the file. Nested configurations are read too,
        up to 8 deep.
    layer : int, optional
        The number of one layer, from 0. If the layers of a component differ, its list then has only the entry of this layer. If
        they are alike, it keeps its one entry for any number.

    Returns
    -------
    dict
        For each component ("text", "vision", "audio", "encoder", "decoder", "indexer", ...) a list: one entry if its layers are
        alike, else one for each layer. An entry is None if nothing there has positions, else a pair:

        - ``operation``, a name of `posref.spec.REGISTRY`, or the field's name of an encoding that posref does not define;
        - ``options``, the arguments of that operation that the file decides. Arrays, sizes and positions come with the
          checkpoint or the call. None if posref does not define the encoding, or the file does not decide its options.

        The pair has ``conventions``, a mapping from names to words: how the model makes an argument that the caller gives,
        where this changes values. Muse Spark swaps the height and width of an image before it resizes its table (``size``).
        LayoutLMv3 takes the lower edges of boxes for ``positions``. ``not defined`` says why posref does not define the
        encoding. A model type that only the installed transformers knows is answered as the type that its configuration class
        extends, if that one is known. Its entries then say so: ``reviewed``.

        A component with an encoding at its input and another in attention has both: "vision" and "vision attention". "vision
        table" is the operation that resizes the learned table to another grid. A component of a nested configuration has both
        names: "thinker text".

        Attention has components of its own, where a model has more than the softmax of q.k / sqrt(d): "text mask" (a window or
        chunks), "text temperature" (a factor on queries that grows with the position), "text scale", "text sinks" and "text
        values". An operation with no options, such as ``("attention", {})`` for sinks, takes arrays of the checkpoint.

    A file with ``_class_name`` is of diffusers. Its components are those of the class ("attention", "timestep", "input",
    "sizes", ...), and ``conventions["positions"]`` is the rule of positions, which are the caller's: pipelines make them.

    Raises
    ------
    ValueError
        If a model type is unknown, a key is missing or has the wrong type, a part has no encoding of its own kind (vision for
        ``vision_config``), `rope_from_config` would refuse the parameters of a rotation, or the layers of a component differ
        and it does not have this one. The error names the part.

    Notes
    -----
    The rules are from the code of transformers 5.23.0. A missing key has the default of the configuration class there, and so
    has a part that is null, absent or empty, unless the model can be without it. Some models decide the type of their parts: a
    ``model_type`` in such a part is ignored, as in Qwen3-VL, whose older files name the parent there. Others let the file
    choose, as LLaVA does. Keys of the text beside those of the parent are refused unless the model reads them there.

    ``dim`` of `sinusoidal` and `sine_2d` is positional: pass it before the keywords. Only `learned` has an ``offset``. For
    sinusoids whose rows begin at 2 (M2M100, XGLM), add 2 to the positions. A tower that timm defines (``timm_wrapper``) has a
    name only, since the file does not decide its encoding.

    Examples
    --------
    >>> from_config({"model_type": "opt"})
    {'text': [Entry(operation='learned', options={'offset': 2})]}
    >>> found = from_config({"model_type": "smollm3", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4})
    >>> [entry and entry.operation for entry in found["text"]]
    ['rope', 'rope', 'rope', None]
    """
    with speaking_as("from_config"):
        whole = parsed(config)
        if layer is not None and (isinstance(layer, bool) or not isinstance(layer, int) or layer < 0):
            refuse(f"layer must be an int of at least 0, or None; got {layer!r}.")
        found = read_diffusers(whole) if CLASS in whole else _components(whole, "config")
        if not found:
            refuse("config must have the configurations of its parts; got none of them.")
        return found if layer is None else {name: _at(name, entries, layer) for name, entries in found.items()}


def _components(config: Mapping[str, Any], where: str) -> dict[str, list[Entry | None]]:
    """Return the components of a configuration, with those of its parts."""
    table = model_table()
    if where.count("[") > DEEPEST:
        refuse(f"config must have at most {DEEPEST} levels of nested configurations; got {where}.")
    model = str(config.get("model_type"))
    if model not in table:
        parent = parent_of(model, table)
        if parent is not None:
            answer = _components({**config, "model_type": parent}, where)
            return {name: [entry and _unreviewed(entry, parent) for entry in entries] for name, entries in answer.items()}
        refuse(f"{where}['model_type'] must be a known one; got {model!r}. {remedy(model, table)}")
    known = table[table[model].get("like", model)]
    found: dict[str, list[Entry | None]] = {}
    for key in known.get("parts", {}):
        part = part_of(config, key, where)
        if part is not None:
            with speaking_of(f"{where}[{key!r}]"):
                inner = _components(part, f"{where}[{key!r}]")
            found |= _named(key, inner, table, part["model_type"], where)
    config = {**completed(config, model), "model_type": table[model].get("like", model)}
    found = {name: entries for name, entries in found.items() if name not in known.get("without", ())}
    silent = {} if first(DICTS, config) is not None else known.get("rope", {}).get("silent", {})
    defaults = {**{f"rope_parameters.{name}": value for name, value in silent.items()}, **known.get("defaults", {})}
    _check_words(known.get("rows", ()), config, defaults, where)
    for row in known.get("rows", ()):
        if _holds(row, config, defaults):
            entries = _entries(row, config, defaults)
            if entries:
                found[row["component"]] = entries
    return found


def _unreviewed(entry: Entry, parent: str) -> Entry:
    return Entry(*entry, {**entry.conventions, "reviewed": f"no: as its parent {parent!r}, by the class in transformers"})


def _entries(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the encoding of a row: one entry if all layers have it, else one for each layer. Empty if none has it."""
    for needed in row.get("needs", ()):
        if not any(value_of(key, config, defaults) for key in ([needed] if isinstance(needed, str) else needed)):
            return []
    read = READERS[row["read"]](config, row, defaults) if "read" in row else [_entry(row, config, defaults)]
    if "conventions" in row:
        read = [entry and Entry(*entry, {**row["conventions"], **entry.conventions}) for entry in read]
    if "on" not in row and all(entry == read[0] for entry in read):
        read = read[:1]
    if "on" not in row:
        return read
    on = layers_on(row["on"], config, defaults)
    found = [entry if has else None for entry, has in zip(read if len(read) == len(on) else read * len(on), on, strict=True)]
    return [] if not any(on) else found[:1] if all(entry == found[0] for entry in found) else found


def _entry(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Entry | None:
    if row["operation"] is None:
        return None
    return Entry(row["operation"], options_of(row, config, defaults), why_not(row["operation"]))


def _holds(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    """Return whether the file has the values for which a row holds."""
    return all(value_of(key, config, defaults) in allowed for key, allowed in row.get("when", {}).items())


def _check_words(rows: Iterable[Mapping[str, Any]], config: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Refuse a word that should choose an encoding but that the model's code does not know."""
    known: dict[str, list[Any]] = {}
    for row in rows:
        for key, allowed in row.get("when", {}).items():
            known.setdefault(key, []).extend(allowed)
    for key, allowed in known.items():
        value = value_of(key, config, defaults)
        if value not in allowed and any(isinstance(word, str) for word in allowed):
            refuse(f"{where}[{key!r}] must be one of {tuple(dict.fromkeys(allowed))}; got {value!r}.")


def _named(
    key: str, found: dict[str, list[Entry | None]], table: Mapping[str, Any], model: str, where: str
) -> dict[str, list[Entry | None]]:
    """Return the components of a part, named after it. Refuse a part of vision that has only text, and the like."""
    part = key.removesuffix("_config").replace("_", " ")
    others = {name.partition(" ")[0] for name in found}
    if not others or (part in MODALITIES and others <= {*MODALITIES} - {part}):
        what = " and ".join(sorted(others)) or "none"
        refuse(f"{where}[{key!r}] must have an encoding of its {part}; got {what}, from model_type {model!r}.")
    composite = "parts" in table[table[model].get("like", model)]
    names: dict[str, list[Entry | None]] = {}
    for name, entries in found.items():
        first, _, rest = name.partition(" ")
        if part in (first, name) or (part == "text" and name in OWN_NAMES):
            names[name] = entries
        elif first in MODALITIES and not composite:
            names[f"{part} {rest}".strip()] = entries
        else:
            names[f"{part} {name}"] = entries
    return names


def _at(name: str, entries: list[Entry | None], layer: int) -> list[Entry | None]:
    if len(entries) == 1:
        return entries
    if layer >= len(entries):
        refuse(f"layer must be an int from 0 to {len(entries) - 1}, the last layer of {name!r}; got {layer}.")
    return [entries[layer]]


# ---- readers: each returns the encodings of a row, with options from the file ------------------------------------------------
def _rotary(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return RoPE or M-RoPE: one entry if all layers are alike, else one for each."""
    if "mrope" in model_type(config["model_type"]).get("rope", {}):
        return [Entry("mrope", {**read_mrope(config, None, None)})]
    count = integer(COUNT, config, defaults) if first(COUNT, config, defaults) is not None else None
    if count is not None and count > MOST:
        refuse(f"{' or '.join(COUNT)} must be at most {MOST}; got {count}.")
    if count is None:
        return [Entry("rope", {**own}) if (own := read_rope(config, None, None, None)) else None]
    sized = config if first(COUNT, config) is not None else {**config, "num_hidden_layers": count}
    kinds = _kinds(sized, count)
    found = {kind: read_rope(sized, None, kinds.index(kind), None) for kind in dict.fromkeys(kinds)}  # once for each kind
    if all(other == found[kinds[0]] for other in found.values()):
        kinds = kinds[:1]
    return [None if (options := found[kind]) is None else Entry("rope", {**options}) for kind in kinds]


def _kinds(config: Mapping[str, Any], count: int) -> Sequence[Hashable]:
    """Return a key for every layer, equal for layers that are alike: its number if the file is wrong for some layer."""
    try:
        return kinds_of_layers(config, count)
    except ConfigError:
        return range(count)


def _changed(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the rotation of an indexer: the text's, with another layout or other channels."""
    entries = []
    for entry in _rotary(config, row, defaults):
        options = None if entry is None else {**(entry.options or {}), **row.get("options", {})}
        operation = None if entry is None else entry.operation if row["operation"] in ROTARY else row["operation"]
        entries.append(None if operation is None else Entry(operation, options))
    return entries


def _latent(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the softmax scale of multi-head latent attention, d**-0.5, with DeepSeek's factor of any scaling (405)."""
    own, facts = check(config)
    places = (own, facts.get("defaults", {}), defaults)
    size = integer(("qk_nope_head_dim",), *places) + integer(("qk_rope_head_dim",), *places)
    given, layers = dicts_of(own, facts)
    rope = next((one for one in layers.values() if isinstance(one, dict)), {}) if layers else given
    return [Entry("mla_logits", {"scale": size**-0.5 * softmax_factor_of(rope, facts)})]


def _compressed(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the rotation of DeepSeek-V4's compressed layers."""
    found = read_rope(config, "compress", None, None)
    return [None if found is None else Entry("rope", {**found})]


def _plain(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return RoPE over the whole head, with the base that the row names, for encoders without a rope dict."""
    options = options_of(row, config, defaults) or {}
    return [Entry("rope", {**options, "rotary_dim": even(_head(config, defaults)), "scaling": None})]


def _axial(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return a rotation by coordinates in an image or video. The head gives its widths, the file its base."""
    axes, options = row["axes"], dict(row["options"])
    width = even(2 * (_head(config, defaults, row.get("head")) // (2 * axes)))
    rope = config.get("rope_parameters")
    if rope is not None and (not isinstance(rope, dict) or rope.get("rope_type", "axial") not in ("axial", "default")):
        refuse(f"rope_parameters must be null or a dict of rope_type 'axial' or 'default' here; got {rope!r}.")
    places = [] if rope is None else [rope]
    base = number("base", ("rope_theta",), *places, config, defaults, low=0, strict=True)
    return [Entry("axial_rope", {"dims": (width,) * axes, "base": base, **options})]


def _grid(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return sinusoids of rows and columns, or of the four numbers of a box, each half as wide as the model."""
    options = options_of(row, config, defaults) or {}
    if options["dims"] % 4 or options["dims"] < 4:
        refuse(f"the width of sinusoids of rows and columns must be a multiple of 4; got {options['dims']}.")
    return [Entry("sinusoidal_nd", {**options, "dims": (options["dims"] // 2,) * row.get("axes", 2)})]


def _temperatures(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return DETR's sines with the base of rows. If columns have another, their half is of a second call (dab_detr, 305)."""
    options = options_of(row, config, defaults) or {}
    base = number("temperature_width", ("temperature_width",), config, defaults, {"temperature_width": 20}, low=0, strict=True)
    other = f"the second half is that of a call with base {base:g}"
    return [Entry("sine_2d", options, {} if base == options["base"] else {"channels": other})]


def _projected(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return CLVP's rotation, as wide as half of a head of the projection, and at least 32 channels (clvp, 249)."""
    width = integer(("projection_dim",), config, defaults) // (2 * integer(HEADS, config, defaults))
    return [Entry("rope", {**row["options"], "rotary_dim": even(max(width, 32)), "scaling": None})]


def _compass(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the M-RoPE of each layer, by its type. A type whose parameters are null has none."""
    types, given = _by_type(config)
    same = {name: value for name, value in config.items() if name not in ("layer_types", "rope_parameters")}
    found = {
        kind: None
        if given[kind] is None
        else Entry("mrope", {**read_mrope({**same, "rope_parameters": given[kind]}, "interleaved", "half")})
        for kind in dict.fromkeys(types)
    }
    return [found[kind] for kind in types]


def _by_type(config: Mapping[str, Any]) -> tuple[list[str], Mapping[str, Any]]:
    """Return the type of each layer, and the rope parameters of each type."""
    types, given = config.get("layer_types"), config.get("rope_parameters")
    listed = isinstance(types, list | tuple) and all(isinstance(kind, str) for kind in types)
    types = list(types) if listed and types is not None else []
    if not types or not isinstance(given, dict) or not set(types) <= set(given):
        refuse(f"rope_parameters must have an entry for every type in layer_types; got {given!r} and {types!r}.")
    return types, given


def _axial_by_type(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return the axial rotation of each layer. Its type decides the base and the share of the head that rotates."""
    types, given = _by_type(config)
    axes, head, found = row["axes"], integer(("head_dim",), config, defaults), {}
    for kind in dict.fromkeys(types):
        rope = given[kind] if isinstance(given[kind], dict) else {}
        share = number("partial_rotary_factor", ("partial_rotary_factor",), rope, {"partial_rotary_factor": 1.0}, low=0)
        base = number("base", ("rope_theta",), rope, low=0, strict=True)
        found[kind] = Entry("axial_rope", {"dims": (even(int(head * share) // axes),) * axes, "base": base, **row["options"]})
    return [found[kind] for kind in types]


def _extents(config: Mapping[str, Any], row: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Entry | None]:
    """Return Inkling's relative logits. They reach as far as the window in layers that have one, and further in the others."""
    far, near = (integer((key,), config, defaults) for key in row["keys"])
    sliding = layers_on("sliding", config, defaults)
    return [Entry(row["operation"], {**row["options"], "right": (near if slides else far) - 1}) for slides in sliding]


def _head(config: Mapping[str, Any], defaults: Mapping[str, Any], keys: list[str] | None = None) -> int:
    """Return the width of a head: the value of the first of `keys`, divided by those of the others."""
    if keys is not None:
        hidden, *others = (integer((key,), config, defaults) for key in keys)
        return hidden // math.prod(others)
    if first(("head_dim",), config, defaults) is not None:
        return integer(("head_dim",), config, defaults)
    hidden = integer(HIDDEN, config) if first(HIDDEN, config) is not None else integer(HIDDEN, defaults)
    return hidden // integer(HEADS, config, defaults)


READERS: dict[str, Reader] = {
    "rotary": _rotary,
    "changed": _changed,
    "latent": _latent,
    "compressed": _compressed,
    "plain": _plain,
    "axial": _axial,
    "axial by layer": _axial_by_type,
    "compass": _compass,
    "extent": _extents,
    "grid": _grid,
    "temperatures": _temperatures,
    "projected": _projected,
    "disentangled": disentangled,
    "decomposed": decomposed,
    "continuous": continuous,
    "shifts": shifts,
    "levit": levit,
    "boxes": boxes,
    "reaches": reaches,
    "halves": halves,
}
