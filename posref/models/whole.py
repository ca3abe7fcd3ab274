"""Read a model's config.json: all its positional encodings, in the text model and in every tower."""

from collections.abc import Iterable, Mapping
from typing import Any

from posref.models.arguments import Config, Entry
from posref.models.diffusers import CLASS, read_diffusers
from posref.models.fields import first, parsed, refuse, speaking_as, speaking_of
from posref.models.layers import layers_on
from posref.models.model_types import model_table, parent_of, remedy, why_not
from posref.models.odd_files import PARENTS
from posref.models.odd_rows import odd
from posref.models.options import options_of, value_of
from posref.models.parts import completed, part_of
from posref.models.qk_norms import norms_of
from posref.models.readers import Reader, axial, grid, latent, of_text, rotary
from posref.models.sides import with_sides, without_positions

DICTS = ("rope_scaling", "rope_parameters")
MODALITIES = ("text", "vision", "audio")
DEEPEST = 8  # levels of nested configurations
OWN_NAMES = ("indexer", "compressed keys")  # in the text part these keep their own names
READERS: dict[str, Reader] = {"rotary": rotary, "of text": of_text, "latent": latent, "axial": axial, "grid": grid, "odd": odd}


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

        ``conventions["sides"]`` of an encoding, and of "text scale" and the like, says which keys a query sees where no "text
        mask" does: "causal" (its own and those before it) or "both". A part with attention and without positions has it in
        "text attention". It is missing where no pass of the model showed it.

        The pair has ``conventions``, a mapping from names to words: how the model makes an argument that the caller gives,
        where this changes values. Muse Spark swaps the height and width of an image before it resizes its table (``size``).
        LayoutLMv3 takes the lower edges of boxes for ``positions``. ``not defined`` says why posref does not define the
        encoding. A model type that only the installed transformers knows is answered as the type that its configuration class
        extends, if that one is known. Its entries then say so: ``reviewed``.

        A component with an encoding at its input and another in attention has both: "vision" and "vision attention". "vision
        table" is the operation that resizes the learned table to another grid. A component of a nested configuration has both
        names: "thinker text".

        Attention has components of its own, where a model has more than the softmax of q.k / sqrt(d): "text mask" (a window or
        chunks), "text temperature" (a factor on queries that grows with the position), "text bias" (of Doge, learned), "text
        scale", "text softcap", "text sinks" and "text values". An operation with no options, such as ``("attention", {})`` for
        sinks, takes arrays of the checkpoint. "text norm" or "vision norm" is the norm of queries and keys: `norm_rope` or
        `norm_mrope` with the rotation, where both are of one head, else `rms_norm`, whose ``conventions`` say the width and the
        order.

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
    The rules are from the code of transformers 5.23.0. Types that it does not have follow a serving stack: SGLang 0.5.23, vLLM
    0.33.0, mlx-lm 0.32.2 or mlx-vlm 0.7.10. ``conventions["stack"]`` of their entries names the stack, file and lines, and
    other conventions say where stacks differ. Some types are refused with the reason. A missing key has the default of the
    configuration class there, and so has a part that is null, absent or empty, unless the model can be without it. Some models
    decide the type of their parts: a ``model_type`` in such a part is ignored, as in Qwen3-VL, whose older files name the
    parent there. Others let the file choose, as LLaVA does. Keys of the text beside those of the parent are refused unless the
    model reads them there.

    ``dim`` of `sinusoidal` and `sine_2d` is positional: pass it before the keywords. Only `learned` has an ``offset``. Where
    the first position of sinusoids is not 0 (M2M100, XGLM), ``conventions["positions"]`` says which. A tower that timm defines
    (``timm_wrapper``) has a name only, since the file does not decide its encoding.

    Examples
    --------
    >>> from_config({"model_type": "opt"})
    {'text': [Entry(operation='learned', options={'offset': 2}, conventions={'sides': 'causal'})]}
    >>> found = from_config({"model_type": "smollm3", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4})
    >>> [entry and entry.operation for entry in found["text"]]
    ['rope', 'rope', 'rope', None]
    """
    with speaking_as("from_config"):
        whole = parsed(config)
        if layer is not None and (isinstance(layer, bool) or not isinstance(layer, int) or layer < 0):
            refuse(f"layer must be an int of at least 0, or None; got {layer!r}.")
        components = read_diffusers(whole) if CLASS in whole else _components(whole, "config")
        if not components:
            refuse("config must have the configurations of its parts; got none of them.")
        return components if layer is None else {name: _at(name, entries, layer) for name, entries in components.items()}


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
            beside = {"reviewed": f"no: as its parent {parent!r}, by the class in transformers"}
            return {name: _said_of(entries, beside) for name, entries in answer.items()}
        refuse(f"{where}['model_type'] must be a known one; got {model!r}. {remedy(model, table)}")
    known = table[table[model].get("like", model)]
    if "refused" in known:
        refuse(f"{where}['model_type'] must be one that is read; got {model!r}: {known['refused']}.")
    config = PARENTS.get(model, dict)(config)
    components = _parts(config, known.get("parts", {}), table, where)
    config = {**completed(config, model), "model_type": table[model].get("like", model)}
    left_out = known.get("without", ())
    components = {name: entries for name, entries in components.items() if name.removesuffix(" scale") not in left_out}
    silent = {} if first(DICTS, config) is not None else known.get("rope", {}).get("silent", {})
    defaults = {**{f"rope_parameters.{name}": value for name, value in silent.items()}, **known.get("defaults", {})}
    _check_words(known.get("rows", ()), config, defaults, where)
    for row in known.get("rows", ()):
        if all(value_of(key, config, defaults) in allowed for key, allowed in row.get("when", {}).items()):
            entries = _entries(row, config, defaults)
            if entries:
                components[row["component"]] = with_sides(entries, row["component"], known, config, defaults)
    normed = next((name for name in ("text", "audio") if name in components), "vision")
    rotations = components[normed] if normed in components else components.get(f"{normed} attention", [])
    norms = norms_of(config, str(config["model_type"]), rotations)
    components |= {f"{normed} norm": norms} if norms else {}
    components |= without_positions(components, known, config, defaults)
    stack = table[model].get("stack", known.get("stack"))
    if stack is None:
        return components
    named_here = {
        name for name in components if not any(_part_of(key) == name.partition(" ")[0] for key in known.get("parts", {}))
    }
    return {
        name: _said_of(entries, {"stack": stack}) if name in named_here else entries for name, entries in components.items()
    }


def _parts(
    config: Mapping[str, Any], keys: Iterable[str], table: Mapping[str, Any], where: str
) -> dict[str, list[Entry | None]]:
    """Return the components of the parts of a configuration."""
    components: dict[str, list[Entry | None]] = {}
    for key in keys:
        part = part_of(config, key, where)
        if part is not None:
            with speaking_of(f"{where}[{key!r}]"):
                inner = _components(part, f"{where}[{key!r}]")
            components |= _named(key, inner, table, part["model_type"], where)
    return components


def _said_of(entries: list[Entry | None], beside: Mapping[str, str]) -> list[Entry | None]:
    return [entry and Entry(*entry, {**entry.conventions, **beside}) for entry in entries]


def _part_of(key: str) -> str:
    """Return the name of a part: that of its key, or text if the key names its language model."""
    name = key.removesuffix("_config").replace("_", " ")
    return {"llm": "text", "language": "text"}.get(name, name)


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
    entries = [entry if has else None for entry, has in zip(read if len(read) == len(on) else read * len(on), on, strict=True)]
    return [] if not any(on) else entries[:1] if all(entry == entries[0] for entry in entries) else entries


def _entry(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Entry | None:
    if row["operation"] is None:
        return None
    return Entry(row["operation"], options_of(row, config, defaults), why_not(row["operation"]))


def _check_words(rows: Iterable[Mapping[str, Any]], config: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Refuse a word for an encoding that the model's code does not know."""
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
    part = _part_of(key)
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
