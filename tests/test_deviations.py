"""The registry of deviations measures the suite: each must be caught, be told from the others, and be recognised."""

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from quality import RECORD, answers, cases, caught, diagnosed, record, recorded, registry
from sample import stored
from sampling import everything, few, share

import posref
from posref.conformance import check, judge
from posref.conformance.calls import bind
from posref.conformance.diagnosis.strength import CLASS, DTYPE, fits, stage, touched
from posref.conformance.evidence.deviations import DEVIATIONS, Deviation
from posref.conformance.evidence.every.facts import facts_of
from posref.conformance.evidence.every.made_calls import has_one_position
from posref.conformance.evidence.tools.deviation import narrowed, together
from posref.conformance.model import Arrays, Call
from posref.spec import PARTS, REGISTRY, OneOf


def needs_scaling(deviation: Deviation) -> bool:
    """Return whether a deviation of frequencies changes them under a context extension alone."""
    wrap = deviation.wraps.get("rope_frequencies")
    if wrap is None or set(deviation.wraps) != {"rope_frequencies"}:
        return False
    plain, changed = (f(24, base=500.0) for f in (posref.rope_frequencies, wrap(posref.rope_frequencies)))
    return bool(np.array_equal(plain[0], changed[0]) and plain[1] == changed[1])


NEEDS = {  # what an operation must have for a mistake to be possible: options, a word of one, or one of several
    "inverse-ignored": "inverse",
    "inverse-keeps-layout": "inverse layout=interleaved_to_half",
    "writes-interleaved": "layout=interleaved_to_half",
    "leading-lanes": "lanes",
    "axes-exchanged-interleaved": "arrangement=interleaved",
    "axes-exchanged-ernie": "arrangement=ernie",
    "offset-ignored": "offset",
    "clip-before-offset": "clip offset",
    **dict.fromkeys(("clip-wraps", "clip-zeros"), "clip|clip_sizes"),
    **dict.fromkeys(("layout-interleaved", "sinusoid-halves-exchanged", "sinusoid-interleaved"), "layout"),
    **dict.fromkeys(("endpoint-never", "ladder-endpoint-never"), "endpoint"),
    **dict.fromkeys(("ladder-first-1", "ladder-first-inverted"), "first_frequency"),
    **dict.fromkeys(("odd-as-zeros", "odd-truncated", "odd-extra-sine", "odd-zero-first"), "odd"),
    **dict.fromkeys(("sinusoid-unscaled", "sinusoid-angle-scaled"), "scale odd"),
    **dict.fromkeys(("tail-zeroed", "tail-ones", "trailing-lanes", "x-through-bfloat16", "x-through-float16"), "channels"),
    **dict.fromkeys(("single-head-unrotated", "head-zero-unrotated", "last-head-unrotated"), "channels"),
    **dict.fromkeys(("heads-after-first-unrotated", "table-row-stride", "table-row-stride-of-x"), "channels"),
    **dict.fromkeys(("partner-xor", "partner-xor-itself"), "layout"),
    "partner-over-head": "layout channels",
    "axes-leftover-at-0": "arrangement=interleaved",
    **dict.fromkeys(("positions-first-row", "positions-reversed", "positions-rows-at-0"), "rows of positions"),
    "positions-arange-prefill": "rows of positions",
    **dict.fromkeys(("factor-dropped", "factor-squared", "factor-root"), "scaling|attention_factor"),
    **dict.fromkeys(("factor-on-cos-only", "factor-on-sin-only"), "scaling|attention_factor"),
    **dict.fromkeys(("factor-after-bfloat16", "factor-after-float16"), "scaling|attention_factor"),
    **{d.name: "scaling|attention_factor" for d in DEVIATIONS.values() if needs_scaling(d)},
}


def has(op: str, need: str) -> bool:
    """Return whether an operation has an option, a word of an option, or arrays of a kind."""
    record = REGISTRY[op]
    if need == "channels":
        return any(axes.kind == "real" for axes in record.arrays.values())
    option, _, word = need.partition("=")
    domain = record.domains.get(option)
    return domain is not None and (not word or (isinstance(domain, OneOf) and word in domain.words))


def can_occur(name: str, op: str) -> bool:
    """Return whether a mistake is possible in an operation that it touches."""
    needs = NEEDS.get(name, "")
    if needs == "rows of positions":
        return not has_one_position(op)
    return all(any(has(op, one) for one in need.split("|")) for need in needs.split())


TIES: dict[frozenset[str], str] = {}  # pairs that no core case tells apart, and why


def test_there_are_enough_and_each_has_a_place() -> None:
    assert len(DEVIATIONS) >= 20
    for name, deviation in DEVIATIONS.items():
        assert name == deviation.name
        assert deviation.text
        assert touched(name), f"{name} touches no operation"
        assert set(deviation.wraps) <= set(REGISTRY) | set(PARTS), f"{name} wraps what is not there"


def test_what_is_said_of_mistakes_is_said_of_those_that_there_are() -> None:
    assert set(NEEDS) <= set(DEVIATIONS)
    assert all(any(not can_occur(name, op) for op in touched(name)) for name in NEEDS)
    of_gaps = {(name, op) for op in REGISTRY for name in facts_of(op).gaps}
    assert of_gaps <= {(name, op) for name in DEVIATIONS for op in touched(name)}


SOME = [  # one deviation in so many in a plain run, where `test_strength` looks at all of them at their stage
    pytest.param(name, marks=[] if k % 100 == 0 else pytest.mark.thorough) for k, name in enumerate(DEVIATIONS)
]


def test_each_fails_two_cases_of_every_operation_it_touches() -> None:
    """At its stage, and through each composed operation alone, by the record."""
    problems = []
    for name in DEVIATIONS:
        for op in touched(name):
            count = len(recorded(name, op))
            if name in facts_of(op).gaps:
                problems += [f"{name} in {op} is no longer a gap: strike it off"] if count >= 2 else []
            elif not can_occur(name, op):
                problems += [f"{name} can occur in {op}"] if count else []
            elif count < 2:
                problems.append(f"{name} is caught in {op} by {sorted(recorded(name, op))} alone")
    assert not problems


def test_the_record_is_written_as_it_is_read() -> None:
    """One line of cases and one of deviations for every operation, both in order; it names what there is."""
    lines = [
        f' {json.dumps(op)}: {{"cases": {json.dumps(of["cases"])},\n  "caught": {json.dumps(of["caught"])}}}'
        for op, of in record().items()
    ]
    assert RECORD.read_text(encoding="utf-8") == "{\n" + ",\n".join(lines) + "\n}\n"
    assert list(record()) == sorted(REGISTRY)
    for op, of in record().items():
        assert list(of["caught"]) == sorted(of["caught"])
        assert {name for name in of["caught"] if op not in touched(name)} == set()
        assert all(0 < int(bits, 16) < 1 << len(of["cases"]) for bits in of["caught"].values())


@few(3, "name", share(SOME, part=0.5))
def test_the_record_is_current(name: str) -> None:
    """Of one deviation, in every operation that it touches; that the cases are those asked is a part of `every_encoding`."""
    for op in touched(name):
        measured = caught(DEVIATIONS[name], op)
        assert measured == recorded(name, op), f"{name} in {op}: python docs/generate.py --measure"


ALIKE = {"angles-reduced", "angles-reduced-fused"}  # they differ by less than an honest rounding of angles does


@few(1, "name", share(SOME, part=0.5))
def test_each_is_recognised(name: str) -> None:
    """The diagnosis of a mutant names it; what else it names gives the same values on every case asked."""
    op = stage(name)
    found = diagnosed(DEVIATIONS[name], op)
    assert [name] in found["explanations"], found["text"]
    for other in found["explanations"]:
        if {name, *other} == ALIKE:
            continue
        others = together(*(DEVIATIONS[n] for n in other))
        assert agree(DEVIATIONS[name], others, [op]), f"{name} is not {other}"


@everything
@pytest.mark.thorough
def test_the_page_in_the_docs_counts_what_is_recognised() -> None:
    """Here, since the diagnoses of all mutants are kept for the process that made them."""
    page = (Path(__file__).parents[1] / "docs" / "diagnosis.md").read_text(encoding="utf-8")
    assert f" counted separately.\n{registry()}\n\n" in page, "python docs/generate.py --measure"


def finite(mutant: Deviation, op: str) -> bool:
    return all(np.all(np.isfinite(out)) for calls in answers(mutant, op).values() for got in calls for out in got.values())


def agree(name: Deviation, other: Deviation, ops: list[str]) -> bool:
    """Return whether two mutants give the same values, within the tolerance of the class, in all cases of some operations."""
    for op in ops:
        if caught(name, op) != caught(other, op):
            return False
        for case in cases(op):
            pair = zip(case.calls, answers(name, op)[case.id], answers(other, op)[case.id], strict=True)
            if not all(same(op, call, one, two) for call, one, two in pair):
                return False
    return True


def same(op: str, call: Call, one: Arrays, two: Arrays) -> bool:
    for output, expected in call.expected.items():
        if (output in one) != (output in two):
            return False
        if output not in one:
            continue
        if not (fits(one[output], expected) and fits(two[output], expected)):
            return False
        _, width = judge.errors(op, call, output, expected, CLASS, DTYPE)
        near = np.abs(np.subtract(one[output], two[output], dtype=np.float64)) <= 2 * width
        if not np.all(near | (one[output] == two[output]) | (np.isnan(one[output]) & np.isnan(two[output]))):
            return False
    return True


@pytest.mark.thorough(dear=True)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_two_agree_on_all_cases() -> None:
    """Except the ties above; one that is resolved is struck off. Those that the record tells apart are not tried."""
    touches = {name: touched(name) for name in DEVIATIONS}
    equal = {
        frozenset({name, other})
        for name, other in combinations(DEVIATIONS, 2)
        if set(touches[name]) & set(touches[other])
        and all(recorded(name, op) == recorded(other, op) for op in {*touches[name], *touches[other]})
        and agree(DEVIATIONS[name], DEVIATIONS[other], sorted({*touches[name], *touches[other]}))
    }
    assert equal == set(TIES), f"agree: {sorted(map(sorted, equal))}"


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("inner", ["base-10000", "yarn-high-half"])
def test_two_at_once_are_recognised_in_either_order(inner: str) -> None:
    """The ramp of YaRN takes the base asked for, or the one that is used in its place."""
    names = ["base-10000", "yarn-high-half"]
    outer = next(name for name in names if name != inner)
    found = diagnosed(together(DEVIATIONS[inner], DEVIATIONS[outer]), "rope_frequencies")
    assert found["explanations"] == [names]


@pytest.mark.thorough(dear=True)
def test_what_a_deviation_leaves_as_it_was_may_be_off_by_an_ulp() -> None:
    """A full turn more leaves exact values, but for the last bit of binary64: the case's own tolerance, 0, holds for them."""
    names = ["axes-one-based", "tail-zeroed"]
    (pair,) = diagnosed(together(*(DEVIATIONS[name] for name in names)), "axial_rope")["explanations"]
    assert sorted(pair) == names  # (either may be the outer one: the tail has no axis)


def test_the_order_of_two_at_once_is_as_stated() -> None:
    """The one named later is outside: it changes arguments first and results last."""
    seen = []

    def noted(name: str) -> Deviation:
        def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
            def deviating(*args: Any, **options: Any) -> Any:
                seen.append(f"{name} before")
                result = function(*args, **options)
                seen.append(f"{name} after")
                return result

            return deviating

        return Deviation(name, name, {"learned": wrap})

    both = together(noted("first"), noted("second"))
    both.operations()["learned"](np.asarray([1]), np.eye(3))
    assert (both.name, both.text) == ("first + second", "first, and second")
    assert seen == ["second before", "first before", "first after", "second after"]


def far(wrong: Callable[[Any], Any]) -> str:
    """Return the diagnosis of a sinusoidal table that is off by 1/8 at some positions."""

    def sinusoidal(positions: Any, dim: int, /, **options: Any) -> Any:
        out = np.array(posref.sinusoidal(positions, dim, **options))
        out[wrong(np.abs(positions))] += 0.125
        return out

    found = check(SimpleNamespace(sinusoidal=sinusoidal, __name__="far"), op="sinusoidal").operations[0].diagnosis
    assert found["names"] == []
    return str(found["text"])


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize(("position", "dtype"), [(257, "bfloat16"), (2049, "float16")])
def test_a_first_failing_position_is_read_where_exactly_those_fail_that_a_dtype_does_not_hold(
    position: int, dtype: str
) -> None:
    hint = f" First failure at position {position}, the first integer that {dtype} does not hold."
    assert hint in far(lambda p: narrowed(dtype)(p) != p)
    assert "hold" not in far(lambda p: p >= position)  # 512 and 4096 are wrong too
    assert f"positions from {position} on are wrong" in far(lambda p: p >= position)


# ---- gradients ------------------------------------------------------------------------------------------------------------
def backward(turn: Callable[..., Any]) -> dict[str, Any]:
    """Return the diagnosis of a rope whose values are right and whose gradient is that of `turn`."""

    def vjp(op: str, inputs: Any, params: Any, cotangents: Any, wrt: tuple[str, ...]) -> Any:
        return {"x": turn(cotangents["out"], inputs["positions"], **params)}

    target = SimpleNamespace(rope=posref.rope, vjp=vjp, __name__="backward")
    found = check(target, op="rope", experiments=0).operations[0]
    assert found.counts["pass"] > 100
    assert found.diagnosis is not None
    return dict(found.diagnosis)


def test_a_gradient_that_is_turned_forwards_is_called_so() -> None:
    found = backward(posref.rope)
    assert found["explanations"] == [["inverse-exchanged"]]
    assert found["text"].startswith(
        "Only gradients fail. The gradient of x rotates the cotangent back. Read as such a rotation: "
    )


def test_a_gain_that_is_lost_on_the_way_back_is_called_so() -> None:
    def turn(cotangent: Any, positions: Any, **params: Any) -> Any:
        params |= {"inverse": not params.get("inverse", False)}
        frequency = {n: params[n] for n in ("base", "scaling", "length") if n in params}
        kept = params.get("rotary_dim") or cotangent.shape[-1]
        out = np.array(posref.rope(cotangent, positions, **params))
        start = cotangent.shape[-1] - kept if params.get("lanes") == "trailing" else 0
        out[..., start : start + kept] /= posref.rope_frequencies(kept, **frequency)[1]
        return out

    assert ["factor-dropped"] in backward(turn)["explanations"]


def test_a_tail_of_ones_is_called_so() -> None:
    def turn(cotangent: Any, positions: Any, **params: Any) -> Any:
        params |= {"inverse": not params.get("inverse", False)}
        out = np.array(posref.rope(cotangent, positions, **params))
        turned = params.get("rotary_dim") or cotangent.shape[-1]
        out[..., slice(-turned) if params.get("lanes") == "trailing" else slice(turned, None)] = 1
        return out

    assert backward(turn)["explanations"] == [["tail-ones"]]


def on_copy(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
    """Rotate a copy as a kernel does that is given a pointer: what it writes is not recorded."""
    out = x.clone()
    with torch.no_grad():
        out.copy_(posref.apply_rope(x, cos, sin, layout=layout))
    return out


def by_data(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
    out = x + 0
    out.data = posref.apply_rope(x.data, cos, sin, layout=layout)
    return out


def not_recorded(x: Any, cos: Any, sin: Any, /, *, layout: str) -> Any:
    with torch.no_grad():
        return posref.apply_rope(x, cos, sin, layout=layout)


def report_of(function: Callable[..., Any], **stated: Any) -> Any:
    target = SimpleNamespace(backend="torch", dtypes=("float32",), apply_rope=function, __name__="copy", **stated)
    return check(target, op="apply_rope")


@few(1, "function", [on_copy, by_data])
def test_the_gradient_of_a_copy_is_called_so(function: Callable[..., Any]) -> None:
    """A kernel that is given a pointer to a copy: autograd sees the copy alone."""
    found = report_of(function).operations[0]
    assert {c.kind for c in found.cases if c.verdict == "fail"} == {"vjp"}
    assert found.diagnosis["names"] == []
    assert "Autograd sees the copy, not what the kernel writes" in found.diagnosis["text"]
    assert "torch.autograd.Function" in found.diagnosis["hint"]
    assert "gradient: false" in found.diagnosis["hint"]


@pytest.mark.parametrize("document", [{"*": {"gradient": False}}, {"apply_rope": {"gradient": False}}])
@pytest.mark.parametrize("function", [on_copy, not_recorded])
def test_to_state_that_there_are_no_gradients_is_enough(function: Callable[..., Any], document: dict[str, Any]) -> None:
    """What else it lacks is learned as if nothing were stated."""
    report = report_of(function, supports=document)
    assert report.conformant
    [scope] = report.scopes
    assert "no gradients" in scope.line
    assert "no inverse" in scope.line
    assert "selective" not in report.operations[0].counts


@pytest.mark.thorough(dear=True)
def test_other_gradients_are_unexplained() -> None:
    found = backward(lambda cotangent, positions, **params: cotangent**2)
    assert found["names"] == []
    assert found["text"] == "unexplained: only gradients fail, and no known mistake gives these gradients."


@pytest.mark.thorough
def test_gradients_do_not_speak_where_values_fail() -> None:
    def rope(x: Any, positions: Any, /, **options: Any) -> Any:
        return posref.rope(x, positions + 1, **options)

    def vjp(op: str, inputs: Any, params: Any, cotangents: Any, wrt: tuple[str, ...]) -> Any:
        return {name: 0 * inputs[name] for name in wrt}

    found = check(SimpleNamespace(rope=rope, vjp=vjp, __name__="wrong"), op="rope", experiments=0).operations[0].diagnosis
    assert found["names"] == ["positions-plus-1"]


SHIFTED = {  # operation, the place of an argument, and by how much it is said to be moved
    "alibi-off-by-one": ("alibi", 0, 1),
    "alibi-key-off-by-one": ("alibi", 1, 1),
    "extension-query-plus-1": ("self_extend_distances", 0, 1),
    "fire-off-by-one": ("fire", 0, 1),
    "fope-positions-plus-1": ("fope", 1, 1),
    "kerple-off-by-one": ("kerple", 0, 1),
    "positions-minus-1": ("rope", 1, -1),
    "positions-plus-1": ("rope", 1, 1),
    "sandwich-off-by-one": ("sandwich", 0, 1),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_positions_are_moved_as_the_text_of_a_deviation_says(name: str) -> None:
    op, place, shift = SHIFTED[name]
    changed, right = DEVIATIONS[name].operations()[op], REGISTRY[op].function
    calls = [case.calls[0] for case in stored(op) if case.kind == "value"]
    for call in calls:
        arrays, options = bind(op, call.inputs, call.params)
        moved = [x + shift if k == place else x for k, x in enumerate(arrays)]
        assert np.array_equal(changed(*arrays, **options), right(*moved, **options))
    assert calls
