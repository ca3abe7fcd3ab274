"""Reading a suite: hashes first, schemas next, and a named error for everything else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from . import tensors
from .case import from_json
from .errors import VectorError

INSTALLED = Path(__file__).parent / "vectors"
SCHEMA = 1


@dataclass(frozen=True)
class Call:
    """One call of a case: what is asked, what is expected, and the half-widths by base class and output."""

    params: Mapping[str, Any]
    inputs: tensors.Tensors
    expected: tensors.Tensors = field(default_factory=dict)
    intermediates: tensors.Tensors = field(default_factory=dict)
    widths: Mapping[str, tensors.Tensors] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedCase:
    """A case as read from a file."""

    id: str
    op: str
    kind: str
    tier: str
    flags: tuple[str, ...]
    comment: str
    dtypes: tuple[str, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class LoadedGroup:
    """A group as read from its folder."""

    id: str
    op: str
    manifest: Mapping[str, Any]
    data: tensors.Tensors
    tolerance: tensors.Tensors
    cases: tuple[LoadedCase, ...]


def load_manifest(root: Path) -> dict[str, Any]:
    """Return a suite's manifest, checked against its schema."""
    path = root / "SUITE.json"
    if not path.is_file():
        msg = f"{root}: holds no suite (SUITE.json is missing). Build one with: posref vectors build {root}"
        raise VectorError(msg)
    manifest: dict[str, Any] = parse(path, path.read_bytes())
    validate("suite", manifest, path)
    return manifest


def withdrawn_cases(root: Path) -> dict[str, str]:
    """Return the cases that ``ERRATA.json`` withdraws, with the reason of each; they are not asked any more."""
    path = root / "ERRATA.json"
    if not path.is_file():
        return {}
    errata = parse(path, path.read_bytes())
    validate("errata", errata, path)
    return {entry["case"]: entry["reason"] for entry in errata if entry["kind"] == "withdrawn"}


def load_groups(root: Path, *, op: str | None = None, group: str | None = None) -> Iterator[LoadedGroup]:
    """Yield a suite's groups, of one operation or id where given."""
    for entry in load_manifest(root)["groups"]:
        if (op is None or entry["op"] == op) and (group is None or entry["id"] == group):
            yield load_group(root, entry)


def load_group(root: Path, entry: Mapping[str, Any]) -> LoadedGroup:
    """
    Return one group.

    Raises
    ------
    VectorError
        If a file is missing, altered, truncated or malformed, or the files do not fit one another.
    """
    folder = root / entry["id"]
    path = folder / "group.json"
    manifest = parse(path, tensors.read_bytes(path, entry["files"]["group.json"]))
    validate("group", manifest, path)
    for name in ("data.safetensors", "tolerance.safetensors"):
        if manifest["files"][name] != entry["files"][name]:
            msg = f"{path}: records another {name} than SUITE.json does. Fetch the suite again."
            raise VectorError(msg)
    if manifest["id"] != entry["id"] or manifest["op"] != entry["op"]:
        msg = f"{path}: is of group {manifest['id']!r} ({manifest['op']}); SUITE.json says {entry['id']!r} ({entry['op']})."
        raise VectorError(msg)
    data, tolerance = (tensors.read(folder / n, entry["files"][n]) for n in ("data.safetensors", "tolerance.safetensors"))
    try:
        cases = tuple(_case(manifest["op"], case, data, tolerance) for case in manifest["cases"])
    except KeyError as error:
        msg = f"{path}: names a tensor that its files lack: {error}."
        raise VectorError(msg) from error
    except ValueError as error:
        msg = f"{path}: {error}"
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
            if output not in expected or value.shape != expected[output].shape:
                msg = f"tolerance {key} does not have the shape of an expected value."
                raise ValueError(msg)
            widths.setdefault(accuracy, {})[output] = value
    params = {n: from_json(v) for n, v in call["params"].items()}
    return Call(params, named("inputs"), expected, named("intermediates"), widths)


def parse(path: Path, data: bytes) -> Any:
    """Return JSON without repeated keys, NaN or infinities; VectorError otherwise."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            msg = "an object repeats a key"
            raise ValueError(msg)
        return found

    def refuse(constant: str) -> Any:
        msg = f"{constant} is not JSON"
        raise ValueError(msg)

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        msg = f"{path}: not valid JSON: {error}."
        raise VectorError(msg) from error


@cache
def validator(name: str) -> Any:
    """Return the validator of the schema called `name`."""
    schema = json.loads((INSTALLED / "schema" / f"{name}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def validate(name: str, document: Any, path: Path) -> None:
    """Raise `VectorError` with the first place where `document` is not as its schema says."""
    for error in validator(name).iter_errors(document):
        place = "/".join(str(part) for part in error.absolute_path) or "the top level"
        msg = f"{path}: at {place}: {error.message[:300]}."
        raise VectorError(msg)
