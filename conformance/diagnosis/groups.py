"""Failures of several causes: failing cases by an option or a form, each group explained by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..evidence.opposites import contradict
from ..evidence.tools.deviation import Deviation
from . import search, traits
from .hypotheses import Hypothesis, Question, plausible, score

LEAST = 2  # failing cases that a group must have
MANY = 3  # failing cases, all explained, after which passing cases that are otherwise are told as the exception
CLUSTERS = 24  # sets of failing cases that are looked at, the largest first


@dataclass(frozen=True)
class Except:
    """Deviations (ties) that explain every failing case, and the passing cases in which they would show and do not."""

    ties: tuple[Deviation, ...]
    passing: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Failing cases that deviations (ties) explain: wherever they act, or in the cases of a trait alone."""

    ties: tuple[Deviation, ...]
    cases: tuple[str, ...]
    where: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names of the ties."""
        return frozenset(d.name for d in self.ties)


def grouped(questions: Sequence[Question], parts: Sequence[search.Part], more: Sequence[Deviation]) -> list[Group]:
    """
    Return groups of failing cases that deviations of the registry, or `more`, explain; the rest of the cases is left over.

    `parts` are the deviations of the registry that leave all other cases as they must be. The largest group comes first. A
    deviation that contradicts one already named is not named.
    """
    options = [Group(part.ties, part.cases) for part in (*parts, *search.consistent(questions, more))]
    options += _by_trait(questions, [*search.touching(questions[0].op), *more])
    left, chosen = {q.id for q in questions if q.failed}, list[Group]()
    for group in sorted(options, key=lambda g: (-len(g.cases), bool(g.where))):
        named = frozenset[str]().union(group.names, *(g.names for g in chosen))
        if left.issuperset(group.cases) and not contradict(named):
            chosen.append(group)
            left.difference_update(group.cases)
    return _joined(chosen)


def but_for_some(questions: Sequence[Question], more: Sequence[Deviation]) -> Except | None:
    """
    Return the deviations of the registry, or of `more`, that explain every failing case, at least three, but not all others.

    Of several those are returned that the fewest passing cases speak against.
    """
    failing = [q for q in questions if q.failed]
    if len(failing) < MANY:
        return None
    fitting = [d for d in (*search.touching(questions[0].op), *more) if _fits(d, failing)]
    found: dict[tuple[str, ...], list[Deviation]] = {}
    for deviation in fitting:
        against = [q.id for q in questions if not q.failed and not _leaves(deviation, [q])]
        found.setdefault(tuple(against), []).append(deviation)
    passing = min(found, key=len, default=None)
    if passing is None or contradict(frozenset(d.name for d in found[passing])):
        return None
    return Except(tuple(found[passing]), passing)


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Return groups with those of one explanation as one."""
    found: dict[tuple[str, ...], Group] = {}
    for group in groups:
        key = tuple(d.name or d.text for d in group.ties)
        first = found.get(key)
        where = " or ".join(w for w in (first.where if first else "", group.where) if w)
        found[key] = Group(group.ties, (*(first.cases if first else ()), *group.cases), where)
    return list(found.values())


def _by_trait(questions: Sequence[Question], deviations: Sequence[Deviation]) -> Iterator[Group]:
    """Yield groups of failing cases with a trait that deviations explain, if they change no passing case with it."""
    failing = {q.id for q in questions if q.failed}
    clusters: dict[frozenset[str], list[tuple[str, frozenset[str]]]] = {}
    for words, ids in traits.clusters([q.asked for q in questions if q.size]).items():
        clusters.setdefault(ids & failing, []).append((words, ids))
    largest = sorted((mine for mine in clusters if len(mine) >= LEAST), key=len, reverse=True)
    for mine in largest[:CLUSTERS]:
        own = [q for q in questions if q.id in mine]
        fitting = [d for d in deviations if _fits(d, own)]
        for words, ids in clusters[mine] if fitting else ():
            others = [q for q in questions if q.id in ids and not q.failed]
            ties = tuple(d for d in fitting if _leaves(d, others))
            if ties:
                yield Group(ties, tuple(q.id for q in own), words)
                break


def _fits(deviation: Deviation, own: Sequence[Question]) -> bool:
    """Return whether a deviation explains all of some failing cases, first asked about the smallest."""
    hypothesis = Hypothesis(deviation, own)
    if not plausible(own[0], hypothesis.predicted(0)):
        return False
    return all(hypothesis.score(n) <= 1 for n in range(len(own)))


def _leaves(deviation: Deviation, others: Sequence[Question]) -> bool:
    hypothesis = Hypothesis(deviation, others)
    return all(score(q, q.true, hypothesis.predicted(n)) <= 1 for n, q in enumerate(others))


def rest(questions: Sequence[Question], groups: Iterable[Group]) -> list[Question]:
    """Return the failing cases that no group explains, with the passing ones."""
    explained = {id_ for group in groups for id_ in group.cases}
    return [q for q in questions if q.id not in explained]
