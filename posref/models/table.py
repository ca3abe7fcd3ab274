"""The table of model types and their positional encodings, read in transformers 5.23.0 (posref/models/tables/types.json)."""

import difflib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

ROTARY = ("rope", "mrope", "axial_rope", "mixed_rope")


def model_table() -> Mapping[str, Mapping[str, Any]]:
    """
    Return what is known of each model type.

    ``like`` is another type with the same rows. ``rows`` has a dict for each encoding:

    - ``component``, and ``operation``, which is null if nothing has positions;
    - ``options``, as values or as the keys that have them in the file;
    - ``when``, the values of keys for which the row holds;
    - ``read``, the function that reads the row;
    - ``source``, a file and line of transformers/models;
    - ``confidence``, "high" if that code was read or compared.

    ``parts`` has the keys of nested configurations and their default types. ``without`` has the components of these parts that
    the model leaves out. ``defaults`` has the values that the configuration class gives missing keys.
    """
    table: Mapping[str, Mapping[str, Any]] = json.loads(
        files("posref").joinpath("models/tables/types.json").read_text(encoding="utf-8")
    )
    return table


def remedy(model: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown model type."""
    close = difflib.get_close_matches(model, list(known), n=3)
    meant = f" Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
    return f"If the model runs another type's code, set model_type to that type.{meant}"


def positions_of(model: str) -> str | None:
    """Return in words the encodings of a model without rotary embeddings. None for other models and unknown types."""
    table = model_table()
    known = table.get(table.get(model, {}).get("like", model), {})
    found = [row["operation"] for row in known.get("rows", ())]
    if not found or any(name in ROTARY for name in found):
        return None
    named = dict.fromkeys(name for name in found if name is not None)
    return " and ".join(named) if named else "none"
