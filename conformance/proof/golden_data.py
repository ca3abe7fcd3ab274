"""Golden data for your own call: reads the call from the command line, and writes its proved values to a file for tests."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import safetensors.numpy as safetensors

import posref
from posref.core.composition import parts_of
from posref.core.grids import AFTER, After
from posref.models.presets import presets
from posref.positions import multimodal
from posref.spec import REGISTRY

from ..accuracy import STORED_CLAIM, UNIT, tolerance_of
from ..calls import PLACED, array_names, class_and_dtype, from_json, parameters_of, positions_of, to_json
from ..errors import TargetError, shown
from ..evidence.tools.numbers import floats
from ..model import Arrays, Case
from ..suite import tensors
from ..suite.safe_files import NAMED_FILE, is_standard_output, loads, read_named, read_object, whole_file
from ..vocabulary.axes import size_options, within
from .evaluation import askable
from .witnesses import Effort, Show, proved_in_parts, shapes_of

NAME = "golden"
MOST = 1 << 24  # numbers of all arrays
AXES, DIGITS = 8, 20  # of an array; of the size of an axis
SEGMENT = re.compile(
    r"(?:(?P<text>text) +(?P<tokens>\d+)|(?P<image>image) +(?P<size>\d+x\d+)"
    r"|(?P<video>video) +(?P<frames>\d+x\d+x\d+) +every +(?P<interval>\d+(?:\.\d+)?))"
)
FORM = "text N, image HxW and video TxHxW every S, in commas"
TOKENS = 1 << 24  # of a prompt, at most
GRID = re.compile(r"\d{1,9}(x\d{1,9})+")
# What configurations and libraries call our options
ELSEWHERE = {
    "theta": "base", "rope_theta": "base", "freq_base": "base", "num_heads": "heads", "n_heads": "heads", "head_dim": "dim",
    "mrope_section": "sections", "rope_scaling": "scaling", "is_neox_style": "layout",
}  # fmt: skip
FILES = ("npz", "safetensors", "json")
OF_OTHERS = {"onnx": "ONNX's tests", "flashinfer": "FlashInfer-Bench's data"}  # formats that others' judges read
TENSOR_FILES = ("npy", "pt", "pth", "bin", "h5", "hdf5", "pkl", "csv", "txt", "gguf", "onnx", "pb", "parquet", "mat", "zip")


@dataclass(frozen=True)
class Request:
    """What the command line says of a call, as text."""

    op: str
    preset: str | None = None
    config: Path | None = None
    gguf: Path | None = None
    layer_type: str | None = None
    component: str | None = None
    layer: int | None = None
    options: Sequence[str] = ()  # NAME=VALUE, the value as JSON or a word
    files: Sequence[Path] = ()  # .npz, .npy or .safetensors
    arrays: Sequence[str] = ()  # NAME=NUMBERS
    positions: str | None = None
    prompt: str | None = None  # segments in commas
    after: str | None = None
    grid: str | None = None  # sizes with x between them
    shapes: Sequence[str] = ()  # SHAPE or NAME=SHAPE
    seed: int = 0

    def case(self) -> Case:
        """
        Return the call as a case of one group.

        `TargetError` for anything that is missing, unknown or unreadable: it says which option gives it.
        """
        params = self._params()
        inputs = self._inputs(params)
        parameters = parameters_of(REGISTRY[self.op].function)
        needed = [
            n for n, p in parameters.items() if p.default is p.empty and n not in PLACED and n not in {**params, **inputs}
        ]
        if needed:
            how = {n: f"--option {n}=" if n not in array_names(self.op) else _how(self.op, n) for n in needed}
            raise _refusal(NAME, f"{self.op} needs {', '.join(needed)}; give {' and '.join(how.values())}.")
        _require("all arrays together", sum(x.size for x in map(np.asarray, inputs.values())))
        for option, value in params.items():
            if option in size_options(self.op) and isinstance(value, int):
                _require(f"--option {option}=", value)
        return Case(f"{self.op}/golden/call", params, inputs, f"seed {self.seed}")

    def _params(self) -> dict[str, Any]:
        known = {n: p for n, p in parameters_of(REGISTRY[self.op].function).items() if n in REGISTRY[self.op].domains}
        options = options_of(NAME, self.op, self.options)
        model = self._of_model(options.get("layout"))
        defaults = {n: p.default for n, p in known.items() if p.default is not p.empty}
        return defaults | {n: v for n, v in model.items() if n in known} | options

    def _of_model(self, layout: Any) -> Mapping[str, Any]:
        """Return the options that a model gives to the operation; a `layout` is taken in place of the model's."""
        sources = [f"--{n}" for n in ("preset", "config", "gguf") if getattr(self, n) is not None]
        if len(sources) > 1:
            raise _refusal(NAME, f"options come from one model; got {' and '.join(sources)}. Give one of them.")
        if self.layer_type is not None and sources not in (["--config"], ["--gguf"]):
            raise _refusal(NAME, "--layer-type says which layers of --config or --gguf are meant; got neither.")
        for name in ("component", "layer"):
            if getattr(self, name) is not None and sources != ["--config"]:
                raise _refusal(NAME, f"--{name} says what of --config is meant; got no --config.")
        if self.layer_type is not None and _has_several(self.op):
            raise _refusal(
                NAME, f"--layer-type must not be given for {self.op}: layers of models with several position axes are alike."
            )
        if self.preset is not None:
            return self._of_preset(self.preset)
        if self.config is not None:
            return self._of_config(self.config, layout)
        return self._of_gguf(self.gguf, layout) if self.gguf is not None else {}

    def _of_preset(self, name: str) -> Mapping[str, Any]:
        try:
            preset = presets[name]
        except KeyError as error:
            raise TargetError(str(error.args[0])) from error
        if _has_several(preset.op) != _has_several(self.op):
            other = "one position axis" if _has_several(self.op) else "several position axes"
            raise _refusal(NAME, f"preset {name} is of {other}; got {self.op}. Ask for {preset.op}.")
        return preset.options

    def _of_gguf(self, path: Path, layout: Any) -> Mapping[str, Any]:
        if _has_several(self.op):
            raise _refusal(NAME, f"--gguf gives options of one position axis; got {self.op}. Give --config.")
        from ..suite import gguf_file

        metadata, factors = gguf_file.read(path)
        with _naming(path):
            return posref.rope_from_gguf(metadata, rope_factors=factors or None, layer_type=self.layer_type, layout=layout)

    def _of_config(self, path: Path, layout: Any) -> Mapping[str, Any]:
        """Return the options of the model's component that has the operation, or has it as a stage."""
        texts = {op for text in (posref.rope.__name__, posref.mrope.__name__) for op in (text, *parts_of(text))}
        if self.op in texts and (layout is not None or self.layer_type is not None):  # arguments of the reader of a text
            with _naming(path):
                config = read_object(path)
                if _has_several(self.op):
                    return posref.mrope_from_config(config, layout=layout)
                return posref.rope_from_config(config, layer_type=self.layer_type, layout=layout)
        with _naming(path):
            whole = posref.from_config(path, layer=self.layer)
        entries = {name: [entry for entry in listed if entry is not None] for name, listed in whole.items()}
        chosen = self._having(path, entries)
        if len({repr(listed) for listed in chosen.values()}) > 1:
            raise _refusal(
                NAME,
                f"--component must say which component of {path} has {self.op}; got {self.component or 'none'}. "
                f"Give one of {', '.join(chosen)}.",
            )
        name, listed = next(iter(chosen.items()))
        if any(entry != listed[0] for entry in listed):
            raise _refusal(NAME, f"--layer must be given, since the layers of {name!r} differ; or --layer-type.")
        if listed[0].options is None:
            raise _refusal(NAME, f"{path} does not decide the options of {self.op}. Give them by --option, without --config.")
        return cast("Mapping[str, Any]", listed[0].options)

    def _having(self, path: Path, entries: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """Return the entries of the chosen components with this operation, or with this operation as a stage."""
        named = [name for name in entries if self.component in (None, name)]
        named = named or [name for name in entries if name.startswith(f"{self.component} ")]
        if not named and self.component is not None:
            raise _refusal(NAME, f"--component must be one of {', '.join(map(repr, entries))}; got {self.component!r}.")
        for fits in (lambda operation: operation == self.op, lambda operation: self.op in parts_of(operation)):
            having = {name: [entry for entry in entries[name] if fits(entry.operation)] for name in named}
            having = {name: listed for name, listed in having.items() if listed}
            if having:  # a rotation is in the norm of its layers too
                return {name: listed for name, listed in having.items() if name.removesuffix(" norm") not in {*having} - {name}}
        has = "; ".join(f"{name} has {_operations(listed)}" for name, listed in entries.items())
        who = self.component or "no component"
        raise _refusal(NAME, f"{who} of {path} has {self.op}: {has}. Leave out --config, or ask for another.")

    def _inputs(self, params: Mapping[str, Any]) -> Arrays:
        known = array_names(self.op)
        arrays: Arrays = {}
        for path in self.files:
            arrays |= _read(path, known)
        for text in self.arrays:
            name, numbers = pair(NAME, "--array", text, "NAME=NUMBERS")
            arrays[name] = _numbers("--array", numbers)
        if self.grid is not None:
            arrays |= self._of_grid(self.grid)
        if self.prompt is not None:
            arrays |= self._of_prompt(self.prompt)
        elif self.after is not None:
            raise _refusal(NAME, "--after says where text goes on after a video of --prompt; got no --prompt.")
        if self.positions is not None:
            arrays |= {n: _numbers("--positions", self.positions) for n in positions_of(self.op) if n not in arrays}
        for text in self.shapes:
            name, shape = pair(NAME, "--shape", text, "NAME=SHAPE") if "=" in text else (self._main(), text)
            counted = _shape(shape)
            _require("--shape", math.prod(counted) + sum(np.size(x) for x in arrays.values()))
            made = floats(*counted, seed=self.seed + zlib.crc32(name.encode()))
            axes = REGISTRY[self.op].arrays.get(name)
            arrays[name] = made if axes is None else within(made, axes, params, 8)
        unknown = [n for n in arrays if n not in known]
        if unknown:
            raise _refusal(NAME, f"arrays must be among {', '.join(known)} for {self.op}; got {', '.join(unknown)}.")
        return arrays

    def _of_prompt(self, prompt: str) -> Arrays:
        """Return the positions of a prompt by the name of the argument."""
        if not _has_several(self.op) or not positions_of(self.op):
            raise _refusal(
                NAME, f"--prompt gives positions along time, height and width; {self.op} takes none. Give --positions."
            )
        if self.positions is not None:
            raise _refusal(NAME, "positions come from --prompt or --positions; got both.")
        return dict.fromkeys(positions_of(self.op), positions_of_prompt(prompt, self.after))

    def _of_grid(self, sizes: str) -> Arrays:
        """Return the positions of the cells of a grid, row by row, by the name of the argument."""
        if not _on_axes(self.op):
            raise _refusal(NAME, f"--grid gives each cell a position on every axis; {self.op} does not take such positions.")
        if self.positions is not None or self.prompt is not None:
            raise _refusal(NAME, "positions come from --grid, --prompt or --positions; got more than one.")
        if GRID.fullmatch(sizes) is None:
            raise _refusal(NAME, f"--grid must be sizes of two or more axes, as 4x6; got {sizes!r}.")
        counts = [int(size) for size in sizes.split("x")]
        _require("--grid", math.prod(counts) * len(counts))
        return dict.fromkeys(positions_of(self.op), np.asarray(posref.positions.grid(*counts)))

    def _main(self) -> str:
        """Return the first array of an operation that is no position."""
        others = [n for n in array_names(self.op) if n not in positions_of(self.op)]
        if not others:
            raise _refusal(NAME, f"--shape is of arrays of reals; {self.op} has none. Give --positions.")
        return others[0]


def _refusal(command: str, text: str) -> TargetError:
    """Return the error for something that a command line asks for."""
    return TargetError(f"{command}: {text}")


def _has_several(op: str) -> bool:
    """Return whether an operation has several position axes."""
    return REGISTRY[op].family == "rotary" and "arrangement" in REGISTRY[op].domains


def _on_axes(op: str) -> bool:
    """Say whether the positions of an operation have their coordinates, one for each axis, along their first axis."""
    return any(REGISTRY[op].arrays[name].shape.startswith(("len(", "A |")) for name in positions_of(op))


def _how(op: str, name: str) -> str:
    if name in positions_of(op):
        prompt = "--prompt, " if _has_several(op) else ""
        return f"{prompt}--grid or --input" if _on_axes(op) else "--positions"
    return f"--shape {name}=, --array {name}= or --input"


def _numbers(option: str, text: str) -> npt.NDArray[Any]:
    """Return numbers in commas, with ranges ``start:stop`` and ``start:stop:step``: integers unless one has a point."""
    parts: list[range | list[float]] = []
    try:
        for part in text.split(","):
            bounds = [int(number) for number in part.split(":")] if ":" in part else []
            parts.append(range(*bounds) if bounds else [_number(part)])
    except (TypeError, ValueError) as error:
        raise _refusal(NAME, f"{option} must be numbers in commas, or ranges start:stop:step; got {shown(text)!r}.") from error
    _require(option, sum(_count(span) if isinstance(span, range) else 1 for span in parts))
    ends = [end for span in parts for end in ((span[0], span[-1]) if span else ())]
    if not all(math.isfinite(end) and -(2**63) <= end < 2**63 for end in ends):
        raise _refusal(NAME, f"{option} must be finite numbers from -2**63 to 2**63 - 1; got {shown(text)!r}.")
    kind = np.float64 if any(isinstance(end, float) for end in ends) else np.int64
    return np.concatenate([_as_array(span, kind) for span in parts])


def _as_array(numbers: range | list[float], kind: type[np.float64 | np.int64]) -> npt.NDArray[Any]:
    if isinstance(numbers, list) or not numbers:
        return np.asarray(numbers, dtype=kind)
    return (numbers[0] + numbers.step * np.arange(len(numbers), dtype=np.int64)).astype(kind)


def _number(text: str) -> float:
    """Return an int, or a float where there is a point or an exponent."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _count(span: range) -> int:
    """Return the length of a range, however long."""
    return max(0, -(-(span.stop - span.start) // span.step))


def _shape(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts) or len(parts) > AXES:
        raise _refusal(NAME, f"--shape must be sizes in commas, at most {AXES}, as 4,8,128; got {shown(text)!r}.")
    longest = max(map(len, parts))
    shape = tuple(int(part) if longest < DIGITS else MOST + 1 for part in parts)
    _require("--shape", max(math.prod(shape), *shape))
    return shape


def _require(option: str, count: int) -> None:
    """Raise unless arrays of so many numbers are ones that a machine holds."""
    if count > MOST:
        raise _refusal(NAME, f"{option} must have at most {MOST} numbers; got {count if count < 10**DIGITS else 'more'}.")


# ---- arrays in files of the user's -----------------------------------------------------------------------------------------
def _read(path: Path, known: Sequence[str]) -> Arrays:
    """Return the arrays in a file by name; that of a .npy file is the operation's first."""
    readers: dict[str, Callable[[bytes], Arrays]] = {
        ".npz": _of_npz, ".npy": lambda data: {known[0]: _of_npy(data)},
        ".safetensors": lambda data: {name: array for name, (array, _) in tensors.decode(data).items()},
    }  # fmt: skip
    if path.suffix not in readers:
        raise _refusal(NAME, f"--input must be .npz, .npy or .safetensors; got {path}.")
    data = read_named(path)
    try:
        arrays = readers[path.suffix](data)
    except Exception as error:  # of bytes that anybody may have written
        raise _refusal(NAME, f"{path} cannot be read: {shown(str(error) or type(error).__name__)}") from error
    strange = {n: x.dtype for n, x in arrays.items() if x.dtype.kind not in "biuf"}
    if strange:
        raise _refusal(
            NAME, f"{path}: arrays must hold numbers or booleans; got {', '.join(f'{n} of {d}' for n, d in strange.items())}."
        )
    beyond = [n for n, x in arrays.items() if not np.all(np.isfinite(x)) or (x.dtype.kind == "u" and x.max(initial=0) >= 2**63)]
    if beyond:
        raise _refusal(NAME, f"{path}: numbers must be finite, and integers below 2**63; got others in {', '.join(beyond)}.")
    _require(f"--input {path}", sum(x.size for x in arrays.values()))
    kinds = {"f": np.float64, "b": np.bool_}
    return {n: x.astype(kinds.get(x.dtype.kind, np.int64)) for n, x in arrays.items()}


def _of_npz(data: bytes) -> Arrays:
    """Return the arrays of a zip file; refuse one larger than stated, or all together larger than the limit of files."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > NAMED_FILE:
            msg = f"it holds more than {NAMED_FILE} bytes"
            raise ValueError(msg)
        arrays = {}
        for entry in entries:
            with archive.open(entry) as file:
                arrays[entry.filename.removesuffix(".npy")] = _of_npy(file.read(entry.file_size + 1))
        return arrays


def _of_npy(data: bytes) -> npt.NDArray[Any]:
    """Return the array of a .npy file, which must be as long as its header says."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > len(data) or len(shape) > AXES:
        msg = f"its header says {shape} of {dtype}"
        raise ValueError(msg)
    return np.asarray(np.lib.format.read_array(io.BytesIO(data), allow_pickle=False))


# ---- options as they are written on a command line ------------------------------------------------------------------------
def options_of(command: str, op: str, texts: Sequence[str]) -> dict[str, Any]:
    """
    Return the options of an operation that are written in `texts`.

    `TargetError` if a text is not NAME=VALUE, the operation has no such option, or a value cannot be read.
    """
    known = [n for n in parameters_of(REGISTRY[op].function) if n in REGISTRY[op].domains]
    values = {}
    for text in texts:
        name, value = pair(command, "--option", text, "NAME=VALUE")
        if name not in known:
            near = [n for n in known if n in name or n == ELSEWHERE.get(name)] or get_close_matches(name, known, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            raise _refusal(command, f"--option must be one of {', '.join(known)} for {op}; got {name!r}.{meant}")
        values[name] = _value(command, name, value)
    return values


def pair(command: str, option: str, text: str, form: str) -> tuple[str, str]:
    """Return both sides of NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise _refusal(command, f"{option} must be {form}; got {text!r}.")
    return name, value


def _value(command: str, name: str, text: str) -> Any:
    """Return an option's value: JSON, with a record as an object that has its type; a word that is no JSON as it is."""
    try:
        value = loads(text.encode(), encoding="utf-8")
    except ValueError:
        return text
    if isinstance(value, dict) and "type" in value:
        kinds = {kind.__name__: kind for kind in posref.scaling.RECORDS}
        kind = kinds.get(value["type"])
        if kind is not None:
            arguments = {n: tuple(v) if isinstance(v, list) else v for n, v in value.items() if n != "type"}
            try:
                return kind(**arguments)
            except (TypeError, ValueError) as error:
                raise _refusal(command, f"--option {name}: {error}") from error
    try:
        return from_json(value)
    except ValueError as error:
        raise _refusal(command, f"--option {name}: {str(error).removeprefix('from_json: ')}") from error


# ---- options of a released model ------------------------------------------------------------------------------------------
def _operations(entries: Sequence[Any]) -> str:
    return " and ".join(dict.fromkeys(entry.operation for entry in entries)) or "no positions"


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an error of a reader name the model's file, and the option of the command that it speaks of."""
    try:
        yield
    except ValueError as error:  # also of text that is no JSON
        text = str(error).replace("layer_type must", "--layer-type must").replace("Pass layout", "Give --option layout=")
        msg = f"{path}: {text}"
        raise TargetError(msg) from error


# ---- a prompt in words ----------------------------------------------------------------------------------------------------
def positions_of_prompt(text: str, after: str | None) -> npt.NDArray[np.int64]:
    """
    Return the three positions of every token of a prompt such as ``text 5, image 4x6, video 2x4x6 every 1.5, text 3``.

    Sizes are in cells after merging, and S is positions per frame. `after` is as `posref.positions.multimodal` has it. It must
    be given for a prompt where its words give different positions.

    `TargetError` if the prompt is of another form, or does not say enough.
    """
    segments = [_segment(part.strip()) for part in text.split(",")]
    tokens = sum(_tokens(segment) for segment in segments)
    if tokens > TOKENS:
        raise _refusal(NAME, f"--prompt must have at most {TOKENS} tokens; got {tokens}.")
    if after is not None:
        return np.asarray(multimodal(segments, after=cast("After", after)))
    first, *others = (np.asarray(multimodal(segments, after=word)) for word in AFTER)
    if not all(np.array_equal(first, other) for other in others):
        raise _refusal(NAME, f"--after must be {' or '.join(AFTER)} here: a video lasts longer than it is wide or high.")
    return first


def _segment(text: str) -> tuple[Any, ...]:
    match = SEGMENT.fullmatch(text)
    if match is None:
        raise _refusal(NAME, f"--prompt must be {FORM}; got {text!r}.")
    if match["text"]:
        return ("text", int(match["tokens"]))
    if match["image"]:
        return ("image", *map(int, match["size"].split("x")))
    return ("video", *map(int, match["frames"].split("x")), float(match["interval"]))


def _tokens(segment: tuple[Any, ...]) -> int:
    kind, *sizes = segment
    return int(np.prod([float(n) for n in (sizes[:3] if kind == "video" else sizes)]))


# ---- the file of its proved values ----------------------------------------------------------------------------------------
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
        if is_standard_output(path):
            if self.format not in FILES:
                raise _refusal(NAME, f"-o {path} is standard output and needs --format {', '.join(FILES[:-1])} or {FILES[-1]}.")
            return self.format
        ending = path.suffix.removeprefix(".")
        foreign = ending in TENSOR_FILES and not path.is_dir() if self.format is None else ending in FILES
        if foreign and ending != self.format:
            folder = f"{', '.join(f'.{form}' for form in FILES)}, or be a folder"
            need = folder if self.format is None else f".{self.format} with --format {self.format}"
            if self.format is not None and self.format not in FILES:
                need = f"nothing that a file ends in with --format {self.format}, which writes a folder"
            raise _refusal(NAME, f"-o must end in {need}; got {path}.")
        return self.format or (ending if ending in FILES else "suite")


def write_layers(folder: Path, path: Path, effort: Effort, show: Show | None, **asked: Any) -> list[str]:
    """
    Prove a small call of each operation of each kind of layer of the model in a folder, and write them as a suite.

    `asked` has the component, the layer or the layout that is meant. Returns a line for each kind: what its layers do.
    """
    from ..evidence.every import for_model, model_cases
    from . import build

    model = for_model.read(str(folder / "config.json"), **asked)
    if model.is_still:
        raise _refusal(NAME, f"layer {model.layer} of {folder} does not rotate: what goes in comes out. Ask for another.")
    by_op: dict[str, list[Case]] = {}
    for op in model.operations:
        by_op[op] = list(model_cases.small(model, op))
    build.write_suite(path, {op: cases for op, cases in by_op.items() if cases}, effort, show)
    return [f"{kind.where}: {', '.join(kind.operations)} (case layers/{model_cases.slug(kind)})" for kind in model.kinds]


def write(case: Case, path: Path, wanted: Wanted, command: str, show: Show | None = None) -> dict[str, Any]:
    """
    Prove a call, write it to `path` and return what the file says of it. A suite has the stages of all but large calls.

    Raise BuildError if the witnesses disagree, or a decision lies within its tolerance. Raise TargetError if it would take
    too long or too much memory, the values do not fit the dtype, or stages that are wanted are not there.
    """
    form, inputs = wanted.format_of(path), {n: np.asarray(v) for n, v in case.inputs.items()}
    try:
        shapes = shapes_of(case.op, inputs, case.params)
    except (TypeError, ValueError, IndexError) as error:
        remedy = " Say --option length=TOKENS." if ": length must be given" in str(error) else ""
        raise _refusal(NAME, f"{case.op} does not take this call: {error}{remedy}") from error
    if form in OF_OTHERS:
        if wanted.effort.stages:
            raise _refusal(NAME, f"--stages has no place in {OF_OTHERS[form]}. Write .npz or .safetensors.")
        from . import foreign_files

        if form == "onnx":
            foreign_files.require_onnx()
    if form == "suite":
        from . import build

        build.require_room("golden", shapes)
        build.write_suite(path, {case.op: [case]}, wanted.effort, show)
        return {"operation": case.op, "suite": str(path)}
    expected, mid, widths = proved_in_parts(case.op, inputs, case.params, wanted.effort, show)
    if wanted.effort.stages and not mid:
        raise _refusal(
            NAME, f"--stages needs an operation with stages that both witnesses prove; {case.op} has none for this call."
        )
    dtypes = [d for d in askable(case.op, inputs, expected) if d not in UNIT or f"low-{d}" in widths]
    if wanted.dtype is not None and wanted.dtype not in dtypes:
        kept = ", ".join(dtypes) or "none"
        raise _refusal(
            NAME, f"--dtype must hold every number of the call and leave something to say ({kept} do); got {wanted.dtype!r}."
        )
    asked = [wanted.dtype] if wanted.dtype else dtypes
    if form in OF_OTHERS:
        asked = [wanted.dtype or ("float32" if "float32" in dtypes else dtypes[0])]
    about = {
        "operation": case.op,
        "options": {n: to_json(v) for n, v in case.params.items()},
        "dtypes": asked,
        "claims": {d: STORED_CLAIM[d] for d in asked},
        "source": REGISTRY[case.op].source,
        "witnesses": wanted.effort.witnesses,
        "posref": posref.__version__,
        "command": command,
        "license": "CC0-1.0",
    }
    arrays = _arrays(case.op, inputs, expected, mid if wanted.effort.stages else {}, widths, asked)
    if form in OF_OTHERS:
        allowed = {n: arrays[f"allowed/{asked[0]}/{n}"] for n in expected if f"allowed/{asked[0]}/{n}" in arrays}
        write_foreign = foreign_files.write_onnx if form == "onnx" else foreign_files.write_flashinfer
        return about | {form: write_foreign(path, case, expected, allowed, asked[0], about)}
    _save(path, form, arrays, about)
    return about


def _arrays(op: str, inputs: Arrays, expected: Arrays, mid: Arrays, widths: Mapping[str, Arrays], dtypes: list[str]) -> Arrays:
    """Return all arrays by role and name; ``allowed`` is how far a result may be off in a dtype, in its default class."""
    arrays = {f"in/{n}": x for n, x in inputs.items()} | {f"out/{n}": x for n, x in expected.items()}
    arrays |= {f"mid/{n}": x for n, x in mid.items()}
    arrays |= {f"tolerance/{c}/{n}": w for c, of_class in widths.items() for n, w in of_class.items()}
    for dtype in dtypes:
        accuracy, kept = class_and_dtype(op, STORED_CLAIM[dtype], dtype, gradients=False)
        for name, value in expected.items():
            if value.dtype.kind == "f":
                of_output = {c: w[name] for c, w in widths.items() if name in w}
                arrays[f"allowed/{dtype}/{name}"] = tolerance_of(of_output, value, accuracy, kept)
    return {n: np.ascontiguousarray(x).reshape(np.shape(x)) for n, x in arrays.items()}


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
    whole_file(path, data)


def _lists(x: npt.NDArray[Any]) -> Any:
    """Return an array as nested lists; infinities, which JSON has not, as words."""
    if x.dtype.kind != "f" or np.all(np.isfinite(x)):
        return x.tolist()
    return [_lists(row) for row in x] if x.ndim else str(float(x))
