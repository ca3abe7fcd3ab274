"""What a check found, as a record: the JSON report, the verdict, and the exit code."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .whole import whole_file

VERDICTS = ("pass", "fail", "unsupported", "missing", "rejected", "error", "crash", "timeout", "protocol", "not-run")
BAD = ("fail", "error", "crash", "timeout", "protocol", "not-run")
SCHEMA = 1


@dataclass
class CaseResult:
    """One case in one dtype: the verdict, the tightest class that holds, and the worst value."""

    id: str
    op: str
    kind: str
    tier: str
    dtype: str
    verdict: str
    achieved: str | None = None
    message: str = ""
    worst: Mapping[str, Any] | None = None
    flags: tuple[str, ...] = ()
    reproduce: str = ""


@dataclass
class Operation:
    """One operation in one dtype."""

    op: str
    dtype: str
    claim: str
    cases: list[CaseResult]
    achieved: str | None = None
    bands: list[dict[str, Any]] = field(default_factory=list)
    worst_ratio: float | None = None
    first_failing_position: float | None = None
    achieved_below: str | None = None  # the class that holds below it
    diagnosis: Mapping[str, Any] | None = None
    curve: list[dict[str, Any]] = field(default_factory=list)  # the worst value at every position: curves.py
    heat: dict[str, Any] | None = None  # error over tolerance in the worst case

    @property
    def counts(self) -> Counter[str]:
        """Cases by verdict; those that must be rejected are counted apart."""
        return Counter(case.verdict for case in self.cases if case.kind != "reject")

    @property
    def reason(self) -> str:
        """Why the operation is not conformant; empty if it is."""
        asked = [case for case in self.cases if case.kind != "reject"]
        bad = [case for case in asked if case.verdict in BAD]
        if bad:
            return f"{len(bad)} of {len(asked)} cases do not pass"
        return self.too_little

    @property
    def too_little(self) -> str:
        """Why what was supported is too little to speak of the operation; empty if it is enough."""
        values = [case for case in self.cases if case.kind not in ("reject", "vjp")]
        smoke = [case for case in values if case.tier == "smoke"]
        if smoke and not all(case.verdict == "pass" for case in smoke):
            return f"its smoke case is {smoke[0].verdict}: {smoke[0].message}"
        passed = sum(case.verdict == "pass" for case in values)
        if 2 * passed < len(values) or not passed:
            return f"only {passed} of {len(values)} cases passed; the rest are unsupported"
        return ""

    @property
    def conformant(self) -> bool:
        """Whether every case asked passes, the smoke case among them, and at least half were supported."""
        return not self.reason


@dataclass
class Report:
    """Everything a check found."""

    target: Mapping[str, Any]
    suite: Mapping[str, str]
    tier: str
    operations: list[Operation]
    missing: tuple[str, ...] = ()
    complete: bool = False

    @property
    def counts(self) -> Counter[str]:
        """Cases by verdict over all operations, and operations that are missing."""
        total: Counter[str] = Counter()
        for operation in self.operations:
            total += operation.counts
        return total + Counter({"missing": len(self.missing)})

    @property
    def validation(self) -> tuple[int, int]:
        """How many of the cases that must be rejected were, and how many were asked."""
        asked = [case for operation in self.operations for case in operation.cases if case.kind == "reject"]
        asked = [case for case in asked if case.verdict != "unsupported"]
        return sum(case.verdict == "rejected" for case in asked), len(asked)

    @property
    def conformant(self) -> bool:
        """Whether every operation asked about is conformant, at least one case passed, and nothing was left undone."""
        return self.complete and bool(self.counts["pass"]) and all(op.conformant for op in self.operations)

    @property
    def exit_code(self) -> int:
        """0 conformant, 1 not, 2 interrupted."""
        return 2 if not self.complete else 0 if self.conformant else 1

    @property
    def failures(self) -> list[CaseResult]:
        """The cases that keep an operation from being conformant."""
        return [c for op in self.operations for c in op.cases if c.kind != "reject" and c.verdict in BAD]

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON of the schema ``report``."""
        from posref import __version__

        rejected, asked = self.validation
        cases = [case for operation in self.operations for case in operation.cases]
        return {
            "schema": SCHEMA, "complete": self.complete, "posref": __version__, "suite": dict(self.suite),
            "target": dict(self.target), "tier": self.tier, "conformant": self.conformant, "counts": _counts(self.counts),
            "missing": list(self.missing), "validation": {"rejected": rejected, "asked": asked},
            "operations": [_operation(op) for op in self.operations],
            "cases": [_case(case) for case in cases],
            "totals": {"operations": len(self.operations), "cases": len(cases)},
        }  # fmt: skip

    def write_json(self, path: Path) -> None:
        """Write the report whole: an interruption leaves the old file or none."""
        whole_file(path, json.dumps(self.to_json(), indent=1, sort_keys=True, allow_nan=False) + "\n")

    def write_html(self, path: Path) -> None:
        """Write the report as one page; PosrefError if jinja2 is not installed."""
        from .reports import html

        whole_file(path, html.render(self.to_json()))

    def write_markdown(self, path: Path) -> None:
        """Write a summary in Markdown."""
        from .reports import summaries

        whole_file(path, summaries.markdown(self.to_json()))

    def write_junit(self, path: Path) -> None:
        """Write the report as JUnit XML."""
        from .reports import summaries

        whole_file(path, summaries.junit(self.to_json()))

    def write_badge(self, path: Path) -> None:
        """Write a badge in SVG."""
        from .reports import summaries

        whole_file(path, summaries.badge(self.to_json()))


def state(document: Mapping[str, Any]) -> str:
    """Return what the JSON of a report comes to: conformant, not conformant, or incomplete if any part of it is missing."""
    found = {"operations": len(document["operations"]), "cases": len(document["cases"])}
    if not document["complete"] or document["totals"] != found:
        return "incomplete"
    holds = document["conformant"] and all(op["conformant"] for op in document["operations"])
    return "conformant" if holds else "not conformant"


def ordered(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's JSON with keys in the order of the file, so that what is made of it depends on content alone."""
    found: dict[str, Any] = json.loads(json.dumps(document, sort_keys=True))
    return found


def standing(conformant: bool, counts: Mapping[str, int]) -> str:
    """Return pass, fail, or partial: nothing failed, but too little was supported to speak of the operation."""
    return "pass" if conformant else "fail" if any(counts.get(verdict) for verdict in BAD) else "partial"


def nearest(case: Mapping[str, Any]) -> float:
    """Return the position of the worst value of a case in a report's JSON, so that the nearest failure comes first."""
    position = (case["worst"] or {}).get("position")
    return math.inf if position is None else float(position)


def printable(text: str) -> str:
    """Return third-party text on one line and without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text.replace("\n", " "))


def number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold; infinities and NaN as words."""
    return value if value is None or math.isfinite(value) else str(value)


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def _operation(op: Operation) -> dict[str, Any]:
    return {
        "op": op.op, "dtype": op.dtype, "conformant": op.conformant, "reason": op.reason, "claim": op.claim,
        "achieved": op.achieved, "counts": _counts(op.counts), "worst_ratio": number(op.worst_ratio),
        "first_failing_position": op.first_failing_position, "achieved_below": op.achieved_below,
        "bands": op.bands, "curve": op.curve, "heat": op.heat,
        "diagnosis": None if op.diagnosis is None else dict(op.diagnosis),
    }  # fmt: skip


def _case(case: CaseResult) -> dict[str, Any]:
    return {
        "id": case.id, "op": case.op, "kind": case.kind, "dtype": case.dtype, "verdict": case.verdict,
        "achieved": case.achieved, "message": case.message, "worst": None if case.worst is None else dict(case.worst),
        "flags": list(case.flags), "reproduce": case.reproduce,
    }  # fmt: skip
