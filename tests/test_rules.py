"""The five rules: every word, size, magnitude and number that the registry allows is asked, and nothing that it does not."""

from itertools import islice, permutations
from typing import Any

import numpy as np
import pytest
from sampling import few

from posref.conformance.checks.fresh_calls import fresh
from posref.conformance.evidence.every import kernel_cases, rules
from posref.conformance.evidence.every.facts import Options, facts_of
from posref.conformance.evidence.every.made_calls import answers, has_coordinates, is_bounded
from posref.conformance.model import Call, Case, LoadedCase
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.vocabulary.axes import holds
from posref.conformance.vocabulary.traits import are_lengths, defaults
from posref.spec import REGISTRY, Flag, Integer, OneOf, Real


@pytest.fixture(scope="module")
def stored() -> dict[str, list[Case]]:
    """Return the cases of the suite by operation."""
    return {op: list(rules.cases(op)) for op in REGISTRY}


def of_rule(cases: list[Case], rule: str) -> list[Case]:
    return [case for case in cases if case.group.endswith(f"/{rule}")]


@pytest.mark.thorough
def test_every_word_is_asked_of_every_operation(stored: dict[str, list[Case]]) -> None:
    for op, cases in stored.items():
        for name, domain in REGISTRY[op].domains.items():
            if isinstance(domain, OneOf | Flag):
                asked = {case.params.get(name, rules._usual(op, name)) for case in of_rule(cases, "word")}
                assert asked == {*(domain.words if isinstance(domain, OneOf) else (False, True))}, (op, name)


@pytest.mark.thorough
def test_every_word_is_asked_of_code_that_takes_lengths(stored: dict[str, list[Case]]) -> None:
    """Keys 0 to K - 1, whose last are the queries, or the only one, or all."""
    for op, cases in stored.items():
        record = REGISTRY[op]
        if not {"q_positions", "k_positions"} <= record.arrays.keys() or is_bounded(op) or has_coordinates(op):
            continue
        calls = [Call(c.params, {n: np.asarray(x) for n, x in c.inputs.items()}) for c in of_rule(cases, "word")]
        of_lengths = [call for call in calls if are_lengths(call)]
        sizes = [tuple(call.inputs[n].shape[-1] for n in ("q_positions", "k_positions")) for call in of_lengths]
        for of in (lambda q, k: q == k, lambda q, k: q == 1 < k, lambda q, k: 1 < q < k):
            some = [call.params for call, size in zip(of_lengths, sizes, strict=True) if of(*size)]
            for name, domain in record.domains.items():
                if isinstance(domain, OneOf | Flag):
                    asked = {params.get(name, rules._usual(op, name)) for params in some}
                    assert asked == {*(domain.words if isinstance(domain, OneOf) else (False, True))}, (op, name)


WORDED = [op for op, record in REGISTRY.items() if any(isinstance(d, OneOf | Flag) for d in record.domains.values())]


PLAIN = ("axial_table", "sliding_window")  # of which a plain run asks
NEAR = ("logn_scale", "streaming_llm_distances")  # fresh positions may stay where their words agree


@pytest.mark.parametrize("op", [op if op in PLAIN else pytest.param(op, marks=pytest.mark.thorough) for op in WORDED])
def test_every_two_words_of_an_option_differ_in_a_stored_and_a_fresh_call(op: str) -> None:
    """Unless they are one function, as two layouts are of logits: then no call of any rule tells them apart."""
    cases = [c for group in load_groups(INSTALLED, ops={op}) for c in group.cases if c.kind == "value" and len(c.calls) == 1]
    small = sorted(cases, key=lambda case: sum(x.size for x in case.calls[0].inputs.values()))
    for name, domain in REGISTRY[op].domains.items():
        words = domain.words if isinstance(domain, OneOf) else (False, True) if isinstance(domain, Flag) else ()
        for word, other in permutations(words, 2):
            asked = [case for case in small if {**defaults(op), **case.calls[0].params}.get(name) == word]
            change = {name: other}
            told = (case for case in asked if differ(op, case.calls[0], change))
            if not any(op in NEAR or is_new(case, change) for case in told):
                every = (Call(dict(c.params), dict(c.inputs)) for c in (*rules.kernel(op), *rules.cases(op)))
                alike = (call for call in every if {**defaults(op), **call.params}.get(name) == word)
                assert not any(differ(op, call, {name: other}) for call in islice(alike, 64)), (name, word, other)


def differ(op: str, call: Call, change: Options) -> bool:
    """Return whether a call that is answered is answered otherwise, or refused, with another word."""
    here, there = (answers(op, call.inputs, {**call.params, **more}) for more in ({}, change))
    return bool(here) and not (len(here) == len(there) and all(map(np.array_equal, here, there)))


def is_new(case: LoadedCase, change: Options) -> bool:
    """Return whether a fresh call made of a case has other answers with another word too, if one can be made of it."""
    calls = (fresh(case, "float32", np.random.default_rng(seed)) for seed in range(4))
    return any(call is None or differ(case.op, call, change) for call in calls)


def test_every_optional_array_is_left_out_and_is_there(stored: dict[str, list[Case]]) -> None:
    for op, cases in stored.items():
        for name in rules.optional(op):
            assert {name in case.inputs for case in of_rule(cases, "word")} == {False, True}, (op, name)


def test_every_number_of_an_option_has_its_lowest_value(stored: dict[str, list[Case]]) -> None:
    """But where a requirement of the registry forbids it beside the usual options."""
    asked = [
        (op, name, min((case.params[name] for case in of_rule(cases, "number") if name in case.params), default=None))
        for op, cases in stored.items()
        for name, domain in REGISTRY[op].domains.items()
        if isinstance(domain, Integer)
    ]
    lowest = [(op, name) for op, name, value in asked if value == REGISTRY[op].domains[name].low]  # type: ignore[union-attr]
    assert len(lowest) > 0.6 * len(asked)


def test_calls_are_small_and_each_is_asked_once(stored: dict[str, list[Case]]) -> None:
    for op, cases in stored.items():
        assert len({case.id for case in cases}) == len(cases), op
        assert max(sum(np.size(x) for x in case.inputs.values()) for case in cases) <= rules.LONGEST
    assert 1500 < sum(map(len, stored.values())) < 3000


def test_every_call_is_within_the_domains(stored: dict[str, list[Case]]) -> None:
    for op, cases in stored.items():
        for case in cases:
            assert all(holds(text, dict(case.params)) for text in REGISTRY[op].requires), case.id
            for name, value in case.params.items():
                domain = REGISTRY[op].domains[name]
                if isinstance(domain, Integer) and value is not None:
                    assert domain.low <= value <= (value if domain.high is None else domain.high), case.id
                    assert (value - domain.low) % domain.step == 0 or value % domain.step == 0, case.id
                if isinstance(domain, Real) and value is not None:
                    assert value > domain.low, case.id
            for name, x in case.inputs.items():
                axes = REGISTRY[op].arrays[name]
                if axes.low is not None and axes.low.lstrip("-").isdigit():
                    assert np.all(np.asarray(x) >= int(axes.low)), case.id


@few(1, "op", ["rope", "alibi", "attention", "resample"])
def test_the_kernel_tier_has_calls_that_are_not_stored(op: str, stored: dict[str, list[Case]]) -> None:
    kernel = list(rules.kernel(op))
    assert len(kernel) > 2 * len(facts_of(op).options)
    names = {case.id for case in kernel}
    assert len(names) == len(kernel)
    assert not names & {*kernel_cases.names(op), *(case.id for case in stored[op])}
    again = next(rules.kernel(op, kernel[-1].id))
    assert again.params == kernel[-1].params
    assert all(np.array_equal(x, np.asarray(kernel[-1].inputs[n])) for n, x in again.inputs.items())


def test_a_call_that_is_not_stored_is_one_that_would_be() -> None:
    for op in REGISTRY:
        names = {asked.id(op).partition("/")[2] for rule in rules.RULES for asked in rule(op) if asked.stored}
        assert {*facts_of(op).unstored} <= names, op


def test_what_the_registry_forbids_is_not_asked() -> None:
    """An option beside which no second value is allowed, and a magnitude that results do not follow."""
    assert not [case.id for case in rules.cases("cayley") if "huge" in case.id]  # (I - S)/(I + S) is near -I
    assert [case.id for case in rules.cases("rope") if "huge" in case.id]
    assert all("antialias-True" not in case.id for case in rules.cases("resample") if case.params.get("padding") == "zeros")


def test_numbers_are_ties_huge_or_of_24_bits() -> None:
    cases = {case.id.partition("/")[2]: case for case in rules.cases("rope")}
    x: dict[str, Any] = {name: np.asarray(case.inputs["x"]) for name, case in cases.items()}
    assert np.all(np.abs(x["value/usual-x-huge"]) >= 2**14)
    mantissa = np.frexp(x["value/usual-x-ties"])[0] * 2**6
    assert np.array_equal(mantissa, np.round(mantissa))
    assert np.any(np.frexp(x["value/usual-24-bits"])[0] * 2**16 % 1)
    positions = np.asarray(cases["value/usual-beyond-24-bits"].inputs["positions"])
    assert np.any(positions.astype(np.float32) != positions)
