"""Copies of a suite, or of some operations' groups, for projects that keep vectors beside their own tests."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from . import tensors
from .errors import VectorError
from .files import STATIC_FILES, finish, write_json
from .suite import load_manifest


def copy(source: Path, directory: Path, ops: Iterable[str] = ()) -> int:
    """
    Copy a suite, or its groups of some operations, to a new directory with licence and hashes; return the number of groups.

    For projects that keep vectors beside their own tests. The copy is a suite of its own: it verifies and checks.
    """
    if directory.exists() and any(directory.iterdir()):
        msg = f"vectors copy: DIR must be new or empty; {directory} is not."
        raise VectorError(msg)
    manifest = load_manifest(source)
    wanted = set(ops)
    unknown = wanted - {entry["op"] for entry in manifest["groups"]}
    if unknown:
        known = sorted({entry["op"] for entry in manifest["groups"]})
        msg = f"vectors copy: --op must be one of {', '.join(known)}; got {', '.join(sorted(unknown))}."
        raise VectorError(msg)
    entries = [entry for entry in manifest["groups"] if not wanted or entry["op"] in wanted]
    directory.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        (directory / entry["id"]).mkdir(parents=True)
        for name, recorded in entry["files"].items():
            data = tensors.read_bytes(source / entry["id"] / name, recorded)
            (directory / entry["id"] / name).write_bytes(data)
    for name in STATIC_FILES:
        if (source / name).is_dir():
            shutil.copytree(source / name, directory / name)
        else:
            shutil.copyfile(source / name, directory / name)
    smoke = json.loads((source / "smoke.json").read_text())
    smoke["cases"] = [case for case in smoke["cases"] if not wanted or case["op"] in wanted]
    write_json(directory / "smoke.json", smoke)
    shutil.copyfile(source / "flags.json", directory / "flags.json")
    finish(directory, entries)
    return len(entries)
