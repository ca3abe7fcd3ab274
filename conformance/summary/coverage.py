"""Counts of the cases that ran, were answered and passed, by the words of options and by bands of positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from posref.spec import REGISTRY, Record

from ..calls import positions_of
from ..model import Answer, LoadedCase, Operation
from ..vocabulary.axes import BANDS
from ..vocabulary.traits import defaults, is_word

POSITIONS = "positions"


def cover(operation: Operation, answers: Sequence[Answer]) -> None:
    """Add to an operation its coverage: a row for every word of an option and every band of positions in its cases."""
    verdicts = {case.id: case.verdict for case in operation.cases if case.kind != "reject"}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for answer in answers:
        verdict = verdicts.get(answer.case.id)
        if verdict is None:
            continue
        for axis, value in {*_words_of(answer.asked or answer.case), *_band(answer.asked or answer.case)}:
            row = rows.setdefault((axis, value), {"axis": axis, "value": value, "asked": 0, "answered": 0, "passed": 0})
            row["asked"] += 1
            row["answered"] += verdict not in ("unsupported", "selective")
            row["passed"] += verdict == "pass"
    axes = [*REGISTRY[operation.op].domains, POSITIONS]
    rank = {value: k for k, value in enumerate(band_name(*band) for band in BANDS)}
    operation.coverage = sorted(
        rows.values(), key=lambda row: (axes.index(row["axis"]), rank.get(row["value"], 0), row["value"])
    )


def band_name(low: float, high: float | None) -> str:
    """Return a band of positions in words."""
    return f"{low:g} and beyond" if high is None else f"{low:g} to {high:g}"


def _words_of(case: LoadedCase) -> Iterator[tuple[str, str]]:
    """Yield the words that a case's options are, and the kinds of its records; numbers are no words."""
    for call in case.calls:
        for name, domain in REGISTRY[case.op].domains.items():
            if is_word(domain):
                value = call.params.get(name, defaults(case.op).get(name))
                yield name, type(value).__name__ if isinstance(domain, Record) and value is not None else str(value)


def _band(case: LoadedCase) -> Iterator[tuple[str, str]]:
    """Yield the band in which the farthest position of a case lies."""
    farthest = [abs(call.inputs[name]).max() for call in case.calls for name in positions_of(case.op) if call.inputs[name].size]
    if farthest:
        yield POSITIONS, next(band_name(low, high) for low, high in BANDS if high is None or max(farthest) < high)
