"""Writer of suites: their files as JSON, the manifest and the hashes that close them, and copies of a suite."""

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import VectorError, no_operation
from . import safe_files, tensors
from .reader import document, load_manifest, version_of
from .safe_files import SUITE_FILE, whole_directory

SCHEMA = 1
SUITE = "0.1.0"  # the release; the version of a suite also has the number of its cases and a digest
STATIC = safe_files.OURS
STATIC_FILES = ("README.md", "LICENSE", "ERRATA.json")
SCHEMAS = "schema"


def copy_static(source: Path, directory: Path, *, own: Path | None = None) -> None:
    """Copy the page, licence, errata and schemas of a suite, files alone; what the suite `own` has of them, from there."""
    schemas = {name for root in (source, own) if root is not None for name in listing(root / SCHEMAS)}
    for name in (*STATIC_FILES, *(f"{SCHEMAS}/{name}" for name in sorted(schemas))):
        root = own if own is not None and os.path.lexists(own / name) else source
        data = safe_files.read(root / name, SUITE_FILE, root=root)
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        safe_files.write(directory / name, data)


def copy_groups(source: Path, directory: Path, entries: Sequence[Mapping[str, Any]], *, link: bool = False) -> None:
    """Copy groups of a suite, every file with the hash that its entry records; `link` where `source` is about to go."""
    for entry in entries:
        (directory / entry["id"]).mkdir(parents=True)
        for name, recorded in entry["files"].items():
            old, new = source / entry["id"] / name, directory / entry["id"] / name
            data = tensors.read_bytes(old, recorded, root=source)
            with suppress(OSError):  # not every file system has links
                if link:
                    os.link(old, new)
                    continue
            safe_files.write(new, data)


def recorded_sums(root: Path) -> dict[str, str]:
    """Return the hashes that a suite records of all its files, by name."""
    text = safe_files.read(root / "SHA256SUMS", SUITE_FILE, root=root).decode("ascii", errors="replace")
    return {name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines())}


def expect_suite(root: Path) -> None:
    """
    Raise unless a folder holds only a suite, so that replacing it loses nothing else.

    `VectorError` if its manifest is not valid, or there is a file, link or folder that it does not name: the error does.
    """
    try:
        groups = load_manifest(root)["groups"]
    except VectorError as error:
        msg = f"{root}: must be new, empty, or hold a suite; it holds something else: {error}"
        raise VectorError(msg) from error
    names = {f"{entry['id']}/{name}" for entry in groups for name in entry["files"]}
    schemas = {f"{SCHEMAS}/{name}" for name in listing(root / SCHEMAS)}  # which are kept
    expect_only(root, {*names, *schemas, *STATIC_FILES, "SUITE.json", "SHA256SUMS", "smoke.json", "flags.json"})


def expect_only(root: Path, names: Collection[str]) -> None:
    """Raise `VectorError` if a folder has anything but regular files of these names, and the folders that they are in."""
    folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    for folder, inner, files in os.walk(root):
        for name in sorted((*inner, *files)):
            path = Path(folder, name)
            known = folders if path.is_dir() else names if path.is_file() else ()
            if path.is_symlink() or path.relative_to(root).as_posix() not in known:
                raise safe_files.refusal(
                    root, f"must be new, empty, or hold what posref wrote; {path} is not. Move it, or choose another folder"
                )


def listing(root: Path) -> list[str]:
    """Return everything in a folder that is no folder, links and pipes included, in order of their paths from there."""
    paths = [Path(folder, name) for folder, folders, names in os.walk(root) for name in (*names, *folders)]
    return sorted(p.relative_to(root).as_posix() for p in paths if p.is_symlink() or not p.is_dir())


def write_manifest(root: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the suite's manifest and the hashes of all files."""
    total = sum(f["bytes"] for e in entries for f in e["files"].values())
    version = version_of(entries, SUITE)
    write_json(root / "SUITE.json", {"schema": SCHEMA, "suite": version, "groups": list(entries), "total_bytes": total})
    files = [name for name in listing(root) if name != "SHA256SUMS"]
    lines = [f"{tensors.digest((root / name).read_bytes())['sha256']}  {name}\n" for name in files]
    safe_files.whole_file(root / "SHA256SUMS", "".join(lines))


def write_json(path: Path, value: Any) -> None:
    """Write JSON whose bytes depend on nothing but `value`."""
    safe_files.whole_file(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON, the same bytes everywhere: a line for each member, and for each case or entry that it lists."""
    return (_lines(value, 2) + "\n").encode("ascii")


def _lines(value: Any, depth: int) -> str:
    """Return JSON whose members stand on lines of their own to this depth, and without spaces below it."""
    if depth and value and isinstance(value, dict):
        return "{\n" + ",\n".join(f"{json.dumps(key)}:{_lines(value[key], depth - 1)}" for key in sorted(value)) + "\n}"
    if depth and value and isinstance(value, list | tuple):
        return "[\n" + ",\n".join(_lines(item, depth - 1) for item in value) + "\n]"
    return json.dumps(value, separators=(",", ":"), sort_keys=True, allow_nan=False)


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
        copy_groups(source, new, entries)
        copy_static(source, new)
        smoke = document(source, "smoke.json", "smoke")
        smoke["cases"] = [case for case in smoke["cases"] if not wanted or case["op"] in wanted]
        write_json(new / "smoke.json", smoke)
        write_json(new / "flags.json", document(source, "flags.json", "flags"))
        write_manifest(new, entries)
    return len(entries)
