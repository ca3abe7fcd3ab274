"""The sentences of a diagnosis where no known mistake explains all failures: numbers, groups of cases, or the place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product

from ..deviations import Deviation
from . import fitted, groups, located, phases, traits
from .hypotheses import Question
from .search import Part
from .wording import apart, ids, same

UNEXPLAINED = "unexplained: no known mistake gives these values."
WAYS = 8  # combinations of the groups' ties that the record has


@dataclass(frozen=True)
class Said:
    """A text, the deviations that it names (each set of them one way to explain what is explained), and groups of cases."""

    text: str
    explanations: Sequence[Sequence[Deviation]] = ()
    groups: Sequence[groups.Group] = ()
    next_best: float | None = None  # how much worse the best of the other deviations is


def by_number(questions: Sequence[Question], claim: str, numbers: Sequence[Deviation]) -> Said | None:
    """Return an explanation of all failures by one number, if there is one."""
    ties = fitted.whole(questions, [*numbers, *fitted.measured(questions)])
    return Said(same([(d,) for d in ties], claim)) if ties else None


def without_name(
    op: str,
    questions: Sequence[Question],
    claim: str,
    parts: Sequence[Part],
    numbers: Sequence[Deviation],
) -> Said:
    """
    Return what there is to say where neither one deviation, nor one number, nor several deviations explain all failures.

    A mistake that explains a minority of the failing cases, and only where they have some trait, fits them by chance.
    """
    recovered = phases.recover(op, questions)
    if recovered.whole:
        return Said(f"your output equals the definition, within {claim}, {recovered.said}.")
    found = groups.grouped(questions, parts, numbers)
    if any(q.failed for q in groups.rest(questions, found)):
        all_but = groups.but_for_some(questions, numbers)
        if all_but is not None:
            return _with_exception(questions, claim, all_but)
    if found and _few(questions, found):
        found = [] if located.located(questions) else [group for group in found if not group.where]
    if found:
        return _of_groups(questions, claim, found)
    lead = UNEXPLAINED
    if recovered.said:
        lead = f"unexplained as a whole. Your output equals the definition, within {claim}, {recovered.said}."
    return Said(lead + place(questions))


def _with_exception(questions: Sequence[Question], claim: str, found: groups.Except) -> Said:
    """Return deviations that explain every failing case, with what is known of the passing cases where they do not show."""
    failing = [q.asked for q in questions if q.failed]
    against = [q.asked for q in questions if q.id in found.passing]
    count = len(found.passing)
    told = (
        f"{count} other cases, in which that would show, pass"
        if count > 1
        else "one other case, in which it would show, passes"
    )
    text = same([(d,) for d in found.ties], claim, f"in all {len(failing)} failing cases")
    return Said(
        f"{text} But {told} ({ids(found.passing)}).{traits.shared(failing, against, sure=True)}", [(d,) for d in found.ties]
    )


def _few(questions: Sequence[Question], found: Sequence[groups.Group]) -> bool:
    """Return whether groups leave most of the failing cases over: one place for all of them says more."""
    left = [q for q in groups.rest(questions, found) if q.failed]
    return 2 * len(left) > sum(q.failed for q in questions)


def _of_groups(questions: Sequence[Question], claim: str, found: Sequence[groups.Group]) -> Said:
    """Return groups in words, and what can be said of the cases that are left over."""
    left = groups.rest(questions, found)
    failing = [q for q in left if q.failed]
    text = apart([(group.ties, group.cases, group.where) for group in found], claim)
    if failing:
        several = [q.id for q in failing]
        text += f" No known mistake gives the other {len(several)} ({ids(several)}).{place(left)}"
    return Said(text, list(islice(product(*(group.ties for group in found)), WAYS)), found)


def place(questions: Sequence[Question]) -> str:
    """Return which cases fail, and where in them."""
    where = located.located(questions)
    failing, passing = ([q.asked for q in questions if q.failed == failed and q.size] for failed in (True, False))
    return traits.shared(failing, passing, sure=bool(where)) + where
