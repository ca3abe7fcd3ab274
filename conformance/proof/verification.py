"""Verification of vectors: proves every stored value again from its stored inputs, and compares inputs with the sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ..errors import BuildError, VectorError
from ..evidence.catalogue import cases_of, groups
from ..model import LoadedCase, LoadedGroup
from ..suite import safe_files, tensors
from ..suite.file_limits import SUITE_FILE
from ..suite.reader import document, load_group, load_manifest
from ..suite.writer import listing, recorded_sums
from . import build, witnesses, workers
from .evaluation import pullback_of


def verify(root: Path, *, jobs: int | None = None, progress: build.Progress | None = None) -> list[str]:
    """
    Return what is wrong with the suite in `root`, one line each, naming case, tensor and index; nothing when it is true.

    Everything is proved anew, in at most `jobs` processes (by default one for each core); `progress` is called as by `build`.

    Raises
    ------
    VectorError
        If a file is missing, malformed or not as its recorded hash says.
    """
    manifest = load_manifest(root)
    problems = _check_sums(root)
    entries = manifest["groups"]
    plain: dict[str, Any] = {}
    count = workers.fitting(jobs, sum(len(entry["cases"]) for entry in entries))
    with workers.each(verify_entry, {entry["id"]: (root, entry) for entry in entries}, count) as results:
        for entry, (found, smoke) in zip(entries, results, strict=True):
            problems += found
            plain |= {case["id"]: case for case in smoke}
            if progress:
                progress(entry["id"], len(entries))
    problems += _check_plain(root, plain)
    return problems


def verify_entry(root: Path, entry: Mapping[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return what is wrong with one group of the manifest, and its smoke cases as plain JSON."""
    group = load_group(root, entry)
    return verify_group(group), [build.plain(group, case) for case in group.manifest["cases"] if case["tier"] == "smoke"]


def _check_sums(root: Path) -> list[str]:
    """Return files that differ from SHA256SUMS, and files that nobody records."""
    recorded = recorded_sums(root)
    present = set(listing(root)) - {"SHA256SUMS"}
    problems = [f"{name}: recorded in SHA256SUMS and missing" for name in sorted(set(recorded) - present)]
    problems += [f"{name}: not recorded in SHA256SUMS" for name in sorted(present - set(recorded))]
    for name in sorted(present & set(recorded)):
        if tensors.digest(safe_files.read(root / name, SUITE_FILE, root=root))["sha256"] != recorded[name]:
            problems.append(f"{name}: differs from its hash in SHA256SUMS")
    return problems


def _check_plain(root: Path, plain: Mapping[str, Any]) -> list[str]:
    """Return where ``smoke.json`` is not what the groups' files say."""
    problems = []
    try:
        stored = {case["id"]: case for case in document(root, "smoke.json", "smoke")["cases"]}
    except VectorError as error:
        return [str(error)]
    for name in sorted(set(stored) | set(plain)):
        if name not in stored or name not in plain:
            problems.append(f"{name}: in smoke.json or in a group, not in both")
            continue
        group = name.rsplit("/", maxsplit=1)[0]
        try:
            found = _differences(group, _flat(stored[name]), _flat(plain[name]), case_at=2)
        except ValueError as error:  # lists of different lengths beside one another
            found = [f"{name}: {error}"]
        problems += [f"smoke.json: {problem}" for problem in found]
        if stored[name]["params"] != plain[name]["params"]:
            problems.append(f"smoke.json: {name}: params differ from the group's")
    return problems


def _flat(case: Mapping[str, Any]) -> tensors.Tensors:
    """Return the arrays of a plain case by id, role and name."""
    roles = {"inputs": case["inputs"], "expected": case["expected"], **case["tolerance"]}
    return {f"{case['id']}/{role}/{name}": np.asarray(v) for role, arrays in roles.items() for name, v in arrays.items()}


def verify_group(group: LoadedGroup) -> list[str]:
    """
    Return what is wrong with one group.

    A group of this version's cases is built again from its sources, inputs included; any other is proved from its stored
    inputs.
    """
    ids = {case.id for case in group.cases}
    known = groups(list(cases_of(group.op))) if group.op in REGISTRY else {}
    sources = [case for case in known.get(group.id, []) if case.id in ids]
    if len(sources) == len(ids):
        try:
            return _compare(group, build.build_group(sources))
        except BuildError as error:
            return [str(error)]
    return [problem for case in group.cases if case.kind != "reject" for problem in _prove_case(case)]


def _prove_case(case: LoadedCase) -> list[str]:
    """Return stored values of a case that are not what its own inputs give."""
    problems = []
    group, name = case.id.rsplit("/", maxsplit=1)
    for k, call in enumerate(case.calls):
        stored = f"{name}@{k}" if case.kind == "sequence" else name
        try:
            expected, mid, widths = witnesses.proved(case.op, call.inputs, call.params, pullback_of(call))
        except Exception as error:  # inputs that are no inputs of the operation can make it raise anything
            problems.append(f"{case.id}: {type(error).__name__}: {error}")
            continue
        for role, found, true in (("out", call.expected, expected), ("mid", call.intermediates, mid)):
            named = [{f"{stored}/{role}/{n}": v for n, v in values.items()} for values in (found, true)]
            problems += _differences(group, *named, case_at=0)
        for accuracy, values in call.widths.items():
            named = [{f"{accuracy}/{stored}/{n}": v for n, v in side.items()} for side in (values, widths.get(accuracy, {}))]
            problems += _differences(group, *named, case_at=1)
    return problems


def _compare(group: LoadedGroup, built: build.ProvedGroup) -> list[str]:
    """Return tensors and entries that are not those proved from this version's sources."""
    problems = _differences(group.id, group.data, built.data, case_at=0)
    problems += _differences(group.id, group.tolerance, built.tolerance, case_at=1)
    built.manifest["files"] = group.manifest["files"]
    for key in sorted(set(built.manifest) | set(group.manifest)):
        if group.manifest.get(key) != built.manifest.get(key):
            problems.append(f"{group.id}: group.json: {key} differs from the sources of this version")
    return problems


def _differences(group: str, stored: Mapping[str, Any], proved: Mapping[str, Any], *, case_at: int) -> list[str]:
    """Return a line for every tensor that differs in a bit, with its case (a part of its name) and the first index."""

    def where(name: str) -> str:
        return f"{group}/{name.split('/')[case_at]}: tensor {name}"

    problems = [f"{where(name)}: not a value of this case" for name in sorted(set(stored) - set(proved))]
    problems += [f"{where(name)}: missing" for name in sorted(set(proved) - set(stored))]
    for name in sorted(set(stored) & set(proved)):
        mine, true = np.asarray(stored[name]), np.asarray(proved[name])
        if mine.shape != true.shape or mine.dtype != true.dtype:
            problems.append(f"{where(name)}: {mine.dtype}{list(mine.shape)}, proved {true.dtype}{list(true.shape)}")
            continue
        wrong = mine != true
        if np.any(wrong):
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            problems.append(
                f"{where(name)}{list(index)}: stored {mine[index].item()!r}, proved {true[index].item()!r} "
                f"({np.count_nonzero(wrong)} of {true.size} differ)"
            )
    return problems
