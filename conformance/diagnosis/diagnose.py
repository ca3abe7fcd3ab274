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
from . import backward, phases, search
from .hypotheses import Question, quiet

if TYPE_CHECKING:
    from ..model import Answer

Asked = tuple["Answer", bool]  # an answer, and whether it fails
SHOWN = 4  # ties that the text spells out; the record has them all
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
        found["text"] = f"the first wrong stage is {stage}; {found['text']}"
    return found


def _diagnose(op: str, answers: Sequence[Asked], claim: str, known: Mapping[str, Any], first: float | None) -> dict[str, Any]:
    values = [(a, failed) for a, failed in answers if a.case.kind in ("value", "sequence")]
    gradients = [(a, failed) for a, failed in answers if a.case.kind == "vjp"]
    wrong = sum(failed for _, failed in gradients)
    if not wrong or any(failed for _, failed in values):
        found = _explained(op, values, claim, known, first)
        if wrong:
            found["text"] += f" {_cases(wrong)} of gradients fail too, as they must when values are wrong."
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
        case = backward.as_rotation(answer.case)
        if case is not None and answer.outputs:
            turned = replace(answer, case=case, outputs=[backward.as_output(answer.outputs[0])])
            failed = comparing.compare(case.op, case.calls[0], turned.outputs[0], claim, answer.dtype) is not None
            found.append((turned, failed))
    return found


def _explained(op: str, asked: Sequence[Asked], claim: str, known: Mapping[str, Any], first: float | None) -> dict[str, Any]:
    """Return an explanation of failures, each kind of hypothesis tried where the simpler ones do not fit."""
    told = [(a, failed) for a, failed in asked if len(a.outputs) == len(a.case.calls)]
    silent = _silent(len(asked) - len(told))
    questions = search.ordered([Question(op, a, failed=f, claim=claim, turn=n) for n, (a, f) in enumerate(told)])
    if not any(q.failed for q in questions):
        return _record("unexplained: no failing case gave values to compare.", [])
    fitting, next_best = search.one(questions)
    single = list({d.name: (d,) for _, d in fitting}.values())
    if single:
        ahead = next_best / max(*(score for score, _ in fitting), 1e-3)
        text = _same(single, claim) + _lead(ahead) + silent + _place(first, single)
        return _record(text, single) | {"next_best": number(float(ahead))}
    parts = search.apart(questions)
    if parts:
        return _record(_apart(parts, claim) + silent, list(product(*(part.ties for part in parts))))
    pairs = search.at_once(questions, known)
    if pairs:
        return _record(_same(pairs, claim) + silent + _place(first, pairs), pairs)
    recovered = phases.recover(op, questions)
    return _record("unexplained: no known mistake gives these values." + recovered + _place(first, []), [])


def _record(text: str, explanations: Sequence[Sequence[Deviation]]) -> dict[str, Any]:
    """Return a diagnosis with names, hints and sightings."""
    found = list({d.name: d for together in explanations for d in together}.values())
    return {
        "text": text,
        "names": [d.name for d in found],
        "explanations": [[d.name for d in together] for together in explanations],
        "hint": " ".join(dict.fromkeys(d.hint for d in found if d.hint)),
        "seen_in": "; ".join(dict.fromkeys(d.seen_in for d in found if d.seen_in)),
    }


def _words(explanations: Sequence[Sequence[Deviation]]) -> str:
    """Return ties in words, each of one deviation or of several at once."""
    shown = [", and ".join(f"{d.text} ({d.name})" for d in together) for together in explanations[:SHOWN]]
    more = len(explanations) - SHOWN
    return " or: ".join(shown) + (f" (or {more} more)" if more > 0 else "")


def _same(explanations: Sequence[Sequence[Deviation]], claim: str) -> str:
    """Return what the values equal."""
    tie = " These give the same values on every case asked." if len(explanations) > 1 else ""
    return f"your output equals the definition, within {claim}, if {_words(explanations)}.{tie}"


def _lead(ahead: float) -> str:
    return f" The next best explanation is {ahead:.0e} times worse." if np.isfinite(ahead) else ""


def _cases(count: int) -> str:
    return f"{count} case{'s' * (count > 1)}"


def _silent(count: int) -> str:
    return f" {_cases(count)} gave no values to compare." if count else ""


def _place(first: float | None, explanations: Sequence[Sequence[Deviation]]) -> str:
    """Return what the first failing position says, where it says something."""
    missed, name = FIRST_MISSED.get(first or 0.0, ("", ""))
    named = {d.name: d for together in explanations for d in together}
    if name in named:
        return f" The first failing position is {first:.0f}: {named[name].text}."
    if missed and not explanations:
        return f" The first failing position is {first:.0f}, the first integer that {missed} does not hold."
    return ""


def _apart(parts: Sequence[search.Part], claim: str) -> str:
    """Return several deviations in words, each with the cases that it explains."""
    words = []
    for part in parts:
        ids = f"{', '.join(part.cases[:2])}{', ...' * (len(part.cases) > 2)}"
        words.append(f"in {len(part.cases)} cases ({ids}) {_words([(d,) for d in part.ties])}")
    return f"{len(words)} mistakes: your output equals the definition, within {claim}, if " + "; ".join(words) + "."
