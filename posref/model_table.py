"""The table of model types: which positional encodings each has, read in transformers 5.23.0 (posref/data/models.json)."""

import difflib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

ROTARY = ("rope", "mrope", "axial_rope", "mixed_rope")


def model_table() -> Mapping[str, Mapping[str, Any]]:
    """
    Return what is known of each model type.

    ``like`` names another type whose rows a type has. ``rows`` has a dict for each encoding: its ``component``; its
    ``operation``, null where nothing has positions; ``options``, values or where the file has them; ``when``, values of keys
    for which the row holds; ``read``, the function that reads it; ``source``, a file and line of transformers/models; and
    ``confidence``, "high" if that code was read or compared. ``parts`` has the keys of configurations inside, and their default
    types; ``without`` has components of these that the model leaves out. ``defaults`` has what the configuration class puts in
    the place of missing keys.
    """
    table: Mapping[str, Mapping[str, Any]] = json.loads(
        files("posref").joinpath("data/models.json").read_text(encoding="utf-8")
    )
    return table


def remedy(model: str, known: Iterable[str]) -> str:
    """Return what to do about a model type that is not known."""
    close = difflib.get_close_matches(model, list(known), n=3)
    meant = f" Did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
    return f"If the model runs another type's code, set model_type to that type.{meant}"


def positions_of(model: str) -> str | None:
    """Return in words what a model without rotary embeddings has; None for others, and for types that are not known."""
    table = model_table()
    known = table.get(table.get(model, {}).get("like", model), {})
    found = [row["operation"] for row in known.get("rows", ())]
    if not found or any(name in ROTARY for name in found):
        return None
    named = dict.fromkeys(name for name in found if name is not None)
    return " and ".join(named) if named else "none"
