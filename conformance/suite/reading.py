"""Reading a suite: hashes first, schemas next, and a named error for everything else."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..calls import from_json
from ..errors import VectorError
from ..model import Call, LoadedCase, LoadedGroup
from . import consistency, safe_reading, strict_json, tensors
from .atomic import put_aside
from .schemas import validate_once

INSTALLED = safe_reading.OURS
SCHEMA = 1
DOCUMENT = 4 * 2**20  # bytes of a JSON file of a suite, at most
FILES = ("group.json", "data.safetensors", "tolerance.safetensors")  # of a group
KEPT, LARGEST = 1024, 2**20  # groups that a process keeps once they were found right, and the bytes of the largest of them
_GROUPS: dict[str, LoadedGroup] = {}  # by their entry, whose hashes say what the files hold


def load_manifest(root: Path) -> dict[str, Any]:
    """Return a suite's manifest, checked against its schema."""
    path = root / "SUITE.json"
    if not os.path.lexists(path):
        aside = put_aside(root)
        left = f" Its replacement was interrupted; the complete old suite is in {aside}." if aside else ""
        msg = f"{root}: holds no suite (SUITE.json is missing). Build one with: posref vectors build {root}.{left}"
        raise VectorError(msg)
    return dict(_manifest(path, safe_reading.read(path, DOCUMENT, root=root)))


@lru_cache(maxsize=4)
def _manifest(path: Path, data: bytes) -> dict[str, Any]:
    """Return the manifest that a file holds, which a check asks for several times."""
    manifest: dict[str, Any] = parse(path, data)
    validate_once("suite", manifest, data, path)
    consistency.check_manifest(manifest, path)
    return manifest


def withdrawn_cases(root: Path) -> dict[str, str]:
    """Return the cases that ``ERRATA.json`` withdraws, with the reason of each; they are not asked any more."""
    if not os.path.lexists(root / "ERRATA.json"):
        return {}
    errata = document(root, "ERRATA.json", "errata")
    return {entry["case"]: entry["reason"] for entry in errata if entry["kind"] == "withdrawn"}


def smoke_cases(root: Path) -> frozenset[str]:
    """Return the cases that ``smoke.json`` lists; none where it is missing."""
    if not os.path.lexists(root / "smoke.json"):
        return frozenset()
    return frozenset(case["id"] for case in document(root, "smoke.json", "smoke")["cases"])


def document(root: Path, name: str, schema: str) -> Any:
    """Return a JSON file at the top of a suite, checked against its schema."""
    path = root / name
    data = safe_reading.read(path, DOCUMENT, root=root)
    found = parse(path, data)
    validate_once(schema, found, data, path)
    return found


def load_groups(root: Path, *, ops: Container[str] | None = None, group: str | None = None) -> Iterator[LoadedGroup]:
    """Yield a suite's groups, of some operations or of one id where given; files of others are not read."""
    for entry in load_manifest(root)["groups"]:
        if (ops is None or entry["op"] in ops) and (group is None or entry["id"] == group):
            yield load_group(root, entry)


def load_group(root: Path, entry: Mapping[str, Any]) -> LoadedGroup:
    """
    Return one group; files that this process read before are hashed again, and no more.

    Raises
    ------
    VectorError
        If a file is missing, altered, truncated or malformed, or the files do not fit one another.
    """
    key = json.dumps(entry, sort_keys=True)
    if key in _GROUPS:
        for name in FILES:
            tensors.read_bytes(root / entry["id"] / name, entry["files"][name], root=root)
        return _GROUPS[key]
    found = _load_group(root, entry)
    if len(_GROUPS) < KEPT and sum(file["bytes"] for file in entry["files"].values()) <= LARGEST:
        _GROUPS[key] = found
    return found


def _load_group(root: Path, entry: Mapping[str, Any]) -> LoadedGroup:
    """Return one group, every file of it checked."""
    folder = root / entry["id"]
    path = folder / "group.json"
    text = tensors.read_bytes(path, entry["files"]["group.json"], root=root)
    manifest = parse(path, text, limit=DOCUMENT)
    validate_once("group", manifest, text, path)
    for name in ("data.safetensors", "tolerance.safetensors"):
        if manifest["files"][name] != entry["files"][name]:
            msg = f"{path}: its record of {name} differs from SUITE.json. Fetch the suite again."
            raise VectorError(msg)
    if manifest["id"] != entry["id"] or manifest["op"] != entry["op"]:
        msg = f"{path}: is of group {manifest['id']!r} ({manifest['op']}); SUITE.json says {entry['id']!r} ({entry['op']})."
        raise VectorError(msg)
    data, tolerance = (
        tensors.read(folder / n, entry["files"][n], root=root) for n in ("data.safetensors", "tolerance.safetensors")
    )
    try:
        consistency.check_group(manifest, entry, data, tolerance)
        cases = tuple(_case(manifest["op"], case, data, tolerance) for case in manifest["cases"])
        consistency.check_places(cases)
    except ValueError as error:
        msg = f"{path}: {error}."
        raise VectorError(msg) from error
    return LoadedGroup(manifest["id"], manifest["op"], manifest, data, tolerance, cases)


def _case(op: str, case: Mapping[str, Any], data: tensors.Tensors, tolerance: tensors.Tensors) -> LoadedCase:
    """Return one case with its tensors."""
    name = case["id"].rsplit("/", maxsplit=1)[1]
    if case["kind"] == "sequence":
        calls = [_call(step, f"{name}@{k}", data, tolerance) for k, step in enumerate(case["steps"])]
    else:
        calls = [_call(case, name, data, tolerance)]
    return LoadedCase(
        case["id"],
        op,
        case["kind"],
        case["tier"],
        tuple(case["flags"]),
        case["comment"],
        tuple(case.get("dtypes", ("float32",))),
        tuple(calls),
    )


def _call(call: Mapping[str, Any], name: str, data: tensors.Tensors, tolerance: tensors.Tensors) -> Call:
    """Return one call with its tensors."""

    def named(role: str) -> tensors.Tensors:
        return {n: data[tensor] for n, tensor in call.get(role, {}).items()}

    expected = named("expected")
    widths: dict[str, tensors.Tensors] = {}
    for key, value in tolerance.items():
        accuracy, case, output = key.split("/")
        if case == name:
            widths.setdefault(accuracy, {})[output] = value
    params = {n: from_json(v) for n, v in call["params"].items()}
    return Call(params, named("inputs"), expected, named("intermediates"), widths, named("cotangents"))


def parse(path: Path, data: bytes, *, limit: int = strict_json.LIMIT) -> Any:
    """Return JSON that has one meaning and at most `limit` bytes; VectorError with the reason otherwise."""
    try:
        return strict_json.loads(data, limit=limit)
    except ValueError as error:
        msg = f"{path}: not valid JSON: {error}."
        raise VectorError(msg) from error
