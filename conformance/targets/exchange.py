"""Exchange of files: requests go out without expected values, and results computed anywhere come back to be checked."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..accuracy import OF_DTYPE
from ..errors import Stopped, TargetError, Unsupported, VectorError, no_operation, shown
from ..model import Arrays, Call, LoadedCase, LoadedGroup
from ..suite import safe_files, tensors
from ..suite.reader import load_groups, load_manifest, parse, withdrawn_cases
from ..suite.safe_files import ANSWERS, TENSOR_HEADER, whole_directory
from ..suite.schemas import validate
from ..suite.writer import SCHEMA, write_json
from . import invocation, protocol
from .base import StatingTarget, about
from .limits import BYTES_PER_VALUE

MANIFEST, REQUESTS, INPUTS = "EXPORT.json", "requests.json", "inputs.safetensors"
ABOUT, OUTPUTS = "implementation.json", "outputs.safetensors"
ELSEWHERE = "computed elsewhere: that inputs stay unchanged, and that a second call gives the same bits, was not checked"


def export(source: Path, directory: Path, ops: Collection[str] = (), *, tier: str = "core") -> int:
    """
    Write the requests of a suite, or of some operations, to a new directory; return the number of groups.

    There are inputs and options, and nothing of what is expected; the manifest names the suite by its hash.
    """
    manifest = load_manifest(source)
    known = {entry["op"] for entry in manifest["groups"]}
    if not set(ops) <= known:
        raise VectorError(no_operation("vectors export: --op", min(set(ops) - known), sorted(known)))
    withdrawn, entries = withdrawn_cases(source), []
    with whole_directory(directory) as new:
        for group in load_groups(source, ops=ops or None):
            cases = [c for c in group.cases if c.id not in withdrawn and (tier == "core" or c.tier == "smoke")]
            if cases:
                entries.append(_write_group(new / group.id, group, cases))
        head = {"schema": SCHEMA, "suite": manifest["suite"], "sha256": protocol.start(source)["sha256"]}
        write_json(new / MANIFEST, {**head, "groups": entries})
    return len(entries)


def _write_group(folder: Path, group: LoadedGroup, cases: Collection[LoadedCase]) -> dict[str, Any]:
    """Write the requests of a group and return its entry for the manifest."""
    folder.mkdir(parents=True)
    stored: tensors.Tensors = {}
    asked = [
        {
            "id": c.id, "dtypes": list(OF_DTYPE if c.kind == "reject" else c.dtypes),  # what must be refused, in any
            "calls": [_request(c, k, stored) for k in range(len(c.calls))], **protocol.forms(c),
        }
        for c in cases
    ]  # fmt: skip
    write_json(folder / REQUESTS, {"schema": SCHEMA, "id": group.id, "op": group.op, "cases": asked})
    tensors.write(folder / INPUTS, stored)
    files = {name: tensors.digest((folder / name).read_bytes()) for name in (REQUESTS, INPUTS)}
    return {"id": group.id, "op": group.op, "cases": [c.id for c in cases], "files": files}


def _request(case: LoadedCase, step: int, stored: tensors.Tensors) -> dict[str, Any]:
    """Return one call as a request; its arrays go into `stored`."""
    call, name = case.calls[step], label(case, step)
    asked = {"name": name, "params": protocol.options(case.op, call.params), "outputs": protocol.outputs(case, call)}
    asked["defaults"] = protocol.defaults(case.op, call.params)
    for key, role, arrays in (("inputs", "in", call.inputs), ("cotangents", "ct", call.cotangents)):
        if arrays or key == "inputs":
            asked[key] = {n: f"{name}/{role}/{n}" for n in arrays}
            stored.update({f"{name}/{role}/{n}": v for n, v in arrays.items()})
    return asked


def label(case: LoadedCase, step: int) -> str:
    """Return how tensors name a call: the last part of the case's id, with the step of a sequence."""
    name = case.id.rsplit("/", maxsplit=1)[1]
    return f"{name}@{step}" if case.kind == "sequence" else name


def _place(case: LoadedCase, step: int, dtype: str, output: str) -> str:
    """Return the group and the name of the tensor in which a result is."""
    return f"{case.id.rsplit('/', maxsplit=1)[0]}:{dtype}/{label(case, step)}/{output}"


@dataclass
class Outputs(StatingTarget):
    """A folder of results."""

    found: Mapping[str, protocol.Decoded] = field(kw_only=True)  # by group and name of the tensor
    process = "none"
    kind = "outputs"

    @classmethod
    def load(
        cls, folder: Path, suite: Path, *, dtype: str | None = None, claim: str | None = None, trig: float | None = None
    ) -> Outputs:
        """
        Return the results in a folder, read whole; nothing outside of it is read.

        Raises
        ------
        TargetError
            If they are of another suite, or a file is malformed.
        """
        try:
            stated = parse(folder / ABOUT, safe_files.read(folder / ABOUT, ANSWERS, root=folder))
            validate("implementation", stated, folder / ABOUT)
            ours = protocol.start(suite)["sha256"]
            if stated["sha256"] != ours:
                msg = (
                    f"{folder}: the results must be of the suite with sha256 {ours}; they are of {stated['sha256']}. "
                    "Export and compute them again, or give the suite they are of with --suite."
                )
                raise TargetError(msg)
            fields = about(str(folder), stated, dtype, claim, trig)
            groups = list(load_groups(suite, ops=stated["operations"]))
            outputs = {
                f"{group.id}:{name}": tensor for group in groups for name, tensor in _read(folder, group, stated).items()
            }
        except VectorError as error:
            raise TargetError(str(error).replace(" Fetch the suite again.", "")) from error
        notes = (*fields.pop("notes"), ELSEWHERE, *_strays(folder, groups, stated, outputs))
        return cls(
            **fields, notes=notes, reproduce=f"posref check --outputs {shlex.quote(str(folder))}", stated=stated, found=outputs
        )

    def run(self, case: LoadedCase, call: Call, dtype: str) -> Arrays:
        """Return what is in the folder."""
        self._stop_if_said(case, dtype)
        step = next(k for k, candidate in enumerate(case.calls) if candidate is call)
        places = {n: _place(case, step, dtype, n) for n in call.expected}
        for group, _, name in (place.partition(":") for place in places.values() if place not in self.found):
            raise Stopped(verdict="not-run", message=f"no {name} in {group}/{OUTPUTS}")
        return self.accepted(case, call, dtype, {n: self.found[place] for n, place in places.items()})

    def refuse(self, case: LoadedCase, dtype: str) -> str:
        """Return that it was rejected."""
        if case.id in self.stated.get("rejected", ()):
            return "rejected"
        try:
            self._stop_if_said(case, dtype)
        except Stopped as stopped:
            return str(stopped)
        if any(_place(case, 0, dtype, n) in self.found for n in protocol.outputs(case, case.calls[0])):
            raise invocation.not_refused(case)
        raise Stopped(verdict="not-run", message="neither rejected nor computed")

    def _stop_if_said(self, case: LoadedCase, dtype: str) -> None:
        """Raise what the folder says instead of results."""
        self.expect_gradients(case)
        unsupported, error = (_reason(self.stated.get(key, {}), case.id, dtype) for key in ("unsupported", "errors"))
        if unsupported is not None:
            raise Unsupported(unsupported or "unsupported")
        if error is not None:
            raise Stopped(verdict="error", message=error or "error")
        if case.id in self.stated.get("rejected", ()):
            raise Stopped(verdict="error", message="rejected a valid call")


def _read(folder: Path, group: LoadedGroup, stated: Mapping[str, Any]) -> dict[str, protocol.Decoded]:
    """Return the results of a group, none if there is no file."""
    path = folder / group.id / OUTPUTS
    if not path.exists() and not path.is_symlink():
        return {}
    values = sum(
        v.size for case in group.cases for call in case.calls for v in (*call.expected.values(), *call.inputs.values())
    )
    limit = TENSOR_HEADER + BYTES_PER_VALUE * values * len(stated.get("dtypes", ("float32",)))
    try:
        decoded = tensors.decode(safe_files.read(path, limit, root=folder))
    except VectorError as error:
        msg = str(error) if str(path) in str(error) else f"{path}: {error}"
        raise VectorError(msg) from error
    return {name: (protocol.widened(array), protocol.DTYPES[code]) for name, (array, code) in decoded.items()}


def _reason(reasons: Mapping[str, Any], case: str, dtype: str) -> str | None:
    """Return the reason that is given for a case, in every dtype or this one."""
    reason = reasons.get(case)
    reason = reason.get(dtype) if isinstance(reason, dict) else reason
    return None if reason is None else shown(reason, 500)


def _strays(folder: Path, groups: Collection[LoadedGroup], stated: Mapping[str, Any], found: Collection[str]) -> Iterator[str]:
    """Yield notes on files, tensors and cases that are not of the suite."""
    cases = {case.id: case for group in groups for case in group.cases}
    expected = {
        _place(case, k, dtype, output)
        for case in cases.values() for k, call in enumerate(case.calls)
        for output in protocol.outputs(case, call) for dtype in OF_DTYPE
    }  # fmt: skip
    ours = {ABOUT, MANIFEST} | {f"{g.id}/{name}" for g in groups for name in (REQUESTS, INPUTS, OUTPUTS)}
    exported = (REQUESTS, INPUTS)  # also of operations that it does not answer
    there = (Path(top, name).relative_to(folder).as_posix() for top, _, names in os.walk(folder) for name in names)
    files = [name for name in there if name not in ours and Path(name).name not in exported]
    named = [case for key in ("unsupported", "errors", "rejected") for case in stated.get(key, ()) if case not in cases]
    for what, names in (
        ("files that were not read", files), ("results of no case", set(found) - expected), ("cases that are not asked", named),
    ):  # fmt: skip
        if names:
            listed = sorted(names)
            more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
            yield f"{what}: {', '.join(shown(name, 120) for name in listed[:3])}{more}"
