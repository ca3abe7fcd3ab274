"""The files of a suite: which there are, how JSON is written, and the manifest and hashes that close it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import tensors

SCHEMA = 1
SUITE = "0.1.0"
STATIC = Path(__file__).parent / "vectors"
STATIC_FILES = ("README.md", "LICENSE", "ERRATA.json", "schema")


def finish(root: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the suite's manifest and the hashes of all files."""
    total = sum(f["bytes"] for e in entries for f in e["files"].values())
    write_json(root / "SUITE.json", {"schema": SCHEMA, "suite": SUITE, "groups": list(entries), "total_bytes": total})
    files = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    lines = [f"{tensors.digest((root / name).read_bytes())['sha256']}  {name}\n" for name in files if name != "SHA256SUMS"]
    (root / "SHA256SUMS").write_text("".join(lines), encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    """Write JSON whose bytes depend on nothing but `value`."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
    path.write_text(text, encoding="ascii", newline="\n")
