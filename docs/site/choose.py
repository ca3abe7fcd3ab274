"""The page on which one chooses: encodings by model and by property, read from the registry and the table of models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from posref.about import ABOUT
from posref.core.composition import stages
from posref.models.model_types import model_table, why_not
from posref.spec import REGISTRY, Encoding

TABLE = model_table()
UNKNOWN = "as in timm's model"
PLACES = ("position", "integer")  # kinds of arrays that can hold positions
WEIGHTS = (  # arguments that a model's file has: learned, or fixed at random (random_fourier)
    "table", "first", "second", "x_table", "y_table", "h_table", "w_table", "key_table", "value_table", "weight", "v", "g",
    "matrix", "r1", "r2", "w1", "frequencies", "skew", "coefficients", "generators", "cos_mix", "sin_mix", "phases",
)  # fmt: skip
DOES = {  # what the encodings of a family do
    "absolute": "Adds a vector to each embedding",
    "rotary": "Rotates queries and keys",
    "bias": "Adds a number to each attention logit",
    "relative": "Adds a learned vector to keys or values",
    "extension": "Changes distances, the mask or the scale of a trained model",
}


def page(families: str) -> str:
    """Return the page; `families` are links to the models' pages."""
    lines = ["# Choose your encoding", "", "## By model", ""]
    lines += ["Parameters of released models, with five lines of code for each:", "", families, ""]
    lines += [f"The encodings of [all {len(_types())} model types of transformers](models/types.md).", ""]
    for title, groups in PROPERTIES.items():
        lines += [f"## {title}", ""]
        for name, holds in groups.items():
            links = (f"[`{op}`](encodings/{op}.md)" for op in whole() if holds(REGISTRY[op]))
            lines += [name, f": {', '.join(links)}", ""]
    lines += ["## What authors report about longer texts", "", "Each source, in short:", ""]
    lines += [f"{_link(op)}\n: {record.longer} ({record.source})\n" for op, record in REGISTRY.items() if record.longer]
    lines += ["## Which models use it", ""]
    lines += [f"{_link(op)}\n: {', '.join(REGISTRY[op].models)}\n" for op in whole() if REGISTRY[op].models]
    lines += ["## What posref does not define", "", "Why not, and the model types of transformers that have it:", ""]
    lines += [
        f"{name}\n: {_capital(why_not(name)['not defined'])}. In {', '.join(f'`{kind}`' for kind in kinds)}.\n"
        for name, kinds in missing().items()
    ]
    lines += ["## Not defined here, and why", "", "Encodings from papers and libraries, whole or in part:", ""]
    for row in (row for row in inventory() if "operations" not in row or "lacks" in row):
        named = (f"[`{op}`](encodings/{op}.md)" if op in REGISTRY else f"`posref.{op}`" for op in row.get("operations", ()))
        why = f"{', '.join(named)}. Not in: {row['lacks']}" if "lacks" in row else row["reason"]
        lines += [f"{row['encoding']}\n: {_capital(why)}. Found in: {row['found_in']}.\n"]
    return "\n".join(lines)


def inventory() -> list[dict[str, Any]]:
    """Return the encodings of papers and libraries: each with its operations, or with why there are none, and who has it."""
    found: list[dict[str, Any]] = json.loads((Path(__file__).parent / "inventory.json").read_text(encoding="utf-8"))
    return found


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def types() -> str:
    """Return the page of model types, each with the encodings of its components."""
    lines = ["# Model types", "", "The positional encodings of each `model_type` in a config.json, in transformers 5.23.0."]
    lines += ["`posref.from_config` reads their options too. posref does not define the encodings in italics.", ""]
    lines += ["A row for a `vision table` says how a learned table is resampled for images of another size.", ""]
    letter = ""
    for name, found in _types().items():
        if name[0].lower() != letter:
            letter = name[0].lower()
            lines += [f"## {letter.upper()}", ""]
        said = [f"{part} {', '.join(_link(op, '../') for op in ops)}" for part, ops in found.items()]
        lines += [f"`{name}`\n: {'; '.join(said) or 'no positions'}\n"]
    return "\n".join(lines)


def whole() -> list[str]:
    """Return the operations that are encodings of their own, not parts of others."""
    used = {row["operation"] for known in TABLE.values() for row in known.get("rows", ())}
    parts = {stage for op in REGISTRY for stage in stages(op)} - used
    return [op for op, record in REGISTRY.items() if record.family in DOES and op not in parts and not record.tool]


def missing() -> dict[str, list[str]]:
    """Return the encodings that posref does not define, by the field's names, with the model types that have them."""
    found: dict[str, list[str]] = {}
    for kind, components in _types().items():
        for op in sorted({op for ops in components.values() for op in ops if op not in REGISTRY} - {UNKNOWN}):
            found.setdefault(op, []).append(kind)
    return dict(sorted(found.items(), key=lambda row: row[0].lower()))


def _types() -> dict[str, dict[str, list[str]]]:
    """Return the encodings of each model type by component, with those of the configurations inside it."""
    return {name: _components(name) for name in sorted(TABLE, key=str.lower)}


def _components(name: str) -> dict[str, list[str]]:
    known = TABLE[name]
    if "like" in known:
        return _components(known["like"])
    found: dict[str, list[str]] = {}
    for row in known.get("rows", ()):
        if row["operation"] is not None:
            found.setdefault(row["component"], []).append(row["operation"])
    for part in known.get("parts", {}).values():
        kind = part.get("type", "") if isinstance(part, dict) else part
        for component, ops in (_components(kind) if kind in TABLE else {}).items():
            found.setdefault(component, []).extend(ops)
    return {component: list(dict.fromkeys(ops)) for component, ops in found.items()}


def _link(op: str, up: str = "") -> str:
    if op == UNKNOWN:
        return "that of the timm model inside"
    return f"[{ABOUT[op].title}]({up}encodings/{op}.md)" if op in REGISTRY else f"*{op}*"


def _is_relative(record: Encoding) -> bool:
    return bool({"relative", "shift invariant", "text is rope"} & set(record.invariants))


def _several_axes(record: Encoding) -> bool:
    """Whether a position has several coordinates, or the encoding works on a grid."""
    sizes = {"dims", "sections", "size", "old_size"} & set(record.domains)
    shapes = [axes.shape.split("|")[0].split() for axes in record.arrays.values() if axes.kind in PLACES]
    several = any(shape[:1] in (["A"], ["2"]) or shape[-1:] in (["c"], ["4"]) for shape in shapes)
    return bool(sizes) or several or any("I J" in axes.shape or axes.shape == "*B H W" for axes in record.arrays.values())


def _has_weights(record: Encoding) -> bool:
    return any(name in WEIGHTS and not (name == "v" and "q_positions" in record.arrays) for name in record.arrays)


def _ends(record: Encoding) -> bool:
    return any(axes.index for axes in record.arrays.values())


Holds = Callable[[Encoding], bool]
PROPERTIES: dict[str, dict[str, Holds]] = {
    "By what it does": {
        said: lambda record, family=family: record.family == family  # type: ignore[misc]
        for family, said in DOES.items()
    },
    "Relative or absolute": {
        "Attention depends on offsets between tokens only": _is_relative,
        "Attention can also depend on absolute positions": lambda record: not _is_relative(record),
    },
    "One axis or several": {
        "Images, video, boxes and coordinates": _several_axes,
        "Text and other sequences": lambda record: not _several_axes(record),
    },
    "Weights": {
        "Needs weights of the model": _has_weights,
        "Needs no weights": lambda record: not _has_weights(record),
    },
    "Longer texts than in training": {
        "Reported to work without fine-tuning": lambda record: bool(record.longer),
        "Defined at every position, but a model may need fine-tuning or scaled frequencies": (
            lambda record: not record.longer and not _ends(record)
        ),
        "Has no positions beyond its table": _ends,
    },
}
