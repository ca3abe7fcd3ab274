"""Reader of suites: checks hashes, then schemas, and raises a named error for everything else."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from posref.spec import REGISTRY, Domain, Flag, Integer, Integers, OneOf, Real, Record

from ..accuracy import BASE, UNIT
from ..calls import array_names, from_json, parameters_of
from ..errors import VectorError
from ..model import FORMS, STATES, Call, LoadedCase, LoadedGroup
from ..vocabulary.axes import signed_places, size_options
from . import safe_files, tensors
from .safe_files import JSON_DOCUMENT, REFUSED_CALL, SUITE_DOCUMENT, put_aside
from .schemas import validate_once

INSTALLED = safe_files.OURS
FILES = ("group.json", "data.safetensors", "tolerance.safetensors")  # of a group
KEPT, LARGEST = 1024, 2**20  # groups that a process keeps once they were found right, and the bytes of the largest of them
PART = {"inputs": "in", "cotangents": "ct", "expected": "out", "intermediates": "mid"}  # of the name of a tensor, by role
NEEDED = ("float64", "angle64", "angle32")
Widths = dict[str, dict[str, tensors.Tensors]]  # half-widths by call, class and output
_GROUPS: dict[str, LoadedGroup] = {}  # by their entry, whose hashes say what the files hold


def load_manifest(root: Path) -> dict[str, Any]:
    """Return a suite's manifest, checked against its schema, with its full version."""
    path = root / "SUITE.json"
    if not os.path.lexists(path):
        aside = put_aside(root)
        left = f" Its replacement was interrupted; the complete old suite is in {aside}." if aside else ""
        msg = f"{root}: holds no suite (SUITE.json is missing). Build one with: posref vectors build {root}.{left}"
        raise VectorError(msg)
    return dict(_manifest(path, safe_files.read(path, SUITE_DOCUMENT, root=root)))


@lru_cache(maxsize=4)
def _manifest(path: Path, data: bytes) -> dict[str, Any]:
    """Return the manifest that a file holds, which a check asks for several times."""
    manifest: dict[str, Any] = parse(path, data)
    validate_once("suite", manifest, data, path)
    version = version_of(manifest["groups"], manifest["suite"].partition("+")[0])
    try:
        _require_none(_misfits_of_suite(manifest, version))
    except ValueError as error:
        raise safe_files.refusal(path, str(error)) from error
    return manifest | {"suite": version}


def version_of(entries: Sequence[Mapping[str, Any]], release: str) -> str:
    """Return a suite's version: the release, the number of cases, and the first digits of a SHA-256 of its groups."""
    text = json.dumps(list(entries), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    digest = tensors.digest(text.encode("ascii"))["sha256"]
    return f"{release}+{sum(len(entry['cases']) for entry in entries)}.{digest[:12]}"


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
    data = safe_files.read(path, SUITE_DOCUMENT, root=root)
    content = parse(path, data)
    validate_once(schema, content, data, path)
    return content


def load_groups(root: Path, *, ops: Container[str] | None = None, group: str | None = None) -> Iterator[LoadedGroup]:
    """Yield a suite's groups, of some operations or of one id where given; files of others are not read."""
    for entry in load_manifest(root)["groups"]:
        if (ops is None or entry["op"] in ops) and (group is None or entry["id"] == group):
            yield load_group(root, entry)


def load_group(root: Path, entry: Mapping[str, Any], *, own: bool = False) -> LoadedGroup:
    """
    Return one group; files that this process read before are hashed again, and no more.

    Of a group of posref's `own` suite only hashes are checked: whether its files are well formed is asked when it is built and
    verified. `VectorError` if a file is missing, altered, truncated or malformed, or the files do not fit one another.
    """
    key = json.dumps([entry, own], sort_keys=True)
    if key in _GROUPS:
        for name in FILES:
            tensors.read_bytes(root / entry["id"] / name, entry["files"][name], root=root)
        return _GROUPS[key]
    group = _load_group(root, entry, own)
    if len(_GROUPS) < KEPT and sum(file["bytes"] for file in entry["files"].values()) <= LARGEST:
        _GROUPS[key] = group
    return group


def _load_group(root: Path, entry: Mapping[str, Any], own: bool) -> LoadedGroup:
    """Return one group, every file of it checked, unless it is of posref's `own` suite."""
    folder = root / entry["id"]
    path = folder / "group.json"
    text = tensors.read_bytes(path, entry["files"]["group.json"], root=root)
    manifest = parse(path, text, limit=SUITE_DOCUMENT)
    validate_once("group", manifest, text, path)
    for name in ("data.safetensors", "tolerance.safetensors"):
        if manifest["files"][name] != entry["files"][name]:
            raise safe_files.refusal(path, f"its record of {name} differs from SUITE.json. Fetch the suite again")
    if manifest["id"] != entry["id"] or manifest["op"] != entry["op"]:
        raise safe_files.refusal(
            path, f"is of group {manifest['id']!r} ({manifest['op']}); SUITE.json says {entry['id']!r} ({entry['op']})"
        )
    read = tensors.read_own if own else tensors.read
    data, tolerance = (read(folder / n, entry["files"][n], root=root) for n in ("data.safetensors", "tolerance.safetensors"))
    try:
        if not own:
            _require_none(_misfits(manifest, entry, data, tolerance))
        widths = _by_call(tolerance)
        cases = tuple(_case(manifest["op"], case, data, widths) for case in manifest["cases"])
        if not own:
            _require_none(_misplaced(cases))
    except ValueError as error:
        raise safe_files.refusal(path, str(error)) from error
    return LoadedGroup(manifest["id"], manifest["op"], manifest, data, tolerance, cases)


def _by_call(tolerance: tensors.Tensors) -> Widths:
    """Return half-widths by the name of their call, their class and their output."""
    widths: Widths = {}
    for key, value in tolerance.items():
        accuracy, name, output = key.split("/")
        widths.setdefault(name, {}).setdefault(accuracy, {})[output] = value
    return widths


def _case(op: str, case: Mapping[str, Any], data: tensors.Tensors, widths: Widths) -> LoadedCase:
    """Return one case with its tensors."""
    name = case["id"].rsplit("/", maxsplit=1)[1]
    if case["kind"] == "sequence":
        calls = [_call(step, f"{name}@{k}", data, widths) for k, step in enumerate(case["steps"])]
    else:
        calls = [_call(case, name, data, widths)]
    return LoadedCase(
        case["id"],
        op,
        case["kind"],
        case["tier"],
        case["comment"],
        tuple(case.get("dtypes", ("float32",))),
        tuple(calls),
        next((word for word in case["flags"] if word in FORMS), ""),
        next((word for word in case["flags"] if word in STATES), ""),
    )


def _call(call: Mapping[str, Any], name: str, data: tensors.Tensors, widths: Widths) -> Call:
    """Return one call with its tensors."""

    def named(role: str) -> tensors.Tensors:
        return {n: data[tensor] for n, tensor in call.get(role, {}).items()}

    expected = named("expected")
    params = {n: from_json(v) for n, v in call["params"].items()}
    return Call(params, named("inputs"), expected, named("intermediates"), widths.get(name, {}), named("cotangents"))


def parse(path: Path, data: bytes, *, limit: int = JSON_DOCUMENT) -> Any:
    """Return JSON that has one meaning and at most `limit` bytes; VectorError with the reason otherwise."""
    try:
        return safe_files.loads(data, limit=limit)
    except ValueError as error:
        raise safe_files.refusal(path, f"not valid JSON: {error}") from error


# ---- whether the files fit one another and the operations, where schemas cannot say: a misfit is named before any use ------
def _require_none(problems: Iterator[str]) -> None:
    """Raise `ValueError` with the first of some problems; no more of them are looked for."""
    for problem in problems:
        raise ValueError(problem)


def _misfits_of_suite(manifest: Mapping[str, Any], version: str) -> Iterator[str]:
    """Yield ids that are not unique and nested, and a version or ``total_bytes`` that the groups do not have."""
    entries, total_bytes, seen = manifest["groups"], manifest["total_bytes"], set[str]()
    for entry in entries:
        if entry["id"] in seen or not entry["id"].startswith(f"{entry['op']}/"):
            yield f"group {entry['id']!r} must be listed once, and be of operation {entry['op']!r}"
        seen.add(entry["id"])
        yield from (
            f"case {case!r} must be of its group, {entry['id']!r}"
            for case in entry["cases"]
            if case.rpartition("/")[0] != entry["id"]
        )
    total = sum(file["bytes"] for entry in entries for file in entry["files"].values())
    if total_bytes != total:
        yield f"total_bytes must be {total}, the sum of all files; got {total_bytes}"
    if manifest["suite"] not in (version, version.partition("+")[0]):  # older suites have the release alone
        yield f"suite must be {version}, by its groups; got {manifest['suite']}"


def _misfits(
    manifest: Mapping[str, Any], entry: Mapping[str, Any], data: tensors.Tensors, tolerance: tensors.Tensors
) -> Iterator[str]:
    """
    Yield where a group's entry, cases and tensors do not fit one another and its operation; after the first all is open.

    Every tensor belongs to one call, under that call's name; every call has the arrays, options and outputs of its operation,
    options of the right kind, and the half-widths of its dtypes.
    """
    op, listed = manifest["op"], [case["id"] for case in manifest["cases"]]
    if op not in REGISTRY:
        yield f"operation {op!r} is not in this version of posref: install the one that the suite was built with"
    if listed != entry["cases"]:
        yield f"its cases must be those of SUITE.json, {entry['cases']}; they are {listed}"
    if any(case["tier"] == "smoke" and case["kind"] != "value" for case in manifest["cases"]):
        yield "a smoke case must be of kind value"
    unused = {*data, *tolerance}
    for kind, call, name, dtypes in _calls(manifest["cases"]):
        yield from _misnamed(op, kind, call, name)
        named = [tensor for role in PART for tensor in call.get(role, {}).values()]
        yield from (f"{name}: names a tensor that its files lack: {tensor!r}" for tensor in named if tensor not in data)
        yield from _wrong_options(op, kind, call, name, data)
        reals = {n: data[t].shape for n, t in call.get("expected", {}).items() if data[t].dtype.kind == "f"}
        yield from _wrong_widths(name, reals, {*NEEDED, *(f"low-{d}" for d in dtypes if d in UNIT)}, tolerance)
        unused -= {*named} | {f"{accuracy}/{name}/{output}" for accuracy in (*BASE, "trig") for output in reals}
    if unused:
        yield f"no case has the tensor {min(unused)!r}"


def _calls(cases: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], str, list[str]]]:
    """Yield every call with its case's kind, its name in the tensors' names, and its dtypes."""
    for case in cases:
        name = case["id"].rpartition("/")[2]
        if case["kind"] == "sequence":
            yield from (("value", step, f"{name}@{k}", case["dtypes"]) for k, step in enumerate(case["steps"]))
        else:
            yield case["kind"], case, name, case.get("dtypes", [])


def _misnamed(op: str, kind: str, call: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield what a call has beside the arrays, options and outputs of its operation, and tensors of another name."""
    parameters, arrays = parameters_of(REGISTRY[op].function), set(array_names(op))
    required = {n for n, p in parameters.items() if p.default is p.empty}
    inputs, params = set(call["inputs"]), set(call["params"])
    wrong = (inputs - arrays) | (params - (set(REGISTRY[op].domains) - arrays)) | (required - inputs - params)
    if wrong:
        yield f"{name}: {min(wrong)!r} is missing, or no array or option of {op}, which takes {', '.join(parameters)}"
    known, outputs, cotangents = set(REGISTRY[op].outputs), set(call.get("expected", {})), set(call.get("cotangents", {}))
    listed = ", ".join(REGISTRY[op].outputs)
    if not (outputs <= inputs if kind == "vjp" else outputs == (known if kind == "value" else set())):
        yield f"{name}: expected values must be named {listed}; got {sorted(outputs)}"
    if cotangents != (known if kind == "vjp" else set()):
        yield f"{name}: cotangents must be of {listed}, in a case of kind vjp; got {sorted(cotangents)}"
    for role, part in PART.items():
        for argument, tensor in call.get(role, {}).items():
            if tensor != f"{name}/{part}/{argument}":
                yield f"{name}: {role} {argument!r} must be the tensor {name}/{part}/{argument}; got {tensor!r}"


def _wrong_options(op: str, kind: str, call: Mapping[str, Any], name: str, data: tensors.Tensors) -> Iterator[str]:
    """Yield options that are not of the right kind, and sizes that are not those of the expected values."""
    axes = [n for role in ("expected", "cotangents") for tensor in call.get(role, {}).values() for n in data[tensor].shape]
    most = REFUSED_CALL if kind == "reject" else 2 * max(axes, default=0)
    for option, value in call["params"].items():
        if kind != "reject" and not _admits(REGISTRY[op].domains[option], value):
            yield f"{name}: {option} must be {REGISTRY[op].domains[option]}; got {str(value)[:80]}"
        if option in size_options(op) and isinstance(value, int | float) and value > most:
            yield f"{name}: {option} must fit its values, at most {most} here; got {value}"


def _admits(domain: Domain, value: Any) -> bool:
    """Return whether an option of a case, as in JSON, is of the kind that its operation takes; numbers are not compared."""
    match domain:
        case OneOf():
            return value in domain.words
        case Flag():
            return isinstance(value, bool)
        case Record():
            return value is None or isinstance(value, dict)
        case Integer():
            return type(value) is int or (value is None and domain.optional)
        case Integers():
            return isinstance(value, list) and all(type(item) is int for item in value)
        case Real():
            return type(value) in (int, float) or (value is None and domain.optional)


def _wrong_widths(
    name: str, reals: Mapping[str, tuple[int, ...]], needed: set[str], tolerance: tensors.Tensors
) -> Iterator[str]:  # fmt: skip
    """Yield half-widths of a call's real outputs with a wrong shape, and the missing ones for its dtypes."""
    for accuracy, (output, shape) in product((*BASE, "trig"), reals.items()):
        key = f"{accuracy}/{name}/{output}"
        width = tolerance.get(key)
        if width is None and accuracy in needed:
            yield f"{name}: the tolerance {key!r} is missing"
        if width is not None and (width.shape != shape or width.dtype != np.float32 or (width < 0).any()):
            yield f"tolerance {key} must be F32, none negative, of the shape of the expected values, {list(shape)}"


def _misplaced(cases: Iterable[LoadedCase]) -> Iterator[str]:
    """Yield calls whose positions are not those of their expected values, as far as they have any."""
    for case in cases:
        for call in case.calls:
            for output, expected in call.expected.items():
                try:
                    signed_places(case.op, call, output)
                except (ValueError, LookupError) as error:
                    yield f"{case.id}: its positions must fit the shape of {output}, {list(expected.shape)}: {error}"
