"""
Finds by experiment which calls are wrong or crash, for failures that no known mistake explains.

Each cause is asked again in a new process, in another order, before it is told: what comes out otherwise there depends on
earlier calls, or on chance.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from posref.spec import REGISTRY

from ..diagnosis.features import features
from ..diagnosis.places import NARROW_VALUES
from ..experiments.asker import ENDED, REFUSED, RIGHT, WRONG
from ..experiments.cause_search import FEWEST, Cause, Experiment
from ..experiments.cause_wording import conditions, essential, is_vague, says_nothing, sentence, words
from ..experiments.confirmation import confirmed
from ..experiments.number_rules import Numbers, is_relation
from ..experiments.records import Features
from ..model import NO_DIAGNOSIS, Answer, Operation
from ..targets.invocation import UNSTEADY
from .case_run import STATE_HINT
from .learned_scope import ROUNDS, Trials, described
from .scope import Asked
from .scope_result import asked_cases

VERDICTS = {"fail": WRONG, "error": "error", "crash": "crash", "timeout": "timeout"}
SHOWN = 3  # causes that are told
CONDITIONS = 3  # of a cause that is told
SILENT = re.compile(r"no known mistake [a-z ]*gives these ", re.IGNORECASE)  # what a diagnosis says that names nothing
UNKNOWN = re.compile(r"unexplained: no known\b(?= mistake)")
PLACED = re.compile(r"nly [^.]* (is|are) wrong\b")  # where in a result the wrong values lie
EXACTLY = re.compile(r"Exactly the cases with ([^\d]+) fail\.")  # what stored cases have that fail; numbers fit by chance
AGREEING = 8  # calls of experiments, right and wrong ones, that must agree with it
NOT_ALWAYS = " But not always: "
SHAPE = ("size ", "start", "queries", "form", "rows", "leading axes")  # features of sizes and of places
NEAR = 8.0  # bounds that an error must come to somewhere: of smaller ones a cause says where they can be seen
IDENTICAL = 4  # failing calls, the smallest, that are asked again in a new process before any cause is looked for
WIDE = ("least", "most")  # kinds of rules of which one may say what another does
Pairs = Sequence[tuple[Operation, list[Answer]]]


def report_failure_causes(operations: Pairs, trials: Trials) -> None:
    """Add the wrong calls, as experiments show them, to every diagnosis without a named mistake."""
    if not trials.can_ask():
        return
    for operation, answers in operations:
        kinds = [verdict for verdict in VERDICTS if any(c.verdict == verdict and c.kind != "reject" for c in operation.cases)]
        diagnosis = operation.diagnosis or {}
        if diagnosis and not (
            diagnosis.get("trait") or SILENT.search(str(diagnosis["text"])) or _is_partial(operation, diagnosis)
        ):
            kinds = [verdict for verdict in kinds if verdict in ENDED]
        if (operation.worst_ratio or NEAR) < NEAR or NARROW_VALUES in str(diagnosis.get("text")):
            kinds = [verdict for verdict in kinds if verdict != "fail"]
        if kinds:
            text = _causes(operation, answers, kinds, trials)
            if text:
                before = dict(operation.diagnosis or NO_DIAGNOSIS)
                operation.diagnosis = before | _with(before, text)


def _is_partial(operation: Operation, diagnosis: Mapping[str, Any]) -> bool:
    """Return whether a diagnosis names mistakes for some failing cases alone, or for what would show in right ones too."""
    explained = _explained(diagnosis)
    failing = {case.id for case in operation.cases if case.verdict == "fail" and case.kind in ("value", "sequence")}
    return NOT_ALWAYS in str(diagnosis["text"]) or bool(explained and failing - explained)


def _explained(diagnosis: Mapping[str, Any]) -> set[str]:
    """Return the cases that a diagnosis explains by named mistakes."""
    return {case for group in diagnosis.get("groups", ()) if group["names"] for case in group["cases"]}


def _with(diagnosis: dict[str, Any], text: str) -> dict[str, Any]:
    """Return what a diagnosis says with causes: of a crash first, of wrong values after what is not known of them."""
    before = str(diagnosis["text"])
    if WRONG in text.lower():
        trait = str(diagnosis.get("trait") or "\0").strip()
        before = before.replace(trait, "").strip()  # a cause says more than what cases share
        before = before.replace("In these your output", "In the failing cases your output", 1)
    if text == UNSTEADY:
        return {"text": text, "hint": STATE_HINT}
    if diagnosis["names"] and text.startswith(("Wrong", "Mostly", "Some")):
        return {"text": f"{before} {text}"}  # what explains some cases says more than where others are wrong
    return {"text": f"{text} {UNKNOWN.sub('No known', before)}".strip()}


def _causes(operation: Operation, answers: list[Answer], verdicts: Sequence[str], trials: Trials) -> str:
    """Return the causes of failures in sentences; nothing where there is none."""
    every = [one for one in asked_cases([(operation, answers)]) if one.case.kind != "vjp"]
    if not every:
        return ""
    trial = trials.begin(operation.op, operation.dtype, every)
    trial.asker.budget = trial.asker.calls + trials.calls
    if "fail" in verdicts and not _repeat(trial, every):
        return UNSTEADY
    for verdict in sorted(verdicts, key=lambda word: word not in ENDED):
        _learn(trial, every, verdict)
    causes = [one for one in trial.causes if one.kind in {VERDICTS[word] for word in verdicts} and not one.rough]
    causes = [one for one in causes if one.kind in ENDED or one.true >= (AGREEING if _has_remainders(one) else FEWEST)]
    causes = _of_others(trial, every, _unrefuted(trial, every, _widest(causes)), _explained(operation.diagnosis or {}))
    causes = confirmed(
        trial, causes, {is_right: [record for record, _ in calls] for is_right, calls in _stored(trial, every).items()}
    )
    if PLACED.search(str((operation.diagnosis or {}).get("text"))):
        options = [*REGISTRY[operation.op].domains]
        of_shape = [one for one in causes if one.kind == WRONG and _is_of_shape(one, options)]
        causes = [one for one in causes if len(of_shape) < 2 or one not in of_shape]  # calls that have the place
    if not causes:
        return ""
    said = _in_all(trial, every, _with_needless(trial, every, causes))
    if not said and _most(trial, every, causes):
        said = _sentences(operation.op, sorted(causes, key=lambda one: one.kind not in ENDED))[:SHOWN]
    elif not said:
        said = _common(trial, every, causes)
    if said and not trial.steady(causes):
        return UNSTEADY
    text = " ".join(f"{text[0].upper()}{text[1:]}." for text in said)
    trait = str((operation.diagnosis or {}).get("trait") or "").strip()
    return "" if len(trait) < len(text) and all(one.kind == WRONG for one in causes) and _holds(trial, every, trait) else text


def _stored(trial: Experiment, every: Sequence[Asked]) -> dict[bool, list[tuple[Features, Numbers]]]:
    """Return the calls of cases that are answered rightly, and of those that are wrong."""
    by_verdict = {True: "pass", False: "fail"}
    values = [one for one in every if one.case.kind == "value"]
    cases = {right: [one for one in values if one.verdict == verdict] for right, verdict in by_verdict.items()}
    return {right: [*chain.from_iterable(described(trial, some).values())] for right, some in cases.items()}


def _holds(trial: Experiment, every: Sequence[Asked], trait: str) -> bool:
    """Return whether just the wrong calls have a trait, of stored cases and of all calls that the experiments made."""
    made = {key: trial.asker.made.get(key) for key in trial.asker.known}
    calls = {key: call for key, call in made.items() if call and trial.asker.known[key][1] in (RIGHT, WRONG)}
    asked = [replace(trial.asker.case(call), id=key) for key, call in calls.items()]
    wrong = {key for key in calls if trial.asker.known[key][1] == WRONG}
    words = EXACTLY.fullmatch(trait)
    if not words or min(len(wrong), len(calls) - len(wrong)) < AGREEING:
        return False
    stored = [one for one in every if one.verdict in ("pass", "fail") and one.case.kind == "value"]
    having = features([*asked, *(one.case for one in stored)]).get(words[1])
    return having == frozenset(wrong | {one.case.id for one in stored if one.verdict == "fail"})


def _has_remainders(cause: Cause) -> bool:
    """Return whether a cause has several remainders of one number: few calls have them by chance."""
    return any(rule.kind == "remainders" and len(rule.numbers) > 2 for rule in cause.rules)


def _of_others(trial: Experiment, every: Sequence[Asked], causes: Sequence[Cause], explained: Collection[str]) -> list[Cause]:
    """Return causes without those whose wrong cases mostly have a named mistake: they only say again where that shows."""
    cases = described(trial, [one for one in every if one.verdict == "fail"]) if explained else {}

    def adds(cause: Cause) -> bool:
        having = [case in explained for case, calls in cases.items() if any(cause.holds(*call) for call in calls)]
        return cause.kind != WRONG or 2 * sum(having) <= len(having)

    return [cause for cause in causes if adds(cause)]


def _is_of_shape(cause: Cause, options: Collection[str]) -> bool:
    """Return whether a cause speaks of sizes and places alone, and of no option."""
    words = {word for rule in cause.rules for word in rule.quantity.split()}
    return all(name.startswith(SHAPE) for name in cause.shows) and not words & {*options}


def _with_needless(trial: Experiment, every: Sequence[Asked], causes: Sequence[Cause]) -> list[Cause]:
    """
    Return causes with a condition that wrong calls lack which no cause explains, and which have all its others.

    A right call that has all others does not refute this: a wrong computation may give a right result.
    """
    several = [cause for cause in causes if cause.kind == WRONG and len(cause.shows) + len(cause.rules) > 1]
    cases = described(trial, [one for one in every if one.verdict == "fail"]) if several else {}
    left = [call for calls in cases.values() for call in calls if not any(cause.holds(*call) for cause in causes)]
    return [cause for cause in several if any(part.holds(*call) for part in _parts(cause) for call in left)]


def _parts(cause: Cause) -> list[Cause]:
    """Return a cause without each of its conditions in turn."""
    without = [replace(cause, shows={n: v for n, v in cause.shows.items() if n != name}) for name in cause.shows]
    return without + [replace(cause, rules=[one for one in cause.rules if one is not rule]) for rule in cause.rules]


def _widest(causes: Sequence[Cause]) -> list[Cause]:
    """Return causes without limits of one number that lie beyond another limit of it."""
    limits: dict[tuple[str, ...], Cause] = {}
    for cause in causes:
        if _is_limit(cause):
            [rule] = cause.rules
            before = limits.setdefault((cause.kind, rule.quantity, rule.kind), cause)
            if before.rules[0].holds({rule.quantity: rule.numbers[0]}) is False:
                limits[cause.kind, rule.quantity, rule.kind] = cause
    kept = {id(one) for one in limits.values()}
    return [one for one in causes if id(one) in kept or not _is_limit(one)]


def _is_limit(cause: Cause) -> bool:
    """Return whether a cause is one limit of one number."""
    return len(cause.rules) == 1 and not cause.shows and cause.rules[0].kind in WIDE


def _unrefuted(trial: Experiment, every: Sequence[Asked], causes: Sequence[Cause]) -> list[Cause]:
    """Return causes without limits of one number beyond which other cases, that no cause explains, are wrong too."""
    if not any(_is_limit(one) and one.kind == WRONG for one in causes):
        return list(causes)
    cases = described(trial, [one for one in every if one.verdict == "fail"])
    left = [calls for calls in cases.values() if not any(one.holds(*call) for one in causes for call in calls)]
    return [one for one in causes if one.kind != WRONG or not _is_limit(one) or not left]


def _most(trial: Experiment, every: Sequence[Asked], causes: Sequence[Cause]) -> bool:
    """Return whether some causes hold for more than half of the wrong cases: else they do not say where it is wrong."""
    if any("bits" in cause.shows for cause in causes if cause.kind == WRONG):
        return False  # they say where it can be seen
    wrong = {id(cause) for cause in causes if cause.kind == WRONG}
    failing = [one for one in every if one.verdict == "fail"]
    if len(wrong) < len(causes) or not failing:
        return True
    cases = described(trial, failing)
    having = [one for one in failing if any(cause.holds(*call) for cause in causes for call in cases[one.id])]
    return 2 * len(having) > len(failing)


def _common(trial: Experiment, every: Sequence[Asked], causes: Sequence[Cause]) -> list[str]:
    """Return the rule of two numbers that all causes have, and all wrong cases, and not most right ones."""
    first, *others = (cause for cause in causes if cause.kind == WRONG)
    shared = [rule for rule in first.rules if is_relation(rule.quantity) and all(rule in one.rules for one in others)]
    wrong, right = (
        list(described(trial, [one for one in every if one.verdict == verdict]).values()) for verdict in ("fail", "pass")
    )
    rules = [rule for rule in shared if others and all(any(rule.holds(n) for _, n in calls) for calls in wrong)]
    rules = [rule for rule in rules if 2 * sum(any(rule.holds(n) for _, n in calls) for calls in right) <= len(right)]
    return [f"some calls are wrong, all of them with {rule.text}" for rule in rules[:1]]


def _in_all(trial: Experiment, every: Sequence[Asked], causes: Sequence[Cause]) -> list[str]:
    """Return the first condition of causes that all wrong calls have, and not most right ones."""
    if not causes:
        return []
    wrong, right = (
        [call for calls in described(trial, [one for one in every if one.verdict == verdict]).values() for call in calls]
        for verdict in ("fail", "pass")
    )
    wrong += [(record, trial.numbers(record)) for record, outcome in trial.asker.known.values() if outcome == WRONG]
    for cause in causes:
        alone = [replace(cause, shows={}, rules=[rule]) for rule in cause.rules]
        alone += [replace(cause, shows={name: values}, rules=[]) for name, values in cause.shows.items()]
        for one in alone:
            if all(one.holds(*call) for call in wrong) and 2 * sum(one.holds(*call) for call in right) <= len(right):
                return [f"some calls are wrong, all of them with {conditions(trial.op, one)}"]
    return []


def _repeat(trial: Experiment, every: Sequence[Asked]) -> bool:
    """Return whether failing calls are not answered rightly, nor refused, in a new process, the last one first."""
    single = [one.case for one in every if one.verdict == "fail" and one.case.kind == "value" and not one.case.state]
    few = sorted(single, key=lambda case: sum(x.size for x in case.calls[0].expected.values()))[:IDENTICAL]
    calls = [(case.calls[0], case.form) for case in few]
    wrong = [one for one in calls if trial.asker.asked(*one) == WRONG]
    return not any(outcome in (RIGHT, REFUSED) for outcome in trial.asker.repeated(wrong))


def _sentences(op: str, causes: Sequence[Cause]) -> list[str]:
    """
    Return causes in sentences.

    Several that speak of the same numbers are steps of a relation that no rule has; of those with many conditions only what
    all have in common is told.
    """
    by_names: dict[tuple[str, ...], list[Cause]] = {}
    plain = [essential(cause) for cause in causes if not says_nothing(cause) and not is_vague(cause)]
    plain = [one for one in plain if not any(_is_within(one, other) for other in plain)]
    long = [cause for cause in plain if len(cause.rules) + len(cause.shows) > CONDITIONS]
    for cause in plain:
        names = tuple(dict.fromkeys(rule.quantity for rule in cause.rules))
        if cause not in long:
            by_names.setdefault(names if len(names) > 1 else (sentence(op, cause),), []).append(cause)
    sentences = []
    for names, several in by_names.items():
        related = len(names) > 1 and len(several) > 1
        sentences.append(
            f"whether a call is wrong depends on {' and '.join(names)} together" if related else sentence(op, several[0])
        )
    if long and len(plain) == len(long):
        shows = {
            name: long[0].shows[name]
            for name in long[0].shows
            if all(one.shows.get(name) == long[0].shows[name] for one in long)
        }
        sentences += [
            f"some calls are wrong, all of them with {words(op, name, long[0])}" for name in shows if long[0].lacks.get(name)
        ]
    return sentences


def _is_within(cause: Cause, other: Cause) -> bool:
    """Return whether calls with one cause have another too, which says it with less."""
    less = len(other.rules) + len(other.shows) < len(cause.rules) + len(cause.shows)
    shows = all(name in cause.shows and repr(cause.shows[name]) == repr(values) for name, values in other.shows.items())
    return less and cause.kind == other.kind and shows and all(rule in cause.rules for rule in other.rules)


def _learn(trial: Experiment, every: Sequence[Asked], verdict: str) -> None:
    """Walk from the cases of one verdict."""
    failing = [one for one in every if one.verdict == verdict]
    cases = described(trial, failing)
    for _ in range(ROUNDS):
        trial.learn(VERDICTS[verdict], [call for one in failing for call in cases[one.id]])
        trial.predict((VERDICTS[verdict],))
