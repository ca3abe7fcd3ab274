"""A drawn call as a case: its expected values are proved on the spot, and the target is asked as in a check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from posref.backends.exact import Unproved
from posref.backends.numbers import Undecided

from ..accuracy import UNIT
from ..checks import case_run
from ..errors import Disagreement, NotJudged, TargetError
from ..model import Answer, Call, CaseResult, LoadedCase
from ..proof import witnesses
from ..proof.evaluation import askable
from ..targets.base import Target
from .strategies import Drawn


@dataclass
class Tally:
    """What came of draws: verdicts, why some were not judged or not supported, and doubts about posref itself."""

    verdicts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    doubts: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        """Return both together."""
        return Tally(self.verdicts + other.verdicts, self.reasons + other.reasons, self.doubts + other.doubts)


@dataclass
class Asking:
    """A target, opened again when it is not asked any more, as a program that crashed too often."""

    open: Callable[[], Target]
    target: Target

    def ask(self, case: LoadedCase, dtype: str, answer: Answer) -> CaseResult:
        """Return the verdict of one case; `TargetError` if it cannot be asked at all."""
        result = case_run.ask(self.target, case, dtype, answer)
        if result.verdict == "not-run":
            self.target.close()
            self.target = self.open()
            result = case_run.ask(self.target, case, dtype, answer)
        if result.verdict == "not-run":
            msg = f"{self.target.name}: cannot be asked any more: {result.message}."
            raise TargetError(msg)
        return result


def case_of(name: str, dtype: str, drawn: Drawn) -> LoadedCase:
    """Return a drawn call as a case of id `name` with proved values; `NotJudged` if there are none for `dtype`."""
    op = name.split("/", maxsplit=1)[0]
    try:
        expected, mid, widths = witnesses.proved(op, drawn.inputs, drawn.params)
    except Exception as error:
        raise _not_judged(op, drawn, error) from error
    held = askable(op, drawn.inputs, expected)
    dtypes = tuple(d for d in held if d not in UNIT or f"low-{d}" in widths)
    call = Call(drawn.params, drawn.inputs, expected, mid, widths)
    case = LoadedCase(name, op, "value", "core", ("fuzz",), "", dtypes, (call,))
    if not case_run.asked_in(case, dtype):
        reason = f"says nothing in {dtype}" if dtype in held else f"out of the range of {dtype}"
        raise NotJudged(reason)
    return case


def _not_judged(op: str, drawn: Drawn, error: Exception) -> NotJudged:
    """Return why there is nothing to compare with."""
    if isinstance(error.__cause__, Undecided):
        return NotJudged("a decision lies within the error of its class")
    if isinstance(error, Unproved):
        return NotJudged("not proved: the value lies on a rounding boundary, as a mean of three may")
    if any(value.size == 0 for value in drawn.inputs.values()):
        return NotJudged("no elements: lists do not tell the second witness their shape")
    what = "the witnesses disagree" if isinstance(error, Disagreement) else f"posref raises {type(error).__name__}"
    return NotJudged(what, doubt=f"{what} on {written(op, drawn)}: {error}")


def written(op: str, drawn: Drawn) -> str:
    """Return a call as one would write it."""
    arrays = {n: repr(v.tolist()) if v.size else f"empty({v.shape})" for n, v in drawn.inputs.items()}
    return f"{op}({', '.join(f'{n}={v}' for n, v in {**arrays, **{n: repr(v) for n, v in drawn.params.items()}}.items())})"
