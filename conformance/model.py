"""Data types that all parts share: cases as written and as read, answers, and what a check found of each operation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt

Arrays: TypeAlias = "dict[str, npt.NDArray[Any]]"

VERDICTS = (
    "pass", "fail", "unsupported", "selective", "missing", "rejected",
    "error", "crash", "timeout", "protocol", "not-run",
)  # fmt: skip
BAD = ("crash", "timeout", "protocol", "fail", "error", "selective", "not-run")  # the gravest first, as reports show them
ENDED = ("crash", "timeout", "protocol")  # of these nothing more is asked
NOT_JUDGED = "not-judged"  # of a call about which its class says nothing: it counts nowhere, and a note tells of it
STANDINGS = (*(v for v in BAD if v != "selective"), "selective", "too narrow", "no values", "in scope", "pass")  # of operations

NO_DIAGNOSIS: Mapping[str, Any] = {"text": "", "names": [], "explanations": [], "hint": "", "seen_in": "", "groups": []}


# ---- a case as it is written ----------------------------------------------------------------------------------------------
VIEWS = ("non-contiguous", "broadcast-view")  # forms in which arrays lie otherwise in memory
TABLE_FORMS = ("float32-tables", "half-tables")  # forms in which cosines and sines have another dtype than x
FORMS = (*VIEWS, *TABLE_FORMS)
STATES = ("other-dtype-first", "one-option", "still")


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
    operation that says whether the setup works at all.

    `form` says how the checker makes the arrays, if not plainly: one of `FORMS`. `state` says what a case asks of the instance
    that is called: in a sequence, that the first call has another dtype ("other-dtype-first"), or that the calls differ in one
    option ("one-option"); of a model's layer, that it does not rotate ("still").
    """

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    comment: str = ""
    kind: str = "value"
    tier: str = "core"
    steps: tuple[Step, ...] = ()
    cotangents: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    wrt: tuple[str, ...] = ()
    form: str = ""
    state: str = ""

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

    @property
    def flags(self) -> tuple[str, ...]:
        """The form and the state, as files have them: a list of those that are not empty."""
        return words_of(self.form, self.state)


def words_of(*words: str) -> tuple[str, ...]:
    """Return the words that are not empty."""
    return tuple(word for word in words if word)


# ---- a case as it is read from a suite, and what an implementation gives --------------------------------------------------
@dataclass(frozen=True)
class Call:
    """
    One call of a case: arguments, expected values, and half-widths by base class and output.

    With `cotangents` of the outputs it asks for gradients: what is expected then goes by the names of inputs.
    """

    params: Mapping[str, Any]
    inputs: Arrays
    expected: Arrays = field(default_factory=dict)
    intermediates: Arrays = field(default_factory=dict)
    widths: Mapping[str, Arrays] = field(default_factory=dict)
    cotangents: Arrays = field(default_factory=dict)
    computed: dict[str, Arrays] = field(default_factory=dict, compare=False, repr=False)  # half-widths made when asked for

    @property
    def is_degenerate(self) -> bool:
        """Whether an array that it takes or gives has no elements: no tokens, no keys, no heads, no channels."""
        return any(0 in array.shape for array in (*self.inputs.values(), *self.expected.values()))


@dataclass(frozen=True)
class LoadedCase:
    """A case as read from a file."""

    id: str
    op: str
    kind: str
    tier: str
    comment: str
    dtypes: tuple[str, ...]
    calls: tuple[Call, ...]
    form: str = ""
    state: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The form and the state, as files and reports have them."""
        return words_of(self.form, self.state)


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
    """
    A case with what the implementation returned, for the diagnosis.

    Of a large case `part` is what was judged, and `few` some rows of that for hypotheses. These know the case as it was
    `asked`, and for every output where their axes lie in the whole, and its shape.
    """

    case: LoadedCase
    dtype: str
    outputs: list[Arrays] = field(default_factory=list)
    part: Answer | None = None
    few: Answer | None = None
    asked: LoadedCase | None = None
    lies: Mapping[str, tuple[tuple[npt.NDArray[Any], ...], tuple[int, ...]]] = field(default_factory=dict)

    def along(self, output: str, axis: int, size: int) -> tuple[npt.NDArray[Any], int]:
        """Return the indices of an output along an axis, and how many there are in the whole."""
        import numpy as np  # a command that asks nothing need not load it

        if output not in self.lies:
            return np.arange(size), size
        indices, shape = self.lies[output]
        return indices[axis], shape[axis]


def decides(kind: str, verdict: str) -> bool:
    """Return whether a verdict keeps an operation from being conformant: of an invalid call only the end of a program."""
    return verdict in (BAD if kind != "reject" else ("crash", "timeout", "protocol"))


# ---- the scope of an implementation --------------------------------------------------------------------------------------
NOTHING = "no case that has values passed"


@dataclass(frozen=True)
class Limit:
    """What lies outside a scope, by one axis: in words, with the cases that it explains and none before it does."""

    axis: str
    text: str
    cases: int
    fresh: tuple[int, int] = (0, 0)  # calls besides that came out as it says, of all that were asked

    @property
    def line(self) -> str:
        """The limit with what it stands on: the cases that it explains, and how many fresh calls agree."""
        true, asked = self.fresh
        stands = [f"{self.cases} case{'s' * (self.cases > 1)}"] if self.cases else []
        stands += [f"{true} of {asked} fresh calls agree"] if asked else []
        return f"{self.text} [{', '.join(stands)}]" if stands else self.text


@dataclass
class Scope:
    """
    What an implementation offers of an operation, in all dtypes together.

    `limits` explain what it did not answer; `refused` are cases that nothing explains, or that lie inside a stated scope.
    `narrow` says why it is no scope to conform in although nothing stored failed: too little is inside, or a drawn call was
    answered wrongly or refused. `decided` is the verdict on that, in a word. `library` of the unanswered cases are gradients
    that its array library cannot give.
    `supports` is the scope as the implementation may state it.
    """

    op: str
    asked: int
    answered: int
    passed: bool  # a case with values
    stated: bool = False
    limits: list[Limit] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)  # id and dtype
    narrow: str = ""
    decided: str = ""
    library: int = 0
    drawn: int = 0  # calls that were asked besides the stored cases
    fresh: int = 0  # of these, calls inside it that were right, where stored cases are too few
    supports: dict[str, Any] = field(default_factory=dict)
    unsaid: bool = False  # whether `supports` takes in calls that were refused: no words say all of the scope
    tried: bool = True  # whether experiments asked why
    keys: str = ""  # of `supports` that would exclude what nothing explains

    @property
    def wrong(self) -> str:
        """Why it is no scope to conform in; empty if it is one."""
        if not self.passed:
            return NOTHING
        if self.refused:
            ids = dict.fromkeys(case for case, _ in self.refused)
            named = ", ".join(list(ids)[:2]) + (", ..." if len(ids) > 2 else "")
            which = ", ".join(f"{n} in {dtype}" for dtype, n in Counter(dtype for _, dtype in self.refused).items())
            if self.stated:
                return f"refuses cases inside the scope that it states, {which} ({named})"
            remedy = f"answer them, or state {self.keys} in `supports`" if self.keys else "answer them"
            if not self.tried:
                text = f"refuses cases that stored cases alone do not explain, {which} ({named})"
                return f"{text}: not judged without experiments"
            return f"refuses cases that nothing explains, {which} ({named}): {remedy}"
        return self.narrow

    @property
    def line(self) -> str:
        """The scope in one line: n of m answered, then what explains the rest, limits before choices."""
        rest = "; ".join(one.line for one in self.limits)
        fresh = f" and {self.fresh} fresh calls inside" if self.fresh else ""
        return f"{self.answered} of {self.asked}{fresh}" + (f": {rest}" if rest else "")


# ---- what a check found ---------------------------------------------------------------------------------------------------
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
    call: str = ""  # what was asked, in words, of a case that fails
    values: int = 0  # how many are expected


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
    curve: list[dict[str, Any]] = field(default_factory=list)  # the worst value at every position
    heat: dict[str, Any] | None = None  # error over tolerance in the worst case
    meaning: dict[str, Any] | None = None  # what the achieved class means at the longest position
    missed: dict[str, Any] | None = None  # the next tighter class, and the worst error over what it allows
    coverage: list[dict[str, Any]] = field(default_factory=list)  # cases asked, answered and passed by option and position
    systematic: dict[str, Any] | None = None  # slope and offset of its results against what is expected
    unjudged: list[CaseResult] = field(default_factory=list)
    scope: Scope | None = None  # of the operation in all dtypes

    @property
    def counts(self) -> Counter[str]:
        """Cases by verdict; those that must be rejected are counted apart."""
        return Counter(case.verdict for case in self.cases if case.kind != "reject")

    @property
    def failing(self) -> list[CaseResult]:
        """The cases that keep it from being conformant."""
        return [case for case in self.cases if decides(case.kind, case.verdict)]

    @property
    def reason(self) -> str:
        """Why the operation is not conformant in its scope; empty if it is."""
        asked, counts = [case for case in self.cases if case.kind != "reject"], self.counts
        bad = [case for case in self.failing if case.verdict != "selective"]
        valid = [case for case in bad if case.kind != "reject"]
        ended = [case for case in valid if case.verdict in ENDED]
        answered = len(asked) - counts["unsupported"]
        cases = "cases" if answered == len(asked) else "answered cases"
        parts = [f"{len(valid)} of {answered} {cases} fail{self._looser(valid)}"] if valid and not ended else []
        if ended:
            left = sum(case.verdict == "not-run" for case in valid)
            words = f"{ended[0].verdict} at {ended[0].id}"
            after = f"{left} of {len(asked)} cases did not run after it" if left else ""
            others = len(valid) - len(ended) - left
            parts = [text for text in (words, after, f"{others} others fail" if others else "") if text]
        if len(valid) < len(bad):
            words = ", ".join(dict.fromkeys(case.verdict for case in bad if case.kind == "reject"))
            count = len(bad) - len(valid)
            parts.append(f"{count} invalid {'call ends' if count == 1 else 'calls end'} in {words}")
        wrong = (NOTHING if not counts["pass"] else "") if self.scope is None else self.scope.wrong
        parts += [wrong] if wrong and not (wrong == NOTHING and parts) else []
        if parts == [NOTHING] and counts["unsupported"] == len(asked) > 0:
            every = f"all {len(asked)} cases are" if len(asked) > 1 else "the only case is"
            parts = [f"{every} refused: {asked[0].message}"]
        if counts["selective"] and not parts:
            parts.append(f"{self.counts['selective']} of {len(asked)} cases are selective")
        return "; ".join(parts)

    def _looser(self, failing: Sequence[CaseResult]) -> str:
        """Return the looser class that all values reach where failing cases only miss the claimed one, else nothing."""
        reached = self.achieved if all(case.achieved and case.worst for case in failing) else None
        return f" class {self.claim}; all values are within class {reached}" if reached else ""

    @property
    def conformant(self) -> bool:
        """Whether every case in its scope passes, and the scope is one."""
        return not self.reason

    @property
    def standing(self) -> str:
        """
        The verdict in a word, which names what decided it.

        It is pass; in scope, where all that was answered passes; the gravest verdict of a case that decides, and fail where
        there are several; what decided of the scope; or no values, where no case passed that has some.
        """
        if self.conformant:
            return "in scope" if self.counts["unsupported"] else "pass"
        bad = {case.verdict for case in self.failing} - {"selective"}
        bad -= {"not-run"} if bad & {*ENDED} else set()  # these follow from it
        if bad:
            return bad.pop() if len(bad) == 1 else "fail"
        if self.counts["selective"] or (self.scope is not None and self.scope.refused):
            return "selective"
        return "no values" if self.scope is None or not self.scope.passed else self.scope.decided


def number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold; infinities and NaN as words."""
    return value if value is None or math.isfinite(value) else str(value)
