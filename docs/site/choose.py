"""The page on which one chooses: encodings by model and by property, read from the registry and the table of models."""

from collections.abc import Callable, Iterable

from posref.about import ABOUT
from posref.about.lengths import DOES, LONGER, TOOLS, WEIGHTS
from posref.composition import stages
from posref.model_table import model_table
from posref.spec import REGISTRY, Encoding

TABLE = model_table()
PLACES = ("position", "integer")  # kinds of arrays that can hold positions


def page(families: str) -> str:
    """Return the page; `families` are links to the models' pages."""
    lines = ["# Choose your encoding", "", "## By model", ""]
    lines += ["Parameters of released models, with five lines of code for each:", "", families, ""]
    lines += [f"[All {len(_types())} model types of transformers](models/types.md) and the encodings that each has.", ""]
    for title, groups in PROPERTIES.items():
        lines += [f"## {title}", ""]
        for name, holds in groups.items():
            lines += [name, f": {_links(op for op in whole() if holds(REGISTRY[op]))}", ""]
    lines += ["## What is reported of longer texts", "", "In the words of each source, in short:", ""]
    lines += [f"{_link(op)}\n: {said} ({REGISTRY[op].source})\n" for op, said in LONGER.items()]
    lines += ["## Who uses it", ""]
    lines += [f"{_link(op)}\n: {', '.join(REGISTRY[op].models)}\n" for op in whole() if REGISTRY[op].models]
    return "\n".join(lines)


def types() -> str:
    """Return the page of model types, each with the encodings of its components."""
    lines = ["# Model types", "", "What `model_type` in a config.json means, read in transformers 5.23.0. `posref.from_config`"]
    lines += ["reads the options too. In italics is what posref does not define.", ""]
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
    parts = {stage for op in REGISTRY for stage in stages(op)} - _used()
    return [op for op, record in REGISTRY.items() if record.family in DOES and op not in parts and op not in TOOLS]


def _used() -> set[str]:
    return {row["operation"] for known in TABLE.values() for row in known.get("rows", ())}


def _types() -> dict[str, dict[str, list[str]]]:
    """Return the encodings of each model type by component; types that are only parts of others are with those."""
    inside = {part for known in TABLE.values() for part in known.get("parts", {}).values()}
    return {name: _components(name) for name in sorted(set(TABLE) - inside, key=str.lower)}


def _components(name: str) -> dict[str, list[str]]:
    known = TABLE[name]
    if "like" in known:
        return _components(known["like"])
    found: dict[str, list[str]] = {}
    for row in known.get("rows", ()):
        if row["operation"] is not None:
            found.setdefault(row["component"], []).append(row["operation"])
    for part in known.get("parts", {}).values():
        for component, ops in (_components(part) if part in TABLE else {}).items():
            found.setdefault(component, []).extend(ops)
    return {component: list(dict.fromkeys(ops)) for component, ops in found.items()}


def _link(op: str, up: str = "") -> str:
    return f"[{ABOUT[op].title}]({up}encodings/{op}.md)" if op in REGISTRY else f"*{op}*"


def _links(ops: Iterable[str]) -> str:
    return ", ".join(f"[`{op}`](encodings/{op}.md)" for op in ops)


def _is_relative(record: Encoding) -> bool:
    return bool({"relative", "shift invariant", "text is rope"} & set(record.invariants))


def _several_axes(record: Encoding) -> bool:
    """Whether a position has several coordinates, or the encoding works on a grid."""
    sizes = {"dims", "widths", "sections", "size", "old_size"} & set(record.domains)
    shapes = [axes.shape.split("|")[0].split() for axes in record.arrays.values() if axes.kind in PLACES]
    several = any(shape[:1] in (["A"], ["2"]) or shape[-1:] in (["c"], ["4"]) for shape in shapes)
    return bool(sizes) or several or any("I J" in axes.shape or axes.shape == "*B H W" for axes in record.arrays.values())


def _has_weights(record: Encoding) -> bool:
    return any(name in WEIGHTS and not (name == "v" and "q_positions" in record.arrays) for name in record.arrays)


def _ends(record: Encoding) -> bool:
    return any(axes.high is not None and axes.kind == "integer" for axes in record.arrays.values())


Holds = Callable[[Encoding], bool]
PROPERTIES: dict[str, dict[str, Holds]] = {
    "By what it does": {
        said: lambda record, family=family: record.family == family  # type: ignore[misc]
        for family, said in DOES.items()
    },
    "Relative or absolute": {
        "Attention depends on distances only": _is_relative,
        "Attention can also depend on the positions": lambda record: not _is_relative(record),
    },
    "One axis or several": {
        "Images, video, boxes and coordinates": _several_axes,
        "Text and other sequences": lambda record: not _several_axes(record),
    },
    "Weights": {
        "Needs weights of the model": _has_weights,
        "Has none": lambda record: not _has_weights(record),
    },
    "Longer texts than in training": {
        "Reported to work without tuning": lambda record: record.name in LONGER,
        "Defined at every position, but a model may need tuning, or scaled frequencies": (
            lambda record: record.name not in LONGER and not _ends(record)
        ),
        "Ends with its table": _ends,
    },
}
