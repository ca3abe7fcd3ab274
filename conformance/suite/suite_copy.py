"""Copies of a suite, or of some operations' groups, for projects that keep vectors beside their own tests."""

from collections.abc import Iterable
from pathlib import Path

from ..errors import VectorError, no_operation
from .atomic_files import whole_directory
from .reader import document, load_manifest
from .writer import copy_groups, copy_static, finish, write_json


def copy(source: Path, directory: Path, ops: Iterable[str] = ()) -> int:
    """
    Copy a suite, or its groups of some operations, to a new directory with licence and hashes; return the number of groups.

    For projects that keep vectors beside their own tests. The copy is a suite of its own: it verifies and checks.
    """
    manifest = load_manifest(source)
    wanted = set(ops)
    unknown = wanted - {entry["op"] for entry in manifest["groups"]}
    if unknown:
        known = sorted({entry["op"] for entry in manifest["groups"]})
        raise VectorError(no_operation("vectors copy: --op", min(unknown), known))
    entries = [entry for entry in manifest["groups"] if not wanted or entry["op"] in wanted]
    with whole_directory(directory) as new:
        if directory.exists() and any(directory.iterdir()):
            msg = f"vectors copy: DIR must be new or empty; {directory} is not."
            raise VectorError(msg)
        copy_groups(source, new, entries)
        copy_static(source, new)
        smoke = document(source, "smoke.json", "smoke")
        smoke["cases"] = [case for case in smoke["cases"] if not wanted or case["op"] in wanted]
        write_json(new / "smoke.json", smoke)
        write_json(new / "flags.json", document(source, "flags.json", "flags"))
        finish(new, entries)
    return len(entries)
