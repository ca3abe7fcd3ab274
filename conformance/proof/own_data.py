"""Golden data for one call, proved by two witnesses, in the forms that people's tests read."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy as safetensors

import posref
from posref.spec import REGISTRY

from ..accuracy import DEFAULT_CLAIM, UNIT, tolerance_of
from ..calls import judged_as
from ..errors import TargetError, no_operation
from ..model import Arrays, Case, Flag
from ..suite.atomic import whole_directory
from ..suite.options import to_json
from ..suite.writing import LARGEST, SCHEMA, STATIC, SUITE, copy_static, finish, write_json
from . import onnx_data
from .build import GOLDEN, Proof, build_group, write_group
from .parts import Effort, Show, proved_in_parts, shapes_of
from .running import askable

OF_SUITE = 32  # bytes that a suite's largest file has for each value, at most
FILES = ("npz", "safetensors", "json")
TENSOR_FILES = ("npy", "pt", "pth", "bin", "h5", "hdf5", "pkl", "csv", "txt", "gguf", "onnx", "pb", "parquet", "mat", "zip")


@dataclass(frozen=True)
class Wanted:
    """
    What the data of a call must have, tolerances of one dtype alone or of all, and what may be spent on its proof.

    Without a `format` it is that of the file's ending, or else a suite.
    """

    dtype: str | None = None
    effort: Effort = field(default_factory=Effort)
    format: str | None = None

    def format_of(self, path: Path) -> str:
        """Return the format in which a path is written."""
        ending = path.suffix.removeprefix(".")
        foreign = ending in TENSOR_FILES and not path.is_dir() if self.format is None else ending in FILES
        if foreign and ending != self.format:
            folder = f"{', '.join(f'.{form}' for form in FILES)}, or be a folder"
            need = folder if self.format is None else f".{self.format} with --format {self.format}"
            if self.format is not None and self.format not in FILES:
                need = f"nothing that a file ends in with --format {self.format}, which writes a folder"
            msg = f"golden: -o must end in {need}; got {path}."
            raise TargetError(msg)
        return self.format or (ending if ending in FILES else "suite")


def write(case: Case, path: Path, wanted: Wanted, command: str, show: Show | None = None) -> dict[str, Any]:
    """
    Prove a call, write it to `path` and return what the file says of it. A suite has the stages of all but large calls.

    Raises
    ------
    BuildError
        If the witnesses disagree, or a decision lies within its tolerance.
    TargetError
        If it would take too long or too much memory, the values do not fit the dtype, or stages that are wanted are not there.
    """
    form, inputs = wanted.format_of(path), {n: np.asarray(v) for n, v in case.inputs.items()}
    try:
        shapes = shapes_of(case.op, inputs, case.params)
    except (TypeError, ValueError, IndexError) as error:
        remedy = " Say --option length=TOKENS." if ": length must be given" in str(error) else ""
        msg = f"golden: {case.op} does not take this call: {error}{remedy}"
        raise TargetError(msg) from error
    if form == "onnx":
        if wanted.effort.stages:
            msg = "golden: --stages has no place in ONNX's tests. Write .npz or .safetensors."
            raise TargetError(msg)
        onnx_data.require_onnx()
    if form == "suite":
        _require_room("golden", shapes)
        write_suite("golden", path, {case.op: [case]}, GOLDEN, wanted.effort, show)
        return {"operation": case.op, "suite": str(path)}
    expected, mid, widths = proved_in_parts(case.op, inputs, case.params, wanted.effort, show)
    if wanted.effort.stages and not mid:
        msg = f"golden: --stages needs an operation with stages that both witnesses prove; {case.op} has none for this call."
        raise TargetError(msg)
    dtypes = [d for d in askable(case.op, inputs, expected) if d not in UNIT or f"low-{d}" in widths]
    if wanted.dtype is not None and wanted.dtype not in dtypes:
        kept = ", ".join(dtypes) or "none"
        msg = (
            f"golden: --dtype must hold every number of the call and leave something to say ({kept} do); got {wanted.dtype!r}."
        )
        raise TargetError(msg)
    asked = [wanted.dtype] if wanted.dtype else dtypes
    if form == "onnx":
        asked = [wanted.dtype or ("float32" if "float32" in dtypes else dtypes[0])]
    about = {
        "operation": case.op,
        "options": {n: to_json(v) for n, v in case.params.items()},
        "dtypes": asked,
        "claims": {d: DEFAULT_CLAIM[d] for d in asked},
        "source": REGISTRY[case.op].source,
        "witnesses": wanted.effort.witnesses,
        "posref": posref.__version__,
        "command": command,
        "license": "CC0-1.0",
    }
    arrays = _arrays(case.op, inputs, expected, mid if wanted.effort.stages else {}, widths, asked)
    if form == "onnx":
        allowed = {n: arrays[f"allowed/{asked[0]}/{n}"] for n in expected if f"allowed/{asked[0]}/{n}" in arrays}
        return about | {"onnx": onnx_data.write(path, case, expected, allowed, asked[0], about)}
    _save(path, form, arrays, about)
    return about


def _arrays(op: str, inputs: Arrays, expected: Arrays, mid: Arrays, widths: Mapping[str, Arrays], dtypes: list[str]) -> Arrays:
    """Return all arrays by role and name; ``allowed`` is how far a result may be off in a dtype, in its default class."""
    found = {f"in/{n}": x for n, x in inputs.items()} | {f"out/{n}": x for n, x in expected.items()}
    found |= {f"mid/{n}": x for n, x in mid.items()}
    found |= {f"tolerance/{c}/{n}": w for c, of_class in widths.items() for n, w in of_class.items()}
    for dtype in dtypes:
        accuracy, kept = judged_as(op, DEFAULT_CLAIM[dtype], dtype, gradients=False)
        for name, value in expected.items():
            if value.dtype.kind == "f":
                own = {c: w[name] for c, w in widths.items() if name in w}
                found[f"allowed/{dtype}/{name}"] = tolerance_of(own, value, accuracy, kept)
    return {n: np.ascontiguousarray(x).reshape(np.shape(x)) for n, x in found.items()}


def _save(path: Path, form: str, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays, and what they are, in one of the formats that are a file."""
    if form == "npz":
        file = io.BytesIO()
        np.savez(file, **dict[str, Any](arrays, about=np.asarray(json.dumps(about))))
        data = file.getvalue()
    elif form == "safetensors":
        data = safetensors.save(arrays, metadata={"about": json.dumps(about)})
    else:
        data = (json.dumps({"about": about, **{n: _lists(x) for n, x in arrays.items()}}) + "\n").encode()
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    part.replace(path)  # whole, or not at all


def _lists(x: npt.NDArray[Any]) -> Any:
    """Return an array as nested lists; infinities, which JSON has not, as words."""
    if x.dtype.kind != "f" or np.all(np.isfinite(x)):
        return x.tolist()
    return [_lists(row) for row in x] if x.ndim else str(float(x))


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
        own = by_op.setdefault(op, [])
        if op not in REGISTRY:
            raise TargetError(no_operation("golden_suite: op", op))
        inputs = {name: np.asarray(value) for name, value in arrays.items()}
        try:
            shapes = shapes_of(op, inputs, options)
        except (TypeError, ValueError, IndexError) as error:
            msg = f"golden_suite: {op} does not take call {len(own) + 1}: {error}"
            raise TargetError(msg) from error
        _require_room("golden_suite", shapes)
        wide = {name: x.astype(np.float64) if x.dtype.kind == "f" else x for name, x in inputs.items()}
        own.append(Case(f"{op}/golden/call-{len(own) + 1}", dict(options), wide, tuple(GOLDEN)))
    write_suite("golden_suite", Path(directory), by_op, GOLDEN, Effort(jobs=jobs, minutes=minutes))
    return Path(directory)


def _require_room(who: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless results fit into the files of a suite."""
    values = sum(math.prod(shape) for shape in shapes.values())
    if values * OF_SUITE > LARGEST:
        msg = f"{who}: a suite holds at most {LARGEST // OF_SUITE} values of a call; got {values}. Write .npz or .safetensors."
        raise TargetError(msg)


def write_suite(
    who: str, directory: Path, by_op: Mapping[str, list[Case]], flags: Mapping[str, Flag], effort: Effort | None = None,
    show: Show | None = None,
) -> None:  # fmt: skip
    """Write cases as a suite that `posref check --suite` takes, a group an operation; nothing but a suite is replaced."""
    spent = effort or Effort(minutes=math.inf)

    def prover(op: str, arrays: Arrays, params: Mapping[str, Any], *, witnesses: int) -> Proof:
        assert witnesses == spent.witnesses
        return proved_in_parts(op, arrays, params, spent, show)

    with whole_directory(directory, replace=True) as new:
        if directory.exists() and any(directory.iterdir()) and not (directory / "SUITE.json").is_file():
            msg = f"{who}: --output must be new, empty, or hold a suite; {directory} holds something else. Choose another."
            raise TargetError(msg)
        made = (build_group(cases, witnesses=spent.witnesses, prover=prover) for cases in by_op.values() if cases)
        entries = [write_group(new, group) for group in made]
        copy_static(STATIC, new)
        write_json(new / "smoke.json", {"schema": SCHEMA, "suite": SUITE, "cases": []})
        write_json(new / "flags.json", {name: {"catches": f.catches, "seen_in": f.seen_in} for name, f in flags.items()})
        finish(new, entries)
