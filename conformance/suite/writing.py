"""The files of a suite: which there are, how JSON is written, and the manifest and hashes that close it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import safe_reading, tensors

SCHEMA = 1
SUITE = "0.1.0"
STATIC = safe_reading.OURS
STATIC_FILES = ("README.md", "LICENSE", "ERRATA.json")
SCHEMAS = "schema"
LARGEST = 64 * 2**20  # bytes of any file of a suite


def copy_static(source: Path, directory: Path) -> None:
    """Copy the page, licence, errata and schemas of a suite, files alone."""
    for name in (*STATIC_FILES, *(f"{SCHEMAS}/{name}" for name in listing(source / SCHEMAS))):
        data = safe_reading.read(source / name, LARGEST, root=source)
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)


def listing(root: Path) -> list[str]:
    """Return everything in a folder that is no folder, links and pipes included, in order of their paths from there."""
    paths = [Path(folder, name) for folder, folders, names in os.walk(root) for name in (*names, *folders)]
    return sorted(p.relative_to(root).as_posix() for p in paths if p.is_symlink() or not p.is_dir())


def finish(root: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the suite's manifest and the hashes of all files."""
    total = sum(f["bytes"] for e in entries for f in e["files"].values())
    write_json(root / "SUITE.json", {"schema": SCHEMA, "suite": SUITE, "groups": list(entries), "total_bytes": total})
    files = [name for name in listing(root) if name != "SHA256SUMS"]
    lines = [f"{tensors.digest((root / name).read_bytes())['sha256']}  {name}\n" for name in files]
    (root / "SHA256SUMS").write_text("".join(lines), encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    """Write JSON whose bytes depend on nothing but `value`."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
    path.write_text(text, encoding="ascii", newline="\n")
