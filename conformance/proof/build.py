"""Cases into golden vectors: proved by two witnesses, in files whose bytes are a function of the sources alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from posref.backends.rounding import LARGEST, representable
from posref.spec import REGISTRY

from ..accuracy import BASE, OF_DTYPE, UNIT
from ..calls import AT_LEAST_FLOAT32, POSITIONS, differentiable
from ..cases.catalogue import all_cases, all_flags, groups
from ..errors import BuildError, Disagreement
from ..model import FUZZ, Case, LoadedGroup
from ..suite import tensors
from ..suite.atomic import whole_directory
from ..suite.options import to_json
from ..suite.writing import SCHEMA, STATIC, SUITE, copy_static, finish, write_json
from . import prove


@dataclass
class Group:
    """A group's manifest and tensors, in memory."""

    manifest: dict[str, Any]
    data: tensors.Tensors = field(default_factory=dict)
    tolerance: tensors.Tensors = field(default_factory=dict)


def build(directory: Path, *, tier: str = "core", progress: Callable[[str], None] | None = None) -> None:
    """
    Write the suite of `tier` to `directory`, which must not exist, be empty, or hold a suite that is then replaced.

    Everything is written beside it first and moved into place whole, so that an interruption leaves no half suite.

    Raises
    ------
    BuildError
        If the witnesses disagree, a value cannot be proved, or a decision lies within its tolerance: it names the case.
    """
    with whole_directory(directory, replace=True) as new:
        if directory.exists() and any(directory.iterdir()) and not (directory / "SUITE.json").is_file():
            msg = f"vectors build: DIR must be new, empty, or hold a suite; {directory} holds something else. Choose another."
            raise BuildError(msg)
        fill(new, tier=tier, progress=progress)


def fill(root: Path, *, tier: str, progress: Callable[[str], None] | None) -> None:
    """Write a suite into the empty directory `root`, its manifest last."""
    wanted = [case for case in all_cases() if tier != "smoke" or case.tier == "smoke"]
    entries, smoke = [], []
    by_id = groups(wanted)
    for group_id, cases in by_id.items():
        if progress:
            progress(group_id)
        built = build_group(cases)
        entries.append(write_group(root, built))
        smoke += [plain(built, case) for case in built.manifest["cases"] if case["tier"] == "smoke"]
    copy_static(STATIC, root)
    write_json(root / "smoke.json", {"schema": SCHEMA, "suite": SUITE, "cases": smoke})
    write_json(root / "flags.json", {name: {"catches": f.catches, "seen_in": f.seen_in} for name, f in all_flags().items()})
    finish(root, entries)


def build_group(cases: Sequence[Case]) -> Group:
    """Return a group's manifest and proved tensors."""
    first = cases[0]
    record = REGISTRY[first.op]
    calls = [call for case in cases for call in case.calls if case.kind != "reject"]
    shared = {n: v for n, v in (calls[0].params.items() if calls else ()) if all(c.params.get(n, ...) == v for c in calls)}
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "id": first.group,
        "op": first.op,
        "params": {name: to_json(value) for name, value in shared.items()},
        "sources": [record.source],
        "provenance": {
            "witnesses": [f"posref.{first.op} on balls", f"posref.conformance.witness.{first.op} in mpmath"],
            "license": "CC0-1.0",
        },
    }
    group = Group(manifest)
    manifest["cases"] = [_case(case, group) for case in cases]
    return group


def _case(case: Case, group: Group) -> dict[str, Any]:
    """Return a case's entry; its tensors go into `group`."""
    name = case.id.rsplit("/", maxsplit=1)[1]
    entry: dict[str, Any] = {
        "id": case.id,
        "kind": case.kind,
        "tier": case.tier,
        "flags": list(case.flags),
        "comment": case.comment,
    }
    unknown = set(case.flags) - set(all_flags()) - set(FUZZ)
    if unknown or not case.flags:
        msg = f"{case.id}: every case names flags that are defined; unknown: {sorted(unknown)}."
        raise BuildError(msg)
    try:
        if case.kind == "reject":
            inputs = {n: np.asarray(v) for n, v in case.inputs.items()}
            params = {n: to_json(v) for n, v in case.params.items()}
            return entry | {"params": params, "inputs": _store(group.data, f"{name}/in", inputs)}
        if case.kind == "sequence":
            steps = [_call(case.op, f"{name}@{k}", call.params, call.inputs, group) for k, call in enumerate(case.calls)]
            kept = [set(step.pop("dtypes")) for step in steps]
            return entry | {"steps": steps, "dtypes": [d for d in OF_DTYPE if all(d in k for k in kept)]}
        if case.kind == "vjp":
            return entry | _gradients(case, name, group)
        return entry | _call(case.op, name, case.params, case.inputs, group)
    except Exception as error:  # whatever is wrong, the case that it is wrong in has to be named
        kind = "" if isinstance(error, BuildError) else f"{type(error).__name__}: "
        msg = f"{case.id}: {kind}{error}"
        raise BuildError(msg) from error


def _call(op: str, name: str, params: Mapping[str, Any], inputs: Mapping[str, Any], group: Group) -> dict[str, Any]:
    """Return one call's entry: proved values, stages, tolerances, and the dtypes it can be asked in."""
    arrays = {n: np.asarray(v) for n, v in inputs.items()}
    expected, mid, widths = proved(op, arrays, params)
    dtypes = _keep(name, widths, askable(op, arrays, expected), group)
    return {
        "params": {n: to_json(v) for n, v in params.items()},
        "inputs": _store(group.data, f"{name}/in", arrays),
        "expected": _store(group.data, f"{name}/out", expected),
        "intermediates": _store(group.data, f"{name}/mid", mid),
        "dtypes": dtypes,
    }


def _gradients(case: Case, name: str, group: Group) -> dict[str, Any]:
    """Return the entry of a case of gradients: proved, with tolerances, and the dtypes it can be asked in."""
    arrays = {n: np.asarray(v) for n, v in case.inputs.items()}
    cotangents = {n: np.asarray(v, dtype=np.float64) for n, v in case.cotangents.items()}
    outputs = prove.golden(case.op, arrays, case.params)
    if {n: v.shape for n, v in cotangents.items()} != {n: v.shape for n, v in outputs.items()}:
        msg = f"cotangents must be of the outputs' names and shapes, { {n: v.shape for n, v in outputs.items()} }."
        raise BuildError(msg)
    pullback = prove.Pullback(cotangents, case.wrt or differentiable(arrays))
    expected, _, widths = proved(case.op, arrays, case.params, pullback)
    held = askable(case.op, {**arrays, **{f"cotangent of {n}": v for n, v in cotangents.items()}}, {**outputs, **expected})
    return {
        "params": {n: to_json(v) for n, v in case.params.items()},
        "inputs": _store(group.data, f"{name}/in", arrays),
        "cotangents": _store(group.data, f"{name}/ct", cotangents),
        "expected": _store(group.data, f"{name}/out", expected),
        "dtypes": _keep(name, widths, held, group),
    }


def _keep(name: str, widths: Mapping[str, prove.Arrays], dtypes: list[str], group: Group) -> list[str]:
    """Put a call's half-widths into `group`, and return those of its dtypes of which they say something."""
    kept = [d for d in dtypes if d not in UNIT or f"low-{d}" in widths]
    for accuracy, values in widths.items():
        if accuracy.startswith("low-") and accuracy[4:] not in kept:
            continue
        group.tolerance.update({f"{accuracy}/{name}/{n}": v for n, v in values.items()})
    return kept


def proved(
    op: str, inputs: prove.Arrays, params: Mapping[str, Any], pullback: prove.Pullback | None = None
) -> tuple[prove.Arrays, prove.Arrays, dict[str, prove.Arrays]]:
    """
    Return a call's expected values, stages and half-widths by class, and as "trig" its sensitivity to sines and cosines.

    With a `pullback` the expected values are gradients, by the names of inputs, and there are no stages.

    Raises
    ------
    BuildError
        If the two witnesses disagree or a decision lies within its tolerance.
    """
    if pullback is None:
        expected, mid = prove.golden_with_stages(op, inputs, params)
    else:
        expected, mid = prove.golden(op, inputs, params, pullback), {}
    problem = prove.disagreement(op, inputs, params, expected, mid, pullback)
    if problem:
        msg = f"the witnesses disagree at {problem}."
        raise Disagreement(msg)
    widths: dict[str, prove.Arrays] = {}
    for accuracy in BASE:
        low = accuracy.startswith("low-")
        try:
            found = prove.half_widths(op, inputs, params, accuracy, expected, pullback)
        except BuildError:
            if not low:  # at 8 bits nothing may be left to say: then it is not asked there
                raise
            continue
        if not (low and pullback) or _telling(found, expected):
            widths[accuracy] = found
    moved = prove.sensitivity(op, inputs, params, expected, pullback)
    return expected, mid, widths | ({"trig": moved} if moved else {})


def _telling(widths: prove.Arrays, expected: prove.Arrays) -> bool:
    """Return whether half-widths rule out an answer of zeros, for every gradient that is not zero."""
    return all(not np.any(value) or np.any(np.abs(value) > widths[name]) for name, value in expected.items())


def askable(op: str, inputs: prove.Arrays, expected: prove.Arrays) -> list[str]:
    """Return the dtypes that hold every real input exactly and every output within their range."""
    kept = []
    for dtype in OF_DTYPE:
        wide = "float32" if dtype in UNIT else dtype
        holds = all(
            representable(v, wide if n in AT_LEAST_FLOAT32 else dtype) for n, v in inputs.items() if v.dtype.kind == "f"
        )
        values = [v for v in expected.values() if v.dtype.kind == "f"]
        if REGISTRY[op].family == "bias":  # a bias is a slope times a distance, which must be in range as well
            values += [v for n, v in inputs.items() if n in POSITIONS]
        if holds and all(np.all(np.abs(v) <= LARGEST[dtype]) for v in values):
            kept.append(dtype)
    return kept


def _store(data: tensors.Tensors, prefix: str, arrays: prove.Arrays) -> dict[str, str]:
    """Put arrays into `data` and return their names there."""
    for name, value in arrays.items():
        kind = {"f": np.float64, "b": np.bool_}.get(value.dtype.kind, np.int64)
        data[f"{prefix}/{name}"] = value.astype(kind)
    return {name: f"{prefix}/{name}" for name in arrays}


def write_group(root: Path, group: Group) -> dict[str, Any]:
    """Write a group's files and return its entry for the suite's manifest."""
    folder = root / group.manifest["id"]
    folder.mkdir(parents=True)
    contents = {"data.safetensors": group.data, "tolerance.safetensors": group.tolerance}
    group.manifest["files"] = {name: tensors.write(folder / name, found) for name, found in contents.items()}
    write_json(folder / "group.json", group.manifest)
    files = {"group.json": tensors.digest((folder / "group.json").read_bytes()), **group.manifest["files"]}
    ids = [case["id"] for case in group.manifest["cases"]]
    return {"id": group.manifest["id"], "op": group.manifest["op"], "cases": ids, "files": files}


def plain(group: Group | LoadedGroup, case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case with its tensors as nested lists."""

    def lists(names: Mapping[str, str], source: tensors.Tensors) -> dict[str, Any]:
        return {n: source[tensor].tolist() for n, tensor in names.items()}

    name = case["id"].rsplit("/", maxsplit=1)[1]
    widths = {
        c: {
            n: group.tolerance[f"{c}/{name}/{n}"].astype(float).tolist()
            for n in case["expected"]
            if f"{c}/{name}/{n}" in group.tolerance
        }
        for c in BASE[:3]
    }
    return {
        "id": case["id"], "op": group.manifest["op"], "params": case["params"], "inputs": lists(case["inputs"], group.data),
        "expected": lists(case["expected"], group.data), "tolerance": widths,
    }  # fmt: skip
