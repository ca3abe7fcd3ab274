"""Named variants that one line of operations computes: reads their page for `posref list NAME`."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from posref.spec import REGISTRY

PAGE = Path(__file__).with_name("variants.md")
SECTION = re.compile(r"^## (.+?)\n\n(.+?)(?=\n\n)(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"```pycon\n(.*?)```", re.DOTALL)
CALL = re.compile(r"\b(?:posref\.)?([a-z]\w*)\(")
Variant = Mapping[str, str | list[str]]


@cache
def variants() -> tuple[Variant, ...]:
    """Return a row for each variant: its name, the sentence of its paper and users, its code, and the operations in it."""
    return tuple(_variant(*section.groups()) for section in SECTION.finditer(PAGE.read_text(encoding="utf-8")))


def named(word: str) -> list[Variant]:
    """Return the variants that have a word in their name, paper or users, in any letter case."""
    return [row for row in variants() if word.lower() in f"{row['variant']} {row['source']}".lower()]


def _variant(name: str, source: str, rest: str) -> Variant:
    code = "".join(CODE.findall(rest))
    called = dict.fromkeys(op for op in CALL.findall(code) if op in REGISTRY)
    return {"variant": name, "source": " ".join(source.split()), "operations": list(called), "code": code}
