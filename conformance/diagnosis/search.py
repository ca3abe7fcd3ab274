"""
Searches for known mistakes that explain the failures of one operation.

A mistake may explain all failing cases by itself. Two or three may share the cases out among themselves, or two may be at work
in the same cases. Else each group of failing cases, told apart by an option or a form of input, is explained by itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np

from ..evidence.index import deviations_touching
from ..evidence.tools.deviation import Deviation, contradict, together
from . import features
from .hypotheses import Budget, Hypothesis, Question, StatefulHypothesis, left_over, plausible, score
from .siblings import exchanged_options, exchanged_outputs
from .side_by_side import side_by_side

PARTS = 3  # mistakes that may share the cases out among themselves
UNIONS = 64  # ways to take one explanation of every stage that are tried
LEAST = 2  # failing cases that a group must have
ENOUGH = 3  # failing cases, all explained, after which passing cases that are otherwise are told as the exception
MOST = 0.75  # the part of failing cases that a mistake must explain to be named although others are left
LOOKED = 8  # passing cases, the smallest, in which no part of a pair may show
PROBED = 3  # failing cases, the smallest, by which the mistakes that may be parts of a pair are ordered
NEXT = 5_000_000  # values, the work of looking for the best of the mistakes that do not fit
CLUSTERS = 24  # sets of failing cases that are looked at, the largest first
Together = tuple[Deviation, ...]


@dataclass(frozen=True)
class Exceptions:
    """Mistakes (ties) that explain every failing case, and the passing cases that contradict them."""

    ties: tuple[Deviation, ...]
    passing: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Failing cases that mistakes (ties) explain: wherever they act, or only in the cases with a feature."""

    ties: tuple[Deviation, ...]
    cases: tuple[str, ...]
    where: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names of the ties."""
        return frozenset(d.name for d in self.ties)


def ordered(questions: Sequence[Question]) -> list[Question]:
    """Return failing cases first, and small ones before large ones."""
    return sorted(questions, key=lambda q: (not q.failed, q.size))


def single(questions: Sequence[Question], budget: Budget) -> tuple[list[tuple[float, Deviation]], float]:
    """
    Return the mistakes that explain all cases by themselves with their scores, and the score of the best of the others.

    Best first: always the hypothesis with the lowest score so far is tried on its next case, so that most are dropped after
    one small case and the best of those that do not fit is still known exactly.
    """
    heap: list[tuple[float, int, int, Hypothesis]] = []
    for deviation in deviations_touching(questions[0].op):
        for kind in (Hypothesis, StatefulHypothesis) if deviation.stateful else (Hypothesis,):
            heap.append((0.0, len(heap), 0, kind(deviation, questions)))
    fitting: list[tuple[float, Deviation]] = []
    rest = budget
    while heap:
        worst, tie, count, hypothesis = heapq.heappop(heap)
        if (worst > 1 and not fitting) or rest.spent():  # all others are farther off, or there is no work left to say how far
            return fitting, np.inf
        if count == len(questions):
            if worst > 1:
                return fitting, worst
            fitting.append((worst, hypothesis.deviation))
            rest = budget.limited(NEXT)
            continue
        heapq.heappush(heap, (max(worst, hypothesis.score(count)), tie, count + 1, hypothesis))
    return fitting, np.inf


def partition(questions: Sequence[Question], parts: Sequence[Group]) -> list[Group]:
    """Return two or three of mistakes that are `consistent` which together explain all failures; none if none do."""
    failing = frozenset(q.id for q in questions if q.failed)
    by_cases = {frozenset(part.cases): part for part in parts}
    for chosen in _covers(failing, sorted(by_cases, key=len, reverse=True), PARTS):
        several = [by_cases[mine] for mine in chosen]
        if not contradict(d for part in several for d in part.ties):
            return several
    return []


def consistent(questions: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> list[Group]:
    """Return mistakes that each explain two failing cases at least, and leave all other cases as they must be."""
    explained: dict[frozenset[str], list[Deviation]] = {}
    for deviation in budget.within(deviations):
        mine = _explained(Hypothesis(deviation, questions))
        if mine:
            explained.setdefault(mine, []).append(deviation)
    return [Group(tuple(ties), tuple(q.id for q in questions if q.id in mine)) for mine, ties in explained.items()]


def _explained(hypothesis: Hypothesis) -> frozenset[str]:
    """Return the failing cases, two at least, that a mistake explains, it leaving all others as they must be; else none."""
    mine: list[str] = []
    for n, question in enumerate(hypothesis.questions):
        if not question.failed and len(mine) < LEAST:  # failing cases come first
            return frozenset()
        if not hypothesis.shows(n):
            continue
        if not question.failed or score(question, question.observations, hypothesis.predicted(n)) > 1:
            return frozenset()
        mine.append(question.id)
    return frozenset(mine)


def _covers(left: frozenset[str], sets: Sequence[frozenset[str]], count: int) -> Iterator[tuple[frozenset[str], ...]]:
    """Yield ways to make up a set of at most `count` disjoint ones."""
    if not left:
        yield ()
    elif count:
        for n, chosen in enumerate(sets):
            if chosen <= left:
                for rest in _covers(left - chosen, sets[n + 1 :], count - 1):
                    yield (chosen, *rest)


def combined(
    questions: Sequence[Question], known: Mapping[str, Sequence[Sequence[str]]], budget: Budget, *, near: Set[str] = frozenset()
) -> list[Together]:  # fmt: skip
    """
    Return mistakes that explain all cases together, none of them alone: ties, the best first.

    `known` has the explanations of the stages that failed too, by stage. First all of those at once are tried; then pairs with
    one of them; then all pairs, and pairs with a word of an option that is taken for another. Where names are `near`, one of
    a pair is known to be among them, and no others are tried.
    """
    found = _fitting(_unions(questions[0].op, known), questions, budget)
    if found:
        return found
    passing = [q for q in questions if not q.failed][:LOOKED]  # what shows in these another would have to undo there
    hidden = [d for d in budget.within(deviations_touching(questions[0].op)) if _leaves(d, passing)]
    all_of_them = nearest_first(hidden, questions)
    named = near or {name for explanations in known.values() for names in explanations for name in names}
    places = sorted(combinations(range(len(all_of_them)), 2), key=sum)
    pairs = [(all_of_them[a], all_of_them[b]) for a, b in places]
    pairs = [pair for pair in pairs if not contradict(pair)]
    likely = [pair for pair in pairs if named & {d.name for d in pair}]
    others = [pair for pair in pairs if pair not in set(likely)]
    found = _fitting(likely, questions, budget)
    if found or near:
        return found
    found = list(side_by_side(questions, deviations_touching(questions[0].op), budget)) or _fitting(others, questions, budget)
    if found:
        return found
    exchanges = chain(exchanged_options(questions[0].op), exchanged_outputs(questions[0].op))
    words = [d for d in budget.within(exchanges) if _leaves(d, passing)]
    fitting = _fitting([(word, d) for d in all_of_them for word in words], questions, budget)
    return list({id(d): (word, d) for word, d in fitting[::-1]}.values())  # of one mistake, one word


def _unions(op: str, known: Mapping[str, Sequence[Sequence[str]]]) -> list[Together]:
    """Return what the stages' explanations are together: one of every stage, each mistake once."""
    unions: dict[frozenset[str], None] = {}
    for choice in product(*list(known.values())):
        unions[frozenset(name for names in choice for name in names)] = None
        if len(unions) == UNIONS:
            break
    deviations = {d.name: d for stage in (op, *known) for d in deviations_touching(stage)}
    several = [tuple(d for name, d in deviations.items() if name in names) for names in unions if len(names) > 1]
    return [chosen for chosen in several if not contradict(chosen)]


def _fitting(candidates: Sequence[Together], questions: Sequence[Question], budget: Budget) -> list[Together]:
    """Return those of several mistakes at once that explain all cases, in one order of nesting or the other."""
    scores: list[tuple[float, int]] = []
    for n, deviations in enumerate(budget.within(candidates)):
        distance = min(_worst(Hypothesis(both, questions)) for both in orders(deviations))
        if distance <= 1:
            scores.append((distance, n))
    return [candidates[n] for _, n in sorted(scores)]


def orders(several: Sequence[Deviation]) -> list[Deviation]:
    """Return mistakes at once as one, in each order of nesting: there is one, unless two change the same operation."""
    ops = [op for d in several for op in d.wraps]
    ways = [several] if len(ops) == len(set(ops)) else [several, several[::-1]]
    return [together(*way) if len(way) > 1 else way[0] for way in ways]


def _worst(hypothesis: Hypothesis) -> float:
    """Return the score over all cases; infinite from the first one that does not fit."""
    if not plausible(hypothesis.questions[0], hypothesis.predicted(0)):
        return np.inf
    worst = 0.0
    for n in range(len(hypothesis.questions)):
        worst = max(worst, hypothesis.score(n))
        if worst > 1:
            return np.inf
    return worst


def grouped(
    questions: Sequence[Question], parts: Sequence[Group], more: Sequence[Deviation], budget: Budget
) -> list[Group]:  # fmt: skip
    """
    Return groups of failing cases that mistakes of the registry, or `more`, explain; the rest of the cases is left over.

    `parts` are the mistakes of the registry that leave all other cases as they must be. The largest group comes first. A
    mistake that contradicts one already named is not named.
    """
    options = [*parts, *consistent(questions, more, budget)]
    options += _by_feature(questions, deviations_touching(questions[0].op), budget)
    left, chosen = {q.id for q in questions if q.failed}, list[Group]()
    for group in sorted(options, key=lambda g: (-len(g.cases), bool(g.where))):
        if left.issuperset(group.cases) and not contradict(d for g in (group, *chosen) for d in g.ties):
            chosen.append(group)
            left.difference_update(group.cases)
    return _joined(chosen)


def with_exceptions(questions: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> Exceptions | None:
    """
    Return those of mistakes that explain every failing case, at least three, but not all others.

    Of several those are returned that the fewest passing cases speak against.
    """
    failing = [q for q in questions if q.failed]
    if len(failing) < ENOUGH:
        return None
    fitting = fitting_all(failing, deviations, budget)
    by_exceptions: dict[tuple[str, ...], list[Deviation]] = {}
    for deviation in fitting:
        against = [q.id for q in questions if not q.failed and not _leaves(deviation, [q])]
        by_exceptions.setdefault(tuple(against), []).append(deviation)
    passing = min(by_exceptions, key=len, default=None)
    if passing is None or contradict(by_exceptions[passing]):
        return None
    return Exceptions(tuple(by_exceptions[passing]), passing)


def majority(questions: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> Group | None:
    """Return the mistakes that explain most of the failing cases, and change no passing one: something else is wrong too."""
    failing, passing = ([q for q in questions if q.failed == failed] for failed in (True, False))
    if len(failing) < ENOUGH:
        return None
    by_cases: dict[frozenset[str], list[Deviation]] = {}
    for deviation in budget.within(deviations):
        mine = _most(Hypothesis(deviation, failing))
        if mine and _leaves(deviation, passing):
            by_cases.setdefault(mine, []).append(deviation)
    mine = max(by_cases, key=len, default=frozenset[str]())
    if not mine or contradict(by_cases[mine]):
        return None
    return Group(tuple(by_cases[mine]), tuple(q.id for q in failing if q.id in mine))


def _most(hypothesis: Hypothesis) -> frozenset[str]:
    """Return the failing cases that a mistake explains, if they are most of them."""
    failing, mine = hypothesis.questions, []
    missed = 0
    for n, question in enumerate(failing):
        predict = hypothesis.predicted(n)
        if plausible(question, predict) and score(question, question.observations, predict) <= 1:
            mine.append(question.id)
        else:
            missed += 1
        if missed > (1 - MOST) * len(failing):
            return frozenset()
    return frozenset(mine)


def fitting_all(failing: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> list[Deviation]:
    """Return the mistakes that explain every failing case."""
    return [d for d in budget.within(deviations) if _fits(d, failing)]


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Return groups with those of one explanation as one."""
    groups_by_tie: dict[tuple[str, ...], Group] = {}
    for group in groups:
        key = tuple(d.name or d.text for d in group.ties)
        first = groups_by_tie.get(key)
        where = " or ".join(w for w in (first.where if first else "", group.where) if w)
        groups_by_tie[key] = Group(group.ties, (*(first.cases if first else ()), *group.cases), where)
    return list(groups_by_tie.values())


def _by_feature(questions: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> Iterator[Group]:
    """Yield groups of failing cases with a feature that mistakes explain, if they change no passing case with it."""
    failing = {q.id for q in questions if q.failed}
    clusters: dict[frozenset[str], list[tuple[str, frozenset[str]]]] = {}
    for words, ids in features.features([q.case for q in questions if q.size], features.CLUSTERS).items():
        clusters.setdefault(ids & failing, []).append((words, ids))
    largest = sorted((mine for mine in clusters if len(mine) >= LEAST), key=len, reverse=True)
    for mine in largest[:CLUSTERS]:
        having = [q for q in questions if q.id in mine]
        fitting = [d for d in budget.within(deviations) if _fits(d, having)]
        for words, ids in clusters[mine] if fitting else ():
            others = [q for q in questions if q.id in ids and not q.failed]
            ties = tuple(d for d in fitting if _leaves(d, others))
            if ties:
                yield Group(ties, tuple(q.id for q in having), words)
                break


def with_option(questions: Sequence[Question], deviations: Sequence[Deviation], budget: Budget) -> Group | None:
    """
    Return all failing cases, at least three, as a group with an option's value, if mistakes explain them.

    Passing cases with that value must be as they are: a number of theirs may say nothing in them.
    """
    failing = [q for q in questions if q.failed]
    fitting = fitting_all(failing, deviations, budget) if len(failing) >= ENOUGH else []
    by_words = features.features([q.case for q in questions if q.size], ("option", "given")) if fitting else {}
    for words, ids in sorted(by_words.items(), key=lambda item: len(item[1])):
        if all(q.id in ids for q in failing):
            others = [q for q in questions if q.id in ids and not q.failed]
            ties = tuple(d for d in fitting if _leaves(d, others))
            if ties:
                return Group(ties, tuple(q.id for q in failing), words)
    return None


def _fits(deviation: Deviation, own: Sequence[Question]) -> bool:
    """Return whether a mistake explains all of some failing cases, tried on the smallest first."""
    hypothesis = Hypothesis(deviation, own)
    if not plausible(own[0], hypothesis.predicted(0)):
        return False
    return hypothesis.fits()


def nearest_first(deviations: Sequence[Deviation], questions: Sequence[Question]) -> list[Deviation]:
    """Return mistakes in the order in which they leave least of the error of a few failing cases: a part of a pair does."""
    few = [q for q in questions if q.failed][:PROBED]

    def left(deviation: Deviation) -> float:
        hypothesis = Hypothesis(deviation, few)
        return sum(min(left_over(q, hypothesis.predicted(n)), 2.0) for n, q in enumerate(few))

    return sorted(deviations, key=left)


def _leaves(deviation: Deviation, others: Sequence[Question]) -> bool:
    hypothesis = Hypothesis(deviation, others)
    return not any(hypothesis.shows(n) for n in range(len(others)))


def remaining(questions: Sequence[Question], groups: Iterable[Group]) -> list[Question]:
    """Return the failing cases that no group explains, with the passing ones."""
    explained = {id_ for group in groups for id_ in group.cases}
    return [q for q in questions if q.id not in explained]
