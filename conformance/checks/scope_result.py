"""Gives every operation its scope after all of its cases were run: stated by the target, or inferred from its answers."""

from __future__ import annotations

from collections.abc import Sequence

from ..model import Answer, Limit, LoadedCase, Operation, Scope
from ..targets.base import Target
from ..traits import Traits, in_dtype, traits_of
from . import scope_statement, scope_trial
from .scope import ENOUGH, Asked, Restriction, apply, infer, is_inside
from .scope_statement import Stated
from .scope_trial import Asker, Objection, Watch, quietly

Pairs = Sequence[tuple[Operation, list[Answer]]]


def stated_scope(target: Target) -> Stated:
    """Return what an implementation states of its scope, with what it says elsewhere; `TargetError` for what does not exist."""
    stated = scope_statement.read(target.name, target.supports) if target.supports is not None else {}
    return {op: scope_statement.implied(op, axes, target.scalings, target.has_gradients(op)) for op, axes in stated.items()}


def settle(
    operations: Pairs, target: Target, stated: Stated, watch: Watch = quietly, *, whole: bool, enough: int = ENOUGH
) -> None:
    """
    Give every operation its scope, and make selective what lies inside it and was refused.

    Unless the `whole` suite was asked nothing is inferred; `enough` cases must ask for what a scope is inferred to lack.
    """
    for op in dict.fromkeys(operation.op for operation, _ in operations):
        own = [(operation, answers) for operation, answers in operations if operation.op == op]
        if not whole and op not in stated:
            continue
        scope = _scope(op, own, target, stated, watch, enough)
        for operation, _ in own:
            operation.scope = scope
            for case in operation.cases:
                if case.kind != "reject" and case.verdict == "unsupported" and (case.id, case.dtype) in scope.refused:
                    inside = "refused inside the scope that it states" if scope.stated else "refused, and nothing explains it"
                    case.verdict, case.message = "selective", f"{inside}: {case.message}"


def tell_of_scope(operations: Pairs, stated: Stated) -> None:
    """Say in the diagnosis of an operation which failing cases lie outside the scope that it states, where it must refuse."""
    for operation, answers in operations:
        if operation.diagnosis is None or operation.op not in stated:
            continue
        failing = {c.id for c in operation.cases if c.kind != "reject" and c.verdict == "fail"}
        traits = {one.id: one.traits for one in _asked([(operation, answers)]) if one.id in failing}
        outside = [name for name, found in traits.items() if not is_inside(stated[operation.op], found)]
        if not outside:
            continue
        where = "outside the scope that `supports` states, and must be refused (raise NotImplementedError)"
        if len(outside) == len(failing):
            text = f"all failing cases lie {where}: {operation.diagnosis['text']}"
        else:
            few = f"{len(outside)} of {len(failing)} failing cases lie"
            text = f"{operation.diagnosis['text']} {few} {where}: {outside[0]}{', ...' * (len(outside) > 1)}."
        operation.diagnosis = {**operation.diagnosis, "text": text}


def _scope(op: str, own: Pairs, target: Target, stated: Stated, watch: Watch, enough: int) -> Scope:
    """Return the scope of one operation."""
    asked = [case for operation, _ in own for case in operation.cases if case.kind != "reject"]
    answered = sum(case.verdict != "unsupported" for case in asked)
    scope = Scope(op, len(asked), answered, passed=_passed(own), stated=op in stated)
    if answered and op in stated and not any(one.answered and is_inside(stated[op], one.traits) for one in _asked(own)):
        scope.decided, scope.narrow = scope_trial.NARROW, "no case that it answers lies in the scope that it states"
        return scope
    if answered == len(asked):
        return scope
    every = _asked(own)
    restrictions, left = apply(op, stated[op], every) if op in stated else infer(op, every, enough)
    if not answered:
        return scope  # of what answers nothing, nothing can be said
    restrictions.sort(key=lambda one: (not scope_statement.is_limit(one), -len(one.outside)))
    scope.limits = [_limit(op, one, every) for one in restrictions]
    scope.supports = scope_statement.as_supports(op, restrictions, every)
    scope.refused = [(one.id, one.dtype) for one in left]
    if scope.passed and not left and not any(operation.failing for operation, _ in own):
        answered_traits = tuple(one.traits for one in every if one.answered)
        asker = Asker(target, op, own[0][0].dtype, answered_traits, watch)
        traits = {one.id: one.traits for one in every if one.dtype == own[0][0].dtype}
        objection = scope_trial.reason(op, own, traits, restrictions, asker)
        if op not in stated and enough >= ENOUGH:
            objection = objection or _too_few(own)
        objection = objection or scope_trial.wrong_at_limit(op, _right(own), restrictions, asker)
        scope.decided, scope.narrow = objection
        scope.drawn = len(asker.results)
    if not target.has_gradients(op):
        scope.library = next((one.cases for one in scope.limits if one.axis == "gradient"), 0)
    return scope


def _too_few(own: Pairs) -> Objection:
    """Return what is wrong with an inferred scope if fewer cases passed inside it than must lie outside of a restriction."""
    if len(_passing(own)) >= ENOUGH:
        return scope_trial.NONE
    text = f"its scope is too narrow: one case with values passed, and {ENOUGH} must, unless it is stated in `supports`"
    return Objection(scope_trial.NARROW, text)


def _limit(op: str, restriction: Restriction, every: Sequence[Asked]) -> Limit:
    return Limit(" with ".join(restriction.axis), scope_statement.in_words(op, restriction, every), len(restriction.outside))


def _asked(own: Pairs) -> list[Asked]:
    """Return the cases of an operation that are no invalid calls, with their traits."""
    found: list[Asked] = []
    known: dict[int, Traits] = {}  # by the identity of the case: most are asked in several dtypes
    for operation, answers in own:
        cases = {answer.case.id: answer.case for answer in answers}
        for one in operation.cases:
            if one.kind == "reject":
                continue
            case = cases[one.id]
            traits = in_dtype(known[id(case)], one.dtype) if id(case) in known else traits_of(case, one.dtype)
            known[id(case)] = traits
            found.append(Asked(one.id, one.dtype, traits, one.verdict != "unsupported"))
    return found


def _right(own: Pairs) -> list[LoadedCase]:
    """Return the cases that passed in the first dtype."""
    operation, answers = own[0]
    cases = {answer.case.id: answer.case for answer in answers}
    return [cases[one.id] for one in operation.cases if one.verdict == "pass" and one.kind == "value"]


def _passed(own: Pairs) -> bool:
    """Return whether a case passed that asks for values, and has some."""
    return bool(_passing(own))


def _passing(own: Pairs) -> frozenset[str]:
    """Return the cases that passed of those that ask for values, and have some."""
    found: set[str] = set()
    for operation, answers in own:
        sized = {a.case.id for a in answers if any(v.size for call in a.case.calls for v in call.expected.values())}
        found |= {c.id for c in operation.cases if c.verdict == "pass" and c.kind not in ("reject", "vjp") and c.id in sized}
    return frozenset(found)
