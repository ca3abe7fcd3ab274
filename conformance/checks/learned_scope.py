"""
Learns the scope of an implementation by experiment: what it refuses, as restrictions of a report.

Stored cases that were refused begin the walk. A cause of one feature is told on the axis of `supports` that says the same, if
there is one; positions in one sentence. What a call cannot be made of, such as gradients, is left to `scope.infer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from posref.spec import REGISTRY, Flag, OneOf, Record

from ..experiments.anchor_search import likely, seek
from ..experiments.asker import ANY_ANSWER, REFUSED, RIGHT, WRONG, Asker
from ..experiments.cause_search import FRESH, Cause, Experiment, call_key, is_scaling
from ..experiments.cause_wording import essential, is_vague, what_is_left
from ..experiments.inside_scope import begin_at, calls_inside
from ..experiments.number_rules import Numbers, Rule
from ..experiments.quantities import quantities
from ..experiments.records import GRID, Features, is_number, read
from ..model import Call
from ..targets.base import Target
from ..vocabulary.traits import (
    DEFAULT,
    GIVEN,
    SHARES,
    are_lengths,
    defaults,
    last_cells,
    numbers_or_none,
    ranks_of,
    traits_of,
    vocabulary,
)  # fmt: skip
from .scope import ENOUGH, Asked, Bound, Restriction, infer, on_axis

Progress = Callable[[str], None]  # called with the id of every case as it begins
CALLS = 500  # of one operation, at most
SOUGHT = 4 * CALLS  # until one is answered: these have the sizes of released models, and count as several
DRAWN, INSIDE = 500, 12  # fresh calls that are asked, and judged, where stored cases are too few
VERDICTS = {RIGHT: "pass", WRONG: "fail", REFUSED: "unsupported"}
ASKED = frozenset({  # axes of traits that calls are made of: of these experiments know more
    "rank", "one", "positions", "position", "tokens", "queries", "keys", "head_size", "rows", "taps", "axes",
})  # fmt: skip
ROUNDS = 2  # of learning: what a fresh call makes narrower may leave cases without a cause
AGAIN = 3  # times that as many calls are asked again, while refused cases have no cause
KEPT = 5  # one call of so many is kept to predict from what was learned
PLACES = ("form", "start", "queries", "rows")  # features of positions
AXES = {"tokens": "tokens", "queries": "queries", "keys": "keys", "head size": "head_size", "largest position": "position",
        "taps": "taps", "N": "rows", "query heads": "heads"}  # fmt: skip
OF_SIZES = "positions 0, 1, 2, ... to the last that the sizes allow"
LAST = ", queries the last of the keys"
SHARE = "rotated share of the head"
EQUAL = {"queries minus keys": "unequal_lengths", "rows of the grid minus columns of the grid": "not_square",
         "height over width": "not_square", "k_rows over k_columns": "not_square"}  # fmt: skip
NOT_OFFERED = {
    ("memory", "non-contiguous"): "strided", ("rows", "of their own"): "per_row",
    ("order", "tokens first"): "tokens_before_heads", ("order", "heads first"): "heads_before_tokens",
    ("coordinates", "unlike"): "unequal_coordinates", ("marks", "some"): "marked", ("circle", "off"): "free_tables",
}  # fmt: skip


@dataclass
class Trials:
    """Experiments with the operations of a target: at most so many `calls` of each, drawn by a `seed`; none of files."""

    target: Target
    calls: int = CALLS
    seed: int = 0
    progress: Progress | None = None
    inside_calls: int = INSIDE  # that are judged where stored cases are too few
    of: dict[str, Experiment] = field(default_factory=dict)
    right: dict[str, list[Call]] = field(default_factory=dict)  # fresh calls inside of a scope, by operation
    learned: dict[str, Any] = field(default_factory=dict)  # what `supports` says of what was learned, by operation

    def refusals(self, op: str, every: Sequence[Asked], enough: int) -> tuple[list[Restriction], list[Asked]]:
        """Return what an operation refuses, and the refused cases that nothing explains."""
        if not self.can_ask() or all(one.answered or one.case.kind == "vjp" for one in every):
            return infer(op, every, enough)
        trial = self.begin(op, every[0].dtype, every)
        restrictions, left = _explained(trial, every, enough)
        return infer(op, every, enough) if trial.anchor(right=False) is None else (restrictions, left)

    def inside(
        self, op: str, every: Sequence[Asked], may: Callable[[Experiment, Features], bool], *, stated: bool,
        numbers: Collection[float], lacking: Collection[str],
    ) -> list[Asked]:  # fmt: skip
        """
        Return fresh calls that an operation answers, or refuses without a cause, where stored cases are too few.

        A call to begin with, which `may` be asked, is looked for in every dtype. What is refused is learned, unless the scope
        is `stated`, with its `numbers`, and the arrays `lacking` in it.
        """
        stored = [record for one in every for record in records_of(one)]
        for dtype in dict.fromkeys(one.dtype for one in every):
            trial = self.begin(op, dtype, every)
            asker, before = trial.asker, trial.asker.calls
            allowed = partial(may, trial)
            good = trial.anchor(right=False)
            if good is None:
                asker.budget += SOUGHT
                good = seek(trial, stored, numbers, allowed, lacking)
                asker.budget += asker.calls - before - SOUGHT
            if good is None:
                continue
            begin_at(trial, good, likely(op, good, numbers))
            asker.budget += CALLS
            if not stated:
                trial.alone(REFUSED, ("",))
                _explained(trial, every, ENOUGH)
            asker.budget = max(asker.budget, asker.calls + DRAWN)
            known = {call_key(op, call) for one in every for call in one.case.calls}
            return [
                Asked(case, dtype, traits_of(case, dtype), VERDICTS.get(outcome, outcome), every[0].claim)
                for case, outcome in calls_inside(trial, self.inside_calls, allowed, known)
            ]
        return []

    def begin(self, op: str, dtype: str, every: Sequence[Asked]) -> Experiment:
        """Return the experiment with an operation, which begins with its stored cases; in a dtype, there is another."""
        if op not in self.of or self.of[op].asker.dtype != dtype:
            self.of[op] = experiment(op, every, Asker(self.target, op, dtype, self.calls, self.progress), self.seed)
        return self.of[op]

    def can_ask(self) -> bool:
        """Return whether the target answers calls that no file has."""
        return self.calls > 0 and self.target.kind != "outputs"

    def close(self) -> None:
        """Leave no process behind."""
        for trial in self.of.values():
            trial.asker.close()


def records_of(one: Asked) -> list[Features]:
    """Return the features of every call of a case."""
    return [read(one.case.op, call, one.case.form) for call in one.case.calls]


def experiment(op: str, every: Sequence[Asked], asker: Asker, seed: int) -> Experiment:
    """Return an experiment that begins with the cases of an operation."""
    values = [one for one in every if one.case.kind in ("value", "sequence")]
    answered = [record for one in values if one.verdict == "pass" and one.dtype == asker.dtype for record in records_of(one)]
    return Experiment(asker, [record for one in values for record in records_of(one)], answered, seed)


def _has_values(call: Call) -> bool:
    """Return whether a call has results with elements."""
    return any(x.size for x in call.expected.values())


def described(trial: Experiment, every: Sequence[Asked]) -> dict[str, list[tuple[Features, Numbers]]]:
    """Return the features and the numbers of the calls of every case."""
    by_case: dict[str, list[tuple[Features, Numbers]]] = {}
    for one in every:
        if one.id not in by_case:
            records = [trial.full(record) for record in ([trial.drawn[one.id]] if one.id in trial.drawn else records_of(one))]
            by_case[one.id] = [(r, quantities(trial.op, r, call)) for r, call in zip(records, one.case.calls, strict=True)]
    return by_case


def _explained(trial: Experiment, every: Sequence[Asked], enough: int) -> tuple[list[Restriction], list[Asked]]:
    """Return what an operation refuses, and what nothing explains, after more calls where these were too few."""
    for again in range(AGAIN + 1):
        learned, left = learn(trial, every)
        others, left = infer(trial.op, every, enough, besides=ASKED, refused=left)
        if not left or not trial.asker.is_spent or again == AGAIN:
            break
        trial.asker.budget = trial.asker.calls + CALLS  # the many sizes of kernels take calls that causes need
    return [*learned, *others], left


def learn(trial: Experiment, every: Sequence[Asked]) -> tuple[list[Restriction], list[Asked]]:
    """Return what an operation refuses, each with the cases that it explains and none before it does, and what is left."""
    refused = [one for one in every if not one.answered]
    cases = described(trial, every)
    begun = [one for one in refused if one.case.kind != "vjp" and all(map(_has_values, one.case.calls))]
    passed = [one for one in every if one.verdict == "pass" and all(_has_values(call) for call in one.case.calls)]
    kept = max(trial.asker.budget - trial.asker.calls, 0) // KEPT
    for _ in range(ROUNDS):
        trial.asker.budget -= kept
        trial.learn(REFUSED, [call for one in begun for call in cases[one.id]])
        trial.complete(REFUSED, PLACES)
        trial.alone(REFUSED, ("",))
        trial.hold_to([*(call for one in passed for call in cases[one.id]), *trial.answers()], REFUSED)
        trial.asker.budget += kept
        trial.predict((REFUSED,))
    _predict_the_rest(trial)
    whole = merged([cause for cause in trial.causes if cause.kind == REFUSED and not is_vague(cause)])
    causes = [essential(cause) for cause in whole]
    holding = {id(cause): full.holds for cause, full in zip(causes, whole, strict=True)}
    restrictions = []
    last = all(are_lengths(call) for one in passed for call in one.case.calls)
    for restriction, several in [*_of_positions(trial.op, causes, last=last), *((_restriction(trial, c), [c]) for c in causes)]:
        explaining = [cause for cause in several if any(cause is left for left in causes)]
        if explaining:
            causes = [cause for cause in causes if not any(cause is one for one in explaining)]
            covers = {name for name, calls in cases.items() if any(holding[id(c)](*call) for c in explaining for call in calls)}
            covers |= _by_traits(restriction, every)
            fresh = sum(cause.true for cause in explaining), sum(cause.asked for cause in explaining)
            restrictions.append((replace(restriction, covers=frozenset(covers), fresh=fresh), len(explaining[0].features) == 1))
    sentences, left = list[Restriction](), refused
    for one, is_plain in sorted(restrictions, key=lambda entry: -len(entry[0].covers)):
        outside = tuple(case for case in left if case.id in one.covers)
        is_new = not any(_statement_of(one) == _statement_of(before) for before in sentences)
        if outside or (is_new and (is_plain or (one.fresh[0] and not one.covers))):
            sentences.append(replace(one, outside=outside))
            left = [case for case in left if case.id not in one.covers]
    return sentences, left


def _predict_the_rest(trial: Experiment) -> None:
    """Ask a few fresh calls of the causes for which no calls were left: learning others may have taken those kept for it."""
    untried = [cause for cause in trial.causes if cause.kind == REFUSED and cause.asked < FRESH // 2 and not is_vague(cause)]
    for cause in untried:
        cause.told = False
    trial.asker.budget = max(trial.asker.budget, trial.asker.calls + 2 * FRESH * len(untried))
    trial.predict((REFUSED,))


def _statement_of(restriction: Restriction) -> Any:
    """Return the sentence of a restriction, or its axis with what that allows."""
    return restriction.text or (restriction.axis, restriction.allowed)


def merged(causes: Sequence[Cause]) -> list[Cause]:
    """Return causes, those of values of one feature alone put together, and multiples of one number."""
    by_text: dict[str, Cause] = {}
    rest: list[Cause] = []
    for cause in causes:
        before = next((one for one in rest if _are_multiples(one, cause)), None)
        if before is not None:
            step = math.lcm(*(int(one.rules[0].numbers[0]) for one in (before, cause)))
            rules = [replace(cause.rules[0], numbers=(step,))]
            true, asked = before.true + cause.true, before.asked + cause.asked
            rest[rest.index(before)] = replace(before, rules=rules, true=true, asked=asked)
            continue
        if len(cause.shows) != 1 or cause.rules or cause.rough:
            rest.append(cause)
            continue
        [name] = cause.shows
        before = by_text.get(name, cause)
        shows = [*before.shows[name], *(cause.shows[name] if before is not cause else ())]
        lacks = [value for value in before.lacks[name] if repr(value) not in map(repr, shows)]
        true, asked = (n + m for n, m in zip((before.true, before.asked), (cause.true, cause.asked), strict=True))
        together = replace(before, shows={name: shows}, lacks={name: lacks}, true=true, asked=asked)
        by_text[name] = cause if before is cause else together
    return [*by_text.values(), *rest]


def _are_multiples(cause: Cause, other: Cause) -> bool:
    """Return whether two causes say each that one number is no multiple of a step, and nothing else."""
    plain = all(len(one.rules) == 1 and not one.shows and not one.rough for one in (cause, other))
    both = [rule for one in (cause, other) for rule in one.rules]
    of_step = all(rule.kind == "no multiple" and len(rule.numbers) == 1 for rule in both)
    return plain and of_step and both[0].quantity == both[1].quantity


def _by_traits(restriction: Restriction, every: Sequence[Asked]) -> set[str]:
    """Return the cases that an axis excludes, unless the target answered one of them."""
    if restriction.allowed is None:
        return set()
    outside = [one for one in every if restriction.excludes(one.traits)]
    if restriction.text.endswith(LAST):
        outside = [one for one in every if not all(map(are_lengths, one.case.calls))]
    return set() if any(one.answered for one in outside) else {one.id for one in outside}


# ---- causes as axes of `supports` -------------------------------------------------------------------------------------------
def _of_positions(op: str, causes: Sequence[Cause], *, last: bool) -> list[tuple[Restriction, list[Cause]]]:
    """Return the form of positions that is taken, with the causes that it stands for; `last` if all answered queries are so."""
    of_places = [
        cause for cause in causes if {*cause.features} <= {*PLACES, "size Q", "size K"} and {*cause.features} != {"rows"}
    ]
    forms = {value for cause in of_places if cause.features == ("form",) for value in cause.shows.get("form", ())}
    rules = [rule for cause in of_places for rule in cause.rules if rule.quantity == "smallest position"]
    zero = any(rule.kind in ("other", "least") and rule.holds({rule.quantity: 1}) for rule in rules)
    zero = zero or any(cause.features == ("start",) and cause.lacks.get("start") == [0] for cause in of_places)
    last = last and any(cause.lacks.get("queries") == ["last"] for cause in of_places)
    zero = zero or (bool(last_cells(op)) and "consecutive" in forms)
    consecutive = "gaps" in forms and (zero or "unsorted" in forms)
    if GRID not in forms and any(cause.lacks.get("form") == [GRID] for cause in of_places):
        return []
    level = 0 if zero and consecutive else 1 if consecutive else 2 if "unsorted" in forms else 3
    if level == 3 or (last and level):
        return []
    text = (OF_SIZES if last_cells(op) else "only positions 0, 1, 2, ...", "consecutive positions", "sorted positions")[level]
    text += LAST if last else ""
    several = [cause for cause in of_places if _is_told(cause, level, last=last)]
    one = replace(on_axis("positions", Bound(high=float(level))), text=text, lacks=("other_queries",) if last else ())
    return [(one, several)]


def _is_told(cause: Cause, level: int, *, last: bool) -> bool:
    """Return whether a form of positions says what a cause does, or answered calls speak against it."""
    if cause.features == ("form",):
        return cause.shows.get("form") != ["fractional"]
    if "queries" in cause.features and (last or cause.lacks.get("queries") == ["last"]):
        return True
    return level == 0 and cause.features == ("start",)


def _restriction(trial: Experiment, cause: Cause) -> Restriction:
    """Return what a cause leaves: an axis with what it allows, or a sentence."""
    axis, allowed = _axis(trial, cause) or ("", None)
    if axis:
        return on_axis(axis, allowed)
    text = what_is_left(trial.op, cause)
    ranks, few, lacks = _ranks(trial, cause), _few(trial.op, cause), _traits(trial, cause)
    on_axes = on_axis("rank", ranks) if ranks else on_axis(*few) if few else Restriction(cause.features, None, lambda _: False)
    return replace(on_axes, text=text, lacks=lacks)


def _few(op: str, cause: Cause) -> tuple[str, frozenset[Any]] | None:
    """Return an option with the numbers that were taken, where no rule holds: of others nothing is known."""
    [name, *others] = cause.shows or [""]
    taken = [n for n in cause.lacks.get(name, ()) if is_number(n)]
    axis = name.removeprefix("option ")
    if others or cause.rules or not cause.rough or not taken or len(taken) < len(cause.lacks[name]) or axis == name:
        return None
    return (axis, frozenset(taken)) if axis in vocabulary(op) else None


def _traits(trial: Experiment, cause: Cause) -> tuple[str, ...]:
    """Return the traits that a cause leaves out, where it leaves out rows of positions, or one order of the axes."""
    if [*cause.shows] == ["rows"] and not cause.rules and cause.lacks.get("rows") == ["alike"]:
        return ("per_row", "shared_rows")
    if "way" not in cause.shows or cause.rules:
        return ()
    calls = [trial.asker.call(record) for record, numbers in trial.answers() if not cause.holds(record, numbers)]
    words = [traits_of(trial.asker.case(call), trial.asker.dtype).words for call in calls if call is not None]
    return ("heads_before_tokens",) if words and not any("heads_before_tokens" in one for one in words) else ()


def _ranks(trial: Experiment, cause: Cause) -> frozenset[int]:
    """Return the ranks that were answered, where a cause is a number of axes; none of another."""
    of_axes = {*cause.shows} <= {"leading axes", "way"} and all(rule.quantity == "leading axes" for rule in cause.rules)
    if not of_axes or not any(cause.features):
        return frozenset()
    calls = [trial.asker.call(record) for record, numbers in trial.answers() if not cause.holds(record, numbers)]
    return frozenset[int]().union(*(ranks_of(trial.op, call) for call in calls if call is not None))


def _axis(trial: Experiment, cause: Cause) -> tuple[str, Any] | None:
    """Return the axis on which a cause may be stated, with what it allows; None without one."""
    op = trial.op
    if any(name not in cause.features for name in cause.shows) or (cause.rough and not _is_at_default(op, cause)):
        return None
    if len(cause.rules) == 1 and not cause.shows:
        return _default_alone(op, _limit(trial, cause.rules[0]))
    if cause.rules or len(cause.shows) != 1:
        return None
    [(name, shows)] = cause.shows.items()
    lacks, (kind, _, rest) = cause.lacks[name], name.partition(" ")
    if kind == "option":
        return _option(op, rest, shows, [*lacks, *(record[name] for record in trial.answered)])
    if kind == "array":
        return rest, frozenset[Any]({True} if shows == [False] else ())
    if name == "form" and shows == ["fractional"]:
        return "numbers", frozenset({"integers", "whole floats"})
    if name == "form" and lacks == [GRID]:
        return "off_grid", frozenset()
    if name == "bands":
        return "bands", frozenset(lacks)
    axis = NOT_OFFERED.get((name, shows[0])) if len(shows) == 1 else None
    return None if axis is None or axis not in vocabulary(op) else (axis, frozenset[Any]())


def _is_at_default(op: str, cause: Cause) -> bool:
    """Return whether a single number decides: the target takes its default and no other value."""
    name = next(iter(cause.shows), "").removeprefix("option ")
    return len(cause.shows) == 1 and name in defaults(op) and cause.lacks.get(f"option {name}") == [defaults(op)[name]]


def _default_alone(op: str, limit: tuple[str, Any] | None) -> tuple[str, Any] | None:
    """Return a limit, told as the default where nothing else is within it."""
    axis, bound = limit or ("", None)
    usual = defaults(op).get(axis)
    if not is_number(usual) or not isinstance(bound, Bound) or bound.high != usual:
        return limit
    least = getattr(REGISTRY[op].domains.get(axis), "low", None)
    return (axis, frozenset({DEFAULT})) if usual in (bound.low, least) else limit


def _answered(trial: Experiment, rule: Rule) -> float:
    """Return the number of a quantity that was answered nearest to where refusals begin."""
    asked = [record for record, outcome in trial.asker.known.values() if outcome in ANY_ANSWER]
    numbers = [trial.numbers(record).get(rule.quantity) for record in (*asked, *trial.answered)]
    [first, *_], sign = rule.numbers, 1 if rule.kind == "most" else -1
    return first + min((abs(n - first) for n in numbers if n is not None and sign * (n - first) > 0), default=1) * sign


def _limit(trial: Experiment, rule: Rule) -> tuple[str, Any] | None:
    """Return a limit on a number, as far as it was answered; of one token, query or key a word."""
    op = trial.op
    axis = AXES.get(rule.quantity, rule.quantity if rule.quantity in REGISTRY[op].domains else "")
    others = (*EQUAL, "smallest ", "spread of ", SHARE)
    if axis not in vocabulary(op) and not rule.quantity.startswith(others):
        return None
    first = rule.numbers[0] if rule.numbers else 0.0
    if rule.quantity in EQUAL and EQUAL[rule.quantity] in vocabulary(op) and not rule.holds({rule.quantity: 0}):
        alike = {numbers.get(rule.quantity, 0) for _, numbers in trial.answers()} == {0}
        return (EQUAL[rule.quantity], frozenset()) if alike else None
    match rule.kind:
        case "most" if rule.quantity == "smallest position":
            return ("negative", frozenset()) if first == -1 else None
        case "least" if axis:
            return axis, Bound(high=_answered(trial, rule))
        case "most" if axis:
            return axis, Bound(low=_answered(trial, rule))
        case "equal" if axis in ("tokens", "queries", "keys") and first == 1:
            return "one", frozenset(vocabulary(op)["one"] or ()) - {"query" if axis == "queries" else axis[:-1]}
        case "least" if rule.quantity.startswith("spread of ") and first == 1:
            return f"unequal_{rule.quantity.removeprefix('spread of ')}", frozenset()
        case "most" if rule.quantity.startswith("smallest of ") and first == 1:
            return f"one_{rule.quantity.removeprefix('smallest of ')}", frozenset()
        case "other" if rule.quantity == SHARE and first in SHARES:
            return "rotated", frozenset({SHARES[first]})
        case "other" if axis:
            return axis, Bound(first, first)
        case "no multiple" if axis and len(rule.numbers) == 1:
            return axis, Bound(multiple_of=int(first))
    return None


def _option(op: str, name: str, shows: Sequence[Any], lacks: Sequence[Any]) -> tuple[str, Any] | None:
    """Return the words of an option that are left; of a number whether it is at its default, or its value."""
    domain = REGISTRY[op].domains[name]
    if isinstance(domain, Record):
        refused, kept = ({_kind(value) for value in values} for values in (shows, lacks))
        return None if refused & kept else (name, frozenset(kept))
    if isinstance(domain, OneOf | Flag):
        return name, frozenset(lacks)
    if name in defaults(op) or name in numbers_or_none(op):
        usual = defaults(op).get(name)
        if {repr(value) for value in lacks} == {repr(usual)}:
            return name, frozenset({DEFAULT if name in defaults(op) else None})
        if usual not in lacks and list(shows) == [usual] and len(lacks) > 1:
            return name, frozenset({GIVEN})
    return (name, frozenset(lacks)) if len({*lacks}) == 1 and is_number(lacks[0]) else None


def _kind(value: Any) -> Any:
    """Return the type of a scaling, or None."""
    return type(value).__name__ if is_scaling(value) else value
