"""What passes from room to room: cases as they are written and as they are read, answers, and the record of a check."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

VERDICTS = ("pass", "fail", "unsupported", "missing", "rejected", "error", "crash", "timeout", "protocol", "not-run")
BAD = ("fail", "error", "crash", "timeout", "protocol", "not-run")
SCHEMA = 1


# ---- a case as it is written ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Flag:
    """A reason for a case: the defect it catches, and where one like it was seen."""

    catches: str
    seen_in: str = ""


FUZZ = {"fuzz": Flag("a failure that posref fuzz found")}  # of calls that are drawn, not of this suite


@dataclass(frozen=True)
class Step:
    """One call: options by name, arrays by name."""

    params: Mapping[str, Any]
    inputs: Mapping[str, npt.ArrayLike] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """
    One question to an implementation.

    `id` is ``op/group/case``. Kind "value" has expected values, "reject" must raise (`comment` says why), "sequence" makes
    several calls in order on one instance (`steps`; `params` and `inputs` stay empty), and "vjp" asks for the gradients of the
    inputs in `wrt` (without any: of all reals but positions), given `cotangents` of the outputs. Tier "smoke" is one case for
    each operation that says whether the setup works at all.
    """

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    comment: str = ""
    kind: str = "value"
    tier: str = "core"
    steps: tuple[Step, ...] = ()
    cotangents: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    wrt: tuple[str, ...] = ()

    @property
    def op(self) -> str:
        """The operation asked about."""
        return self.id.split("/", maxsplit=1)[0]

    @property
    def group(self) -> str:
        """The group's id, ``op/group``."""
        return self.id.rsplit("/", maxsplit=1)[0]

    @property
    def calls(self) -> tuple[Step, ...]:
        """The calls to make: one, except in a sequence."""
        return self.steps or (Step(self.params, self.inputs),)


# ---- a case as it is read from a suite, and what an implementation gives --------------------------------------------------
@dataclass(frozen=True)
class Call:
    """
    One call of a case: what is asked, what is expected, and the half-widths by base class and output.

    With `cotangents` of the outputs it asks for gradients: what is expected then goes by the names of inputs.
    """

    params: Mapping[str, Any]
    inputs: Arrays
    expected: Arrays = field(default_factory=dict)
    intermediates: Arrays = field(default_factory=dict)
    widths: Mapping[str, Arrays] = field(default_factory=dict)
    cotangents: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedCase:
    """A case as read from a file."""

    id: str
    op: str
    kind: str
    tier: str
    flags: tuple[str, ...]
    comment: str
    dtypes: tuple[str, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class LoadedGroup:
    """A group as read from its folder."""

    id: str
    op: str
    manifest: Mapping[str, Any]
    data: Arrays
    tolerance: Arrays
    cases: tuple[LoadedCase, ...]


@dataclass
class Answer:
    """A case with what the implementation returned, for the diagnosis."""

    case: LoadedCase
    dtype: str
    outputs: list[Arrays] = field(default_factory=list)


# ---- the record of a check --------------------------------------------------------------------------------------------------
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
class Record:
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
