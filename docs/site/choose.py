"""The page for choosing an encoding: by model and by property, read from the registry and the table of models."""

import json
from pathlib import Path
from typing import Any

from posref.about import ABOUT
from posref.conformance.comparison.table import encodings, rows
from posref.conformance.comparison.variants import variants
from posref.models.model_types import model_table, why_not
from posref.spec import REGISTRY

NEEDS = Path(__file__).with_name("needs.md")
TABLE = model_table()
UNKNOWN = "as in timm's model"
COLUMNS = {  # of the table: the fact, and its heading
    "acts on": "acts on", "relative": "only offsets count", "direction": "before differs from after", "bounded": "bounded",
    "decays": "falls with distance", "past its table": "any position", "axes": "axes", "weights": "learned numbers",
    "paper": "paper", "model types": "model types",
}  # fmt: skip
INTRODUCTION = """\
Encodings that most model types use come first: each `model_type` of a config.json counts once. Facts are computed: positions of
drawn calls, with all optional arrays, are moved, exchanged and scaled. A cell names the options for which a fact holds. It is
empty where the question has no meaning, as for an encoding without positions, or where it is not computed. "Paper" is the month
of the source. `posref list WORD` prints the rows that have a word, and `posref list WORD --json` prints them as data."""
FILTER = """<form id="filter-box" autocomplete="off" hidden>
  <label for="filter-words">Show rows with these words: mask, graph, Swin, logits, 2021 ...</label>
  <input id="filter-words" type="search"> <output id="filter-count" for="filter-words" aria-live="polite"></output>
</form>"""


def page(families: str) -> str:
    """Return the page; `families` are links to the models' pages."""
    lines = ["---", "hide-toc: true", "---", "# Choose your encoding", "", "## By model", ""]
    lines += ["Parameters of released models, with five lines of code for each:", "", families, ""]
    lines += [f"The encodings of [all {len(_types())} model types](models/types.md) of transformers and of serving stacks.", ""]
    lines += [NEEDS.read_text(encoding="utf-8"), *_table()]
    names = ", ".join(str(row["variant"]) for row in variants())
    lines += ["## Named variants", "", f"[One line of other encodings each](variants.md): {names}.", ""]
    lines += ["## What authors report about longer texts", "", "Each source, in short:", ""]
    lines += [f"{_link(op)}\n: {record.longer} ({record.source})\n" for op, record in REGISTRY.items() if record.longer]
    lines += ["## Which models use it", ""]
    lines += [f"{_link(op)}\n: {', '.join(REGISTRY[op].models)}\n" for op in encodings() if REGISTRY[op].models]
    lines += ["## What posref does not define", "", "Why not, and the model types that have it:", ""]
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
    rows: list[dict[str, Any]] = json.loads((Path(__file__).parent / "inventory.json").read_text(encoding="utf-8"))
    return rows


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def types() -> str:
    """Return the page of model types, each with the encodings of its components."""
    lines = [
        "# Model types",
        "",
        "The positional encodings of each `model_type` in a config.json, as transformers 5.23.0 reads it.",
    ]
    lines += ["A type that transformers lacks is read as its serving stack does: vLLM, SGLang, mlx-lm or mlx-vlm."]
    lines += ["`posref.from_config` reads the options too. posref does not define the encodings in italics.", ""]
    lines += ["A row for a `vision table` says how a learned table is resampled for images of another size.", ""]
    letter = ""
    for name, parts in _types().items():
        if name[0].lower() != letter:
            letter = name[0].lower()
            lines += [f"## {letter.upper()}", ""]
        said = [f"{part} {', '.join(_link(op, '../') for op in ops)}" for part, ops in parts.items()]
        lines += [f"`{name}`\n: {'; '.join(said) or 'no positions'}\n"]
    return "\n".join(lines)


def _table() -> list[str]:
    """Return the table of facts, which `posref list WORD` prints too."""
    lines = ["## All encodings", "", INTRODUCTION, ""]
    lines += ["```{raw} html", FILTER, _labels(), "```", "", ":::{div} facts", f"| encoding | {' | '.join(COLUMNS.values())} |"]
    lines += [f"|---{'|---' * len(COLUMNS)}|"]
    for row in rows():
        cells = (_cell(row[name]) for name in COLUMNS)
        lines.append(f"| [{row['title']}](encodings/{row['name']}.md) | {' | '.join(cells)} |")
    return [*lines, ":::", "", "```{raw} html", '<script src="_static/filter.js"></script>', "```", ""]


def _labels() -> str:
    """Return a style that writes a column's heading before each fact on a phone, where a row of the table is a block."""
    rules = (f'.facts td:nth-child({n})::before {{ content: "{name}: "; }}' for n, name in enumerate(COLUMNS.values(), 2))
    return f"<style>@media (max-width: 32rem) {{ {' '.join(rules)} }}</style>"


def _cell(fact: object) -> str:
    """Return a fact in a cell: of "form=distance or form=causal", the option's name once."""
    words: dict[str, list[str]] = {}
    for part in str(fact).split(" or "):
        option, _, word = part.rpartition("=")
        words.setdefault(option, []).append(word)
    return "; ".join((f"{option}: " if option else "") + " or ".join(values) for option, values in words.items())


def missing() -> dict[str, list[str]]:
    """Return the encodings that posref does not define, by the field's names, with the model types that have them."""
    kinds: dict[str, list[str]] = {}
    for kind, components in _types().items():
        for op in sorted({op for ops in components.values() for op in ops if op not in REGISTRY} - {UNKNOWN}):
            kinds.setdefault(op, []).append(kind)
    return dict(sorted(kinds.items(), key=lambda row: row[0].lower()))


def _types() -> dict[str, dict[str, list[str]]]:
    """Return the encodings of each model type by component, with those of the configurations inside it."""
    return {name: _components(name) for name in sorted(TABLE, key=str.lower)}


def _components(name: str) -> dict[str, list[str]]:
    known = TABLE[name]
    if "like" in known:
        return _components(known["like"])
    components: dict[str, list[str]] = {}
    for row in known.get("rows", ()):
        if row["operation"] is not None:
            components.setdefault(row["component"], []).append(row["operation"])
    for part in known.get("parts", {}).values():
        kind = part.get("type", "") if isinstance(part, dict) else part
        for component, ops in (_components(kind) if kind in TABLE else {}).items():
            components.setdefault(component, []).extend(ops)
    return {component: list(dict.fromkeys(ops)) for component, ops in components.items()}


def _link(op: str, up: str = "") -> str:
    if op == UNKNOWN:
        return "as the timm model inside"
    return f"[{ABOUT[op].title}]({up}encodings/{op}.md)" if op in REGISTRY else f"*{op}*"
