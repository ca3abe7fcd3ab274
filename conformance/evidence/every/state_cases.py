"""
Cases of state between calls: for each option two calls that differ in it alone, then the first one again.

A cache whose key lacks the option, or a field of a scaling, gives the second call what belongs to the first. All calls of a
case have the same arrays where their shapes do not depend on the option.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from posref.scaling import (
    Clipped,
    DynamicNTK,
    DynamicYaRN,
    Linear,
    Llama3,
    LongRoPE,
    NTKAlpha,
    NTKAware,
    NTKFixed,
    NTKMixed,
    Proportional,
    Scaling,
    YaRN,
    YaRNByTurns,
)
from posref.spec import REGISTRY, Domain, Integer, Integers, OneOf, Real, Record
from posref.spec import Flag as Bool

from ...calls import parameters_of
from ...model import Case, Step
from ...vocabulary.axes import holds
from .facts import Options, facts_of
from .made_calls import SIZES, call, has_one_position, letters, results_of, shifted, triangular

DYNAMIC = DynamicNTK(3.0, 8)
SIZED: dict[str, Any] = {"T": 6, "Q": 4, "K": 6}
WIDE: dict[str, Any] = {"T": 2, "Q": 2, "K": 3, "D": 32, "n": 16}  # so many pairs that every field acts on one
SHORT, LONG = (tuple(1 + slope * k for k in range(16)) for slope in (0.25, 0.75))
LONGROPE = LongRoPE(SHORT, LONG, 900, max_length=3600)
OF_ALL = (("linear", Linear(2.5), None, {"factor": 4.0}),)
RECORDS: tuple[tuple[str, Scaling, int | None, dict[str, Any]], ...] = (  # a name, the first record, a length, other values
    *OF_ALL,
    ("ntk", NTKAware(3.0), None, {"factor": 4.5}),
    ("dynamic", DynamicNTK(3.0, 80), 400, {"factor": 4.5, "original_length": 120}),
    ("llama3", Llama3(8.0, 600), None, {"factor": 12.0, "original_length": 900, "low_freq_factor": 2, "high_freq_factor": 6}),
    ("yarn", YaRN(4.0, 1000), None,
     {"factor": 6.0, "original_length": 1500, "beta_fast": 24, "beta_slow": 2, "truncate": False, "attention_factor": 1.25}),
    ("yarn-mscale", YaRN(4.0, 2000, mscale=0.75, mscale_all_dim=0.5), None, {"mscale": 1.0, "mscale_all_dim": 0.25}),
    ("yarn-turns", YaRNByTurns(4.0, 2000), None,
     {"factor": 6.0, "original_length": 3000, "beta_fast": 48, "beta_slow": 2, "attention_factor": 1.25}),
    ("yarn-dynamic", DynamicYaRN(800), 3000, {"original_length": 1200, "beta_fast": 48, "beta_slow": 2, "truncate": False}),
    ("longrope", LONGROPE, 4000,
     {"long_factor": LONG[::-1], "original_length": 700, "max_length": 5400, "attention_factor": 1.25, "factor": 6.0}),
    ("longrope-short", LONGROPE, 800, {"short_factor": SHORT[::-1]}),
    ("ntk-alpha", NTKAlpha(3.0), None, {"alpha": 4.5}),
    ("ntk-fixed", NTKFixed(3.0), None, {"factor": 4.5}),
    ("ntk-mixed", NTKMixed(3.0), None, {"factor": 4.5, "mix": 1.25}),
    ("proportional", Proportional(0.5), None, {"rotated": 0.75, "factor": 2.0}),
    ("clipped", Clipped(4), None, {"pairs": 7, "hard": True}),
)  # fmt: skip


def cases(op: str) -> Iterator[Case]:
    """Yield the cases of an operation."""
    for option, domain in REGISTRY[op].domains.items():
        options = _given(op, option)
        other = {**options, option: _other(op, option, domain, options)}
        case = _changed(op, option.replace("_", "-"), options, [other], **SIZED)
        if _acts(case):
            yield case
    if any(isinstance(domain, Record) for domain in REGISTRY[op].domains.values()):
        yield from _fields(op)


def _acts(case: Case) -> bool:
    """Return whether the second call has another result than the first: an option may act on invalid calls alone."""
    first, second = (results_of(case.op, step.inputs, step.params) for step in case.steps[:2])
    return not all(np.array_equal(x, y) for x, y in zip(first, second, strict=True))


def _changed(op: str, name: str, given: Options, others: Sequence[Options], step: int = 1, **sizes: Any) -> Case:
    """Return a case of calls with given options, with others, and with the first again."""
    optional = tuple(argument for argument, axes in REGISTRY[op].arrays.items() if axes.optional)
    how = {"places": shifted(7) if has_one_position(op) else triangular(step), "without": optional, **sizes}
    how |= {letter: size for letter, size in given.items() if letter not in REGISTRY[op].domains}
    options = ({n: v for n, v in params.items() if n in REGISTRY[op].domains} for params in (given, *others, given))
    steps = tuple(Step(*call(op, f"alone/{name}", params, **how)) for params in options)
    comment = f"{name} alone changes, and back"
    return Case(f"{op}/alone/{name}", comment=comment, kind="sequence", steps=steps, state="one-option")


def _fields(op: str) -> Iterator[Case]:
    """Yield calls with records of one kind that differ in one field alone: of every kind where an operation only rotates."""
    options_of_case = _given(op, "scaling")
    alone = "K" not in letters(op) and "sections" not in options_of_case and not has_one_position(op)
    if alone and "dim" in options_of_case:
        options_of_case["dim"] = WIDE["D"]
    for name, record, length, others in RECORDS if alone else OF_ALL:
        options = {**options_of_case, "scaling": record} | ({} if length is None else {"length": length})
        changed = [{**options, "scaling": replace(record, **{field: value})} for field, value in others.items()]
        yield _changed(op, f"scaling-{name}", options, changed, 331, **(WIDE if alone else SIZED))


def _given(op: str, option: str) -> dict[str, Any]:
    """Return the options of the first call of a case about one of them, and sizes by their letters."""
    facts, domains = facts_of(op), REGISTRY[op].domains
    dynamic = {"scaling": DYNAMIC, "length": 20} if option == "length" and "scaling" in domains else {}
    return {**facts.options, **dynamic, **facts.with_option.get("", {}), **facts.with_option.get(option, {})}


def _other(op: str, option: str, domain: Domain, given: Options) -> Any:
    """Return another value of an option with which a call is valid."""
    if option in facts_of(op).other_values:
        return facts_of(op).other_values[option]
    defaults = {n: p.default for n, p in parameters_of(REGISTRY[op].function).items() if p.default is not p.empty}
    value = given.get(option, defaults.get(option))
    known = {**SIZES, **facts_of(op).sizes, **defaults, **SIZED, **given}
    for other in _candidates(domain, value):
        if other != value and all(holds(text, {**known, option: other}) for text in REGISTRY[op].requires):
            return other
    msg = f"{op}: no other value of {option} is allowed beside {dict(given)}; state one in OTHER_VALUES of its evidence."
    raise ValueError(msg)


def _candidates(domain: Domain, value: Any) -> Iterator[Any]:
    """Yield values of an option near another one."""
    match domain:
        case OneOf():
            at = domain.words.index(value)
            yield from (*domain.words[at + 1 :], *domain.words[:at])
        case Bool():
            yield not value
        case Integer():
            at = domain.low if value is None else value
            for step in (1, 2, -1, -2):
                if domain.low <= at + step * domain.step <= (at + 2 * domain.step if domain.high is None else domain.high):
                    yield at + step * domain.step
            yield domain.low
        case Integers():
            yield [*value[1:], value[0]]
        case Real():
            yield (0.75 if value is None else value * 1.5)
            yield value * 0.75
        case Record():
            yield Linear(2.5)
