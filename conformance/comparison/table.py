"""The table of encodings that `posref list` and the site show: each encoding with its facts, in a reader's order."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from posref.core.composition import stages
from posref.models.model_types import model_table
from posref.spec import REGISTRY

from .facts import facts

COMPUTED = Path(__file__).with_name("facts.json")
DOES = {  # what the encodings of a family do
    "absolute": "Adds a vector to each embedding",
    "rotary": "Rotates queries and keys",
    "bias": "Adds a number to each attention logit",
    "relative": "Adds a learned vector to keys or values",
    "extension": "Changes distances, the mask or the scale of a trained model",
}
Row = Mapping[str, str | int | list[str]]


@cache
def encodings() -> tuple[str, ...]:
    """Return the operations that are encodings by themselves, not parts of others: those that most model types use first."""
    used = {row["operation"] for known in model_table().values() for row in known.get("rows", ())}
    parts = {stage for op in REGISTRY for stage in stages(op)} - used
    whole = [op for op, record in REGISTRY.items() if record.family in DOES and op not in parts and not record.tool]
    return tuple(sorted(whole, key=lambda op: (-uses()[op], -len(REGISTRY[op].models))))


@cache
def operations() -> tuple[str, ...]:
    """Return all operations: each encoding, followed by the parts that it calls, then those of no encoding, used most first."""
    listed = dict.fromkeys(name for op in encodings() for name in (op, *stages(op)) if name in REGISTRY)
    return tuple(listed | dict.fromkeys(sorted(REGISTRY, key=lambda op: -uses()[op])))


@cache
def uses() -> Counter[str]:
    """Return how many model types have each operation."""
    types = model_table()
    rows = {name: types[str(row.get("like", name))].get("rows", ()) for name, row in types.items()}
    return Counter(op for each in rows.values() for op in {row["operation"] for row in each if row["operation"]})


@cache
def rows() -> tuple[Row, ...]:
    """Return a row for each encoding: name, title, idea, facts, its source and date, and who uses it."""
    computed = json.loads(COMPUTED.read_text(encoding="utf-8"))
    return tuple(_row(op, computed[op]) for op in encodings())


def matching(word: str) -> list[Row]:
    """Return the rows that have a word, in any letter case."""
    return [row for row in rows() if word.lower() in json.dumps(list(row.values())).lower()]


def parts_matching(word: str) -> list[str]:
    """Return the operations without a row that have a word in their name, title, idea, source or models, in any letter case."""
    others = (REGISTRY[op] for op in operations() if op not in encodings())
    return [r.name for r in others if word.lower() in " ".join((r.name, r.title, r.idea, r.source, *r.models)).lower()]


def computed() -> str:
    """Return the facts of all encodings as the text of facts.json."""
    return json.dumps({op: facts(op) for op in sorted(encodings())}, indent=1) + "\n"


def _row(op: str, known: Mapping[str, str]) -> Row:
    record = REGISTRY[op]
    date = re.search(r"arXiv:(\d\d)(\d\d)\.", record.source)
    return {
        "name": op,
        "title": record.title,
        "idea": record.idea,
        "family": record.family,
        **known,
        "source": record.source,
        "paper": f"20{date[1]}-{date[2]}" if date else "",
        "model types": uses()[op],
        "models": list(record.models),
        "longer": record.longer,
    }
