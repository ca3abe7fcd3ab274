"""
Fresh calls: passing calls run again with other numbers, judged live. A table of the suite's answers fails them.

Of every operation a few small cases that passed are drawn, by a seed that the report names. Reals are made smaller, each by its
own factor; positions are moved, those of queries farther than those of keys; indices of tables are drawn anew. Where an
operation takes no arrays its options are changed, and where tokens depend on their neighbours one of them is left out.

One that is right is asked again with two neighbours of an array exchanged. A cache by the sum, the ends or the shape of the
array does not see that. Nor does a cache by weighted sums see four positions changed so that these stay, nor a cache by bytes
or by halves that far positions of the suite are others. Reals are also moved far from 0, where a difference of sums is lost.
Such a copy is right if its errors are about as small as those of the call; else it is judged live.

Then numbers that are options, and sizes of axes, are changed one by one to numbers that the suite has not. A number that the
scope excludes is moved into it: code for multiples of 8 meets odd multiples of 8, 16 and 32.

Every operation must answer one fresh call: else it may be a table that refuses all that is not in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
import numpy.typing as npt

from posref.backends.rounding import BITS, round_to
from posref.spec import REGISTRY, Axes, Flag, Integer, OneOf, Real

from ..calls import EXACT, HALF, given_dtype, positions_of, returns_reals
from ..experiments.asker import ANSWERED, ENDED, REFUSED, RIGHT, WRONG, Asker
from ..experiments.cause_search import call_key, is_scaling
from ..experiments.inside_scope import moved, numbers_in, odd_multiples
from ..experiments.quantities import quantities
from ..experiments.records import Features, is_number, make, options_and_sizes, read, word_of
from ..model import TABLE_FORMS, Answer, Arrays, Call, LoadedCase, Operation, Scope
from ..proof.evaluation import plain
from ..proof.live_truth import Sample
from ..vocabulary.axes import arranged, holds, limits, names_in, result_axes, value_of, within
from ..vocabulary.traits import RELATIONS, are_lengths, are_whole, defaults, last_cells, letters, traits_of
from . import scope_statement
from .case_run import asked_in
from .learned_scope import Trials
from .scope import Bound, is_inside
from .scope_result import NARROW
from .scope_statement import Stated

CALLS = 4  # of an operation, with other numbers
VARIED = 8  # with another option or size
SIZES = range(2, 67)  # of which an axis is given one
ATTEMPTS = 12  # to change an option or a size
TRIED = 12  # cases of which calls are tried while none is answered
RECORDS = 3  # of which one is given a multiple
LARGEST = 1 << 10  # numbers of a case, in and out
FARTHEST = 1 << 16  # its positions
TOKENS = {"size Q", "size K", "size T"}  # of which there are more, until a number of an option tells
SHORTEST = 3  # tokens of which one can be left out
Pairs = Sequence[tuple[Operation, list[Answer]]]
Stored = Sequence[Mapping[str, Any]]  # options of the suite's calls
# A case, the call that is drawn from it, what is other in it, and the array in which two numbers are exchanged, or ""
Drawn = tuple[LoadedCase, Call, str, str]
NUMBERS = "other numbers"
May = Callable[[LoadedCase, Call], bool]  # whether a call of a case lies in the scope, as far as it is known
EXCHANGES = 2  # in one array
ABOUT = 2  # times the largest error of the call before
BALANCED = np.array([1, -3, 3, -1])  # added to four positions, they change no sum weighted by 1, by the place or by its square
TIMES = (64, 32, 16, 8, 4, 2, 1)  # the first of which fits: positions keep their parity too, and more of their last bits
AWAY = 256  # times the largest number, added to all


@dataclass
class Before:
    """The last call with no numbers exchanged: copies of it with two exchanged are asked once it is right."""

    op: str
    call: Call
    is_right: bool = False
    errors: dict[str, float] = field(default_factory=dict)  # the largest of each result

    @cached_property
    def near(self) -> Arrays:
        """What it gives in float64."""
        return plain(self.op, self.call.inputs, self.call.params)

    def keep(self, sample: Sample | None) -> None:
        """Keep that it is right, and how far its results are from the true ones."""
        self.is_right = True
        if sample is not None:
            expected = sample.call.expected
            self.errors = {n: float(np.max(np.abs(sample.outputs[n] - x), initial=0)) for n, x in expected.items()}

    def is_as_near(self, outputs: Arrays, near: Arrays) -> bool:
        """
        Return whether the results of such a copy are about as `near` to the definition in float64 as those of this call.

        So they are not those of this call, which is all that the copy asks.
        """
        return self.errors.keys() == near.keys() and all(
            bool((np.abs(outputs[n].astype(np.float64) - near[n]) <= ABOUT * error).all()) for n, error in self.errors.items()
        )


def ask_fresh_calls(operations: Pairs, stated: Stated, seed: int, trials: Trials, *, whole: bool = True) -> int:
    """Ask every operation that conforms a few fresh calls, and count them; after a `whole` tier, one must be answered."""
    asked = 0
    for op in dict.fromkeys(operation.op for operation, _ in operations):
        of_operation = [pair for pair in operations if pair[0].op == op]
        if all(operation.conformant for operation, _ in of_operation):
            asked += _ask(op, of_operation, stated, np.random.default_rng([seed, *op.encode()]), trials, whole)
    return asked


def _ask(op: str, own: Pairs, stated: Stated, rng: np.random.Generator, trials: Trials, whole: bool) -> int:
    """Make fresh calls of one operation in one dtype, add failures to its scope, and return the number of calls."""
    operation, answers = min(own, key=lambda pair: pair[0].dtype == "float64")  # whose values would all be decided on balls
    passed = {one.id for one in operation.cases if one.verdict == "pass" and one.kind == "value"}
    every = [answer.case for answer in answers if answer.case.id in passed and len(answer.case.calls) == 1]
    every = [case for case in every if is_small(case.calls[0]) and asked_in(case, operation.dtype)]
    cases = [case for case in every if is_near(case)]
    asker = Asker(trials.target, op, operation.dtype, TRIED, trials.progress)
    known = list({id(call): call for _, given in own for answer in given for call in answer.case.calls}.values())
    cases = [cases[at] for at in rng.permutation(len(cases))]
    answered = refused = with_numbers = 0
    before = Before(op, Call({}, {}))
    seen = Counter[str]()  # arrays in which numbers were exchanged
    numbers = _numbers_in(op, stated, trials)

    def may(case: LoadedCase, call: Call) -> bool:
        return _is_stated(case, call, stated) and not _is_excluded(op, case, call, trials)

    drawn = chain(
        _with_numbers(cases, operation.dtype, rng, known),
        _alike(op, every, asker),
        varied(op, cases, asker, rng, known, numbers, may),
        _multiples(op, cases, asker, rng, known, numbers, may),
    )
    stored = {call_key(op, call) for call in known}
    for case, call, words, exchanged in (one for one in drawn if call_key(op, one[1]) not in stored):
        near: Arrays = {}
        if exchanged:
            if not before.is_right or seen[exchanged] >= EXCHANGES:
                continue
            near = _near(op, call)
            if all(np.array_equal(x, near.get(name, x)) for name, x in before.near.items()):
                continue
            seen[exchanged] += 1
        else:
            before = Before(op, call)
            if words == NUMBERS and with_numbers >= CALLS and (answered or trials.right.get(op)):
                continue
        outcome = asker.asked(call, case.form, judged=not exchanged)
        if outcome == ANSWERED:
            outcome = RIGHT if before.is_as_near(asker.outputs, near) else asker.judged(call, asker.outputs)
        elif outcome == RIGHT:
            before.keep(asker.sample)
        if outcome not in (RIGHT, WRONG, REFUSED, "error", *ENDED):
            continue
        if outcome == REFUSED and not _is_stated(case, call, stated):
            continue
        answered, refused = answered + (outcome != REFUSED), refused + (outcome == REFUSED)
        with_numbers += words == NUMBERS
        loose = words != NUMBERS and op not in stated  # nothing is known of such numbers
        if outcome == RIGHT or (outcome == REFUSED and (loose or _may_refuse(operation, case, call, stated, trials))):
            continue
        verb = "refuses" if outcome == REFUSED else "is wrong in"
        text = f"it {verb} a fresh call, {case.id} with {words}: {asker.said}"
        _decide(own, {WRONG: "fail", REFUSED: "selective"}.get(outcome, outcome), text)
        return answered + refused
    if whole and not answered and (refused or op not in stated) and not trials.right.get(op):
        _decide(own, NARROW, f"its scope is too narrow: {_without_answer(refused)}; state the scope in `supports`")
    return answered + refused


def _without_answer(refused: int) -> str:
    """Return in words that no fresh call was answered, of which so many were refused."""
    calls = "the fresh call" if refused == 1 else f"all {refused} fresh calls"
    return f"it refuses {calls}, cases that passed with other numbers" if refused else "there is no call in it but the suite's"


def _with_numbers(
    cases: Sequence[LoadedCase], dtype: str, rng: np.random.Generator, known: Sequence[Call]
) -> Iterator[Drawn]:  # fmt: skip
    """Yield calls of cases with other numbers."""
    stored = [{**defaults(case.op), **call.params} for case in cases[:1] for call in known]
    fullest = max(cases, key=lambda case: _exchangeable(case.op, case.calls[0]), default=None)
    for case in sorted(cases, key=lambda case: case is not fullest)[:TRIED]:
        call = fresh(case, dtype, rng, stored)
        if call is not None:
            yield case, call, NUMBERS, ""
            yield from _exchanged(case, call)
            yield from _balanced(case, call)
            yield from _far_from_zero(case, call, dtype)


def _balanced(case: LoadedCase, call: Call) -> Iterator[Drawn]:
    """Yield calls with four positions of an array changed, whose sums and weighted sums stay."""
    known = _numbers_of(case.op, call)
    for name, x in _exchangeable_in(case.op, call).items():
        axes = REGISTRY[case.op].arrays[name]
        if axes.kind == "real" or axes.distinct or axes.earlier or not np.array_equal(x, np.round(x)):
            continue
        low, high = (default if end is None else end for end, default in zip(limits(axes, known), (0, math.inf), strict=True))
        flat = x.reshape(-1)
        changed = (
            np.concatenate([flat[:k], flat[k : k + len(BALANCED)] + sign * times * BALANCED, flat[k + len(BALANCED) :]])
            for times in TIMES
            for k in range(x.size - len(BALANCED) + 1)
            for sign in (1, -1)
        )
        other = next((values for values in changed if np.min(values) >= low and np.max(values) <= high), None)
        if other is not None:
            inputs = {**call.inputs, name: other.reshape(x.shape).astype(x.dtype)}
            yield case, replace(call, inputs=inputs), f"four numbers changed in {name}, but no weighted sum", f"{name} balanced"


def _far_from_zero(case: LoadedCase, call: Call, dtype: str) -> Iterator[Drawn]:
    """Yield calls with the reals of an array moved far from 0, by more than they differ; not those of few bits."""
    for name, x in call.inputs.items():
        axes, narrow = REGISTRY[case.op].arrays[name], given_dtype(case.op, name, dtype, case.form)
        free = axes.kind == "real" and axes.usual == Axes.usual and not axes.positive and (axes.low, axes.high) == (None, None)
        if free and narrow not in HALF and x.size and np.all(np.isfinite(x)):
            moved = round_to(x + AWAY * 2.0 ** np.ceil(np.log2(np.max(np.abs(x)) or 1.0)), narrow)
            yield case, replace(call, inputs={**call.inputs, name: moved}), f"{name} far from 0", f"{name} far"


def _exchanged(case: LoadedCase, call: Call, drawn: str = "") -> Iterator[Drawn]:
    """Yield calls with two neighbours of an array exchanged, in its middle and near its start."""
    for name, x in _exchangeable_in(case.op, call).items():
        places = _places(x)
        for k in dict.fromkeys((*places[len(places) // 2 :][:1], *places[:1])):
            inputs = {**call.inputs, name: _with_two_exchanged(x, k)}
            yield case, replace(call, inputs=inputs), f"{drawn}numbers {k} and {k + 1} exchanged in {name}", f"{drawn}{name}"


def _alike(op: str, cases: Sequence[LoadedCase], asker: Asker) -> Iterator[Drawn]:
    """Yield calls of the suite with other positions, which bytes or half precision do not tell from those of the suite."""
    arrays = {n: axes for n, axes in REGISTRY[op].arrays.items() if n in positions_of(op) and axes.low in (None, "0")}
    for name in (n for n, axes in arrays.items() if not (axes.ordered or axes.distinct or axes.earlier)):
        having = {case.id: (case, case.calls[0].inputs[name]) for case in cases if name in case.calls[0].inputs}
        some = [pair for pair in having.values() if np.max(np.abs(pair[1]), initial=0) < EXACT]
        if not some:
            continue
        case, x = max(some, key=lambda pair: np.max(pair[1], initial=0))
        call, power = case.calls[0], 1 << max(int(np.max(x, initial=0)).bit_length() - 1, 0)
        halves = [round_to(np.asarray(x - n, float), dtype) for dtype in HALF for n in (0, 1)]
        others = {
            f"{power} less in {name}": np.where(x >= max(power, 2), x - power, x),
            f"1 less in far {name}": np.where((halves[0] == halves[1]) & (halves[2] == halves[3]) & (x > 0), x - 1, x),
        }
        for words, other in others.items():
            made = replace(call, inputs={**call.inputs, name: other})
            new_call = None if np.array_equal(other, x) or are_lengths(call) or are_whole(op, call) else asker.filled(made)
            if new_call is not None:
                yield case, new_call, words, ""


def _exchangeable_in(op: str, call: Call) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a call whose numbers may be in any order."""
    arrays = REGISTRY[op].arrays
    return {
        n: x for n, x in call.inputs.items()
        if not arrays[n].ordered and (arrays[n].index or arrays[n].kind in ("position", "real", "wide"))
    }  # fmt: skip


def _near(op: str, call: Call) -> Arrays:
    """Return what a call gives in float64; nothing where the definition does not take it."""
    try:
        return plain(op, call.inputs, call.params)
    except ValueError:
        return {}


def _exchangeable(op: str, call: Call) -> tuple[int, int]:
    """Return in how many arrays of a call two numbers may be exchanged, and how long the shortest of them is."""
    sizes = [x.size for x in _exchangeable_in(op, call).values() if _places(x)]
    return len(sizes), min(sizes, default=0)


def _places(x: npt.NDArray[Any]) -> list[int]:
    """Return the places of numbers that differ from the next, neither of them first or last."""
    values = x.reshape(-1)
    return [k for k in range(1, x.size - 2) if values[k] != values[k + 1]]


def _with_two_exchanged(x: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """Return an array with the numbers k and k + 1 exchanged."""
    values = x.reshape(-1)
    return np.concatenate([values[:k], values[k : k + 2][::-1], values[k + 2 :]]).reshape(x.shape)


def varied(
    op: str, cases: Sequence[LoadedCase], asker: Asker, rng: np.random.Generator, known: Sequence[Call],
    numbers: Collection[float] = (), may: May | None = None,
) -> Iterator[Drawn]:  # fmt: skip
    """
    Yield calls with a new number in one option or one size; those that a scope `may` have, if it has `numbers`.

    An integer option gets an odd and an even number of steps, and on either side of it are numbers that give other values, if
    such a call is found: a window that is wider than all positions says nothing.
    """
    records, stored = _records(op, cases, known)
    names = sorted({name for _, record in records for name, value in record.items() if _is_varied(name, value)})
    drawn = [names[at] for at in rng.permutation(len(names))]
    for name in sorted(drawn, key=lambda name: name.startswith("size "))[:VARIED]:  # options first
        taken = {repr(record.get(name)) for record in stored}
        kind, _, varying = name.partition(" ")
        whole = kind == "option" and isinstance(REGISTRY[op].domains[varying], Integer)
        having = [pair for pair in records if _is_varied(name, pair[1].get(name))]
        for odd, some in product((0, 1), _by_words(op, having)) if whole else ((None, having),):
            call_of_case: tuple[LoadedCase, Call] | None = None
            for at in range(ATTEMPTS if numbers else 4 * ATTEMPTS):  # most numbers of the near ones may be in the suite
                if call_of_case and at >= ATTEMPTS:
                    break
                case, record = some[at % len(some)]
                other = _other(op, name, record[name], rng, odd)
                grown = {n: record[n] * (1 + at % ATTEMPTS) for n in TOKENS & record.keys()} if whole else {}
                trials = moved(record | grown, name, other, numbers) if numbers else ({**record, **grown, name: other},)
                calls = (_made(case, one, asker, rng) for one in trials if repr(one[name]) not in taken)
                call = next((one for one in calls if one is not None and (may is None or may(case, one))), None)
                if call is not None and is_small(call):
                    call_of_case = case, call
                    if not whole or _tells(op, varying, call):
                        break
            if call_of_case:
                yield *call_of_case, f"another {word_of(op, varying) if kind == 'size' else varying}", ""
                if kind == "size":
                    yield from _exchanged(*call_of_case, "another size and ")


def _records(
    op: str, cases: Sequence[LoadedCase], known: Sequence[Call]
) -> tuple[list[tuple[LoadedCase, Features]], list[Features]]:  # fmt: skip
    """Return cases with the records of their calls, and the options and sizes of known calls."""
    records = [(case, read(op, case.calls[0], case.form)) for case in cases if case.form not in TABLE_FORMS]
    return records, [options_and_sizes(op, call) for call in known]


def _made(case: LoadedCase, record: Features, asker: Asker, rng: np.random.Generator) -> Call | None:
    """Return the call of a record, with positions like those of a case; None where there is no such call."""
    call = make(case.op, record, int(rng.integers(1 << 30)))
    return None if call is None or are_lengths(case.calls[0]) != are_lengths(call) else asker.filled(call)


def _multiples(
    op: str, cases: Sequence[LoadedCase], asker: Asker, rng: np.random.Generator, known: Sequence[Call],
    numbers: Collection[float], may: May,
) -> Iterator[Drawn]:  # fmt: skip
    """Yield calls with odd multiples of the numbers of a scope, in options and sizes that it limits."""
    records, stored = _records(op, cases, known) if any(n > 1 for n in numbers) else ([], [])
    for name in sorted({name for _, record in records for name, value in record.items() if _is_varied(name, value)}):
        having = [(case, record) for case, record in records if type(record.get(name)) is int]
        having = [having[at] for at in rng.permutation(len(having))[:RECORDS]]
        nexts = [(case, _made(case, {**record, name: record[name] + 1}, asker, rng)) for case, record in having]
        taken = {record.get(name) for record in stored}
        if not any(call is not None and not may(case, call) for case, call in nexts):
            continue
        for sizes in odd_multiples(numbers):
            trials = (
                (case, _made(case, {**record, name: n}, asker, rng)) for n in sizes if n not in taken for case, record in having
            )
            drawn = next(
                ((case, call) for case, call in trials if call and is_small(call, 4 * LARGEST) and may(case, call)), None
            )
            if drawn:
                yield *drawn, f"another {word_of(op, name[5:]) if name.startswith('size ') else name.partition(' ')[2]}", ""


def _numbers_in(op: str, stated: Stated, trials: Trials) -> set[float]:
    """Return the numbers of a scope that is stated or learned."""
    if op in stated:
        bounds = [one for one in stated[op].values() if isinstance(one, Bound)]
        few = [n for one in stated[op].values() if not isinstance(one, Bound) for n in one or () if is_number(n)]
        return {n for one in bounds for n in (one.low, one.high, one.multiple_of) if n is not None} | {*few}
    causes = trials.of[op].causes if op in trials.of else ()
    return numbers_in(rule for cause in causes for rule in cause.rules if cause.kind == REFUSED)


def _by_words(op: str, having: Sequence[Any]) -> list[list[Any]]:
    """Return cases with their records together, or apart by the words of their options where results are exact."""
    words = [f"option {n}" for n, d in REGISTRY[op].domains.items() if isinstance(d, OneOf | Flag) and not returns_reals(op)]
    parts: dict[tuple[Any, ...], list[Any]] = {}
    for pair in having:
        parts.setdefault(tuple(pair[1].get(word) for word in words), []).append(pair)
    return list(parts.values())


def _tells(op: str, name: str, call: Call) -> bool:
    """Return whether a call's values depend on the number of an option: they are others with the next one, if it is allowed."""
    step = getattr(REGISTRY[op].domains[name], "step", 1)
    differ = []
    for number in (call.params[name] - step, call.params[name] + step):
        with suppress(ValueError, IndexError):
            before, after = (plain(op, call.inputs, params) for params in (call.params, {**call.params, name: number}))
            differ.append(any(not np.array_equal(x, after[n]) for n, x in before.items()))
    return any(differ) or not differ


def _is_varied(name: str, value: Any) -> bool:
    """Return whether a feature of a call is a number, or has one, and no position."""
    return name.startswith(("option ", "size ")) and (is_number(value) or is_scaling(value)) and value not in (0, None)


def _other(op: str, name: str, value: Any, rng: np.random.Generator, odd: int | None = None) -> Any:
    """
    Return another number in place of an option or a size; a record with another number in one of its fields.

    Of an integer option it is an `odd` number of steps, or an even one; half of them are near.
    """
    factor = 1 + int(rng.integers(1, 32)) / 64
    if is_scaling(value):
        numbers = [one.name for one in fields(value) if type(getattr(value, one.name)) is float]
        if not numbers:
            return value
        changed = numbers[int(rng.integers(len(numbers)))]
        try:
            return replace(value, **{changed: getattr(value, changed) * factor})
        except ValueError:  # there is no such record
            return value
    if isinstance(value, float):
        return value * factor
    domain = REGISTRY[op].domains.get(name.removeprefix("option "))
    if name.startswith("size ") or not isinstance(domain, Integer):
        return int(rng.choice(SIZES))
    steps = int(value) // domain.step + int(rng.choice((1, 1, -1))) * int(rng.integers(1, rng.choice((4, 32))))
    number = max(steps + (steps % 2 != odd), -(-domain.low // domain.step)) * domain.step
    return min(number, domain.high or math.inf)


def _is_stated(case: LoadedCase, call: Call, stated: Stated) -> bool:
    """Return whether a call is inside of the scope that is stated for its operation, if one is."""
    return case.op not in stated or is_inside(stated[case.op], traits_of(replace(case, calls=(call,)), case.dtypes[0]))


def _may_refuse(operation: Operation, case: LoadedCase, call: Call, stated: Stated, trials: Trials) -> bool:
    """Return whether a call that was refused lies outside of the scope, as far as it is known."""
    return operation.op not in stated and (not call.inputs or _is_excluded(operation.op, case, call, trials))


def _is_excluded(op: str, case: LoadedCase, call: Call, trials: Trials) -> bool:
    """Return whether what was learned of an operation excludes a call."""
    learned = {axis: stated for axis, stated in trials.learned.get(op, {}).items() if axis != "gradient"}  # it asks for values
    if not learned and op not in trials.of:
        return False
    traits = traits_of(replace(case, calls=(call,)), case.dtypes[0])
    if learned and not is_inside(scope_statement.read(op, {op: learned})[op], traits):
        return True
    if op not in trials.of:
        return False
    record = trials.of[op].full(read(op, call, case.form))
    numbers = quantities(op, record, call)
    return any(cause.holds(record, numbers) for cause in trials.of[op].causes)


def _decide(own: Pairs, decided: str, text: str) -> None:
    """Put into the scope of an operation what fresh calls say of it."""
    op, counts = own[0][0].op, [operation.counts for operation, _ in own]
    asked, answered = (sum(c.total() - c[left] for c in counts) for left in ("", "unsupported"))
    scope = own[0][0].scope or Scope(op, asked, answered, passed=True)
    scope.decided, scope.narrow = decided, text
    for operation, _ in own:
        operation.scope = scope


def is_near(case: LoadedCase) -> bool:
    """Return whether a case is one call at positions that are not too far away."""
    if len(case.calls) != 1:
        return False
    inputs = case.calls[0].inputs
    return all(np.max(np.abs(inputs[n]), initial=0.0) <= FARTHEST for n in positions_of(case.op) if n in inputs)


def is_small(call: Call, largest: int = LARGEST) -> bool:
    """Return whether a call has results with values, and few numbers."""
    inputs, results = (sum(a.size for a in arrays.values()) for arrays in (call.inputs, call.expected))
    return results > 0 and inputs + results <= largest


def fresh(case: LoadedCase, dtype: str, rng: np.random.Generator, stored: Stored = ()) -> Call | None:
    """Return the call of a case with other numbers, and options that are not stored; None where there are no others."""
    [call] = case.calls
    record = REGISTRY[case.op]
    known = _numbers_of(case.op, call)
    if not call.inputs:
        return _with_other_options(case.op, call, rng, stored)
    moves = any(not letter.startswith("~") for letter in record.rows) and not any(known.get(n) is not None for n in RELATIONS)
    if are_whole(case.op, call) and rng.integers(2):  # code that takes sizes alone has no others
        return _of_other_sizes(case.op, call, rng)
    if are_lengths(call) and rng.integers(2):  # nor has code that takes lengths
        return _of_lengths(case, call, dtype, known, rng)
    shift = int(rng.integers(1, 32))
    inputs: dict[str, npt.NDArray[Any]] = {}
    for name, x in call.inputs.items():
        axes, narrow = record.arrays[name], given_dtype(case.op, name, dtype, case.form)
        if axes.kind in ("real", "wide"):
            inputs[name] = _smaller_reals(x, axes, known, narrow, rng)
        elif axes.kind == "mask":
            inputs[name] = x
        elif limits(axes, known)[1] is not None:
            inputs[name] = _indices(x, axes, known, rng)
        else:
            inputs[name] = _moved(x, shift + (name.startswith("q_") and 1 + shift % 3), narrow) if moves else x
    if any(not np.array_equal(inputs[n], x) for n, x in call.inputs.items()):
        return replace(call, inputs=inputs)
    [first, *others] = inputs
    if others or not inputs[first].ndim or inputs[first].shape[-1] < SHORTEST:
        return None
    inputs = {first: inputs[first][..., :-1]}
    return replace(call, inputs=inputs, expected=plain(case.op, inputs, call.params))


def _numbers_of(op: str, call: Call) -> dict[str, Any]:
    """Return the options of a call and the sizes of its axes."""
    sizes = [(letter, size) for in_array in letters(op, call).values() for letter, size in in_array.items()]
    return {**defaults(op), **call.params} | {letter: size[0] for letter, size in sizes if len(size) == 1}


def _of_lengths(
    case: LoadedCase, call: Call, dtype: str, known: Mapping[str, Any], rng: np.random.Generator
) -> Call | None:  # fmt: skip
    """Return a call with the same positions and other reals; without reals, with one key less. None where it has no other."""
    axes = REGISTRY[case.op].arrays
    reals = [name for name in call.inputs if axes[name].kind in ("real", "wide")]
    others = {n: _smaller_reals(call.inputs[n], axes[n], known, given_dtype(case.op, n, dtype, case.form), rng) for n in reals}
    if others:
        return replace(call, inputs={**call.inputs, **others})
    keys, queries = call.inputs["k_positions"][..., :-1], call.inputs["q_positions"] - 1
    queries = queries[..., int(queries[..., :1].min(initial=0) < 0) :]
    if call.inputs.keys() != {"q_positions", "k_positions"} or not queries.size:
        return None
    inputs = {"q_positions": queries, "k_positions": keys}
    return replace(call, inputs=inputs, expected=plain(case.op, inputs, call.params))


def _of_other_sizes(op: str, call: Call, rng: np.random.Generator) -> Call | None:
    """Return a call with larger sizes and all positions that they allow; None where none was found."""
    for _ in range(ATTEMPTS):
        larger = {
            name: call.params[name] * int(rng.integers(1, 6))
            for end in last_cells(op).values()
            for name in sorted(names_in(end))
        }
        params = {**call.params, **larger}
        if params != call.params and all(holds(text, {**defaults(op), **params}) for text in REGISTRY[op].requires):
            inputs = {name: np.arange(value_of(end, params) + 1) for name, end in last_cells(op).items()}
            return Call(params, inputs, plain(op, inputs, params))
    return None


def _smaller_reals(
    x: npt.NDArray[Any], axes: Axes, known: Mapping[str, Any], dtype: str, rng: np.random.Generator
) -> npt.NDArray[Any]:  # fmt: skip
    """Return reals of the same signs, each smaller by up to a half, in the domain of the argument."""
    return round_to(within(x * (1 - rng.integers(1, 32, x.shape) / 64), axes, known, BITS[dtype]), dtype)


def _moved(x: npt.NDArray[Any], shift: int, dtype: str) -> npt.NDArray[Any]:
    """Return positions moved; fractions as a dtype holds them."""
    moved = np.asarray(x + shift)
    return round_to(moved, dtype) if moved.dtype.kind == "f" else moved


def _indices(x: npt.NDArray[Any], axes: Axes, known: Mapping[str, Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return positions that have an end, such as rows of a table, drawn anew."""
    low, high = limits(axes, known)
    if x.dtype.kind == "f":
        return x
    drawn = np.asarray(rng.integers(int(low or 0), int(high or 0) + 1, x.shape))
    return arranged(drawn, axes)


def _with_other_options(op: str, call: Call, rng: np.random.Generator, stored: Stored) -> Call | None:
    """Return a call without arrays with one number changed, a real if it has any; None if it has no number."""
    record, numbers = REGISTRY[op], {n: v for n, v in call.params.items() if type(v) in (int, float)}
    reals = [n for n in numbers if isinstance(record.domains[n], Real)]
    for name in map(str, rng.permutation(reals or [n for n in numbers if isinstance(record.domains[n], Integer)])):
        domain = record.domains[name]
        for k in map(int, rng.permutation(np.arange(1, 9))):
            other = numbers[name] + domain.step * k if isinstance(domain, Integer) else numbers[name] * (1 + k / 64)
            known = {**defaults(op), **call.params, name: other}
            high = domain.high if isinstance(domain, Integer) else None
            if (high is None or other <= high) and known not in stored and all(holds(t, known) for t in record.requires):
                shapes = {n: [value_of(axis, known) for axis in result_axes(op, n, 0)] for n in call.expected}
                expected = {n: np.zeros(shapes[n], x.dtype) for n, x in call.expected.items()}
                return replace(call, params={**call.params, name: other}, expected=expected)
    return None
