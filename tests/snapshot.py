"""
Snapshots of what the readers of configurations answer: tests/snapshots/*.json, one call a line.

    python tests/snapshot.py            # print the rows whose answer differs
    python tests/snapshot.py --write    # the same, and renew them

A file has titles, and under each its rows. A row has

- ``name``, for some, of the model or of the preset;
- ``call``, the name of a reader; ``config``, its argument; ``options``, its other arguments; ``layers``, for a reader that is
  asked for one layer after another, how many;
- ``gives``, the whole answer, or ``error``, the whole sentence. Neighbours in a list that are alike are one text with their
  number.

To add a row, write its call, run with ``--write``, and compare the answer with the model's code.
"""

import difflib
import json
import re
import sys
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import posref
from posref.configs import factors

FOLDER = Path(__file__).with_name("snapshots")
READERS: dict[str, Callable[..., Any]] = {
    "from_config": posref.from_config,
    "rope_from_config": posref.rope_from_config,
    "mrope_from_config": posref.mrope_from_config,
    "factors": factors,
    "from_gguf": posref.from_gguf,
    "rope_from_gguf": posref.rope_from_gguf,
}
Row = dict[str, Any]
NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?")
DIGITS = 14  # the last of a logarithm depends on the machine


def load(file: str) -> dict[str, Any]:
    """Return the titles of a file, each with its rows."""
    titles: dict[str, Any] = json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8"))
    return titles


def text_of(titles: Mapping[str, list[Row]]) -> str:
    """Return the text of a file, one row a line."""
    parts = []
    for title, rows in titles.items():
        lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f" {json.dumps(title, ensure_ascii=False)}: [\n{lines}\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def answered(row: Row) -> Row:
    """Return a row with the answer of its reader. A reader must leave the configuration as it is."""
    reader, config, options = READERS[row["call"]], row["config"], row.get("options", {})
    before, asked = repr(config), {name: value for name, value in row.items() if name not in ("gives", "error")}
    try:
        if "layers" in row:
            answer: Any = runs([shown(reader(config, **options, layer=layer)) for layer in range(row["layers"])])
        else:
            answer = shown(reader(config, **options))
    except ValueError as error:
        return {**asked, "error": str(error)}
    assert repr(config) == before
    return {**asked, "gives": answer}


def shown(answer: Any) -> Any:
    """Return an answer as text, the components of a whole model one by one."""
    if isinstance(answer, dict) and any(isinstance(value, list) for value in answer.values()):
        return {name: runs([shown(entry) for entry in entries]) for name, entries in answer.items()}
    return NUMBER.sub(lambda number: repr(float(f"{float(number[0]):.{DIGITS}g}")), repr(answer))


def runs(texts: list[str]) -> list[str]:
    """Return texts in order, neighbours that are alike as one with their number."""
    counted = [(text, len([*alike])) for text, alike in groupby(texts)]
    return [text if count == 1 else f"{count} x {text}" for text, count in counted]


def difference(rows: list[Row]) -> str:
    """Return how the answers of rows differ from the snapshot, as a diff. Empty if none does."""
    lines, fresh = ([json.dumps(row, ensure_ascii=False) for row in some] for some in (rows, [answered(row) for row in rows]))
    return "\n".join(line for line in difflib.unified_diff(lines, fresh, lineterm="", n=0) if line[:3] not in ("---", "+++"))


def main(arguments: list[str]) -> int:
    """Print what differs, and write it if asked to."""
    changed = False
    for path in sorted(FOLDER.glob("*.json")):
        titles = load(path.stem)
        for title, rows in titles.items():
            if text := difference(rows):
                changed = True
                print(f"{path.name}, {title}\n{text}")
        if "--write" in arguments:
            path.write_text(
                text_of({title: [answered(row) for row in rows] for title, rows in titles.items()}), encoding="utf-8"
            )
    return int(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
