"""Builds and verifies a suite: cases proved by two witnesses, in files whose bytes depend on the sources only."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np

from posref.spec import REGISTRY

from ..accuracy import BASE, OF_DTYPE, UNIT
from ..calls import differentiable, to_json
from ..errors import BuildError, TargetError, VectorError, no_operation
from ..evidence.catalogue import all_cases, cases_of, groups, mistakes
from ..model import FORMS, STATES, Arrays, Case, LoadedCase, LoadedGroup
from ..suite import safe_files, tensors
from ..suite.reader import document, load_group, load_manifest
from ..suite.safe_files import SUITE_FILE, whole_directory
from ..suite.writer import (
    SCHEMA,
    STATIC,
    SUITE,
    copy_groups,
    copy_static,
    expect_suite,
    json_bytes,
    listing,
    recorded_sums,
    write_json,
    write_manifest,
)
from . import workers
from .evaluation import Pullback, askable, golden, pullback_of, wide
from .proof_cache import Product, Store
from .witnesses import Effort, Proof, Show, proved, proved_in_parts, shapes_of

Progress = Callable[[str, int], None]
Prover = Callable[[str, Arrays, Mapping[str, Any]], Proof]


@dataclass
class ProvedGroup:
    """A group's manifest and tensors, in memory, and what proves its values."""

    manifest: dict[str, Any]
    prove: Prover
    data: tensors.Tensors = field(default_factory=dict)
    tolerance: tensors.Tensors = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """The number of groups that a build proved, took from what was proved before, and kept from the directory."""

    proved: int
    reused: int
    kept: int

    def __str__(self) -> str:
        counts = {"proved": self.proved, "taken from the cache": self.reused, "kept": self.kept}
        return ", ".join(f"{n} {'group' if n == 1 else 'groups'} {how}" for how, n in counts.items() if n)


def build(
    directory: Path, *, tier: str = "core", ops: Collection[str] = (), jobs: int | None = None, reuse: Path | None = None,
    progress: Progress | None = None,
) -> Built:  # fmt: skip
    """
    Write the suite of `tier` to `directory`, which must not exist, be empty, or hold a suite that is then replaced.

    Everything is written beside it first and moved into place whole, so that an interruption leaves no half suite. The page,
    licence, errata and schemas of a suite that is replaced stay as they are; a directory without them gets the installed ones.

    Parameters
    ----------
    directory : Path
        Where the suite goes.
    tier : {"core", "smoke"}
        Which cases: all, or one for each operation.
    ops : collection of str
        Build only the groups of these operations. A suite in `directory` keeps all others, byte for byte.
    jobs : int, optional
        The number of processes to prove in, at most; by default one for each core.
    reuse : Path, optional
        A folder of proved groups to take from and add to, such as `posref.conformance.reuse.default_folder()`.
    progress : callable, optional
        Called for each group that is done, with its id and the number of all groups.

    Raises
    ------
    BuildError
        If the witnesses disagree, a value cannot be proved, or a decision lies within its tolerance: it names the case.
    """
    wanted = _wanted(tier, ops)
    with whole_directory(directory, expect_suite) as new:
        old = directory if (directory / "SUITE.json").is_file() else None
        with _products(wanted, jobs, Store(reuse) if reuse is not None else None) as products:
            entries, smoke = _copy_others(old, new, ops) if old is not None and ops else ({}, {})
            kept, proved_now = len(entries), 0
            for name, product, fresh in products:
                entries[name], smoke[name] = _write(new, product.files), list(product.smoke)
                proved_now += fresh
                if progress:
                    progress(name, len(wanted))
        copy_static(STATIC, new, own=old)
        _close(new, entries, smoke)
    return Built(proved_now, len(wanted) - proved_now, kept)


def _wanted(tier: str, ops: Collection[str]) -> dict[str, list[Case]]:
    """Return the cases to build by group; `BuildError` for an operation without any."""
    cases = [case for case in all_cases(ops) if tier != "smoke" or case.tier == "smoke"]
    without = sorted(set(ops) - {case.op for case in cases})
    if without:
        msg = f"vectors build: --op must name an operation that has cases; {', '.join(without)} has none."
        raise BuildError(msg)
    return groups(cases)


def _copy_others(old: Path, new: Path, ops: Collection[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Copy the groups of all other operations as they are, and return their entries and smoke cases by group."""
    manifest = load_manifest(old)
    if manifest["suite"].partition("+")[0] != SUITE:
        msg = f"vectors build: --op keeps groups of suite {SUITE} alone; {old} holds {manifest['suite']}. Build all of it."
        raise BuildError(msg)
    entries = {entry["id"]: entry for entry in manifest["groups"] if entry["op"] not in ops}
    copy_groups(old, new, list(entries.values()), link=True)
    smoke: dict[str, list[Any]] = {}
    for case in document(old, "smoke.json", "smoke")["cases"]:
        smoke.setdefault(case["id"].rsplit("/", maxsplit=1)[0], []).append(case)
    if tensors.digest((old / "smoke.json").read_bytes())["sha256"] != recorded_sums(old).get("smoke.json"):
        raise safe_files.refusal(old / "smoke.json", "differs from its hash in SHA256SUMS. Build all of the suite")
    return entries, {name: cases for name, cases in smoke.items() if name in entries}


@contextmanager
def _products(
    wanted: Mapping[str, list[Case]], jobs: int | None, store: Store | None
) -> Iterator[Iterator[tuple[str, Product, bool]]]:
    """Yield an iterator over groups in order of their sources, each with its files and whether it was proved now."""
    keys = {name: store.key(cases) for name, cases in wanted.items()} if store else {}
    stored = {name: product for name, key in keys.items() if store and (product := store.get(key))}
    again = drawn(list(stored))
    tasks = {name: (cases,) for name, cases in wanted.items() if name not in stored or name in again}
    # what is stored is proved in workers, by code that they load after the store has looked at it
    count = workers.fitting(jobs, sum(len(cases) for (cases,) in tasks.values()), here=store is None)

    def merged(proofs: Iterator[Product]) -> Iterator[tuple[str, Product, bool]]:
        for name in wanted:
            product = next(proofs) if name in tasks else stored[name]
            if name in again and product.files != stored[name].files:
                place = store and store.folder
                msg = f"{name}: the cache in {place} holds other values than its proof gives. Delete that folder."
                raise BuildError(msg)
            if store and name not in stored:
                store.put(keys[name], product)
            yield name, product, name not in stored
            stored[name] = Product({}, ())  # its bytes are no longer needed

    with workers.each(product_of, tasks, count) as proofs:
        yield merged(proofs)
    if store:
        store.prune()


PYTHON_NUMBER = ". It is a Python number: make it an array, by `beside` of posref/core/arrays.py."
AGAIN = 1 / 16  # of the groups in a cache that are proved again


def drawn(names: Sequence[str]) -> frozenset[str]:
    """Return the groups of a cache that are proved all the same: a share, at least one, which nobody can know before."""
    return frozenset(SystemRandom().sample(names, math.ceil(len(names) * AGAIN)))


def product_of(cases: Sequence[Case]) -> Product:
    """Return the proved files of a group, and its smoke cases."""
    group = build_group(cases)
    return Product(group_files(group), smoke_of(group))


def _close(root: Path, entries: Mapping[str, Any], smoke: Mapping[str, Sequence[Any]]) -> None:
    """Write what speaks of all groups: as in the installed suite, then new ones, then those that no source makes any more."""
    installed = [entry["id"] for entry in load_manifest(STATIC)["groups"]] if (STATIC / "SUITE.json").is_file() else []
    sources = groups(list(all_cases({name.partition("/")[0] for name in entries})))
    known = dict.fromkeys((*(name for name in installed if name in sources), *sources))
    order = {name: place for place, name in enumerate(known)}
    names = sorted(entries, key=lambda name: order.get(name, len(order)))
    cases = [case for name in names for case in smoke.get(name, ())]
    _finish(root, [entries[name] for name in names], cases, mistakes())


def build_group(cases: Sequence[Case], *, witnesses: int = 2, prove: Prover = proved) -> ProvedGroup:
    """Return a group's manifest and proved tensors; `BuildError` for a form or a state that no code knows."""
    first = cases[0]
    for case in cases:
        unknown = {*case.flags} - {*FORMS, *STATES}
        if unknown:
            msg = f"{case.id}: form and state must be of {FORMS + STATES}; got {', '.join(sorted(unknown))}."
            raise BuildError(msg)
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
            "witnesses": [f"posref.{first.op} on balls", f"posref.conformance.witness.{first.op} in mpmath"][:witnesses],
            "license": "CC0-1.0",
        },
    }
    group = ProvedGroup(manifest, prove)
    manifest["cases"] = [_case(case, group) for case in cases]
    return group


def _case(case: Case, group: ProvedGroup) -> dict[str, Any]:
    """Return a case's entry; its tensors go into `group`."""
    name = case.id.rsplit("/", maxsplit=1)[1]
    entry: dict[str, Any] = {
        "id": case.id,
        "kind": case.kind,
        "tier": case.tier,
        "flags": list(case.flags),
        "comment": case.comment,
    }
    try:
        if case.kind == "reject":
            inputs = {n: np.asarray(v) for n, v in case.inputs.items()}
            params = {n: to_json(v) for n, v in case.params.items()}
            return entry | {"params": params, "inputs": _store(group.data, f"{name}/in", inputs)}
        if case.kind == "sequence":
            steps = [_call(case, f"{name}@{k}", call.params, call.inputs, group) for k, call in enumerate(case.calls)]
            kept = [set(step.pop("dtypes")) for step in steps]
            return entry | {"steps": steps, "dtypes": [d for d in OF_DTYPE if all(d in k for k in kept)]}
        if case.kind == "vjp":
            return entry | _gradients(case, name, group)
        return entry | _call(case, name, case.params, case.inputs, group)
    except Exception as error:  # whatever is wrong, the case that it is wrong in has to be named
        kind = "" if isinstance(error, BuildError) else f"{type(error).__name__}: "
        place = "" if isinstance(error, BuildError | NotImplementedError) else _place(case.op, error)
        is_number = isinstance(error, AttributeError) and isinstance(error.obj, int | float)
        msg = f"{case.id}: {kind}{error}{place}{PYTHON_NUMBER if is_number else ''}"
        raise BuildError(msg) from error


def _place(op: str, error: Exception) -> str:
    """Return the last line of the operation's files, definition or witness, that an error passed through, in parentheses."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).stem == op]
    return f" ({'/'.join(Path(frames[-1].filename).parts[-3:])}:{frames[-1].lineno})" if frames else ""


def _call(case: Case, name: str, params: Mapping[str, Any], inputs: Mapping[str, Any], group: ProvedGroup) -> dict[str, Any]:
    """Return one call's entry: proved values, stages, tolerances, and its possible dtypes."""
    arrays = {n: np.asarray(v) for n, v in inputs.items()}
    expected, mid, widths = group.prove(case.op, arrays, params)
    entry = _entry(name, params, arrays, expected, group)
    entry["intermediates"] = _store(group.data, f"{name}/mid", mid)
    return entry | {"dtypes": _keep(name, widths, askable(case.op, arrays, expected, case.form), group)}


def _gradients(case: Case, name: str, group: ProvedGroup) -> dict[str, Any]:
    """Return the entry of a case of gradients: proved values, tolerances, and its possible dtypes."""
    arrays = {n: np.asarray(v) for n, v in case.inputs.items()}
    cotangents = {n: np.asarray(v, dtype=np.float64) for n, v in case.cotangents.items()}
    outputs = golden(case.op, arrays, case.params)
    if {n: v.shape for n, v in cotangents.items()} != {n: v.shape for n, v in outputs.items()}:
        msg = f"cotangents must be of the outputs' names and shapes, { {n: v.shape for n, v in outputs.items()} }."
        raise BuildError(msg)
    pullback = Pullback(cotangents, case.wrt or differentiable(case.op, arrays))
    expected, _, widths = proved(case.op, arrays, case.params, pullback)
    held = askable(case.op, {**arrays, **{f"cotangent of {n}": v for n, v in cotangents.items()}}, {**outputs, **expected})
    entry = _entry(name, case.params, arrays, expected, group)
    entry["cotangents"] = _store(group.data, f"{name}/ct", cotangents)
    return entry | {"dtypes": _keep(name, widths, held, group)}


def _entry(name: str, params: Mapping[str, Any], arrays: Arrays, expected: Arrays, group: ProvedGroup) -> dict[str, Any]:
    """Return what the entries of values and of gradients have in common."""
    return {
        "params": {n: to_json(v) for n, v in params.items()},
        "inputs": _store(group.data, f"{name}/in", arrays),
        "expected": _store(group.data, f"{name}/out", expected),
    }


def _keep(name: str, widths: Mapping[str, Arrays], dtypes: list[str], group: ProvedGroup) -> list[str]:
    """Put a call's half-widths into `group`, and return the dtypes that have any."""
    kept = [d for d in dtypes if d not in UNIT or f"low-{d}" in widths]
    for accuracy, values in widths.items():
        if accuracy.startswith("low-") and accuracy[4:] not in kept:
            continue
        without = [n for n, v in values.items() if not np.all(np.isfinite(v))]
        if without:
            msg = f"{name}: what {accuracy} allows in {without[0]} must be finite. Choose other inputs, or leave it out."
            raise BuildError(msg)
        group.tolerance.update({f"{accuracy}/{name}/{n}": v for n, v in values.items()})
    return kept


def _store(data: tensors.Tensors, prefix: str, arrays: Arrays) -> dict[str, str]:
    """Put arrays into `data` and return their names there."""
    for name, value in arrays.items():
        kind = {"f": np.float64, "b": np.bool_}.get(value.dtype.kind, np.int64)
        data[f"{prefix}/{name}"] = value.astype(kind)
    return {name: f"{prefix}/{name}" for name in arrays}


def write_group(root: Path, group: ProvedGroup) -> dict[str, Any]:
    """Write a group's files and return its entry for the suite's manifest."""
    return _write(root, group_files(group))


def group_files(group: ProvedGroup) -> dict[str, bytes]:
    """Return a group's files by name, and put their hashes into its manifest."""
    files = {"data.safetensors": tensors.to_bytes(group.data), "tolerance.safetensors": tensors.to_bytes(group.tolerance)}
    group.manifest["files"] = {name: tensors.digest(data) for name, data in files.items()}
    return {"group.json": json_bytes(group.manifest), **files}


def _write(root: Path, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Write the files of a group and return its entry for the suite's manifest."""
    manifest = json.loads(files["group.json"])
    folder = root / manifest["id"]
    folder.mkdir(parents=True)
    for name, data in files.items():
        safe_files.write(folder / name, data)
    ids = [case["id"] for case in manifest["cases"]]
    return {"id": manifest["id"], "op": manifest["op"], "cases": ids, "files": {n: tensors.digest(d) for n, d in files.items()}}


def smoke_of(group: ProvedGroup | LoadedGroup) -> list[dict[str, Any]]:
    """Return the smoke cases of a group, with their tensors as nested lists."""
    return [plain(group, case) for case in group.manifest["cases"] if case["tier"] == "smoke"]


def plain(group: ProvedGroup | LoadedGroup, case: Mapping[str, Any]) -> dict[str, Any]:
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


# ---- suites of your own calls ---------------------------------------------------------------------------------------------
OF_SUITE = 32  # bytes that a suite's largest file has for each value, at most


def golden_suite(
    calls: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]], directory: str | Path, *, jobs: int | None = None,
    minutes: float = 10.0,
) -> Path:  # fmt: skip
    """
    Prove calls of your own by two witnesses, and write them as a suite for ``posref check --suite``.

    Parameters
    ----------
    calls : iterable of (op, arrays, options)
        The operation's name, NumPy arrays by the name of the argument, and options by name (``dim`` and the like among them).
    directory : path
        New, empty, or a suite that is replaced.
    jobs : int, optional
        The number of processes that prove a large call, at most; by default one for each core.
    minutes : float
        A call that would take longer is refused.

    Returns
    -------
    Path
        The directory.

    Raises
    ------
    TargetError, BuildError
        If there is no such operation, an argument or option is unknown or missing, or a value cannot be proved.

    Examples
    --------
    >>> calls = [("rope", {"x": x, "positions": positions}, {"layout": "half", "base": 10000.0})]  # doctest: +SKIP
    >>> golden_suite(calls, "golden/")  # doctest: +SKIP
    """
    by_op: dict[str, list[Case]] = {}
    for op, arrays, options in calls:
        cases = by_op.setdefault(op, [])
        if op not in REGISTRY:
            raise TargetError(no_operation("golden_suite: op", op))
        inputs = {name: np.asarray(value) for name, value in arrays.items()}
        try:
            shapes = shapes_of(op, inputs, options)
        except (TypeError, ValueError, IndexError) as error:
            msg = f"golden_suite: {op} does not take call {len(cases) + 1}: {error}"
            raise TargetError(msg) from error
        require_room("golden_suite", shapes)
        cases.append(Case(f"{op}/golden/call-{len(cases) + 1}", dict(options), wide(inputs)))
    write_suite(Path(directory), by_op, Effort(jobs=jobs, minutes=minutes))
    return Path(directory)


def require_room(who: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless results fit into the files of a suite."""
    values = sum(math.prod(shape) for shape in shapes.values())
    if values * OF_SUITE > SUITE_FILE:
        most = SUITE_FILE // OF_SUITE
        msg = f"{who}: a suite holds at most {most} values of a call; got {values}. Write .npz or .safetensors."
        raise TargetError(msg)


def write_suite(
    directory: Path, by_op: Mapping[str, list[Case]], effort: Effort | None = None, show: Show | None = None
) -> None:
    """Write cases as a suite that `posref check --suite` takes, a group an operation; nothing but a suite is replaced."""
    spent = effort or Effort(minutes=math.inf)

    def prove(op: str, arrays: Arrays, params: Mapping[str, Any]) -> Proof:
        return proved_in_parts(op, arrays, params, spent, show)

    with whole_directory(directory, expect_suite) as new:
        old = directory if (directory / "SUITE.json").is_file() else None
        made = (build_group(cases, witnesses=spent.witnesses, prove=prove) for cases in by_op.values() if cases)
        entries = [write_group(new, group) for group in made]
        copy_static(STATIC, new, own=old)
        _finish(new, entries, [], {})


def _finish(root: Path, entries: Sequence[Mapping[str, Any]], smoke: Sequence[Any], flags: Mapping[str, Any]) -> None:
    """Write what speaks of all groups of a suite."""
    write_json(root / "smoke.json", {"schema": SCHEMA, "suite": SUITE, "cases": smoke})
    write_json(root / "flags.json", flags)
    write_manifest(root, entries)


# ---- verification: every stored value is proved again from its stored inputs, and inputs are compared with the sources ----
def verify(root: Path, *, jobs: int | None = None, progress: Progress | None = None) -> list[str]:
    """
    Return what is wrong with the suite in `root`, one line each, naming case, tensor and index; nothing when it is true.

    Everything is proved anew, in at most `jobs` processes (by default one for each core); `progress` is called as by `build`.

    `VectorError` if a file is missing, malformed or not as its recorded hash says.
    """
    manifest = load_manifest(root)
    _sources.cache_clear()
    problems = _check_sums(root)
    entries = manifest["groups"]
    smoke_cases: dict[str, Any] = {}
    count = workers.fitting(jobs, sum(len(entry["cases"]) for entry in entries))
    with workers.each(verify_entry, {entry["id"]: (root, entry) for entry in entries}, count) as results:
        for entry, (problems_of_group, smoke) in zip(entries, results, strict=True):
            problems += problems_of_group
            smoke_cases |= {case["id"]: case for case in smoke}
            if progress:
                progress(entry["id"], len(entries))
    problems += _check_plain(root, smoke_cases)
    return problems


def verify_entry(root: Path, entry: Mapping[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return what is wrong with one group of the manifest, and its smoke cases as plain JSON."""
    group = load_group(root, entry)
    return verify_group(group), smoke_of(group)


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


def _check_plain(root: Path, proved_cases: Mapping[str, Any]) -> list[str]:
    """Return where ``smoke.json`` is not what the groups' files say."""
    problems = []
    try:
        stored = {case["id"]: case for case in document(root, "smoke.json", "smoke")["cases"]}
    except VectorError as error:
        return [str(error)]
    for name in sorted(set(stored) | set(proved_cases)):
        if name not in stored or name not in proved_cases:
            problems.append(f"{name}: in smoke.json or in a group, not in both")
            continue
        group = name.rsplit("/", maxsplit=1)[0]
        try:
            differences = _differences(group, _flat(stored[name]), _flat(proved_cases[name]), case_at=2)
        except ValueError as error:  # lists of different lengths beside one another
            differences = [f"{name}: {error}"]
        problems += [f"smoke.json: {problem}" for problem in differences]
        if stored[name]["params"] != proved_cases[name]["params"]:
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
    sources = [case for case in _sources(group.op).get(group.id, []) if case.id in ids]
    if len(sources) == len(ids):
        try:
            return _compare(group, build_group(sources))
        except BuildError as error:
            return [str(error)]
    return [problem for case in group.cases if case.kind != "reject" for problem in _prove_case(case)]


@lru_cache(maxsize=1)  # the groups of an operation come one after the other
def _sources(op: str) -> dict[str, list[Case]]:
    """Return the cases of an operation by group, as this version's sources state them; none of an operation that it lacks."""
    return groups(list(cases_of(op))) if op in REGISTRY else {}


def _prove_case(case: LoadedCase) -> list[str]:
    """Return stored values of a case that are not what its own inputs give."""
    problems = []
    group, name = case.id.rsplit("/", maxsplit=1)
    for k, call in enumerate(case.calls):
        stored = f"{name}@{k}" if case.kind == "sequence" else name
        try:
            expected, mid, widths = proved(case.op, call.inputs, call.params, pullback_of(call))
        except Exception as error:  # inputs that are no inputs of the operation can make it raise anything
            problems.append(f"{case.id}: {type(error).__name__}: {error}")
            continue
        for role, stored_values, true in (("out", call.expected, expected), ("mid", call.intermediates, mid)):
            named = [{f"{stored}/{role}/{n}": v for n, v in values.items()} for values in (stored_values, true)]
            problems += _differences(group, *named, case_at=0)
        for accuracy, values in call.widths.items():
            named = [{f"{accuracy}/{stored}/{n}": v for n, v in side.items()} for side in (values, widths.get(accuracy, {}))]
            problems += _differences(group, *named, case_at=1)
    return problems


def _compare(group: LoadedGroup, built: ProvedGroup) -> list[str]:
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
