"""Golden data for one call, proved by two witnesses, in the forms that people's tests read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
from ..model import Arrays, Case, Flag
from ..suite.atomic import whole_directory
from ..suite.options import to_json
from ..suite.writing import SCHEMA, STATIC, SUITE, copy_static, finish, write_json
from . import screening
from .build import GOLDEN, build_group, proved, write_group
from .running import askable

MOST = {1: 1 << 21, 2: 1 << 19}  # values of a result, by the number of witnesses: so many take minutes
FILES = (".npz", ".safetensors", ".json")


@dataclass(frozen=True)
class Wanted:
    """What the data of a call must have: tolerances of one dtype alone, the stages on the way, and how many witnesses."""

    dtype: str | None = None
    stages: bool = False
    witnesses: int = 2


def write(case: Case, path: Path, wanted: Wanted, command: str) -> dict[str, Any]:
    """
    Prove a call, write it to `path` and return what the file says of it. A suite always has the stages.

    Raises
    ------
    BuildError
        If the witnesses disagree, or a decision lies within its tolerance.
    TargetError
        If there are too many values, they do not fit the dtype, or there are no stages where these are wanted.
    """
    inputs = {n: np.asarray(v) for n, v in case.inputs.items()}
    try:
        values = sum(x.size for x in screening.plain(case.op, inputs, case.params).values())
    except (TypeError, ValueError) as error:
        msg = f"golden: {case.op} does not take this call: {error}"
        raise TargetError(msg) from error
    most = MOST[wanted.witnesses]
    if values > most:
        remedy = "Ask for fewer positions or heads" + (", or for --witnesses 1." if values <= MOST[1] else ".")
        msg = f"golden: at most {most} values are proved at once; the result has {values}. {remedy}"
        raise TargetError(msg)
    if path.suffix not in FILES:
        write_suite("golden", path, {case.op: [case]}, GOLDEN, witnesses=wanted.witnesses)
        return {"operation": case.op, "suite": str(path)}
    expected, mid, widths = proved(case.op, inputs, case.params, witnesses=wanted.witnesses)
    if wanted.stages and not mid:
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
    about = {
        "operation": case.op,
        "options": {n: to_json(v) for n, v in case.params.items()},
        "dtypes": asked,
        "claims": {d: DEFAULT_CLAIM[d] for d in asked},
        "source": REGISTRY[case.op].source,
        "witnesses": wanted.witnesses,
        "posref": posref.__version__,
        "command": command,
        "license": "CC0-1.0",
    }
    _save(path, _arrays(case.op, inputs, expected, mid if wanted.stages else {}, widths, asked), about)
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


def _save(path: Path, arrays: Arrays, about: Mapping[str, Any]) -> None:
    """Write arrays, and what they are, in the format of the file's ending."""
    if path.suffix == ".npz":
        file = io.BytesIO()
        np.savez(file, **dict[str, Any](arrays, about=np.asarray(json.dumps(about))))
        data = file.getvalue()
    elif path.suffix == ".safetensors":
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


def golden_suite(calls: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]], directory: str | Path) -> Path:
    """
    Prove calls of your own by two witnesses, and write them as a suite for ``posref check --suite``.

    Parameters
    ----------
    calls : iterable of (op, arrays, options)
        The operation's name, NumPy arrays by the name of the argument, and options by name (``dim`` and the like among them).
    directory : path
        New, empty, or a suite that is replaced.

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
            msg = f"golden_suite: op must be one of {', '.join(REGISTRY)}; got {op!r}."
            raise TargetError(msg)
        inputs = {name: np.asarray(value) for name, value in arrays.items()}
        try:
            screening.plain(op, inputs, options)
        except (TypeError, ValueError) as error:
            msg = f"golden_suite: {op} does not take call {len(own) + 1}: {error}"
            raise TargetError(msg) from error
        wide = {name: x.astype(np.float64) if x.dtype.kind == "f" else x for name, x in inputs.items()}
        own.append(Case(f"{op}/golden/call-{len(own) + 1}", dict(options), wide, tuple(GOLDEN)))
    write_suite("golden_suite", Path(directory), by_op, GOLDEN)
    return Path(directory)


def write_suite(
    who: str, directory: Path, by_op: Mapping[str, list[Case]], flags: Mapping[str, Flag], *, witnesses: int = 2
) -> None:
    """Write cases as a suite that `posref check --suite` takes, a group an operation; nothing but a suite is replaced."""
    with whole_directory(directory, replace=True) as new:
        if directory.exists() and any(directory.iterdir()) and not (directory / "SUITE.json").is_file():
            msg = f"{who}: --output must be new, empty, or hold a suite; {directory} holds something else. Choose another."
            raise TargetError(msg)
        entries = [write_group(new, build_group(cases, witnesses=witnesses)) for cases in by_op.values() if cases]
        copy_static(STATIC, new)
        write_json(new / "smoke.json", {"schema": SCHEMA, "suite": SUITE, "cases": []})
        write_json(new / "flags.json", {name: {"catches": f.catches, "seen_in": f.seen_in} for name, f in flags.items()})
        finish(new, entries)
