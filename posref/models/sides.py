"""
Which keys a query sees: its own and those before it ("causal"), or all ("both").

``sides`` of a row of tables/types.json is one of these words, or a dict of them by the first word of a component. Instead of a
word it may have ``[word, key, value]``: the other word if the file has this value for the key. The words are of passes of the
models (tests/thorough/test_sides.py).
"""

from collections.abc import Mapping
from typing import Any

from posref.models.arguments import Entry
from posref.models.options import value_of

Known = Mapping[str, Any]
OTHER = {"causal": "both", "both": "causal"}
SILENT = ("mask", "norm", "table", "temperature", "values")  # the last words of components that say it, or have no attention


def with_sides(entries: list[Entry | None], component: str, known: Known, config: Known, defaults: Known) -> list[Entry | None]:
    """Return the entries of a component with the convention ``sides``, if the row of its model type says it."""
    sides = sides_of(component, known, config, defaults)
    if sides is None or component.rsplit(maxsplit=1)[-1] in SILENT:
        return entries
    return [entry and Entry(*entry, {**entry.conventions, "sides": sides}) for entry in entries]


def without_positions(
    found: Mapping[str, list[Entry | None]], known: Known, config: Known, defaults: Known
) -> dict[str, list[Entry | None]]:
    """Return the attention of parts that have no positions, nor anything else that would say its sides."""
    said = {name.partition(" ")[0] for name, entries in found.items() if any(entries)}
    components = {row["component"] for row in known.get("rows", ())}  # parts have their own rows
    sides = {name: sides_of(name, known, config, defaults) for name in components & {*found} - said if " " not in name}
    return {f"{name} attention": [Entry("attention", {}, {"sides": word})] for name, word in sides.items() if word}


def sides_of(component: str, known: Known, config: Known, defaults: Known) -> str | None:
    """Return the word for a component, or None if the row of its model type has none."""
    entry: Any = known.get("sides")
    if isinstance(entry, dict):
        entry = entry.get(component.partition(" ")[0])
    if not isinstance(entry, list):
        return None if entry is None else str(entry)
    word, key, value = entry
    return OTHER[word] if value_of(key, config, defaults) == value else str(word)
