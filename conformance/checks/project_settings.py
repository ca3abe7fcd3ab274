"""The settings of a project: the table `[tool.posref]` in its pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import TargetError
from ..suite.safe_files import read_named

KEYS = (
    "target", "command", "op", "tier", "backend", "dtype", "claim", "trig", "device", "timeout", "memory", "for", "layer",
    "layout", "require", "experiments", "expected-failures",
)  # fmt: skip
LIMIT = 1 << 20  # bytes of a pyproject.toml
DOTS = 32  # of a key; the time and memory of tomllib grow as their square
PART = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
LONG = re.compile(rf"(?<![\w-]){PART}(?:[ \t]*+\.[ \t]*+{PART}){{{DOTS + 1}}}")


def _tables(text: str) -> dict[str, Any]:
    """Return what a TOML text says."""
    if match := LONG.search(text):
        msg = f"a key may have {DOTS} dots; got {match[0][:60]}..."
        raise ValueError(msg)
    import tomllib  # a folder without settings does not need it

    return tomllib.loads(text)


def settings(folder: Path) -> dict[str, Any]:
    """Return the table of the project in a folder, empty without one. A key is a flag of `posref check` without its dashes."""
    path = folder / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        tools = _tables(read_named(path, LIMIT).decode()).get("tool", {})
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, or of lists that are too deep
        msg = f"{path}: is no TOML: {error}"
        raise TargetError(msg) from error
    table = tools.get("posref", {}) if isinstance(tools, dict) else tools
    if not isinstance(table, dict):
        msg = f"{path}: [tool.posref] must be a table; got {type(table).__name__}."
        raise TargetError(msg)
    for key in table:
        if key not in KEYS:
            msg = f"{path}: [tool.posref] has no key {key!r}; its keys are {', '.join(KEYS)}."
            raise TargetError(msg)
    return {str(key): value for key, value in table.items()}
