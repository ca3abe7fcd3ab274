"""Buffers of positions by their name, without a forward pass: frequencies, and tables of cosines and sines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

import posref
from posref.models.arguments import Entry
from posref.models.config import text_of

from ..checks.assertion import call_of
from ..judge import judge
from .file_facts import ROTATIONS, FileFacts
from .model_report import Difference, ModelReport, NotJudged

FREQUENCIES = re.compile(r"^(?:(?P<kind>(?!original_)\w+?)_)?(?:original_)?inv_freq$")
TABLES = re.compile(r"^_?(freqs_cis|freqs_cos|freqs_sin|cos_cached|sin_cached|cos_cache|sin_cache)$")
OTHER_PARTS = re.compile(r"vis(ion|ual)|audio|image|video|tower|speech|codec")
LAYER = re.compile(r"(?:layers|h|blocks|layer)\.(\d+)\.")
ROUNDED = "frequencies and tables must be in float32; rounded, they are wrong far out"
CERTAIN = ("zeros", "not finite", "bfloat16", "float16")  # beginnings of what is wrong whatever the file says
NO_VALUES = "on the meta device: it has no values"
POWERS = 1e-4  # names a base, decides no verdict: float32's powers are within 4e-6 up to base 1e7, float16 rounds by 2.4e-4
LONG = 10**7  # tokens: beyond every original length
Values = npt.NDArray[np.float64]


class Expected(NamedTuple):
    """Frequencies that the file gives a layer, with what they are called."""

    words: str
    entry: Entry
    values: Values
    factor: float
    length: int


def compare_buffers(model: torch.nn.Module, facts: FileFacts, report: ModelReport) -> None:
    """Add to a report what the buffers of positions of a model hold."""
    for path, buffer in model.named_buffers():
        place, _, name = path.rpartition(".")
        frequencies = FREQUENCIES.match(name)
        if buffer is None or not (frequencies or TABLES.match(name)):
            continue
        wide = buffer.dtype in (torch.float32, torch.float64) or buffer.is_complex()
        if buffer.device.type == "meta" and wide:
            report.not_judged.append(NotJudged(path, None, "buffer", NO_VALUES))
            continue
        kind = frequencies["kind"] if frequencies else None
        part = "other" if OTHER_PARTS.search(place) else "text"
        expected = list(_expected(facts, part, kind, LAYER.search(path + "."), _length(model, place)))
        if not wide:
            text: str | None = f"{str(buffer.dtype).removeprefix('torch.')}: {ROUNDED}"
        elif frequencies:
            text = _frequency_difference(_local(buffer), expected, list(_expected(facts, part, None, None, 1)))
        else:
            text = _table_difference(name, _local(buffer), expected)
        unnamed = not expected or part == "other" or (kind is not None and kind not in _types(facts))
        if text is not None and unnamed and not text.startswith(CERTAIN):
            why = "the file's frequencies of this part are not known by name"
            report.not_judged.append(NotJudged(path, None, "buffer", why))
            continue
        report.judged.append((path, None, "buffer"))
        report.differences += [] if text is None else [Difference(path, None, "buffer", text)]


def _local(buffer: torch.Tensor) -> torch.Tensor:
    """Return the values of a buffer that are on this rank."""
    local: torch.Tensor = buffer.to_local() if hasattr(buffer, "to_local") else buffer
    return local.detach().cpu()


def _length(model: torch.nn.Module, place: str) -> int:
    """Return the longest sequence that a rotary module has seen: dynamic scalings write its frequencies."""
    length = getattr(model.get_submodule(place), "max_seq_len_cached", 1)
    return int(length) if isinstance(length, int | float) and length >= 1 else 1


def _expected(facts: FileFacts, part: str, kind: str | None, layer: Any, length: int) -> Iterator[Expected]:
    """Yield the frequencies that a buffer may have: those of a layer, of a layer type, or of any layer."""
    types = _types(facts)
    seen: list[Entry] = []
    for name, entries in facts.components.items():
        for number, entry in enumerate(entries):
            if entry is None or entry.operation not in ROTATIONS or entry.options is None or entry in seen:
                continue
            if part == "text" and len(entries) > 1 and layer is not None and int(layer[1]) != number:
                continue
            if kind in types and len(entries) == len(types) and types[number] != kind:
                continue
            seen.append(entry)
            words = f"{name}" if len(entries) == 1 else f"layer {number}"
            yield from _lengths(words, entry, length)


def _types(facts: FileFacts) -> list[str]:
    return text_of(facts.config).get("layer_types") or []


def _lengths(words: str, entry: Entry, length: int) -> Iterator[Expected]:
    """Yield the frequencies of an entry at the lengths that a module may have seen."""
    options: dict[str, Any] = dict(entry.options or {})
    width = 2 * sum(options["sections"]) if entry.operation == "mrope" else options["rotary_dim"]
    needs = "length is not None" in getattr(options["scaling"], "requires", ())
    for tokens in dict.fromkeys((1, length, LONG) if needs else (1,)):
        inner = {"base": options["base"], "scaling": options["scaling"], "length": tokens if needs else None}
        values, factor = posref.rope_frequencies(width, **inner)
        yield Expected(words, entry, np.asarray(values, dtype=np.float64), factor, tokens)


def _frequency_difference(buffer: torch.Tensor, expected: list[Expected], others: list[Expected]) -> str | None:
    """Return what is wrong with a buffer of frequencies; None if it has the values of an entry."""
    values = _falling(buffer.double().numpy().ravel(), expected)
    kept = str(buffer.dtype).removeprefix("torch.")
    same = [entry for entry in expected if entry.values.shape == values.shape]
    if any(_conforms(values, entry) for entry in same):
        return None
    return _unfilled(values) or _changed(values, kept, same) or _of_others(values, others) or _of_no_layer(values, expected)


def _unfilled(values: Values) -> str:
    """Return that a buffer has no numbers, if so."""
    if not np.isfinite(values).all():
        return "not finite: memory that nobody filled"
    return "" if values.any() else "zeros: nothing rotates"


def _changed(values: Values, kept: str, same: list[Expected]) -> str:
    """Return what was done to the frequencies of an entry, if values are these, rounded to half precision."""
    for entry in same:
        for dtype in (torch.bfloat16, torch.float16):
            if np.array_equal(torch.as_tensor(entry.values).to(dtype).double().numpy(), values):
                return f"rounded to {str(dtype).removeprefix('torch.')}, then kept in {kept}" + _errors(values, same)
    return ""


def _of_others(values: Values, others: list[Expected]) -> str:
    """Return whose frequencies the values are, if they are those of another entry."""
    for other in others:
        if other.values.shape == values.shape and _conforms(values, other):
            base, scaling = ((other.entry.options or {})[name] for name in ("base", "scaling"))
            extended = "" if scaling is None else f" and {type(scaling).__name__}"
            return f"these are the frequencies of {other.words}, with base {base:g}{extended}"
    return ""


def _of_no_layer(values: Values, expected: list[Expected]) -> str:
    """Return what values are that are the frequencies of no entry: unscaled ones, or those of another base."""
    same = [entry for entry in expected if entry.values.shape == values.shape]
    for entry in same:
        plain = Entry("rope", {"base": entry.entry.options["base"], "rotary_dim": 2 * values.size, "scaling": None})  # type: ignore[index]
        if _conforms(values, next(_lengths("", plain, 1))):
            return "unscaled: the scaling of the file is missing"
    if not 0 < values[0] <= 1 or values[-1] <= 0 or (np.diff(values) >= 0).any():
        return "these are no frequencies (the first must be at most 1, and they must fall, above 0): memory that nobody filled?"
    base = float((values[-1] / values[0]) ** (-values.size / (values.size - 1))) if values.size > 1 else 1.0
    if np.allclose(values[0] * base ** -(np.arange(values.size) / values.size), values, rtol=POWERS, atol=0):
        file = ", ".join(dict.fromkeys(f"{entry.entry.options['base']:g}" for entry in expected))  # type: ignore[index]
        count = "" if same else f", and there are {values.size} for {expected[0].values.size if expected else 0}"
        words = f"frequencies of base {base:.6g}"
        words = f"unscaled {words}" if values[0] == 1 else f"{words} divided by {1 / values[0]:.6g}"
        return f"{words}; the file says {file}{count}"
    return "not the frequencies of any layer of the file"


def _falling(values: Values, expected: list[Expected]) -> Values:
    """Return the frequencies of rows, of columns and of time, as Ernie keeps them, in the order of the pairs."""
    for options in [entry.entry.options or {} for entry in expected]:
        if options.get("arrangement") == "ernie" and values.size == sum(options["sections"]):
            of_grid = 2 * options["sections"][1]
            pairs = np.concatenate([values[:of_grid].reshape(2, -1).T.ravel(), values[of_grid:]])
            if (np.diff(pairs) < 0).all():
                return pairs
    return values


def _errors(values: Values, expected: list[Expected]) -> str:
    same = [entry for entry in expected if entry.values.shape == values.shape]
    off = min((float(np.abs(entry.values - values).max()) for entry in same), default=0.0)
    return f" (at position 30011 an angle is off by {30_011 * off:.2g} radians)" if off else ""


def _conforms(values: Values, expected: Expected) -> bool:
    """Return whether frequencies are those expected, within what float32 allows."""
    options: Any = expected.entry.options
    inner = {"base": options["base"], "scaling": options["scaling"]}
    if "length is not None" in getattr(options["scaling"], "requires", ()):
        inner["length"] = expected.length
    call = call_of("assert_model", "rope_frequencies", (2 * values.size,), inner)
    outputs = {"inv_freq": values, "attention_factor": np.asarray(expected.factor)}
    call = replace(call, expected={name: np.zeros(x.shape) for name, x in outputs.items()})
    return not judge("rope_frequencies", call, outputs, "angle32", "float32", truth="live").failures


def _table_difference(name: str, buffer: torch.Tensor, expected: list[Expected]) -> str | None:
    """Return what is wrong with a table of cosines and sines; None if it has the values of an entry, row by row."""
    halves = [buffer.real, buffer.imag] if buffer.is_complex() else [buffer]
    tables = [half.double().numpy().reshape(-1, half.shape[-1]) for half in halves]
    if not all(np.isfinite(table).all() for table in tables):
        return "not finite: memory that nobody filled"
    functions = (np.cos, np.sin) if buffer.is_complex() else (np.sin,) if "sin" in name else (np.cos,)
    for entry in expected:
        angles = np.arange(tables[0].shape[0])[:, None] * entry.values
        # a power in float32 is off by up to ln(base) + 2 units of 2**-24, at most 18, the product by one more
        allowed = 20 * 2.0**-24 * angles + 2.0**-22 * entry.factor
        wanted = [entry.factor * function(angles) for function in functions]
        if all(_has_pairs(table, want, allowed * entry.factor) for table, want in zip(tables, wanted, strict=True)):
            return None
    return "not the cosines or sines of any layer of the file, with row 0 for position 0"


def _has_pairs(table: npt.NDArray[Any], want: npt.NDArray[Any], allowed: npt.NDArray[Any]) -> bool:
    """Return whether a table has one column for each pair, or two in one of both orders."""
    width = want.shape[1]
    if table.shape[1] not in (width, 2 * width):
        return False
    cuts = ([table], [table[:, :width], table[:, width:]], [table[:, ::2], table[:, 1::2]])
    return any(all(cut.shape == want.shape and bool((np.abs(cut - want) <= allowed).all()) for cut in each) for each in cuts)
