"""
Gives every operation its scope after its cases ran: stated by the target or learned by experiment, then tested.

What it passed must fail zeros, what it was given, and known mistakes: else too little was answered to speak of it. Calls that
experiments made inside of the scope must be right, at its limits too.

Which cases catch which mistake is recorded (`caught.json`, made with the docs). A mistake that no answered case catches
does not act in the scope where one choice alone excludes every case that does: a mistake of YaRN, without scalings. Otherwise
a case that catches it is moved into the scope; if the mistake still shows there, the moved case is asked too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import judge
from ..experiments.asker import ENDED, NO_VALUES, REFUSED, RIGHT, WRONG, key_of
from ..experiments.cause_search import FEWEST, Experiment, call_key
from ..experiments.cause_wording import sentence
from ..experiments.inside_scope import brought_inside
from ..experiments.records import Features, is_number, read
from ..model import Answer, Call, Limit, LoadedCase, Operation, Scope
from ..summary.call_words import call_in_words
from ..targets.base import Target
from ..vocabulary.traits import Traits, are_lengths, in_dtype, main_array, option_traits, traits_of
from . import scope_statement
from .learned_scope import INSIDE, LAST, Trials
from .scope import BOUNDS, ENOUGH, Asked, Bound, Restriction, apply, infer, is_inside
from .scope_statement import Stated

LIMITED = {"position": "start", "tokens": "size T", "queries": "size Q", "keys": "size K", "head_size": "size D"}
SIZES = frozenset({"tokens", "queries", "keys", "head_size"})
UNJUDGED = (NO_VALUES, "not judged", "not asked")
JUDGED = 12  # calls that experiments asked, which must be right
MORE = 200  # calls, to find the cause of what is wrong inside of a scope
MOVED = 16  # cases that catch a mistake and are moved into the scope
PLAIN = 0.01  # of the largest value: what a mistake must change in a case that has no stored tolerances
RECORD = Path(__file__).parents[1] / "evidence" / "caught.json"
Pairs = Sequence[tuple[Operation, list[Answer]]]


class Objection(NamedTuple):
    """What is wrong with a scope in which no stored case failed: the verdict on it, and why. Nothing is, if it is empty."""

    verdict: str
    text: str

    def __bool__(self) -> bool:
        """Return whether anything is wrong."""
        return bool(self.text)


LEAST_JUDGED = 8  # cases and fresh calls that a narrow implementation must answer rightly
LOOKED_AT = 100  # of the refused calls, whether what may be stated takes them in
NONE, NARROW = Objection("", ""), "too narrow"


# ---- the scope of every operation ------------------------------------------------------------------------------------------
def stated_scope(target: Target) -> Stated:
    """
    Return what an implementation states of its scope, with what it says elsewhere; `TargetError` for what does not exist.

    Where it states nothing but that it has no gradients, the rest is learned.
    """
    document = target.supports or {}
    stated = scope_statement.read(target.name, document)
    stated = {op: axes for op, axes in stated.items() if axes != {"gradient": frozenset()} and (axes or op in document)}
    return {op: scope_statement.implied(op, axes, target.scalings, target.has_gradients(op)) for op, axes in stated.items()}


def add_scopes(operations: Pairs, target: Target, stated: Stated, trials: Trials, *, whole: bool) -> None:
    """
    Give every operation its scope, and make selective what lies inside it and was refused.

    Unless the `whole` suite was asked nothing is learned.
    """
    for op in dict.fromkeys(operation.op for operation, _ in operations):
        of_operation = [(operation, answers) for operation, answers in operations if operation.op == op]
        if not whole and op not in stated:
            continue
        scope = _scope(op, of_operation, target, stated, trials, whole=whole)
        for operation, _ in of_operation:
            operation.scope = scope
            for case in operation.cases:
                if case.kind != "reject" and case.verdict == "unsupported" and (case.id, case.dtype) in scope.refused:
                    inside = "refused inside the scope that it states" if scope.stated else "refused, and nothing explains it"
                    case.verdict, case.message = "selective", f"{inside}: {case.message}"


def report_scope(operations: Pairs, stated: Stated) -> None:
    """Add to the diagnosis of an operation the failing cases outside its stated scope: it must refuse them."""
    for operation, answers in operations:
        if operation.diagnosis is None or operation.op not in stated:
            continue
        failing = {c.id for c in operation.cases if c.kind != "reject" and c.verdict == "fail"}
        traits = {one.id: one.traits for one in asked_cases([(operation, answers)]) if one.id in failing}
        outside = [name for name, of_call in traits.items() if not is_inside(stated[operation.op], of_call)]
        if not outside:
            continue
        where = "outside the scope that `supports` states, and must be refused (raise NotImplementedError)"
        if len(outside) == len(failing):
            text = f"all failing cases lie {where}: {operation.diagnosis['text']}"
        else:
            few = f"{len(outside)} of {len(failing)} failing cases lie"
            text = f"{operation.diagnosis['text']} {few} {where}: {outside[0]}{', ...' * (len(outside) > 1)}."
        operation.diagnosis = {**operation.diagnosis, "text": text}


def _scope(op: str, own: Pairs, target: Target, stated: Stated, trials: Trials, *, whole: bool) -> Scope:
    """Return the scope of one operation; where too few of the `whole` suite lie in it, fresh calls are asked inside of it."""
    asked = [case for operation, _ in own for case in operation.cases if case.kind != "reject"]
    answered = sum(case.verdict != "unsupported" for case in asked)
    passing = _passing(own)
    may_draw = whole and trials.can_ask() and not any(operation.failing for operation, _ in own)
    few = may_draw and len(passing) < (1 if op in stated else ENOUGH)
    least = LEAST_JUDGED * trials.inside_calls // INSIDE  # more at the sizes of kernels, whose cases are many
    is_narrow = may_draw and op not in stated and len(passing) < least and answered < len(asked)
    only_gradients = all((case.kind == "vjp") is (case.verdict == "unsupported") for case in asked)  # are refused, all of them
    is_plain = only_gradients and op not in stated and not (few or is_narrow)
    every = asked_cases(own, option_traits if is_plain else traits_of) if few or 0 < answered < len(asked) else []
    drawn = _drawn(op, every, trials, stated.get(op)) if few or is_narrow else []
    drawn = drawn if few else [one for one in drawn if one.answered]  # else the cases say what is refused
    fresh = [one for one in drawn if one.verdict == "pass"]
    passed = bool(passing) or any(one.answered for one in drawn)
    scope = Scope(op, len(asked), answered, passed=passed, stated=op in stated, fresh=len(fresh), tried=trials.can_ask())
    if answered and op in stated and not _is_answered_in(stated[op], every or asked_cases(own)):
        scope.decided, scope.narrow = NARROW, "no case that it answers lies in the scope that it states"
        return scope
    if answered in (0, len(asked)) and not drawn:
        return scope  # of what answers nothing, nothing can be said
    every += [one for one in drawn if one.answered]
    wrong = _of_drawn(drawn, scope, trials)
    if op not in stated and not wrong and not any(one.answered and _has_values(one.case) for one in every):
        return scope  # nor of what answers empty arrays alone
    restrictions, left = apply(op, stated[op], every) if op in stated else trials.refusals(op, every, ENOUGH)
    degenerate = [one for one in left if any(call.is_degenerate for call in one.case.calls)]
    left = [one for one in left if one not in degenerate]
    if degenerate:  # such calls never decide
        text = "only arrays with elements"
        restrictions.append(Restriction(("empty",), None, lambda _: False, outside=tuple(degenerate), text=text))
    restrictions.sort(key=lambda one: (not scope_statement.is_limit(one), -len(one.outside)))
    scope.limits = _limits(op, restrictions, every)
    trials.learned[op] = scope_statement.as_supports(op, restrictions, every)
    scope.supports = scope_statement.as_supports(op, [*restrictions, *_sayable(op, restrictions, every)], every)
    scope.unsaid = op not in stated and op in trials.of and not _is_said(trials.of[op], scope.supports, every)
    scope.refused = [(one.id, one.dtype) for one in left] if scope.passed or scope.stated else []  # else it answers nothing yet
    keys, others = infer(op, every, 1, refused=left)  # a single case is enough to state what it asks
    if op not in stated and not others and not any(one.axis[0] in BOUNDS or one.text for one in keys):
        scope.keys = " and ".join(sorted({f"`{'not' if len(one.axis) > 1 else one.axis[0]}`" for one in keys}))
    scope.refused = [] if wrong else scope.refused
    if wrong or (scope.passed and not left and not any(operation.failing for operation, _ in own)):
        objection = wrong or _reason(op, every, restrictions, trials, stated.get(op))
        calls = len(trials.right.get(op, ())) + scope.fresh
        if not objection and op not in stated and len(passing) < ENOUGH and len(passing) + calls < LEAST_JUDGED:
            besides = f" and {calls} fresh call{'s' * (calls > 1)}" if calls else ""
            needed = f"{ENOUGH} cases must, or {LEAST_JUDGED} with fresh calls, unless it is stated in `supports`"
            count = "one case" if passing else "no case"
            objection = Objection(NARROW, f"its scope is too narrow: {count} with values{besides} passed, and {needed}")
        scope.decided, scope.narrow = objection
        scope.drawn = trials.of[op].asker.calls if op in trials.of else 0
    if not target.has_gradients(op):
        scope.library = next((one.cases for one in scope.limits if one.axis == "gradient"), 0)
    return scope


def _is_answered_in(scope: Mapping[str, Any], every: Sequence[Asked]) -> bool:
    """Return whether a case that is answered lies in a scope."""
    return any(one.answered and is_inside(scope, one.traits) for one in every)


def _is_said(trial: Experiment, supports: Mapping[str, Any], every: Sequence[Asked]) -> bool:
    """Return whether a scope that may be stated takes in none of the cases and calls that were refused."""
    stated = scope_statement.read(trial.op, {trial.op: supports})[trial.op]
    if any(not one.answered and is_inside(stated, one.traits) for one in every if one.case.kind == "value"):
        return False
    refused = [record for record, outcome in trial.asker.known.values() if outcome == REFUSED]
    calls = [(record, trial.asker.call(record)) for record in refused[:: len(refused) // LOOKED_AT + 1]]
    return not any(c is not None and not c.is_degenerate and _lies_in(stated, trial, record, c) for record, c in calls)


def _limits(op: str, restrictions: Sequence[Restriction], every: Sequence[Asked]) -> list[Limit]:
    """Return restrictions in words; two causes may leave the same."""
    limits: dict[str, Limit] = {}
    for one in restrictions:
        text = scope_statement.in_words(op, one, every)
        before = limits.get(text, Limit(" with ".join(one.axis), text, 0))
        stands = before.fresh[0] + one.fresh[0], before.fresh[1] + one.fresh[1]
        limits[text] = replace(before, cases=before.cases + len(one.outside), fresh=stands)
    return list(limits.values())


def _sayable(op: str, restrictions: Sequence[Restriction], every: Sequence[Asked]) -> list[Restriction]:
    """Return restrictions on axes of `supports` that leave out what so far only sentences do; they may leave out more."""
    said = [one for one in restrictions if one.allowed is not None]
    unsaid = [one for one in every if not one.answered and not any(r.excludes(one.traits) for r in said)]
    return infer(op, every, 1, besides={axis for one in said for axis in one.axis}, refused=unsaid)[0] if unsaid else []


def _drawn(op: str, every: Sequence[Asked], trials: Trials, stated: Mapping[str, Any] | None) -> list[Asked]:
    """Return fresh calls inside the stated or learned scope, for an operation with too few answered cases."""
    numbers = [n for one in (stated or {}).values() for n in (vars(one).values() if isinstance(one, Bound) else one)]

    def may(trial: Experiment, record: Features) -> bool:
        call = trial.asker.call(record)
        return call is not None and (stated is None or _lies_in(stated, trial, record, call))

    lacking = [axis for axis, allowed in (stated or {}).items() if allowed == frozenset()]
    whole = [n for n in numbers if is_number(n)]
    return trials.inside(op, every, may, stated=stated is not None, numbers=whole, lacking=lacking)


def _lies_in(stated: Mapping[str, Any], trial: Experiment, record: Features, call: Call) -> bool:
    """Return whether the call of a record lies in a stated scope."""
    return is_inside(stated, traits_of(trial.asker.case(call, record.get("memory", "")), trial.asker.dtype))


def _of_drawn(drawn: Sequence[Asked], scope: Scope, trials: Trials) -> Objection:
    """
    Return what is wrong in fresh calls inside of a scope: one has wrong values or raises, or some are refused without a cause.

    A cause takes at least `FEWEST` calls to be told, so a single refused call may have one. More of them have none.
    """
    for one in drawn:
        if one.verdict not in ("pass", "unsupported", *UNJUDGED):
            trial = trials.begin(scope.op, one.dtype, drawn)
            cause = _cause(trial, trial.drawn[one.id], one.case.comment)
            return Objection(one.verdict, f"it is wrong inside its scope, at {call_in_words(one.case)}: {cause}")
    refused = [one for one in drawn if not one.answered]
    if refused and scope.stated:
        return Objection(
            "selective", f"it refuses a fresh call inside the scope that it states, {call_in_words(refused[0].case)}"
        )
    if len(refused) >= FEWEST:
        text = f"it refuses {len(refused)} of {len(drawn)} fresh calls inside it, which nothing explains"
        return Objection(NARROW, f"its scope is too narrow: {text}")
    return NONE


def _has_values(case: LoadedCase) -> bool:
    """Return whether results of a case have elements."""
    return any(value.size for call in case.calls for value in call.expected.values())


def asked_cases(own: Pairs, traits_in: Callable[[LoadedCase, str], Traits] = traits_of) -> list[Asked]:
    """Return the cases of an operation that are no invalid calls, with their traits in the dtypes in which they were asked."""
    asked: list[Asked] = []
    known: dict[int, Traits] = {}  # by the identity of the case: most are asked in several dtypes
    for operation, answers in own:
        cases = {answer.case.id: answer.case for answer in answers}
        for one in operation.cases:
            if one.kind == "reject":
                continue
            case = cases[one.id]
            traits = in_dtype(known[id(case)], one.dtype) if id(case) in known else traits_in(case, one.dtype)
            known[id(case)] = traits
            asked.append(Asked(case, one.dtype, traits, one.verdict, operation.claim))
    return asked


def _passing(own: Pairs) -> frozenset[str]:
    """Return the cases that passed of those that ask for values, and have some."""
    passing: set[str] = set()
    for operation, answers in own:
        sized = {answer.case.id for answer in answers if _has_values(answer.case)}
        passing |= {c.id for c in operation.cases if c.verdict == "pass" and c.kind not in ("reject", "vjp") and c.id in sized}
    return frozenset(passing)


# ---- is enough inside it? --------------------------------------------------------------------------------------------------
def _reason(
    op: str, every: Sequence[Asked], restrictions: Sequence[Restriction], trials: Trials, stated: Mapping[str, Any] | None
) -> Objection:
    """
    Return what the cases that passed do not tell from a right implementation; nothing if they tell all.

    A function that cannot answer a case has failed it. What experiments were answered must be right.
    """
    passed = [one for one in every if one.verdict == "pass"]
    pretended = {"zeros": _zeros, "its input": _given}
    passing = [name for name, f in pretended.items() if not any(_differs(one.case, one.dtype, one.claim, f) for one in passed)]
    if passing and (not trials.can_ask() or op not in trials.of):
        return Objection(NARROW, f"its scope is too narrow: a function that returns {passing[0]} passes")
    unseen = list(_unseen(every, restrictions, every[0].dtype)) if trials.can_ask() else []
    if not unseen and op not in trials.of:
        return NONE
    trial = trials.begin(op, every[0].dtype, every)
    trial.asker.budget = max(trial.asker.budget, trial.asker.calls + JUDGED)

    def is_within(record: Features) -> bool:
        call = trial.asker.call(record)
        if call is None:
            return False
        if any(one.text.endswith(LAST) for one in restrictions) and not are_lengths(call):
            return False
        if stated is not None:
            return _lies_in(stated, trial, record, call)
        return not trial.explained(record, trial.kinds)

    judged = [(record, outcome) for record, outcome in trial.judged(JUDGED) if is_within(record)]
    for record, outcome in judged:
        if outcome not in (RIGHT, *UNJUDGED):
            asked = call_in_words(trial.asker.case(trial.asker.call(record) or every[0].case.calls[0]))
            text = f"it is wrong inside its scope, at {asked}: {_cause(trial, record, trial.asker.messages[key_of(record)])}"
            return Objection("fail" if outcome == WRONG else outcome, text)
    right = [call for record, outcome in judged if outcome == RIGHT and (call := trial.asker.call(record)) is not None]
    stored = {call_key(op, call) for one in every for call in one.case.calls} if right else set()
    trials.right[op] = [call for key, call in {call_key(op, call): call for call in right}.items() if key not in stored]
    for returned in passing:
        if not any(_fails(trial, call, pretended[returned]) for call in right):
            return Objection(NARROW, f"its scope is too narrow: a function that returns {returned} passes")
    for name in unseen:
        objection = _acting(name, every, trial, right, is_within)
        if objection:
            return objection
    return _wrong_at_limit(trial, restrictions, stated=stated is not None)


def _cause(trial: Experiment, record: Features, said: str) -> str:
    """Return what the judge `said` of a wrong call, and which calls are wrong, as far as experiments find it."""
    trial.asker.budget += MORE
    trial.learn(WRONG, [(record, trial.numbers(record))])
    trial.predict((WRONG,))
    causes = [one for one in trial.explained(record, (WRONG,)) if not one.rough and one.true >= FEWEST]
    return f"{said}; {sentence(trial.op, causes[0])}" if causes and trial.steady(causes[:1]) else said


def _wrong_at_limit(trial: Experiment, restrictions: Sequence[Restriction], *, stated: bool) -> Objection:
    """Return what is wrong at a limit: on it a call must be right, and beyond it not wrong."""
    good = trial.anchor(right=False)
    for restriction in restrictions if good is not None else ():
        feature = LIMITED.get(restriction.axis[0]) if len(restriction.axis) == 1 else None
        if not isinstance(restriction.allowed, Bound) or restriction.allowed.high is None or feature not in (good or ()):
            continue
        high = int(restriction.allowed.high)
        start = max(int(trial.numbers(good or {}).get("largest position", 0)) - int((good or {}).get("start", 0)), 0)
        for value, inside in ((high, True), (high - 1, True), (high + 1, False), (high + max(2, high // 2), False)):
            record = {**(good or {}), str(feature): value - (start if feature == "start" else 0)}
            outcome = trial.asker.outcome(record) if value > 0 else ""
            limit = f"at {restriction.axis[0].replace('_', ' ')} {value}"
            if outcome == WRONG or (outcome in ENDED and inside):
                side = f"inside its limit, {limit}" if inside else f"beyond its limit, {limit}"
                return Objection("fail", f"{side}, it is wrong: {_cause(trial, record, trial.asker.messages[key_of(record)])}")
            if outcome == REFUSED and inside and stated:
                return Objection("selective", f"it refuses a call inside its limit, {limit}")
    return NONE


def _zeros(op: str, call: Call) -> dict[str, Any]:
    return {name: np.zeros(value.shape) for name, value in call.expected.items()}


def _given(op: str, call: Call) -> dict[str, Any] | None:
    """Return the main array as the result, where it could be; of gradients, the cotangent as that of the main array."""
    main = main_array(op)
    results = call.cotangents or call.expected
    if main is None or [value.shape for value in results.values()] != [call.inputs[main].shape]:
        return None
    if not call.cotangents:
        return dict.fromkeys(call.expected, call.inputs[main])
    [cotangent] = call.cotangents.values()
    return _zeros(op, call) | ({main: cotangent} if main in call.expected else {})


def _differs(case: LoadedCase, dtype: str, claim: str, given: Any) -> bool:
    """Return whether outputs that nobody computed fail a case, or there are none for one of its calls."""
    outputs = [given(case.op, call) for call in case.calls]
    return any(
        output is None or judge.compare(case.op, call, output, claim, dtype) is not None
        for call, output in zip(case.calls, outputs, strict=True)
    )


def _fails(trial: Experiment, call: Call, given: Any) -> bool:
    """Return whether outputs that nobody computed are no right results of a fresh call."""
    whole = trial.asker.filled(call)
    output = None if whole is None else given(trial.op, whole)
    return output is None or (whole is not None and trial.asker.judged(whole, output) == WRONG)


# ---- mistakes -----------------------------------------------------------------------------------------------------------
@cache
def _record() -> Mapping[str, Any]:
    record: Mapping[str, Any] = json.loads(RECORD.read_bytes())
    return record


def caught(op: str) -> dict[str, frozenset[str]]:
    """Return the recorded cases that catch every mistake of an operation."""
    entry = _record().get(op, {"cases": [], "caught": {}})
    ids = entry["cases"]
    bits = {name: int(digits, 16) for name, digits in entry["caught"].items()}
    return {name: frozenset(case for k, case in enumerate(ids) if number >> k & 1) for name, number in bits.items()}


def _unseen(every: Sequence[Asked], restrictions: Sequence[Restriction], dtype: str) -> Iterator[str]:
    """Yield the mistakes that no answered case catches although no restriction alone excludes all that do."""
    answered = {one.id for one in _with_values(every)}
    known = {one.id: one for one in every if one.dtype == dtype}
    gradients = [restriction for restriction in restrictions if restriction.axis == ("gradient",)]
    choices = [restriction for restriction in restrictions if restriction.axis[0] not in SIZES]  # it acts at all sizes
    for name, ids in caught(every[0].case.op).items():
        if ids & answered:
            continue
        catching = [known[one] for one in ids if one in known and not any(r.leaves_out(known[one]) for r in gradients)]
        if catching and not any(all(choice.leaves_out(one) for one in catching) for choice in choices):
            yield name


def _with_values(every: Sequence[Asked]) -> list[Asked]:
    """Return the cases that passed, but for those of gradients."""
    return [one for one in every if one.verdict == "pass" and one.case.kind != "vjp"]


def _acting(
    name: str, every: Sequence[Asked], trial: Experiment, right: Sequence[Call], is_inside: Callable[[Features], bool]
) -> Objection:
    """Return what is wrong if a mistake shows in a call inside of the scope, made as a case that catches it."""
    from ..diagnosis import strength
    from ..diagnosis.hypotheses import predict
    from ..evidence.deviations import DEVIATIONS, Deviation

    if name not in DEVIATIONS:
        return NONE
    op, deviation, nothing = trial.op, DEVIATIONS[name], Deviation("nothing", "", {})

    def shows(call: Call) -> bool:
        return _shows(predict(nothing, op, (call,)), predict(deviation, op, (call,)))

    recorded, passed = {*_record()[op]["cases"]}, [one.case for one in _with_values(every)]
    if any(strength.fails(case, strength.outputs(deviation, case)) for case in passed if case.id not in recorded):
        return NONE
    if any(map(shows, right)):
        return NONE
    asked = {one.id: one.case for one in every}
    refused = 0
    for case in [asked[one] for one in sorted(caught(op)[name]) if one in asked and asked[one].kind != "vjp"][:MOVED]:
        record = brought_inside(trial, read(op, case.calls[0], case.form), is_inside)
        call = None if record is None else trial.asker.call(record)
        if record is None or call is None or not shows(call):
            continue
        outcome = trial.asker.outcome(record)
        if outcome == RIGHT:
            return NONE
        if outcome == REFUSED:
            trial.learn(REFUSED, [(record, trial.numbers(record))])
            refused += not trial.explained(record, (REFUSED,))
        elif outcome in (WRONG, "error", *ENDED):
            shown, said = f"{deviation.text} ({case.id}, moved)", trial.asker.messages[key_of(record)]
            text = f"it is wrong inside its scope, in a call that would show this mistake: {shown}: {said}"
            return Objection("fail" if outcome == WRONG else outcome, text)
    text = f"its scope is too narrow: it refuses calls inside it that would show this mistake: {deviation.text} ({name})"
    return Objection(NARROW, text) if refused else NONE


def _shows(right: list[Any], wrong: list[Any]) -> bool:
    """Return whether values differ plainly."""
    for one, other in zip(right, wrong, strict=True):
        for name, value in one.items():
            if name not in other or other[name].shape != value.shape:
                return False
            size = np.max(np.abs(value), initial=0.0)
            if not np.max(np.abs(other[name].astype(np.float64) - value), initial=0.0) <= PLAIN * size:
                return True
    return False
