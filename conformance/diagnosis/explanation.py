"""
Explains why an implementation fails: the order of explanations, and their words.

First known mistakes (the mistakes of the registry), then one number in place of another, then several mistakes at once, then
groups of cases. Where nothing fits the failure is "unexplained", and the report says which cases fail, and where in them.

The words of a known mistake, as "layout is always 'half'", and its hint stand where the mistake does: in the evidence of the
operation that it changes, or in ``evidence/shared``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

from posref.spec import REGISTRY, Flag, Integer, OneOf

from .. import judge
from ..calls import ASKED, EXACT
from ..evidence.index import deviations_touching
from ..evidence.tools.deviation import Deviation, only_where, together
from ..model import number
from ..targets.invocation import OTHER_BITS, UNSTEADY
from ..targets.replies import CHANGED
from ..vocabulary.traits import defaults
from . import (
    combinations,
    coordinates,
    edit_pairs,
    extensions,
    extent,
    features,
    formula_edits,
    frequencies,
    ignored_options,
    numbers,
    partners,
    placed_mistakes,
    places,
    search,
    siblings,
    sides,
    slopes,
    stages,
    tied_mistakes,
    waves,
)
from .gradients import as_rotation, is_of_copy
from .hypotheses import Budget, Hypothesis, Question, quiet
from .search import Group

if TYPE_CHECKING:
    from ..model import Answer, LoadedCase

Judged = tuple["Answer", bool]  # an answer, and whether it fails
NOT_KNOWN = "No known mistake gives these values."
UNEXPLAINED = f"unexplained: {NOT_KNOWN[0].lower()}{NOT_KNOWN[1:]}"
UNDECIDED = "unexplained: several mistakes give these values, and no further call tells them apart."
SAME_BITS = (
    "Look for a buffer that is not written whole or is kept from call to call, for random numbers, and for sums whose order "
    "changes (atomics)."
)
OF_COPY = "only gradients fail: they are those of a copy. Autograd sees the copy, not what the kernel writes."
WRAPPED = (
    "For training wrap the kernel in torch.autograd.Function; for inference state `gradient: false` in `supports`. If the code "
    "has a backward pass, it returns its input."
)
AFTER_PAIRS = 8_000_000  # values, the work that is kept for groups of cases
OUT_OF_TIME = ("known mistake gives", "known mistake that was tried gives")
LEAST_READ = 2  # wrong values that a formula must explain
READERS = (frequencies, extensions, waves, slopes, partners)  # of formulas, the plainest reading first
WAYS = 8  # combinations of the groups' ties that the record has
MINORITY = 8  # one of so many failing cases is the least that a remark is worth
MANY_WRONG = 32  # wrong values that a known mistake does not give by chance
MANY_FAIL = 10  # failing cases that a number without a name does not explain by chance, whatever others say
IN_PLACE = 'Copy the input first. A kernel that returns its result there says so: in_place = ("x",).'
OF_A_PLACE = "Elsewhere the code is right. Look at what differs there: a loop's remainder, the edge of a block, a limit."
DIGITS = 5  # in which two numbers that were fitted are told apart
NEAREST = 3  # known mistakes beside which a number is solved for
WORDS = 8  # values of an option that are taken for words
SHOWN = 4  # ties that the text spells out; the record has them all
OF_THE_REST = {  # how a sentence begins that is of all failing cases, and of those that are left over
    " Exactly the cases with ": " Besides the explained cases, exactly those with ",
    " The failing case alone has ": " It alone has ",
    " In the failing cases, only ": " In these, only ", " Only ": " In these, only ",
}  # fmt: skip
FIRST_MISSED = {257.0: "bfloat16", 2049.0: "float16", 32768.0: "int16", 16777217.0: "float32"}  # which dtype does not hold it


@dataclass(frozen=True)
class Explanation:
    """A text, the mistakes that it names (ties, each of one or several), and groups of cases with a mistake of their own."""

    text: str
    explanations: Sequence[Sequence[Deviation]] = ()
    groups: Sequence[Group] = ()
    next_best: float | None = None  # how much worse the best of the other mistakes is
    whole: bool = False  # whether one explanation holds for all that was judged
    trait: str = ""  # the sentence of the text that says what stored cases have that fail
    end: str = ""  # what is said after all else
    hint: str = ""  # where to look, in place of the hints of the mistakes


@dataclass(frozen=True)
class _Known:
    """What is known of failures besides the answers: see `diagnose`."""

    stages: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    first: float | None = None
    messages: Mapping[str, str] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    earlier: list[Sequence[Deviation]] = field(default_factory=list)
    further: Callable[[tied_mistakes.Ties], list[Judged]] | None = None


def diagnose(
    op: str,
    answers: Sequence[Judged],
    claim: str,
    stage: str | None = None,
    *,
    known: Mapping[str, Sequence[Sequence[str]]] | None = None,
    first: float | None = None,
    messages: Mapping[str, str] | None = None,
    budget: Budget | None = None,
    earlier: list[Sequence[Deviation]] | None = None,
    further: Callable[[tied_mistakes.Ties], list[Judged]] | None = None,
) -> dict[str, Any]:
    """
    Return an explanation of the failures among `answers`: all answers in the order of the calls, each with whether it failed.

    A mistake explains them if it reproduces every failing case within what rounding may do, and gives the expected values
    wherever the implementation passed. Where none explains them all, two or three may, each some of the cases, if it leaves
    the cases of the others alone; or two at once in the same cases. `stage` is the first wrong stage, `known` the explanations
    of the stages that failed too, `first` the first failing position, `messages` what is said of failing cases, by id, and
    `budget` the work that it may do. `earlier` are the operation's explanations in other dtypes, which are tried first; those
    of all cases are added to them. `further` asks fresh calls on which ties differ; those that an answer refutes are left out.

    In the record, ``explanations`` are ties, each a list of mistakes that are there together, and ``names`` all their names.
    """
    with quiet():
        context = _Known(
            known or {}, first, messages or {}, budget or Budget(), earlier if earlier is not None else [], further
        )
        record = _diagnose(op, answers, claim, context)
    if stage:
        record["text"] = f"{_blame(stage, record, known or {})}. {record['text']}"
    return record


def untried(op: str, dtype: str = "") -> dict[str, Any]:
    """Return the text on an operation's failures once the time of the whole report is over; a dtype if it is all that fails."""
    others, choice = ("dtypes", f"--op {op} --dtype {dtype}") if dtype else ("operations", f"--op {op}")
    return _record(f"not tried, for want of time: other {others} fail too. Check this one alone: {choice}.", [])


def _blame(stage: str, found: Mapping[str, Any], known: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Return in words that a stage failed too: the first wrong one, unless what is composed of it has another name."""
    theirs = {name for names in known.get(stage, ()) for name in names}
    if theirs and found["names"] and theirs.isdisjoint(found["names"]):
        return f"{stage} fails too, for another reason"
    return f"The first wrong stage is {stage}"


def _diagnose(
    op: str,
    answers: Sequence[Judged],
    claim: str,
    known: _Known,
) -> dict[str, Any]:
    """Return an explanation of wrong values, or of wrong gradients where all values are right."""
    still = [a.case.comment for a, failed in answers if failed and a.case.state == "still"]
    if still:
        return _record(f"{still[0]}.", [])
    values = [(a, failed) for a, failed in answers if a.case.kind in ("value", "sequence")]
    if any(failed and a.case.kind == "value" for a, failed in values):  # sequences repeat what single calls show
        values = [(a, failed) for a, failed in values if not (failed and a.case.kind == "sequence")]
    gradients = [(a, failed) for a, failed in answers if a.case.kind == "vjp"]
    wrong = sum(failed for _, failed in gradients)
    if not wrong or any(failed for _, failed in values):
        return _explained(op, values, claim, known)
    if all(is_of_copy(answer) for answer, failed in gradients if failed):
        return _record(OF_COPY, []) | {"hint": WRAPPED}
    record = _explained(op, _rotations(gradients, claim), claim, _Known(budget=known.budget))
    if not record["names"]:
        return _record("unexplained: only gradients fail, and no known mistake gives these gradients.", [])
    lead = "Only gradients fail. The gradient of x rotates the cotangent back. Read as such a rotation: "
    return record | {"text": lead + record["text"]}


def _rotations(gradients: Sequence[Judged], claim: str) -> list[Judged]:
    """Return gradients of rotations as answers of the rotation itself, each with whether it fails."""
    rotations = []
    for answer, _ in gradients:
        case = as_rotation(answer.case)
        if case is not None and answer.outputs:
            turned = replace(answer, case=case, outputs=[{"out": answer.outputs[0]["x"]}])
            failed = judge.compare(case.op, case.calls[0], turned.outputs[0], claim, answer.dtype) is not None
            rotations.append((turned, failed))
    return rotations


def _explained(
    op: str,
    answers: Sequence[Judged],
    claim: str,
    known: _Known,
) -> dict[str, Any]:
    """Return an explanation of failures. Each kind of hypothesis is tried only where the simpler ones do not fit."""
    unsteady = [name for name, message in known.messages.items() if message.startswith(OTHER_BITS.format("")[:-1])]
    if unsteady:  # whatever else were told of them, chance or a state may have made
        many = f"{len(unsteady)} of {len(known.messages)} failing cases"
        return _record(f"{UNSTEADY} In {many} the second call gave other bits than the first ({unsteady[0]}).", []) | {
            "hint": SAME_BITS
        }
    complete = [(a, failed) for a, failed in answers if len(a.outputs) == len(a.case.calls)]
    empty = [a for a, _ in answers if len(a.outputs) != len(a.case.calls)]
    silent = _without_values(empty, known.messages, everything=not any(failed for _, failed in complete))
    meter = known.budget.meter
    questions = search.ordered([Question(op, a, meter, failed=f, claim=claim, turn=n) for n, (a, f) in enumerate(complete)])
    if not any(q.failed for q in questions):
        cases = ([a.case for a, f in answers if f == failed] for failed in (True, False))
        record = _record((silent or "unexplained: no failing case gave values to compare.") + features.shared(*cases), [])
        wrote = any(message.startswith(CHANGED.format("")) for message in known.messages.values())
        return record | {"hint": IN_PLACE} if wrote else record
    explanation = _unrefuted(_as_earlier(questions, known) or _single(questions, known), questions, known)
    if explanation is None:
        with features.remembered():
            explanation = _beyond_one(op, questions, known)
            explanation = _unrefuted(explanation, questions, known) or _without_name(op, questions, [], [], known.budget)
    if explanation.whole:
        known.earlier.extend(ties for ties in explanation.explanations if ties not in known.earlier)
    position = "" if explanation.explanations else _first_position(known.first, questions)
    text = f"{explanation.text}{position}{explanation.end}".strip()
    if known.budget.short and not explanation.explanations:
        text = text.replace(*OUT_OF_TIME)
    if silent and len(answers) - len(complete) > sum(failed for _, failed in complete):  # most failures have no values
        text = f"{silent} Of the others: {text}"
    elif silent:
        text += f" {silent}"
    record = _record(text, explanation.explanations)
    if explanation.next_best is not None:
        record["next_best"] = number(explanation.next_best)
    record |= {"whole": explanation.whole, "trait": explanation.trait, "hint": explanation.hint or record["hint"]}
    stored = {a.case.id for a, _ in answers}
    groups = [
        {"cases": [name for name in g.cases if name in stored], "names": sorted(g.names - {""}), "where": g.where}
        for g in explanation.groups
    ]
    left = [q.id for q in search.remaining(questions, explanation.groups) if q.failed and q.id in stored] if groups else []
    record["groups"] = groups + [{"cases": left, "names": [], "where": ""}] * bool(left)
    return record


def _further(ties: tied_mistakes.Ties, questions: Sequence[Question], known: _Known) -> list[Question]:
    """Return further calls on which mistakes differ, as questions; none where no call can be asked."""
    first = questions[0]
    asked = known.further(ties) if known.further else []
    return [
        Question(first.op, a, first.meter, failed=f, claim=first.claim, turn=len(questions) + n)
        for n, (a, f) in enumerate(asked)
    ]


def _surviving(
    ties: tied_mistakes.Ties, questions: Sequence[Question], known: _Known, *, wrong_alone: bool = False
) -> list[Sequence[Deviation]]:
    """Return the mistakes of some values or cases that give every further failing call, or only its wrong values."""
    more = [q for q in _further(ties, questions, known) if q.failed] if ties else []
    held = list(ties)
    for question in more:
        held = extent.of_wrong_values(held, [question]) if wrong_alone else tied_mistakes.fitting(held, question)
    return held


def _all_needed(ties: tied_mistakes.Ties, questions: Sequence[Question], known: _Known) -> list[Sequence[Deviation]]:
    """Return the explanations of which every mistake shows beside the others: in two cases, or in a further call."""

    def needed(one: Deviation, several: Sequence[Deviation]) -> bool:
        others = [d for d in several if d is not one]
        without = (q for q in questions if not tied_mistakes.fitting([others], q))
        if len([*islice(without, search.LEAST)]) == search.LEAST:
            return True
        more = _further([several, others], questions, known)
        return any(tied_mistakes.fitting([several], q) and not tied_mistakes.fitting([others], q) for q in more)

    return [several for several in ties if len(several) == 1 or all(needed(one, several) for one in several)]


def _unrefuted(found: Explanation | None, questions: list[Question], known: _Known) -> Explanation | None:
    """
    Return an explanation of all cases without the ties that a further call refutes; None if none is left.

    The calls are questions from then on.
    """
    ties = found.explanations if found and found.whole else ()
    if not ties or any(d.stateful for several in ties for d in several):
        return found
    more = _further(ties, questions, known)
    left = ties
    for question in more:
        left = tied_mistakes.fitting(left, question)
    questions[:] = search.ordered([*questions, *more])
    if not left or found is None or len(left) == len(ties):
        return found if left else None
    return replace(found, text=_matches(left, first=_first(known.first, questions)), explanations=left)


def _beyond_one(op: str, questions: list[Question], known: _Known) -> Explanation:
    """Return an explanation of failures that no mistake explains by itself."""
    explanation = _of_sides(op, questions) or _of_ignored_options(questions, known.budget)
    explanation = explanation or _by_reading(questions, [reader.candidates for reader in READERS]) or _of_stages(questions)
    if explanation:
        return explanation
    placed = _in_one_place(questions, deviations_touching(op), known)
    if placed and "position" not in placed.text.partition(" There ")[0]:  # in these a number may explain all of it
        return placed
    with_trait = _with_trait(questions, deviations_touching(op), known)
    with_trait = placed or with_trait or _by_word(questions, known, pairs=False)
    tried = numbers.tried(questions, known.budget)
    explanation = _by_number(questions, tried)  # of all cases, it says more than a mistake in the cases with a trait
    explanation = explanation if explanation and explanation.whole else with_trait or explanation
    solved = [] if explanation else numbers.solved(questions, known.budget)
    edits = partial(formula_edits.candidates, budget=known.budget)
    explanation = explanation or _by_number(questions, solved) or _by_reading(questions, [combinations.candidates])
    explanation = explanation or _with_trait(questions, solved, known, anything=True) or _by_reading(questions, [edits])
    explanation = explanation or (_in_one_place(questions, tried, known) if _are_many_reals(questions) else None)
    if explanation:
        return explanation
    parts = search.consistent(questions, deviations_touching(op), known.budget)
    return (
        _partition(questions, parts)
        or _by_reading(questions, [extensions.of_several])
        or _with_trait(questions, tried, known, anything=_are_many_reals(questions))
        or _several(questions, known)
        or _by_word(questions, known)
        or _without_name(op, questions, parts, tried, known.budget)
    )


def _as_earlier(questions: Sequence[Question], known: _Known) -> Explanation | None:
    """Return what explains all cases in another dtype, if it explains all in this one: it is no other mistake."""
    plain = [(several, search.orders(several)[0]) for several in known.earlier if not any(d.stateful for d in several)]
    fitting = [several for several, one in plain if Hypothesis(one, questions).fits()]
    ties = extent.holding(fitting, questions)
    return Explanation(_matches(ties, first=_first(known.first, questions)), ties, whole=True) if ties else None


def _single(questions: Sequence[Question], known: _Known) -> Explanation | None:
    """Return the mistakes that explain all cases by themselves."""
    fitting, next_best = search.single(questions, known.budget)
    ties = list({d.name: (d,) for _, d in fitting}.values())
    single = extent.holding(ties, questions)
    if not single:
        return _of_a_part(questions, ties)
    ahead = float(next_best / max(*(score for score, _ in fitting), 1e-3))
    return Explanation(_matches(single, first=_first(known.first, questions)), single, next_best=ahead, whole=True)


def _are_many_reals(questions: Sequence[Question]) -> bool:
    """Return whether so many reals are wrong that no number without a name gives them by chance."""
    return REGISTRY[questions[0].op].returns == "real" and extent.counts_of_wrong(questions)[0] >= MANY_WRONG


def _partition(questions: Sequence[Question], parts: Sequence[Group]) -> Explanation | None:
    """Return mistakes that explain all cases, each some of them."""
    groups = _holding(search.partition(questions, parts), questions)
    if not groups or any(q.failed for q in search.remaining(questions, groups)):
        return None
    text = _in_groups([(group.ties, group.cases, "") for group in groups])
    return Explanation(text, list(product(*(group.ties for group in groups))), groups)


def _of_sides(op: str, questions: Sequence[Question]) -> Explanation | None:
    """Return a mistake between the queries and keys of an adapter, or between two options, that explains all cases."""
    fitting: list[list[Deviation]] = [[d for d in sides.mistakes(op) if Hypothesis(d, questions).fits()]]
    fitting += [[d] for d in islice((d for d in siblings.exchanged_options(op) if Hypothesis(d, questions).fits()), 1)]
    ties = next((held for deviations in fitting if (held := extent.holding([(d,) for d in deviations], questions))), [])
    return Explanation(_matches(ties), ties, whole=True) if ties else None


def _several(questions: Sequence[Question], known: _Known) -> Explanation | None:
    """
    Return several mistakes at once that explain all cases.

    Cases of positions that float32 does not hold may have a mistake of their own besides.
    """
    budget = known.budget.limited(known.budget.left - AFTER_PAIRS)
    far = [q for q in questions if q.failed and q.dtype != "float64" and numbers.farthest(q) > EXACT]
    near_ones = [q for q in questions if q not in far]
    far, near_ones = (far, near_ones) if any(q.failed for q in near_ones) else ([], [*questions])
    numbered = _with_number(near_ones, known.budget)
    near = {mistake.name for mistake, _ in numbered}  # a registered mistake says more than a number in its place
    pairs = extent.holding(search.combined(near_ones, known.stages, budget, near=near) or numbered, near_ones)
    pairs = _all_needed(pairs, near_ones, known)
    if all(any(numbers.FACTOR in d.text for d in pair) for pair in pairs):  # a formula says more than a bare factor
        pairs = extent.holding(edit_pairs.candidates(near_ones, budget), near_ones) or pairs
    whole = [pair for pair in pairs if any(Hypothesis(one, far).fits() for one in search.orders(pair))]
    if whole or not pairs:
        return Explanation(_matches(whole, first=_first(known.first, questions)), whole, whole=True) if whole else None
    lead = f"In {sum(q.failed for q in near_ones)} of {sum(q.failed for q in questions)} failing cases your output matches"
    others = f"Besides, positions beyond 2^24, which float32 does not hold, are wrong in {_ids([q.id for q in far])}."
    return Explanation(f"{_matches(pairs, lead)} {others}", pairs)


def _by_word(questions: list[Question], known: _Known, *, pairs: bool = True) -> Explanation | None:
    """Return a mistake for each word of an option, or two, or an edit; each explains all cases with its word."""
    op, budget = questions[0].op, known.budget
    for option in (name for name, domain in REGISTRY[op].domains.items() if isinstance(domain, OneOf | Flag | Integer)):
        parts: dict[Any, list[Question]] = {}
        for question in questions:
            for word in {call.params.get(option, defaults(op).get(option)) for call in question.calls}:
                parts.setdefault(word, []).append(question)
        failing = {word: having for word, having in parts.items() if any(q.failed for q in having)}
        if isinstance(REGISTRY[op].domains[option], Integer) and len(failing) > 1:
            continue  # of a number only one value may have a formula of its own
        if not 2 <= len(parts) <= WORDS or any(sum(q.failed for q in having) < search.ENOUGH for having in failing.values()):
            continue
        by_word: dict[Any, list[Sequence[Deviation]]] = {}
        for word, having in failing.items():
            left = budget.limited(budget.left - AFTER_PAIRS)
            ties: Sequence[Sequence[Deviation]] = [(d,) for _, d in search.single(having, left)[0]]
            ties = ties or (search.combined(having, {}, left) if pairs else [])
            ties = ties or ([(d,) for d in formula_edits.candidates(having, left)] if pairs else [])
            if not (held := _all_needed(extent.holding(ties, having), having, known)):
                break
            by_word[word] = held
        if len(by_word) == len(failing):
            by_word = {word: _unrefuted_with(option, word, held, questions, known) for word, held in by_word.items()}
            if not all(by_word.values()):
                continue
            words: dict[str, list[str]] = {}
            for word, held in by_word.items():
                words.setdefault(_words(held), []).append(f"{option}={word}")
            said = "; ".join(f"with {' or '.join(several)} if {text}" for text, several in words.items())
            every = [tuple(chain(*one)) for one in islice(product(*by_word.values()), WAYS)]
            return Explanation(f"Matches the reference {said}.", every)
    return None


def _unrefuted_with(
    option: str, word: Any, ties: tied_mistakes.Ties, questions: list[Question], known: _Known
) -> list[Sequence[Deviation]]:
    """Return the mistakes with one word of an option that no further call with it refutes; the calls are questions then."""
    op = questions[0].op
    default = defaults(op).get(option)

    def holds(options: Mapping[str, Any]) -> bool:
        return bool(options.get(option, default) == word)

    ways = [[only_where(one, op, holds) for one in search.orders(several)] for several in ties]
    more = _further([(ones[0],) for ones in ways], questions, known)
    questions[:] = search.ordered([*questions, *more])
    return [several for several, ones in zip(ties, ways, strict=True) if any(Hypothesis(one, more).fits() for one in ones)]


def _by_number(questions: Sequence[Question], deviations: Sequence[Deviation]) -> Explanation | None:
    """Return an explanation of all failures by one number, if there is one."""
    fitting = [(d,) for d in numbers.whole(questions, deviations)]
    ties = extent.holding(fitting, questions)
    return Explanation(_matches(ties), ties, whole=True) if ties else _of_a_part(questions, fitting)


def _by_reading(
    questions: Sequence[Question], readers: Sequence[Callable[[Sequence[Question]], list[Deviation]]]
) -> Explanation | None:
    """Return an explanation of all failures by a formula that is read from the outputs, if there is one."""
    if extent.counts_of_wrong(questions)[0] < LEAST_READ:
        return None
    for reader in readers:
        fitting = [(d,) for d in reader(questions) if Hypothesis(d, questions).fits()]
        ties = extent.holding(fitting, questions)
        if ties:
            return Explanation(_matches(ties), ties, whole=True)
    return None


def _of_stages(questions: Sequence[Question]) -> Explanation | None:
    """Return frequencies that are wrong beside a known mistake of positions or the rotation, if the two explain all cases."""
    pairs = [(a, b) for a, b in stages.candidates(questions) if Hypothesis(together(a, b), questions).fits()]
    ties = extent.holding(pairs, questions)
    return Explanation(_matches(ties), ties, whole=True) if ties else None


def _of_ignored_options(questions: Sequence[Question], budget: Budget) -> Explanation | None:
    """Return the options that code swallows, if that explains all cases, with another mistake where there is one."""
    ties = extent.holding(ignored_options.candidates(questions, budget), questions)
    return Explanation(_matches(ties), ties, whole=True) if ties else None


def _with_number(questions: Sequence[Question], budget: Budget) -> list[tuple[Deviation, Deviation]]:
    """Return known mistakes that explain all failures, each with a number beside it, if they are near by themselves."""
    mistakes = [d for d in deviations_touching(questions[0].op) if not d.stateful]
    nearest = search.nearest_first(mistakes, questions)[:NEAREST]
    ways = (numbers.solved, numbers.constants)
    pairs = [(mistake, number) for mistake in nearest for way in ways for number in way(questions, budget, beside=mistake)]
    return [pair for pair in pairs if numbers.whole(questions, [together(*pair)])]


def _of_a_part(questions: Sequence[Question], found: Sequence[Sequence[Deviation]]) -> Explanation | None:
    """Return explanations of every wrong value, with the place of the wrong values, where the others are right."""
    ties = extent.of_wrong_values(found, questions)
    if not ties or _are_one_number(questions):
        return None
    wrong, judged = extent.counts_of_wrong(questions)
    where = (places.place(questions) + places.common(questions)).strip() or f"{wrong} of {judged} values are wrong."
    return _placed(where, ties)


def _are_one_number(questions: Sequence[Question]) -> bool:
    """Return whether all wrong values of a few cases are one number, such as 0 or False: many mistakes give it in a place."""
    failing = [q for q in questions if q.failed]
    values = [o.observed[o.wrong].reshape(-1) for q in failing for o in q.whole.observations]
    return len(failing) < MANY_FAIL and len(np.unique(np.concatenate(values))) == 1


def _in_one_place(questions: Sequence[Question], deviations: Sequence[Deviation], known: _Known) -> Explanation | None:
    """Return mistakes that explain all cases where they act in one place alone, such as the last query."""
    if _are_one_number(questions):
        return None
    where, ties = placed_mistakes.in_one_place(questions, deviations, known.budget)
    several = _surviving([(d,) for d in ties], questions, known, wrong_alone=True)
    return _placed(where.strip(), several) if several else None


def _placed(where: str, ties: Sequence[Sequence[Deviation]]) -> Explanation:
    """Return mistakes that act in one place; where that is an end or a block, their hints say nothing."""
    hint = OF_A_PLACE if places.IS_PART.search(where) else ""
    return Explanation(_matches(ties, f"{where} There your output matches"), ties, hint=hint)


def _without_name(
    op: str,
    questions: Sequence[Question],
    parts: Sequence[Group],
    tried: Sequence[Deviation],
    budget: Budget,
) -> Explanation:
    """
    Return what to say where neither a mistake, nor a number, nor several mistakes explain all failures.

    A mistake that explains a minority of the failing cases, and only where they have some feature, fits them by chance.
    """
    parts_held = _holding(search.grouped(questions, parts, tried, budget), questions)
    if any(q.failed for q in search.remaining(questions, parts_held)):
        known = search.with_exceptions(questions, deviations_touching(op), budget)
        exception = _with_exception(questions, known)
        if exception is not None:
            return exception
        option = search.with_option(questions, tried, budget)
        if option is not None and (held := _holding([option], questions)):
            return _of_groups(questions, held)
        several = sum(q.failed for q in questions) >= MANY_FAIL
        exception = _with_exception(questions, search.with_exceptions(questions, tried, budget) if several else None)
        exception = exception or _at_times(questions, known)
        if exception is not None:
            return exception
        most = search.majority(questions, deviations_touching(op), budget)
        larger = most is not None and len(most.cases) > max((len(group.cases) for group in parts_held), default=0)
        parts_held = _holding([most], questions) or parts_held if most and larger else parts_held
    left = sum(q.failed for q in search.remaining(questions, parts_held))
    half = sum(q.failed for q in questions) / 2
    if parts_held and (not left or max(len(group.cases) for group in parts_held) >= half):  # else they may fit by chance
        return _of_groups(questions, parts_held)
    kept = list[Group]()
    common = places.common(questions)
    place = "" if places.NARROW_VALUES in common else places.place(questions)
    if not (place or common):
        kept = [group for group in parts_held if not group.where and len(group.cases) * MINORITY >= 2 * half]
    trait = features.shared(*_cases(questions), sure=bool(place))
    facts = trait + place + common + (coordinates.remark(questions) or partners.remark(questions))
    if kept:
        left = sum(q.failed for q in search.remaining(questions, kept))
        lead = f"unexplained ({left} of {sum(q.failed for q in questions)} failing cases): no known mistake gives these values."
        said = [f"in {_count(len(g.cases))} ({_ids(g.cases)}) {_words([(d,) for d in g.ties])}" for g in kept]
        return Explanation(f"{lead}{facts} A few cases alone may be explained: {'; '.join(said)}.", groups=kept, trait=trait)
    return Explanation(facts, trait=trait, end=f" {NOT_KNOWN}") if facts else Explanation(UNEXPLAINED)


def _holding(groups: Iterable[Group], questions: Sequence[Question]) -> list[Group]:
    """Return groups with the mistakes that hold for all that was judged of their cases."""
    holding = []
    for group in groups:
        members = [q for q in questions if q.id in group.cases]
        ties = tuple(d for (d,) in extent.holding([(d,) for d in group.ties], members))
        holding += [replace(group, ties=ties)] if ties else []
    return holding


def _with_trait(
    questions: Sequence[Question], deviations: Sequence[Deviation], known: _Known, *, anything: bool = False
) -> Explanation | None:
    """
    Return mistakes that explain every failing case, where just these have a trait.

    Of numbers without a name, unless `anything` will do, only those of the option that the trait is about: others fit by
    chance.
    """
    failing = [q for q in questions if q.failed]
    trait = features.exactly(*_cases(questions)) if len(failing) >= search.LEAST else ""
    likely = [d for d in deviations if anything or d.name or d.text.split()[0] in trait.split()] if trait else []
    ties = extent.holding([(d,) for d in search.fitting_all(failing, likely, known.budget)], failing)
    trait, ties = trait.strip(), _surviving(ties, questions, known)
    large = all(q.case.tier == features.MADE_FOR_SIZE for q in failing)
    if large and len(failing) < search.ENOUGH and len(ties) > 1 and (place := places.place(questions)):
        return Explanation(f"{UNDECIDED} {trait}{place} The mistakes: {_words(ties)}.", trait=trait)
    return Explanation(_matches(ties, f"{trait} In these your output matches"), ties, trait=trait) if ties else None


def _with_exception(questions: Sequence[Question], found: search.Exceptions | None) -> Explanation | None:
    """Return known mistakes that explain every failing case, and the few passing cases in which they would show."""
    failing = [q for q in questions if q.failed]
    ties = extent.holding([(d,) for d in found.ties], failing) if found else []
    if not found or not ties or 2 * len(found.passing) > len(failing):
        return None
    count = len(found.passing)
    exception = (
        f"{count} other cases, in which that would show, pass"
        if count > 1
        else "one other case, in which it would show, passes"
    )
    text = _matches(ties, f"In all {len(failing)} failing cases that were compared your output matches")
    return Explanation(f"{text} But {exception} ({_ids(found.passing)})." if count else text, ties)


def _at_times(questions: Sequence[Question], found: search.Exceptions | None) -> Explanation | None:
    """Return known mistakes that give all of many wrong values, although most cases that would show them pass."""
    failing = [q for q in questions if q.failed]
    enough = extent.counts_of_wrong(questions)[0] >= MANY_WRONG
    ties = extent.holding([(d,) for d in found.ties], failing) if found and enough else []
    if not found or not ties:
        return None
    against = [q.case for q in questions if q.id in found.passing]
    text = _matches(ties, f"In all {len(failing)} failing cases that were compared your output matches")
    feature = features.shared([q.case for q in failing if q.size], against)
    return Explanation(f"{text} But not always: {len(against)} cases, in which that would show too, pass.{feature}", ties)


def _of_groups(questions: Sequence[Question], found: Sequence[Group]) -> Explanation:
    """Return groups in words, with a sentence on the cases outside all groups."""
    left = search.remaining(questions, found)
    failing = [q for q in left if q.failed]
    text = _in_groups([(group.ties, group.cases, group.where) for group in found])
    if failing:
        where = _where(left, questions)
        for start, instead in OF_THE_REST.items():
            where = where.replace(start, instead, 1)
        text += f" No known mistake gives the other {len(failing)} ({_ids([q.id for q in failing])}).{where}"
    return Explanation(text, list(islice(product(*(group.ties for group in found)), WAYS)), found)


def _where(left: Sequence[Question], questions: Sequence[Question]) -> str:
    """Return how the remaining failing cases differ from all others, explained or not, and where they are wrong."""
    place = places.place(left)
    failing, passing = _cases(left)
    others = [q.case for q in questions if q.size and q.case not in failing]
    feature = features.shared(failing, passing, sure=bool(place))
    common = places.common(left)
    if places.NARROW_VALUES in common:
        return common  # what a dtype holds is right in some places and not in others
    return (feature if feature == features.shared(failing, others, sure=bool(place)) else "") + place + common


def _cases(questions: Sequence[Question]) -> tuple[list[LoadedCase], list[LoadedCase]]:
    """Return the stored cases with values that fail, and those that pass: words count these, not further calls."""
    cases = [(q.failed, q.case) for q in questions if q.size and not q.id.startswith(ASKED.format(q.op))]
    return [case for failed, case in cases if failed], [case for failed, case in cases if not failed]


# ---- sentences ---------------------------------------------------------------------------------------------------------------


def _words(explanations: Sequence[Sequence[Deviation]]) -> str:
    """Return ties in words, each of one mistake or of several at once."""
    said = [", and ".join(f"{d.text} ({d.name})" if d.name else d.text for d in together) for together in explanations]
    said = [*{_in_few_digits(text): text for text in reversed(said)}.values()][::-1]
    more = len(said) - SHOWN
    return " or: ".join(said[:SHOWN]) + (f" (or {more} more)" if more > 0 else "")


def _in_few_digits(text: str) -> str:
    """Return a text with its fractions in so few digits that two fits of one number are the same."""
    return re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.{DIGITS}g}", text)


def _matches(explanations: Sequence[Sequence[Deviation]], lead: str = "Matches", *, first: str = "") -> str:
    """Return with which mistakes the reference gives the same values; `lead` says where it does, `first` where they show."""
    words = _words(explanations)
    tie = " These give the same values in every answered case." if " or: " in words else ""
    return f"{lead} the reference if {words}{first}.{tie}"


def _in_groups(parts: Iterable[tuple[Sequence[Deviation], Sequence[str], str]]) -> str:
    """Return mistakes in words, each with the cases that it explains, and the feature of these cases if they have one."""
    said = []
    for ties, cases, where in parts:
        feature = f" with {where}" if where else ""
        said.append(f"in {len(cases)} cases{feature} ({_ids(cases)}) if {_words([(d,) for d in ties])}")
    many = f"{len(said)} mistakes. " if len(said) > 1 else ""
    return f"{many}Matches the reference {'; '.join(said)}."


def _ids(cases: Sequence[str]) -> str:
    """Return the first ids of cases."""
    return f"{', '.join(cases[:2])}{', ...' * (len(cases) > 2)}"


def _count(cases: int) -> str:
    """Return a number of cases in words."""
    return f"{cases} case{'s' * (cases > 1)}"


# ---- the record --------------------------------------------------------------------------------------------------------------


def _record(text: str, explanations: Sequence[Sequence[Deviation]]) -> dict[str, Any]:
    """Return a diagnosis with names, hints and sightings."""
    deviations = list({d.name: d for together in explanations for d in together if d.name}.values())
    return {
        "text": text,
        "names": [d.name for d in deviations],
        "explanations": [names for together in explanations if (names := [d.name for d in together if d.name])],
        "hint": " ".join(dict.fromkeys(d.hint for together in explanations for d in together if d.hint)),
        "seen_in": "; ".join(dict.fromkeys(d.seen_in for d in deviations if d.seen_in)),
    }


def _without_values(answers: Sequence[Answer], messages: Mapping[str, str], *, everything: bool) -> str:
    """Return in words how many failing cases, or `everything`, gave nothing to compare, with the reason of the smallest one."""
    if not answers:
        return ""

    def size(answer: Answer) -> tuple[bool, int]:
        values = sum(x.size for call in answer.case.calls for x in call.expected.values())
        return not values, values  # an empty call shows least

    smallest = min(answers, key=size).case.id
    reason = f": {messages[smallest]} ({smallest})" if messages.get(smallest) else ""
    return f"{'No failing case gave' if everything else f'{_count(len(answers))} gave no'} values to compare{reason}."


def _first(first: float | None, questions: Sequence[Question]) -> str:
    """Return where failures begin, if values at nearer positions of the same cases are right: else it says nothing."""
    if not first or first < 2 or first % 1:
        return ""
    lines = places.by_kind([q for q in questions if q.failed]).get("position", [])
    begins = any(np.any(line.wrong) and np.any((line.values != 0) & (np.abs(line.values) < first)) for line in lines)
    return f"; first failure at position {first:.0f}" if begins else ""


def _first_position(first: float | None, questions: Sequence[Question]) -> str:
    """Return that a dtype does not hold the first failing position, where it holds all right ones."""
    missed = FIRST_MISSED.get(first or 0.0, "")
    if missed and places.held_are_right(questions, missed, first or 0.0):
        return f" First failure at position {first:.0f}, the first integer that {missed} does not hold."
    return ""
