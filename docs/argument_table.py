"""The page of argument names: what each means, and which functions have it, read off signatures and docstrings."""

import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posref import positions, scaling
from posref.about import PARAMETER, SECTION
from posref.spec import REGISTRY

MEANINGS = Path(__file__).with_name("arguments.json")
KINDS = {  # how the type of an argument begins in a docstring
    "array": "array", "arrays": "array", "boolean array": "array", "array namespace": "library", "bool": "bool",
    "data type": "dtype", "dtype": "dtype", "float": "number", "int": "number", "module": "library", "optional": "device",
    "record": "record", "sequence of int": "number", "sequence of A int": "number", "sequence of (F, H, W)": "segments",
    "sequence of tuples": "segments", "str": "word", '{"': "word", "{0": "number",
}  # fmt: skip
HEAD = """\
# Arguments

A name means the same in every function that has it. These names are in more than one signature:

"""
ALONE = """
These are in one:

"""


@dataclass(frozen=True)
class Use:
    """An argument of a function: its kind, and the first sentence about it in the docstring."""

    function: str
    kind: str
    text: str


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions with arguments that users write: operations, the functions of `positions`, records of `scaling`."""
    yield from ((op, record.function) for op, record in REGISTRY.items())
    others = {name: getattr(positions, name) for name in positions.__all__}
    known = {record.function for record in REGISTRY.values()}
    yield from ((f"positions.{name}", function) for name, function in others.items() if function not in known)
    yield from ((f"scaling.{record.__name__}", record) for record in scaling.Scaling.__subclasses__())


def uses() -> dict[str, list[Use]]:
    """Return the arguments of all functions, by name."""
    names: dict[str, list[Use]] = {}
    for name, function in functions():
        section = SECTION.search(inspect.getdoc(function) or "")
        texts = {
            n: (match[0], match[2]) for match in PARAMETER.finditer(section[1] if section else "") for n in match[1].split(", ")
        }
        for parameter in inspect.signature(function).parameters.values():
            head, text = texts.get(parameter.name, ("", ""))
            names.setdefault(parameter.name, []).append(Use(name, kind(head, parameter), sentence(text)))
    return dict(sorted(names.items()))


def kind(head: str, parameter: inspect.Parameter) -> str:
    """Return the kind of an argument by its type in the docstring; without a docstring by its annotation; else ""."""
    described = head.partition("\n")[0].partition(" : ")[2]
    fitting = [start for start in KINDS if described.startswith(start)]
    if fitting:
        return KINDS[max(fitting, key=len)]
    return "" if head else "bool" if parameter.annotation is bool else "number"


def sentence(text: str) -> str:
    """Return the first sentence of a description."""
    plain = " ".join(re.sub(r":math:(`.*?`)", r"\1", text.partition("\n\n")[0]).split())
    return re.split(r"(?<=[.:]) (?=[A-Z0-9\"`])", plain, maxsplit=1)[0]


def page() -> str:
    """Return the page: a table of names that several functions have, and one of the others."""
    known, names = json.loads(MEANINGS.read_bytes()), uses()
    several = [
        f"| `{name}` | {known[name]['meaning']} | {', '.join(f'`{use.function}`' for use in names[name])} |" for name in known
    ]
    alone = [f"| `{name}` | {of[0].text} | `{of[0].function}` |" for name, of in names.items() if name not in known]
    head = ["| name | meaning | functions |", "|---|---|---|"]
    return HEAD + "\n".join([*head, *several]) + "\n" + ALONE + "\n".join([*head, *alone]) + "\n"
