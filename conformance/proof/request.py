"""A call that somebody asks for: options from a preset, a configuration or by hand, arrays from files, ranges or a seed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.spec import REGISTRY

from ..calls import PLACED, array_names, parameters_of, positions_of
from ..errors import TargetError
from ..evidence.tools.numbers import floats
from ..model import Arrays, Case
from ..suite.axes import within
from .build import GOLDEN
from .model_options import Model
from .option_texts import options_of, pair
from .prompt import positions_of_prompt

NAME = "golden"
MOST = 1 << 28  # numbers of an array


@dataclass(frozen=True)
class Request:
    """What the command line says of a call, as text."""

    op: str
    preset: str | None = None
    config: Path | None = None
    gguf: Path | None = None
    layer_type: str | None = None
    options: Sequence[str] = ()  # NAME=VALUE, the value as JSON or a word
    files: Sequence[Path] = ()  # .npz, .npy or .safetensors
    arrays: Sequence[str] = ()  # NAME=NUMBERS
    positions: str | None = None
    prompt: str | None = None  # segments in commas
    after: str | None = None
    shapes: Sequence[str] = ()  # SHAPE or NAME=SHAPE
    seed: int = 0

    def case(self) -> Case:
        """
        Return the call as a case of one group.

        Raises
        ------
        TargetError
            For anything that is missing, unknown or unreadable: it says which option gives it.
        """
        params = self._params()
        inputs = self._inputs(params)
        parameters = parameters_of(REGISTRY[self.op].function)
        needed = [
            n for n, p in parameters.items() if p.default is p.empty and n not in PLACED and n not in {**params, **inputs}
        ]
        if needed:
            how = {n: f"--option {n}=" if n not in array_names(self.op) else _how(self.op, n) for n in needed}
            msg = f"{NAME}: {self.op} needs {', '.join(needed)}; give {' and '.join(how.values())}."
            raise TargetError(msg)
        return Case(f"{self.op}/golden/call", params, inputs, tuple(GOLDEN), f"seed {self.seed}")

    def _params(self) -> dict[str, Any]:
        known = {n: p for n, p in parameters_of(REGISTRY[self.op].function).items() if n in REGISTRY[self.op].domains}
        given = options_of(NAME, self.op, self.options)
        model = Model(self.preset, self.config, self.gguf, self.layer_type).options(self.op, given.get("layout"))
        defaults = {n: p.default for n, p in known.items() if p.default is not p.empty}
        return defaults | {n: v for n, v in model.items() if n in known} | given

    def _inputs(self, params: Mapping[str, Any]) -> Arrays:
        known = array_names(self.op)
        found: Arrays = {}
        for path in self.files:
            found |= _read(path, known)
        for text in self.arrays:
            name, numbers = pair(NAME, "--array", text, "NAME=NUMBERS")
            found[name] = _numbers("--array", numbers)
        if self.prompt is not None:
            found |= self._of_prompt(self.prompt)
        elif self.after is not None:
            msg = f"{NAME}: --after says where text goes on after a video of --prompt; got no --prompt."
            raise TargetError(msg)
        if self.positions is not None:
            found |= {n: _numbers("--positions", self.positions) for n in positions_of(self.op) if n not in found}
        for text in self.shapes:
            name, shape = pair(NAME, "--shape", text, "NAME=SHAPE") if "=" in text else (self._main(), text)
            made = floats(*_shape(shape), seed=self.seed + zlib.crc32(name.encode()))
            axes = REGISTRY[self.op].arrays.get(name)
            found[name] = made if axes is None else within(made, axes, params, 8)
        unknown = [n for n in found if n not in known]
        if unknown:
            msg = f"{NAME}: arrays must be among {', '.join(known)} for {self.op}; got {', '.join(unknown)}."
            raise TargetError(msg)
        return found

    def _of_prompt(self, prompt: str) -> Arrays:
        """Return the positions of a prompt by the name of the argument."""
        if "arrangement" not in REGISTRY[self.op].domains or not positions_of(self.op):
            msg = f"{NAME}: --prompt gives positions along time, height and width; {self.op} takes none. Give --positions."
            raise TargetError(msg)
        if self.positions is not None:
            msg = f"{NAME}: positions come from --prompt or --positions; got both."
            raise TargetError(msg)
        return dict.fromkeys(positions_of(self.op), positions_of_prompt(prompt, self.after))

    def _main(self) -> str:
        """Return the first array of an operation that is no position."""
        others = [n for n in array_names(self.op) if n not in positions_of(self.op)]
        if not others:
            msg = f"{NAME}: --shape is of arrays of reals; {self.op} has none. Give --positions."
            raise TargetError(msg)
        return others[0]


def _how(op: str, name: str) -> str:
    if name in positions_of(op):
        return "--prompt, --array or --input" if "arrangement" in REGISTRY[op].domains else "--positions"
    return f"--shape {name}=, --array {name}= or --input"


def _numbers(option: str, text: str) -> npt.NDArray[Any]:
    """Return numbers in commas, with ranges ``start:stop`` and ``start:stop:step``: integers unless one has a point."""
    found: list[Any] = []
    try:
        for part in text.split(","):
            if ":" in part:
                span = range(*map(int, part.split(":")))
                _require(option, len(span))
                found += span
            else:
                found.append(int(part) if part.strip().lstrip("+-").isdigit() else float(part))
    except (TypeError, ValueError) as error:
        msg = f"{NAME}: {option} must be numbers in commas, or ranges start:stop:step; got {text!r}."
        raise TargetError(msg) from error
    return np.asarray(found, dtype=np.float64 if any(isinstance(x, float) for x in found) else np.int64)


def _shape(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdigit() for part in parts):
        msg = f"{NAME}: --shape must be sizes in commas, as 4,8,128; got {text!r}."
        raise TargetError(msg)
    shape = tuple(map(int, parts))
    _require("--shape", math.prod(shape))
    return shape


def _require(option: str, count: int) -> None:
    """Raise unless an array of so many numbers is one that a machine holds."""
    if count > MOST:
        msg = f"{NAME}: {option} must have at most {MOST} numbers; got {count}."
        raise TargetError(msg)


def _read(path: Path, known: Sequence[str]) -> Arrays:
    """Return the arrays in a file by name; that of a .npy file is the operation's first."""
    try:
        if path.suffix == ".npz":
            with np.load(path) as data:
                found = {name: data[name] for name in data.files}
        elif path.suffix == ".npy":
            found = {known[0]: np.load(path)}
        elif path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            found = load_file(path)
        else:
            msg = f"{NAME}: --input must be .npz, .npy or .safetensors; got {path}."
            raise TargetError(msg)
    except (ValueError, OSError, EOFError, KeyError) as error:
        msg = f"{NAME}: {path} cannot be read: {error}"
        raise TargetError(msg) from error
    return {n: x.astype(np.float64) if x.dtype.kind == "f" else x for n, x in found.items()}
