"""Golden data for one call, proved by two witnesses, in the forms that people's tests read."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
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
from ..errors import TargetError
from ..model import GOLDEN, Arrays, Case
from ..suite.options import to_json
from .prove import Effort, Show, proved_in_parts, shapes_of
from .running import askable

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
        from . import onnx_data

        onnx_data.require_onnx()
    if form == "suite":
        from . import build

        build.require_room("golden", shapes)
        build.write_suite("golden", path, {case.op: [case]}, GOLDEN, wanted.effort, show)
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
        from . import onnx_data

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
