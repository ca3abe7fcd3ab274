"""Why an implementation differs: the deviations that reproduce its outputs, ties and all; "unexplained" where nothing fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..deviations import Deviation
from ..model import number
from ..target import comparing
from . import fitted, located, phases, search, traits, unnamed, wording
from .groups import Group
from .hypotheses import Question, quiet
from .unnamed import Said

if TYPE_CHECKING:
    from ..model import Answer

Asked = tuple["Answer", bool]  # an answer, and whether it fails
FIRST_MISSED = {  # by the first position that fails: what cannot hold it, and the deviation that says so
    257.0: ("bfloat16", "positions-bfloat16"),
    2049.0: ("float16", "positions-float16"),
    32768.0: ("int16", "positions-int16"),
    16777217.0: ("float32", ""),
}


def diagnose(
    op: str,
    answers: Sequence[Asked],
    claim: str,
    stage: str | None = None,
    *,
    known: Mapping[str, Sequence[Sequence[str]]] | None = None,
    first: float | None = None,
) -> dict[str, Any]:
    """
    Return an explanation of the failures among `answers`, which are in the order of asking, each with whether it failed.

    A deviation explains them if it reproduces every failing case within what rounding may do, and gives the expected values
    wherever the implementation passed. Where none explains them all, two or three may, each some of the cases, if it leaves
    the cases of the others alone; or two at once in the same cases. `stage` is the first wrong stage, `known` the explanations
    of the stages that failed too, and `first` the first failing position.

    In the record, ``explanations`` are ties, each a list of deviations that are there together, and ``names`` all their names.
    """
    with quiet():
        found = _diagnose(op, answers, claim, known or {}, first)
    if stage:
        found["text"] = f"{_blame(stage, found, known or {})}; {found['text']}"
    return found


def _blame(stage: str, found: Mapping[str, Any], known: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Return in words that a stage failed too: the first wrong one, unless what is composed of it has another name."""
    theirs = {name for names in known.get(stage, ()) for name in names}
    if theirs and found["names"] and theirs.isdisjoint(found["names"]):
        return f"{stage} fails too, for another reason"
    return f"the first wrong stage is {stage}"


def _diagnose(
    op: str,
    answers: Sequence[Asked],
    claim: str,
    known: Mapping[str, Any],
    first: float | None,
) -> dict[str, Any]:
    values = [(a, failed) for a, failed in answers if a.case.kind in ("value", "sequence")]
    gradients = [(a, failed) for a, failed in answers if a.case.kind == "vjp"]
    wrong = sum(failed for _, failed in gradients)
    if not wrong or any(failed for _, failed in values):
        found = _explained(op, values, claim, known, first)
        if wrong:
            fail = "fail too, as they" if wrong > 1 else "fails too, as it"
            found["text"] += f" {wording.count(wrong)} of gradients {fail} must when values are wrong."
        return found
    found = _explained(op, _rotations(gradients, claim), claim, {}, None)
    if not found["names"]:
        return _record("unexplained: only gradients fail, and no known mistake gives these gradients.", [])
    lead = "only gradients fail. The gradient of x rotates the cotangent back; compared as such a rotation, "
    return found | {"text": lead + found["text"]}


def _rotations(gradients: Sequence[Asked], claim: str) -> list[Asked]:
    """Return answers whose gradient is a rotation as answers of that rotation, each with whether it fails itself."""
    found = []
    for answer, _ in gradients:
        case = phases.as_rotation(answer.case)
        if case is not None and answer.outputs:
            turned = replace(answer, case=case, outputs=[phases.as_output(answer.outputs[0])])
            failed = comparing.compare(case.op, case.calls[0], turned.outputs[0], claim, answer.dtype) is not None
            found.append((turned, failed))
    return found


def _explained(
    op: str,
    asked: Sequence[Asked],
    claim: str,
    known: Mapping[str, Any],
    first: float | None,
) -> dict[str, Any]:
    """Return an explanation of failures, each kind of hypothesis tried where the simpler ones do not fit."""
    told = [(a, failed) for a, failed in asked if len(a.outputs) == len(a.case.calls)]
    silent = _silent(len(asked) - len(told))
    questions = search.ordered([Question(op, a, failed=f, claim=claim, turn=n) for n, (a, f) in enumerate(told)])
    if not any(q.failed for q in questions):
        cases = ([a.case for a, f in asked if f == failed] for failed in (True, False))
        return _record("unexplained: no failing case gave values to compare." + traits.shared(*cases), [])
    said = _single(questions, claim, first)
    if not said:
        numbers = fitted.fitted(questions)
        said = unnamed.by_number(questions, claim, numbers)
    if not said:
        parts = search.consistent(questions, search.touching(op))
        said = _several(questions, parts, claim, known, first)
        said = said or unnamed.without_name(op, questions, claim, parts, numbers)
    found = _record(said.text + silent + ("" if said.explanations else _place(first, questions)), said.explanations)
    if said.next_best is not None:
        found["next_best"] = number(said.next_best)
    found["groups"] = _groups(said.groups, [q.id for q in questions if q.failed])
    return found


def _groups(found: Sequence[Group], failing: Sequence[str]) -> list[dict[str, Any]]:
    """Return groups for the record, with the cases that none explains as the last; nothing where there is but one group."""
    left = [id_ for id_ in failing if not any(id_ in group.cases for group in found)]
    record = [{"cases": list(g.cases), "names": sorted(g.names - {""}), "where": g.where} for g in found]
    return [*record, *([{"cases": left, "names": [], "where": ""}] if left else [])] if found else []


def _single(questions: Sequence[Question], claim: str, first: float | None) -> Said | None:
    """Return the deviations that explain all cases by themselves."""
    fitting, next_best = search.one(questions)
    single = list({d.name: (d,) for _, d in fitting}.values())
    if not single:
        return None
    ahead = float(next_best / max(*(score for score, _ in fitting), 1e-3))
    lead = f" The next best explanation is {ahead:.0e} times worse." if np.isfinite(ahead) else ""
    return Said(wording.same(single, claim) + lead + _place(first, questions, single), single, next_best=ahead)


def _several(
    questions: Sequence[Question], parts: Sequence[search.Part], claim: str, known: Mapping[str, Any], first: float | None
) -> Said | None:
    """Return deviations that explain all cases, each some of them or several at once."""
    parts = search.apart(questions, parts)
    if parts:
        text = wording.apart([(part.ties, part.cases, "") for part in parts], claim)
        groups = [Group(part.ties, part.cases) for part in parts]
        return Said(text, list(product(*(part.ties for part in parts))), groups)
    pairs = search.at_once(questions, known)
    return Said(wording.same(pairs, claim) + _place(first, questions, pairs), pairs) if pairs else None


def _record(text: str, explanations: Sequence[Sequence[Deviation]]) -> dict[str, Any]:
    """Return a diagnosis with names, hints and sightings."""
    found = list({d.name: d for together in explanations for d in together if d.name}.values())
    return {
        "text": text,
        "names": [d.name for d in found],
        "explanations": [names for together in explanations if (names := [d.name for d in together if d.name])],
        "hint": " ".join(dict.fromkeys(d.hint for d in found if d.hint)),
        "seen_in": "; ".join(dict.fromkeys(d.seen_in for d in found if d.seen_in)),
    }


def _silent(count: int) -> str:
    return f" {wording.count(count)} gave no values to compare." if count else ""


def _place(first: float | None, questions: Sequence[Question], explanations: Sequence[Sequence[Deviation]] = ()) -> str:
    """Return what the first failing position says, where it says something: numbers that a dtype holds are right."""
    missed, name = FIRST_MISSED.get(first or 0.0, ("", ""))
    named = {d.name: d for together in explanations for d in together}
    if name in named:
        return f" The first failing position is {first:.0f}: {named[name].text}."
    if missed and not explanations and located.held_are_right(questions, missed, first or 0.0):
        return f" The first failing position is {first:.0f}, the first integer that {missed} does not hold."
    return ""
