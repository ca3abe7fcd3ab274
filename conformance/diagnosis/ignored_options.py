"""
Options that an implementation ignores: it takes them, and computes as if they had one value, whatever they are.

Code that swallows what it does not know (``**kwargs``) fails at each of its options, and each failure may have several at once.
The value is the default, unless passing cases have others alone: then that of most of them, and without passing cases each
word. An option is ignored if no passing case would show it. One other mistake may be in the cases with the usual values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from itertools import islice, product
from typing import Any

from posref.scaling import Scaling
from posref.spec import REGISTRY, OneOf

from ..evidence.index import deviations_touching
from ..evidence.tools.deviation import Deviation, before, contradict, together
from ..vocabulary.traits import defaults
from .hypotheses import Budget, Hypothesis, Question
from .search import fitting_all

WAYS = 4  # values for which options are taken, where no case tells
WORK = 2_500_000  # values, the work of looking for the other mistake
PROBES = 4  # failing cases, the smallest, that a registered mistake must give
AT_ONCE = 2  # mistakes that are named one by one
HINT = "Refuse what the code does not have: raise NotImplementedError where one of these options has another value."


def candidates(questions: Sequence[Question], budget: Budget) -> list[tuple[Deviation, ...]]:
    """Return the options that are ignored in all cases, with another mistake where there is one; nothing if none are."""
    op = questions[0].op
    for usual in islice(_usual_values(questions), WAYS):
        every = _ignored(questions, usual)
        some = {name: value for name, value in every.items() if not _is_needed_number(op, name)}
        whole = {name: value for name, value in some.items() if name in REGISTRY[op].domains}
        ways = [ignored for ignored in (whole, some, every) if ignored]  # first no field of a record
        for ignored in ways:
            if Hypothesis(_as_usual(op, ignored), questions).fits():
                needed = _needed(questions, ignored)
                return _named(questions, needed, budget) if len(needed) > 1 else []  # other words say it of one
        if pairs := _beside_another(questions, ways[0], budget) if ways else []:
            return pairs
    return []


def _beside_another(questions: Sequence[Question], ignored: Mapping[str, Any], budget: Budget) -> list[tuple[Deviation, ...]]:
    """Return that options are ignored, and a mistake that is in the cases with their usual values too."""
    plain = [q for q in questions if q.failed and q.size and not _others(q, ignored)]
    if not plain or len(plain) == sum(q.failed for q in questions):
        return []
    fitting = _giving(plain[:PROBES], budget)
    whole = _as_usual(questions[0].op, ignored)
    known = [d for d in fitting if Hypothesis(together(d, whole), questions).fits()][:WAYS]
    return [way for d in known for way in _named(questions, _needed(questions, ignored, beside=d), budget, beside=d)][:WAYS]


def _is_needed_number(op: str, name: str) -> bool:
    """Return whether an option is a number that every call gives: code that ignores options seldom ignores these."""
    return "." not in name and name not in defaults(op) and not isinstance(REGISTRY[op].domains[name], OneOf)


def _named(
    questions: Sequence[Question], ignored: Mapping[str, Any], budget: Budget, *, beside: Deviation | None = None
) -> list[tuple[Deviation, ...]]:  # fmt: skip
    """Return ignored options by the registered mistakes that they are, ties; three and more in a list, which is short."""
    op, others = questions[0].op, [[beside]] if beside else []
    by_option: list[list[Deviation]] = []
    for name, value in ignored.items() if len(ignored) + len(others) <= AT_ONCE else ():
        having = (q for q in questions if q.failed and q.size and _others(q, ignored) == {name})
        having = (q for q in having if beside is None or not Hypothesis(beside, [q]).shows(0))
        by_option.append(_giving([*islice(having, PROBES)], budget) or [_as_usual(op, {name: value})])
    pairs = [pair for pair in product(*others, *by_option) if by_option and not contradict(pair)][: WAYS**2]
    held = [pair for pair in pairs if Hypothesis(together(*pair), questions).fits()][:WAYS]
    return held or [(*([beside] if beside else []), _as_usual(op, ignored))]


def _giving(failing: Sequence[Question], budget: Budget) -> list[Deviation]:
    """Return the registered mistakes that give the values of some failing cases."""
    mistakes = [d for d in deviations_touching(failing[0].op) if not d.stateful] if failing else []
    return fitting_all(failing, mistakes, budget.limited(WORK))


def _usual_values(questions: Sequence[Question]) -> Iterator[dict[str, Any]]:
    """Yield the values that every option, or field of a record, may be taken to have."""
    op = questions[0].op
    every = [_options(op, call.params) for q in questions if q.size for call in q.calls]
    passing = [_options(op, call.params) for q in questions if not q.failed and q.size for call in q.calls]
    known = {**_fields_of(every), **defaults(op)}
    choices: dict[str, Sequence[Any]] = {}
    for name in dict.fromkeys(name for options in every for name in options):
        values = [options[name] for options in passing if name in options]
        there = Counter(map(repr, values))
        if name in known and (not there or repr(known[name]) in there):
            choices[name] = [known[name]]
        elif there:
            choices[name] = [next(value for value in values if repr(value) == there.most_common(1)[0][0])]
        elif name in REGISTRY[op].domains and isinstance(domain := REGISTRY[op].domains[name], OneOf):
            choices[name] = domain.words
    yield from (dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values()))


def _options(op: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call, with those fields of records that have a default, such as `YaRN.truncate`."""
    options = {name: params.get(name, defaults(op).get(name)) for name in REGISTRY[op].domains}
    records = [value for value in options.values() if isinstance(value, Scaling)]
    return options | {f"{type(r).__name__}.{f.name}": getattr(r, f.name) for r in records for f in _with_default(r)}


def _fields_of(every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the defaults of the fields of all records that calls have."""
    records = {type(value): value for options in every for value in options.values() if isinstance(value, Scaling)}
    return {f"{kind.__name__}.{f.name}": f.default for kind, record in records.items() for f in _with_default(record)}


def _with_default(record: Scaling) -> list[Any]:
    return [field for field in fields(record) if field.default is not MISSING]


def _others(question: Question, usual: Mapping[str, Any]) -> set[str]:
    """Return the options that do not have their usual values in a case."""
    of_calls = [_options(question.op, call.params) for call in question.calls]
    return {n for options in of_calls for n, value in usual.items() if n in options and repr(options[n]) != repr(value)}


def _ignored(questions: Sequence[Question], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with other values in failing cases, and in no passing case that would show it."""
    others = {q.id: _others(q, usual) for q in questions if q.size}
    failing = {name for q in questions if q.failed and q.size for name in others[q.id]}
    kept = {name: usual[name] for name in usual if name in failing}
    for name in [*kept]:
        passing = [q for q in questions if not q.failed and q.size and name in others[q.id]]
        hypothesis = Hypothesis(_as_usual(questions[0].op, {name: kept[name]}), passing)
        if any(hypothesis.shows(n) for n in range(len(passing))):
            del kept[name]
    return kept


def _needed(
    questions: Sequence[Question], ignored: Mapping[str, Any], *, beside: Deviation | None = None
) -> dict[str, Any]:  # fmt: skip
    """Return those of ignored options without which they do not explain all cases, `beside` another mistake."""
    needed = dict(ignored)
    for name in ignored:
        fewer = _as_usual(questions[0].op, {other: value for other, value in needed.items() if other != name})
        if len(needed) > 1 and Hypothesis(fewer if beside is None else together(beside, fewer), questions).fits():
            del needed[name]
    return needed


def _as_usual(op: str, values: Mapping[str, Any]) -> Deviation:
    """Return the mistake of an operation whose options, or fields of records, always have some values."""
    whole_options = {name: value for name, value in values.items() if "." not in name}

    def replaced(*args: Any, **options: Any) -> Any:
        return args, {name: _with_usual_fields(value, values) for name, value in {**options, **whole_options}.items()}

    words = ", ".join(f"{name} (always {value!r})" for name, value in values.items())
    return Deviation("", f"options are ignored: {words}", {op: before(replaced)}, HINT)


def _with_usual_fields(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a record with those of its fields that are ignored as they always are; any other value as it is."""
    if not isinstance(value, Scaling):
        return value
    kind = f"{type(value).__name__}."
    return replace(value, **{name.removeprefix(kind): usual for name, usual in values.items() if name.startswith(kind)})
