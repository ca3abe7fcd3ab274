"""
Gives every operation its scope after all of its cases were run: stated by the target, or inferred from its answers, and tried.

What it passed must fail zeros, what it was given, and known mistakes: else too little was answered to speak of it.

The limits of the scope are tried on both sides, with drawn calls: inside they must be answered and right, outside not wrong. A
drawn call is a case that passed, at the limit, with its positions moved or its tokens and channels cut or repeated.

Which cases catch which deviation is recorded (`caught.json`, made with the docs). A deviation that no answered case catches
does not act in the scope where one choice alone excludes every case that does: a mistake of YaRN, without scalings. Otherwise,
and where sizes exclude them, a case that catches it is moved into the scope; if the deviation still shows there, the moved case
is asked too, and judged live.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from posref.spec import REGISTRY

from .. import judge
from ..calls import held_to, positions_of
from ..errors import Failure, Stopped, Unsupported
from ..model import Answer, Call, CaseResult, Limit, LoadedCase, Operation, Scope
from ..proof.evaluation import plain
from ..targets.base import Target
from ..targets.invocation import text_of
from ..traits import LETTERS, RELATIONS, Traits, defaults, has_coordinates, in_dtype, letters, main_array, traits_of
from . import scope_statement
from .case_run import asked_in
from .learned_scope import Trials
from .scope import ENOUGH, Asked, Bound, Restriction, apply, is_inside, is_known
from .scope_statement import Stated

SIZES = {"tokens": "T", "queries": "Q", "keys": "K", "head_size": "D"}
REFUSED = 3  # calls of a kind, after which nobody asks for it again
PLAIN = 0.01  # of the largest value: what a mistake must change in a case that has no stored tolerances
RECORD = Path(__file__).parents[1] / "evidence" / "caught.json"
Pairs = Sequence[tuple[Operation, list[Answer]]]
Change = Callable[[LoadedCase, float], Call | None]
LARGEST = 1 << 14  # numbers of a drawn call
Progress = Callable[[str], None]  # called with the id of every case as it begins


class Objection(NamedTuple):
    """What is wrong with a scope in which no stored case failed: the verdict on it, and why. Nothing is, if it is empty."""

    verdict: str
    text: str

    def __bool__(self) -> bool:
        """Return whether anything is wrong."""
        return bool(self.text)


NONE, NARROW = Objection("", ""), "too narrow"


# ---- the scope of every operation ------------------------------------------------------------------------------------------
def stated_scope(target: Target) -> Stated:
    """Return what an implementation states of its scope, with what it says elsewhere; `TargetError` for what does not exist."""
    stated = scope_statement.read(target.name, target.supports) if target.supports is not None else {}
    return {op: scope_statement.implied(op, axes, target.scalings, target.has_gradients(op)) for op, axes in stated.items()}


def settle(
    operations: Pairs, target: Target, stated: Stated, trials: Trials, *, whole: bool, enough: int = ENOUGH
) -> None:  # fmt: skip
    """
    Give every operation its scope, and make selective what lies inside it and was refused.

    Unless the `whole` suite was asked nothing is learned; `enough` cases must ask for what a scope is inferred to lack.
    """
    for op in dict.fromkeys(operation.op for operation, _ in operations):
        own = [(operation, answers) for operation, answers in operations if operation.op == op]
        if not whole and op not in stated:
            continue
        scope = _scope(op, own, target, stated, trials, enough)
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


def _scope(op: str, own: Pairs, target: Target, stated: Stated, trials: Trials, enough: int) -> Scope:
    """Return the scope of one operation."""
    asked = [case for operation, _ in own for case in operation.cases if case.kind != "reject"]
    answered = sum(case.verdict != "unsupported" for case in asked)
    passing = _passing(own)
    scope = Scope(op, len(asked), answered, passed=bool(passing), stated=op in stated)
    if answered and op in stated and not any(one.answered and is_inside(stated[op], one.traits) for one in _asked(own)):
        scope.decided, scope.narrow = NARROW, "no case that it answers lies in the scope that it states"
        return scope
    if answered in (0, len(asked)):
        return scope  # of what answers nothing, nothing can be said
    every = _asked(own)
    restrictions, left = apply(op, stated[op], every) if op in stated else trials.refusals(op, every, enough)
    restrictions.sort(key=lambda one: (not scope_statement.is_limit(one), -len(one.outside)))
    scope.limits = [
        Limit(" with ".join(one.axis), scope_statement.in_words(op, one, every), len(one.outside), one.fresh)
        for one in restrictions
    ]
    scope.supports = scope_statement.as_supports(op, restrictions, every)
    scope.refused = [(one.id, one.dtype) for one in left]
    if scope.passed and not left and not any(operation.failing for operation, _ in own):
        asker = Asker(target, op, own[0][0].dtype, tuple(one.traits for one in every if one.answered), trials.progress)
        objection = _reason(every, restrictions, asker)
        if not objection and op not in stated and len(passing) < ENOUGH <= enough:
            text = f"its scope is too narrow: one case with values passed, and {ENOUGH} must, unless it is stated in `supports`"
            objection = Objection(NARROW, text)
        scope.decided, scope.narrow = objection or _wrong_at_limit(every, restrictions, asker)
        scope.drawn = len(asker.results)
    if not target.has_gradients(op):
        scope.library = next((one.cases for one in scope.limits if one.axis == "gradient"), 0)
    return scope


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
            found.append(Asked(case, one.dtype, traits, one.verdict, operation.claim))
    return found


def _passing(own: Pairs) -> frozenset[str]:
    """Return the cases that passed of those that ask for values, and have some."""
    found: set[str] = set()
    for operation, answers in own:
        sized = {a.case.id for a in answers if any(v.size for call in a.case.calls for v in call.expected.values())}
        found |= {c.id for c in operation.cases if c.verdict == "pass" and c.kind not in ("reject", "vjp") and c.id in sized}
    return frozenset(found)


# ---- calls besides the stored ones ------------------------------------------------------------------------------------------
@dataclass
class Asker:
    """A target that can still be asked, and what it said to drawn calls of one operation."""

    target: Target
    op: str
    dtype: str
    answered: tuple[Traits, ...] = ()  # what the stored cases have that it answered
    progress: Progress | None = None
    results: dict[str, CaseResult] = field(default_factory=dict)
    right: list[tuple[Call, ...]] = field(default_factory=list)  # what it answered, and rightly

    def ask(self, name: str, *calls: Call) -> CaseResult | None:
        """
        Return the verdict of drawn calls, asked in order as one case; each name is asked once.

        None where nothing can be said: results are in files, or the class has no single answer.
        """
        if name in self.results:
            return self.results[name]
        return self.ask_shaped(name, *(replace(c, expected=plain(self.op, c.inputs, c.params)) for c in calls))

    def ask_shaped(self, name: str, *calls: Call) -> CaseResult | None:
        """Return the verdict of drawn calls as `ask` does; what they hold as expected has the right shapes and no other use."""
        if self.target.kind == "outputs":
            return None
        if name not in self.results:
            found = self._asked(name, calls)
            if found is None:
                return None
            self.results[name] = found
            if found.verdict == "pass":
                self.right.append(calls)
        return self.results[name]

    def _asked(self, name: str, calls: tuple[Call, ...]) -> CaseResult | None:
        expected = [replace(c, widths={}, computed={}) for c in calls]
        kind = "value" if len(calls) == 1 else "sequence"
        case = LoadedCase(name, self.op, kind, "core", "", (self.dtype,), tuple(expected))
        result = CaseResult(name, self.op, kind, "core", self.dtype, "pass")
        if not asked_in(case, self.dtype):
            return None
        claim = held_to(self.op, self.target.claims[self.dtype])
        if self.progress:
            self.progress(name)
        try:
            outputs = [self.target.run(case, call, self.dtype) for call in case.calls]
        except Unsupported as error:
            return replace(result, verdict="unsupported", message=text_of(error) or "not implemented")
        except Failure as failure:
            return replace(result, verdict="fail", message=text_of(failure))
        except Stopped as stopped:
            return replace(result, verdict=stopped.verdict, message=text_of(stopped))
        for call, given in zip(case.calls, outputs, strict=True):
            judgement = judge.judge(self.op, call, given, claim, self.dtype, truth="live")
            if judgement.failures:
                return replace(result, verdict="fail", message=str(judgement.failures[0]))
            if judgement.verdict != "pass":
                return None
        return result


# ---- is enough inside it? --------------------------------------------------------------------------------------------------
def _reason(every: Sequence[Asked], restrictions: Sequence[Restriction], asker: Asker) -> Objection:
    """
    Return what the cases that passed do not tell from a right implementation; nothing if they tell all.

    A function that cannot answer a case has failed it.
    """
    passed = [one for one in every if one.verdict == "pass"]
    for returned, given in (("zeros", _zeros), ("its input", _given)):
        if not any(_differs(one.case, one.dtype, one.claim, given) for one in passed):
            return Objection(NARROW, f"its scope is too narrow: a function that returns {returned} passes")
    for name in _unseen(every, restrictions, asker):
        found = _acting(name, every, restrictions, asker)
        if found:
            return found
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


# ---- deviations -----------------------------------------------------------------------------------------------------------
@cache
def _record() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(RECORD.read_bytes())
    return found


def caught(op: str) -> dict[str, frozenset[str]]:
    """Return the recorded cases that catch every deviation of an operation."""
    entry = _record().get(op, {"cases": [], "caught": {}})
    ids = entry["cases"]
    return {
        name: frozenset(case for k, case in enumerate(ids) if int(bits, 16) >> k & 1) for name, bits in entry["caught"].items()
    }


def _unseen(every: Sequence[Asked], restrictions: Sequence[Restriction], asker: Asker) -> Iterator[str]:
    """Yield the deviations that no answered case catches although no restriction alone excludes all that do."""
    answered = {one.id for one in _with_values(every)}
    known = {one.id: one.traits for one in every if one.dtype == asker.dtype}
    gradients = [restriction for restriction in restrictions if restriction.axis == ("gradient",)]
    for name, ids in caught(asker.op).items():
        if ids & answered:
            continue
        traits = [known[one] for one in ids if one in known and not any(r.excludes(known[one]) for r in gradients)]
        choices = [restriction for restriction in restrictions if restriction.axis[0] not in SIZES]  # it acts at all sizes
        if traits and not any(all(choice.excludes(one) for one in traits) for choice in choices):
            yield name


def _with_values(every: Sequence[Asked]) -> list[Asked]:
    """Return the cases that passed, but for those of gradients."""
    return [one for one in every if one.verdict == "pass" and one.case.kind != "vjp"]


def _acting(name: str, every: Sequence[Asked], restrictions: Sequence[Restriction], asker: Asker) -> Objection:
    """Return what is wrong if a deviation shows in a case that was moved into the scope, and that case does not pass."""
    from ..diagnosis import strength
    from ..diagnosis.hypotheses import predict
    from ..evidence.deviations import DEVIATIONS, Deviation

    if name not in DEVIATIONS:
        return NONE
    op, deviation, nothing = asker.op, DEVIATIONS[name], Deviation("nothing", "", {})
    recorded, passed = {*_record()[op]["cases"]}, [one.case for one in _with_values(every)]
    if any(strength.fails(case, strength.outputs(deviation, case)) for case in passed if case.id not in recorded):
        return NONE
    asked = {one.id: one.case for one in every}
    if any(_shows(predict(nothing, op, calls), predict(deviation, op, calls)) for calls in asker.right):
        return NONE
    refused = 0
    for case in (asked[one] for one in sorted(caught(op)[name]) if one in asked and asked[one].kind != "vjp"):
        moved = _moved(case, asker.dtype, passed[0].calls[0].params, restrictions)
        if moved is None or not _shows(predict(nothing, op, moved.calls), predict(deviation, op, moved.calls)):
            continue
        result = asker.ask(f"{case.id}.moved", *moved.calls)
        if result is None or result.verdict == "pass":
            return NONE
        if result.verdict == "unsupported" and not is_known(traits_of(moved, asker.dtype), asker.answered):
            continue
        if result.verdict != "unsupported":
            shown = f"{deviation.text} ({case.id}, moved)"
            text = f"it is wrong inside its scope, in a call that would show this mistake: {shown}: {result.message}"
            return Objection(result.verdict, text)
        refused += 1
        if refused == REFUSED:
            break
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


def _moved(case: LoadedCase, dtype: str, answered: Mapping[str, Any], restrictions: Sequence[Restriction]) -> LoadedCase | None:
    """Return a case with options, as in a call that was answered, and positions that lie in the scope; None if it has none."""
    for restriction in restrictions:
        for axis in restriction.axis:
            if restriction.excludes(traits_of(case, dtype)):
                case = replace(case, calls=tuple(_changed(case.op, call, axis, restriction, answered) for call in case.calls))
    traits = traits_of(case, dtype)
    return None if any(restriction.excludes(traits) for restriction in restrictions) else case


def _changed(op: str, call: Call, axis: str, restriction: Restriction, answered: Mapping[str, Any]) -> Call:
    """Return a call that has on one axis the option of a call that was answered, or positions within the bound."""
    name = axis.removeprefix("other_").partition(".")[0]
    name = "scaling" if name not in REGISTRY[op].domains and "." in axis else name
    if name in REGISTRY[op].domains:
        return replace(call, params={**call.params, name: answered.get(name, defaults(op).get(name))})
    if axis in SIZES and isinstance(restriction.allowed, Bound):
        return _smaller(op, call, SIZES[axis], int(restriction.allowed.high or 0))
    inputs = dict(call.inputs)
    for place in positions_of(op):
        if place in inputs:
            inputs[place] = _within(inputs[place], axis, restriction.allowed)
    return replace(call, inputs=inputs)


def _smaller(op: str, call: Call, letter: str, most: int) -> Call:
    """Return a call of which an axis of all arrays is cut off; whole channels are rotated."""
    inputs = dict(call.inputs)
    for name, sizes in letters(op, call).items():
        axis = _axis(sizes, letter, inputs[name].ndim)
        if axis is not None and sizes[letter][0] > most:
            inputs[name] = inputs[name].take(range(most), axis=axis)
    params = {n: v for n, v in call.params.items() if letter != "D" or n != "rotary_dim"}
    return replace(call, inputs=inputs, params=params)


def _axis(sizes: Mapping[str, Any], letter: str, ndim: int) -> int | None:
    """Return the axis of a letter; None without it, or where any number of axes may stand behind it."""
    behind = [*sizes][: [*sizes].index(letter)] if letter in sizes else ["*"]
    return None if any(key.startswith("*") for key in behind) else ndim - 1 - len(behind)


def _within(p: Any, axis: str, allowed: Any) -> Any:
    """Return positions changed on one axis: smaller, in order, whole, or none negative."""
    if axis == "position" and isinstance(allowed, Bound):
        return np.sign(p) * (np.abs(p) % (max(1, int(allowed.high or 0)) + 1))
    if axis == "positions" and p.ndim and p.size:
        order = np.arange(p.shape[-1]) + (0 if allowed.high == 0 else p[..., :1])
        return np.broadcast_to(order, p.shape).astype(p.dtype) if allowed.high < 2 else np.sort(p, axis=-1)
    if axis == "negative":
        return np.abs(p)
    return np.floor(p).astype(np.int64) if axis == "numbers" else p


# ---- its limits, tried on both sides: inside calls must be answered and right, outside not wrong ---------------------------
def _wrong_at_limit(every: Sequence[Asked], restrictions: Sequence[Restriction], asker: Asker) -> Objection:
    """Return what is wrong at a limit, if anything is."""
    passed = [one for one in every if one.verdict == "pass" and one.case.kind == "value" and one.dtype == asker.dtype]
    for restriction in restrictions:
        change = CHANGES.get(restriction.axis[0]) if len(restriction.axis) == 1 else None
        if change is None or not isinstance(restriction.allowed, Bound) or restriction.allowed.high is None:
            continue
        found = _tried(passed, restriction, change, restrictions, asker)
        if found:
            return found
    return NONE


def _tried(
    passed: Sequence[Asked], restriction: Restriction, change: Change, restrictions: Sequence[Restriction], asker: Asker
) -> Objection:
    """Return what is wrong on either side of one limit."""
    [axis], high = restriction.axis, float(restriction.allowed.high)
    case = _at_limit(passed, axis, high)
    if case is None:
        return NONE
    for value, inside in _values(axis, high, restriction):
        call = change(case, value)
        if call is None or sum(a.size for a in call.inputs.values()) > LARGEST:
            continue
        traits = traits_of(replace(case, calls=(call,)), asker.dtype)
        if any(other.excludes(traits) for other in restrictions if inside or other is not restriction):
            continue
        result = asker.ask(f"{case.id}.{axis.replace('_', '-')}-{value:.0f}", call)
        if result is None or result.verdict == "pass" or (not inside and result.verdict == "unsupported"):
            continue
        told = f"{axis.replace('_', ' ')} {value:g}"
        if result.verdict == "unsupported" and not is_known(traits, asker.answered):
            continue
        if result.verdict == "unsupported":
            return Objection("selective", f"it refuses {told}, inside its limit ({case.id}, moved): {result.message}")
        side = "inside" if inside else "beyond"
        text = f"{side} its limit, at {told}, it is wrong ({case.id}, moved): {result.message}"
        return Objection(result.verdict, text)
    return NONE


def _at_limit(passed: Sequence[Asked], axis: str, high: float) -> LoadedCase | None:
    """Return the smallest of the cases nearest to a limit that have one call, and no option that goes with its length."""
    found = [
        (high - one.traits.sizes.get(axis, (0.0,))[-1], sum(a.size for a in one.case.calls[0].inputs.values()), one.case)
        for one in passed
        if not any(one.case.calls[0].params.get(name) is not None for name in RELATIONS)
    ]
    return min(found, key=lambda one: (*one[:2], one[2].id), default=(0, 0, None))[2]


def _values(axis: str, high: float, restriction: Restriction) -> Iterator[tuple[float, bool]]:
    """Yield values to try, and whether they lie inside."""
    refused = min(
        (one.traits.sizes[axis][-1] for one in restriction.outside if one.traits.sizes[axis][-1] > high), default=high
    )
    if axis != "head_size":
        yield high - 1, True
    step = 2 if axis == "head_size" else 1
    yield from ((value, False) for value in (refused, refused + step * max(1, int(refused) // 3)) if value > high)


# ---- drawn calls ----------------------------------------------------------------------------------------------------------
def _farther(case: LoadedCase, value: float) -> Call | None:
    """Return a call whose positions are moved so that the largest is `value`, as far apart as before but for a start at 0."""
    [call] = case.calls
    given = {n: call.inputs[n] for n in positions_of(case.op) if n in call.inputs and call.inputs[n].size}
    if not given or any(np.any(p < 0) or p.dtype.kind == "f" for p in given.values()):
        return None
    shift = int(value) - max(int(p.max()) for p in given.values())
    return replace(call, inputs={**call.inputs, **{n: np.maximum(p + shift, 0) for n, p in given.items()}})


def _longer(letter: str) -> Change:
    """Return what gives a call with another number of tokens: cut off, or repeated at the positions that follow."""

    def change(case: LoadedCase, value: float) -> Call | None:
        [call] = case.calls
        inputs: dict[str, Any] = dict(call.inputs)
        for name, sizes in letters(case.op, call).items():
            if letter not in sizes or sizes[letter] == (1,):
                continue
            axis = _axis(sizes, letter, inputs[name].ndim)
            if axis is None or not inputs[name].size:  # there is nothing to repeat
                return None
            inputs[name] = resized(inputs[name], axis, int(value), follows=name in positions_of(case.op))
        return None if all(inputs[n] is a for n, a in call.inputs.items()) else replace(call, inputs=inputs)

    return change


def resized(array: Any, axis: int, size: int, *, follows: bool) -> Any:
    """Return an array with another size of an axis; positions go on as they began."""
    given = array.shape[axis]
    index = np.arange(size) % given
    found = np.take(array, index, axis=axis)
    if follows and np.issubdtype(array.dtype, np.integer):
        span = int(array.max() - array.min()) + 1
        rounds = (np.arange(size) // given).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
        found = found + span * rounds
    return found


def _wider(case: LoadedCase, value: float) -> Call | None:
    """Return a call with a larger head, whose channels are repeated."""
    [call] = case.calls
    if has_coordinates(case.op) or call.params.get("rotary_dim") is not None:
        return None
    return _longer("D")(case, value)


CHANGES: dict[str, Change] = {
    "position": _farther, "head_size": _wider, **{name: _longer(letter) for letter, name in LETTERS.items()},
}  # fmt: skip
