"""The report of a check: everything it found, its verdict, and the files it can be written to."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..model import VERDICTS, CaseResult, Operation, Scope, number
from ..suite.safe_files import whole_file

SCHEMA = 2  # of a report


@dataclass
class Report:
    """Everything a check found, which can be written as JSON, HTML, Markdown, JUnit XML and a badge."""

    target: Mapping[str, Any]
    suite: Mapping[str, str]
    tier: str
    operations: list[Operation]
    missing: tuple[str, ...] = ()
    complete: bool = False
    part: str = ""  # what was asked, where it was not a whole tier of the installed suite
    unmet: tuple[str, ...] = ()  # what was required of the scope, and is not in it
    model: str = ""  # the model whose calls were asked, if it was one's
    batch: list[Mapping[str, Any]] | None = (
        None  # of every operation and dtype whether its rows have the same bits alone, if asked
    )

    @property
    def scopes(self) -> list[Scope]:
        """The scope of every operation."""
        return [*{op.op: op.scope for op in self.operations if op.scope is not None}.values()]

    @property
    def verdict(self) -> str:
        """What the check comes to, in the words of a report."""
        if not self.complete:
            return "incomplete"
        if not self.conformant:
            return "not conformant"
        if self.part:
            return "passed"
        return "conformant in its scope" if self.counts["unsupported"] and not self.model else "conformant"

    @property
    def counts(self) -> Counter[str]:
        """Cases by verdict over all operations, and operations that are missing."""
        total: Counter[str] = Counter()
        for operation in self.operations:
            total += operation.counts
        return total + Counter({"missing": len(self.missing)})

    @property
    def validation(self) -> tuple[int, int]:
        """How many invalid calls were rejected, and how many were made."""
        asked = [case for operation in self.operations for case in operation.cases if case.kind == "reject"]
        asked = [case for case in asked if case.verdict not in ("unsupported", "not-run")]
        return sum(case.verdict == "rejected" for case in asked), len(asked)

    @property
    def conformant(self) -> bool:
        """Whether every operation that was asked conforms in its scope, with values, and nothing is undone or unmet."""
        passed = bool(self.counts["pass"]) or any(scope.fresh for scope in self.scopes)
        return self.complete and passed and all(op.conformant for op in self.operations) and not self.unmet

    @property
    def exit_code(self) -> int:
        """0 conformant, 1 not, 2 interrupted."""
        return 2 if not self.complete else 0 if self.conformant else 1

    @property
    def failures(self) -> list[CaseResult]:
        """The cases that keep an operation from being conformant."""
        return [case for op in self.operations for case in op.failing]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON of the schema ``report``."""
        from posref import __version__

        rejected, asked = self.validation
        cases = [case for operation in self.operations for case in operation.cases]
        return {
            "schema": SCHEMA, "complete": self.complete, "posref": __version__, "suite": dict(self.suite),
            "target": dict(self.target), "tier": self.tier, "part": self.part, "for": self.model, "verdict": self.verdict,
            "conformant": self.conformant, "scopes": [_scope(part) for part in self.scopes], "unmet": list(self.unmet),
            "counts": _counts(self.counts), "missing": list(self.missing), "validation": {"rejected": rejected, "asked": asked},
            "operations": [_operation(op) for op in self.operations], "cases": [_case(case) for case in cases],
            "totals": {"operations": len(self.operations), "cases": len(cases)},
            **({} if self.batch is None else {"batch_invariance": [dict(part) for part in self.batch]}),
        }  # fmt: skip

    def write_json(self, path: Path) -> None:
        """Write the report whole: an interruption leaves the old file or none."""
        whole_file(path, self.json_text())

    def json_text(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True, allow_nan=False) + "\n"

    def write_html(self, path: Path) -> None:
        """Write the report as one page; PosrefError if jinja2 is not installed."""
        whole_file(path, rendered(self.to_json(), "html"))

    def write_markdown(self, path: Path) -> None:
        """Write a summary in Markdown."""
        whole_file(path, rendered(self.to_json(), "markdown"))

    def write_junit(self, path: Path) -> None:
        """Write the report as JUnit XML."""
        whole_file(path, rendered(self.to_json(), "junit"))

    def write_badge(self, path: Path) -> None:
        """Write a badge in SVG."""
        whole_file(path, rendered(self.to_json(), "badge"))


def _scope(scope: Scope) -> dict[str, Any]:
    return {
        "op": scope.op, "asked": scope.asked, "answered": scope.answered, "stated": scope.stated, "line": scope.line,
        "limits": [{"axis": o.axis, "text": o.text, "cases": o.cases, "line": o.line} for o in scope.limits],
        "selective": [list(refused) for refused in scope.refused], "narrow": scope.narrow, "library": scope.library,
        "drawn": scope.drawn, "wrong": scope.wrong, "supports": scope.supports,
    }  # fmt: skip


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def _operation(op: Operation) -> dict[str, Any]:
    return {
        "op": op.op, "dtype": op.dtype, "conformant": op.conformant, "standing": op.standing, "reason": op.reason,
        "claim": op.claim,
        "achieved": op.achieved, "counts": _counts(op.counts), "worst_ratio": number(op.worst_ratio),
        "first_failing_position": op.first_failing_position, "achieved_below": op.achieved_below,
        "bands": op.bands, "curve": op.curve, "heat": op.heat, "meaning": op.meaning,
        "missed": op.missed and {**op.missed, "ratio": number(op.missed["ratio"])},
        "coverage": op.coverage, "systematic": op.systematic, "diagnosis": None if op.diagnosis is None else dict(op.diagnosis),
    }  # fmt: skip


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "id": case.id, "op": case.op, "kind": case.kind, "dtype": case.dtype, "verdict": case.verdict,
        "achieved": case.achieved, "message": case.message, "worst": None if case.worst is None else dict(case.worst),
        "flags": list(case.flags), "reproduce": case.reproduce, "call": case.call, "values": case.values,
    }  # fmt: skip


def rendered(document: Mapping[str, Any], form: str) -> str:
    """Return a report's JSON in another form: html, markdown, junit or badge. Its writer is loaded when it is used."""
    if form == "html":
        from .html import render

        return render(document)
    from . import summaries

    text: str = getattr(summaries, form)(document)
    return text
