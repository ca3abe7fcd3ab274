"""Read a model's config.json: all its positional encodings, in the text model and in every tower."""

from collections.abc import Iterable, Mapping
from typing import Any

from posref.models.arguments import Config, Entry
from posref.models.fields import parsed, refuse, speaking_as
from posref.models.readers import READERS, options_of, value_of
from posref.models.table import model_table, remedy

__all__ = ["from_config"]

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

        A component with an encoding at its input and another in attention has both: "vision" and "vision attention". "vision
        table" is the operation that resizes the learned table to another grid. A component of a nested configuration has both
        names: "thinker text".

    Raises
    ------
    ValueError
        If the model type is unknown, a key is missing or has the wrong type, `rope_from_config` would refuse the parameters of
        a rotation, or the layers of a component differ and it does not have this one.

    Notes
    -----
    The rules are from the code of transformers 5.23.0. A missing key has the default of the configuration class there. ``dim``
    of `sinusoidal` and `sine_2d` is positional: pass it before the keywords. Only `learned` has an ``offset``. For sinusoids
    whose rows begin at 2 (M2M100, XGLM), add 2 to the positions. A tower that timm defines (``timm_wrapper``) has a name only,
    since the file does not decide its encoding.

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
        found = _components(whole, None, "config")
        if not found:
            refuse("config must have the configurations of its parts; got none of them.")
        return found if layer is None else {name: _at(name, entries, layer) for name, entries in found.items()}


def _components(config: Mapping[str, Any], silent: str | None, where: str) -> dict[str, list[Entry | None]]:
    """Return the components of a configuration. Its type is `silent` if it does not say."""
    table = model_table()
    if where.count("[") > DEEPEST:
        refuse(f"config must have at most {DEEPEST} levels of nested configurations; got {where}.")
    model = str(config.get("model_type") or silent)
    if model not in table:
        refuse(f"{where}['model_type'] must be a known one; got {model!r}. {remedy(model, table)}")
    known = table[table[model].get("like", model)]
    config = {"model_type": model, **{name: value for name, value in config.items() if name != "model_type"}}
    if "like" in table[model]:
        config["model_type"] = table[model]["like"]
    found: dict[str, list[Entry | None]] = {}
    for key, inner in known.get("parts", {}).items():
        part = config.get(key)
        if isinstance(part, Mapping):
            found |= _named(key, _components(part, inner, f"{where}[{key!r}]"), table, part.get("model_type") or inner)
    found = {name: entries for name, entries in found.items() if name not in known.get("without", ())}
    defaults = known.get("defaults", {})
    _check_words(known.get("rows", ()), config, defaults, where)
    for row in known.get("rows", ()):
        inside = row.get("only_without")  # older files have the text's keys at the top level
        if (inside is None or not isinstance(config.get(inside), Mapping)) and _holds(row, config, defaults):
            if "read" in row:
                found[row["component"]] = READERS[row["read"]](config, row, defaults)
            else:
                found[row["component"]] = [_entry(row, config, defaults)]
    return found


def _entry(row: Mapping[str, Any], config: Mapping[str, Any], defaults: Mapping[str, Any]) -> Entry | None:
    if row["operation"] is None:
        return None
    return Entry(row["operation"], options_of(row, config, defaults))


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
    key: str, found: dict[str, list[Entry | None]], table: Mapping[str, Any], model: str
) -> dict[str, list[Entry | None]]:
    """Return the components of a part, named after it."""
    part = key.removesuffix("_config").replace("_", " ")
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
