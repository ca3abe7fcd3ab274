"""The scope of an implementation: the rule on tables, what it says of narrow targets, stated scopes, limits and demands."""

import ast
import inspect
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result
from commands import run as run_posref
from sampling import few

import posref
from posref.conformance import Report, Unsupported, check
from posref.conformance.accuracy import DEFAULT_CLAIM
from posref.conformance.calls import returns_reals
from posref.conformance.checks import learned_scope, scope_result, scope_statement
from posref.conformance.checks.scope import Asked, infer
from posref.conformance.errors import TargetError
from posref.conformance.experiments.asker import REFUSED
from posref.conformance.experiments.cause_search import Cause, call_key
from posref.conformance.model import BAD, STANDINGS, Call, CaseResult, LoadedCase, Operation, Scope
from posref.conformance.reports import summaries
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.vocabulary.traits import DEFAULT, Traits
from posref.scaling import RECORDS
from posref.spec import REGISTRY


# ---- the rule, on tables --------------------------------------------------------------------------------------------------
def table(*rows: tuple[dict[str, Any], bool]) -> list[Asked]:
    """Return cases of rope, each of its words, and of numbers as sizes."""
    found = []
    for k, (axes, answered) in enumerate(rows):
        words = {n: frozenset({v}) for n, v in axes.items() if not isinstance(v, int) or isinstance(v, bool)}
        sizes = {n: (v, v) for n, v in axes.items() if isinstance(v, int) and not isinstance(v, bool)}
        case = LoadedCase(f"rope/table/{k}", "rope", "value", "core", "", ("float32",), ())
        verdict = "pass" if answered else "unsupported"
        found.append(Asked(case, "float32", Traits(words, sizes), verdict, DEFAULT_CLAIM["float32"]))
    return found


def told(*rows: tuple[dict[str, Any], bool]) -> tuple[list[str], int]:
    """Return the axes of the restrictions, and how many cases nothing explains."""
    restrictions, left = infer("rope", table(*rows))
    return [" ".join(one.axis) for one in restrictions], len(left)


HALF, INTER = {"layout": "half"}, {"layout": "interleaved"}
STRIDED = HALF | {"strided": True}


@pytest.mark.parametrize(
    ("rows", "axes", "left"),
    [
        pytest.param([(HALF, True), (INTER, False)], ["layout"], 0, id="a word of an option may be asked once"),
        pytest.param([(HALF, True), (STRIDED, False)], [], 1, id="another trait may not"),
        pytest.param([(HALF, True)] + 2 * [(STRIDED, False)], ["strided"], 0, id="and is told when asked twice"),
        pytest.param([({"position": 9}, True), ({"position": 10}, False)], [], 1, id="one case beyond is no limit"),
        pytest.param([({"position": 9}, True), ({"position": 10}, False), ({"position": 99}, False)], ["position"], 0,
                     id="two are"),
        pytest.param([({"position": 9}, True), ({"position": 5}, False), ({"position": 6}, False)], [], 2,
                     id="below it is none"),
        pytest.param([({"base": 1.5}, True), ({"base": 2.5}, False), ({"base": 3.5}, False)], ["base"], 0, id="one base"),
        pytest.param([({"base": 1.5}, True), ({"base": 2.5}, True), ({"base": 3.5}, False), ({"base": 4.5}, False)], [], 2,
                     id="two bases are not fixed"),
        pytest.param([({"dim": 64}, True), ({"dim": 32}, False), ({"dim": 128}, False)], ["dim"], 0, id="one width"),
        pytest.param([({"head_size": d}, d in (64, 128)) for d in (6, 64, 96, 128, 256)], ["head_size"], 0,
                     id="a few head sizes"),
        pytest.param([({"head_size": d}, d in (64, 128, 256)) for d in (6, 64, 96, 128, 192, 256)], ["head_size"], 0,
                     id="three head sizes"),
        pytest.param([({"head_size": d}, d % 4 == 0) for d in (6, 8, 12, 16, 20, 18)], [], 2, id="many head sizes"),
        pytest.param([(HALF | {"inverse": False}, True), (INTER | {"inverse": True}, True)]
                     + 2 * [(HALF | {"inverse": True}, False)], ["layout inverse"], 0, id="a pair of words asked twice"),
        pytest.param([(HALF | {"inverse": False}, True), (INTER | {"inverse": True}, True), (HALF | {"inverse": True}, False)],
                     [], 1, id="a pair asked once"),
        pytest.param([(HALF, True), (INTER | {"strided": True}, True)] + 2 * [(STRIDED, False)], ["layout strided"], 0,
                     id="an option and a trait asked twice"),
        pytest.param([(HALF, True), (INTER | {"strided": True}, True), (STRIDED, False)], [], 1, id="and not once"),
        pytest.param([(HALF, True), (INTER | {"empty": "tokens"}, True), (HALF | {"empty": "tokens"}, False)],
                     ["layout empty"], 0, id="but for empty arrays"),
        pytest.param([(HALF, True), (INTER | {"base": 2.5}, True)] + 2 * [(HALF | {"base": 2.5}, False)], [], 2,
                     id="never a pair with a number"),
        pytest.param([(HALF | {"scaling": None}, True), (INTER | {"scaling": "YaRN"}, False),
                      (INTER | {"scaling": "Linear"}, False), (HALF | {"scaling": "YaRN"}, False)],
                     ["scaling"], 0, id="the axis that explains most"),
    ],
)  # fmt: skip
def test_the_rule(rows: Any, axes: list[str], left: int) -> None:
    assert told(*rows) == (axes, left)


# ---- targets that refuse --------------------------------------------------------------------------------------------------
Condition = Callable[[SimpleNamespace], Any]


def refusing(refuses: Condition, op: str = "rope", wrong: Condition | None = None, **stated: Any) -> SimpleNamespace:
    """Return the reference, which refuses some calls; where `wrong` holds its results are."""
    reference = REGISTRY[op].function
    parameters = inspect.signature(reference).parameters

    def function(*args: Any, **options: Any) -> Any:
        call = SimpleNamespace(
            **{**{n: p.default for n, p in parameters.items()}, **dict(zip(parameters, args, strict=False)), **options}
        )
        if refuses(call):
            raise Unsupported("not offered")
        out = reference(*args, **options)
        return out + 1 if wrong is not None and wrong(call) else out

    everything = tuple(kind.__name__ for kind in RECORDS)
    return SimpleNamespace(**{op: function, "scalings": everything, "__name__": "it", **stated})


def largest(call: SimpleNamespace) -> float:
    return float(np.max(np.abs(np.asarray(call.positions)), initial=0))


def tokens(call: SimpleNamespace) -> int:
    shape = np.shape(call.positions)
    first = len(shape) > 1 and shape[-1] == 1 and shape[-2] > 1 and call.x.ndim > 2
    return call.x.shape[-3 if first else -2] if call.x.ndim > 1 else 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("refuses", "dtypes"),
    [
        (lambda c: np.ravel(c.positions)[:1].any(), None),
        (lambda c: c.x.dtype == torch.bfloat16 and c.x.shape[-1] % 3 == 0, ("float32", "bfloat16")),
    ],
    ids=["first position not 0", "bfloat16 at some sizes"],
)
def test_refusals_that_nothing_explains_are_selective(refuses: Condition, dtypes: Any) -> None:
    stated = {"backend": "torch", "dtypes": dtypes} if dtypes else {}
    report = check(refusing(refuses, **stated), op="rope")
    assert report.verdict == "not conformant"
    assert report.exit_code == 1
    assert "that nothing explains" in report.operations[0].reason
    for operation in report.operations:
        number = operation.counts["selective"]
        assert f"{number} in {operation.dtype}" in operation.reason or not number
    assert report.counts["selective"] == len(report.scopes[0].refused) > 2
    assert not report.counts["fail"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        (lambda c: type(c.scaling).__name__ == "Llama3", "scaling: all but Llama3 ["),
        (lambda c: c.layout != "half", "layout half ["),
        (lambda c: c.layout == "interleaved", "layout: all but interleaved ["),
        (lambda c: largest(c) > 2047, "positions up to 2047 (refused: 2049 and more) ["),
        (lambda c: not c.x.flags.c_contiguous, "contiguous arrays ["),
        (lambda c: c.base != 10_000, "base 10000 ["),
        (lambda c: getattr(c.scaling, "mscale", None) is not None, "not scaling YaRN with mscale given ["),
        (lambda c: c.layout == "interleaved" and type(c.scaling).__name__ == "YaRN", "layout interleaved, with scaling YaRN ["),
        (lambda c: c.x.shape[-1] > 64, "head size up to 64 (refused: 72 and more) ["),
        (lambda c: tokens(c) % 2, "tokens a multiple of 2 ["),
        (lambda c: c.x.ndim > 2 and c.x.shape[0] > 1, "size of the first axis below 2 ["),
        (lambda c: largest(c) > 256 and c.layout == "half", "not largest position of 257 or more, with layout half ["),
    ],
)
def test_a_hole_is_named(refuses: Condition, words: str) -> None:
    report = check(refusing(refuses), op="rope")
    assert report.verdict == "conformant in its scope", report.operations[0].reason
    assert report.exit_code == 0
    [scope] = report.scopes
    assert words in scope.line
    assert scope.line.startswith(f"{scope.answered} of {scope.asked}: ")
    assert sum(one.cases for one in scope.limits) == scope.asked - scope.answered


def test_coordinates_that_must_be_equal_are_named() -> None:
    report = check(refusing(lambda c: np.any(np.asarray(c.positions) != c.positions[:1]), op="mrope"), op="mrope")
    assert report.verdict == "conformant in its scope"
    [scope] = report.scopes
    assert f": the same coordinate along every axis [{scope.asked - scope.answered} cases" in scope.line


def test_a_ramp_that_begins_where_it_ends_may_be_refused() -> None:
    def refuses(call: SimpleNamespace) -> bool:
        s = call.scaling
        return type(s).__name__ != "Llama3" or s.low_freq_factor == s.high_freq_factor

    [scope] = check(refusing(refuses, op="rope_frequencies"), op="rope_frequencies").scopes
    assert not scope.refused
    assert scope.supports == {"scaling": ["Llama3"], "step": False}


def test_words_that_no_answered_case_shows_are_not_in_the_scope() -> None:
    asked = table((HALF | {"scaling": None}, True), *2 * [(INTER | {"scaling": "YaRN"}, False)])
    restrictions, left = infer("rope", asked)
    assert (len(restrictions), left) == (1, [])
    assert scope_statement.as_supports("rope", restrictions, asked) == {"layout": ["half"], "scaling": [None]}


@pytest.mark.thorough
def test_limits_come_before_choices() -> None:
    line = check(refusing(lambda c: largest(c) > 2047 or c.layout != "half"), op="rope").scopes[0].line
    assert line.index("positions up to") < line.index("layout half")


def rotate(x: Any, cos: Any, sin: Any, xp: Any) -> Any:
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return xp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def plain_numpy(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    if layout != "half":
        raise Unsupported(layout)
    d = x.shape[-1]
    angle = np.asarray(positions)[..., None].astype(np.float32) / np.float32(base) ** (np.arange(0, d, 2, dtype=np.float32) / d)
    return rotate(x, np.cos(angle), np.sin(angle), np)


def plain_torch(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
    if layout != "half":
        raise Unsupported(layout)
    d = x.shape[-1]
    angle = positions[..., None].float() / base ** (torch.arange(0, d, 2).float() / d)
    return rotate(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype), torch)


@pytest.mark.thorough(dear=True)
def test_plain_code_of_narrow_scope_conforms() -> None:
    torch_like = SimpleNamespace(rope=plain_torch, backend="torch", dtypes=("float32", "bfloat16"), scalings=())
    for target, words in (
        (SimpleNamespace(rope=plain_numpy), ("no scaling", "layout half", "no gradients")),
        (torch_like, ("no scaling", "layout half")),
    ):
        report = check(target, op="rope")
        assert report.verdict == "conformant in its scope", report.operations[0].reason
        assert report.exit_code == 0
        assert all(word in report.scopes[0].line for word in words), report.scopes[0].line


def test_offsets_alone_are_a_form_of_positions() -> None:
    report = check(
        refusing(lambda c: c.positions.ndim and np.any(np.diff(np.ravel(c.positions)) != 1), op="sinusoidal"), op="sinusoidal"
    )
    assert report.verdict == "conformant in its scope", report.operations[0].reason
    assert "consecutive positions [" in report.scopes[0].line


@few(1,
    ("op", "refuses", "words"),
    [
        ("learned", lambda c: c.offset != 2, "offset 2 (refused: 1 and less, 3 and more)"),
        ("random_fourier", lambda c: c.x.shape[-1] != 1, "only axis c of x of 1"),
        ("peg", lambda c: c.weight.shape[-1] != 3, "taps 3"),
        ("conv_positions", lambda c: c.weight.shape[-1] % 2, "taps a multiple of 2"),
        ("timestep", lambda c: c.dim % 2, "dim a multiple of 2"),
        ("learned", lambda c: c.positions.ndim != 2, "only 1 leading axis ["),
        ("resample", lambda c: len(set(c.old_size)) > 1 or c.prefix != 1, "a square table"),
        ("fourier", lambda c: c.bands.ndim > 1 or any(c.bands != 2.0 ** np.arange(len(c.bands))), "bands powers of two"),
        ("xpos", lambda c: c.rotary_dim not in (None, c.x.shape[-1] // 2), "all of the head rotated, or half"),
        ("peg", lambda c: c.x.ndim != 4 or not c.x.size, "only 1 leading axis ["),
        ("sinusoidal", lambda c: not c.positions.ndim, "an axis of tokens ["),
        ("timestep", lambda c: c.timesteps.ndim != 1, "no leading axes ["),
        ("permute_qk_weights", lambda c: c.weight.shape != (8 * c.heads, c.weight.shape[-1]), "head size 8 (refused: 7"),
    ],
    ids=[
        "offset", "coordinates", "taps", "even-taps", "even-widths", "rank", "square", "bands", "half-rotated", "axes", "axis",
        "vector", "heads",
    ],
)  # fmt: skip
def test_what_is_built_for_one_number_conforms(op: str, refuses: Condition, words: str) -> None:
    report = check(refusing(refuses, op=op), op=op, dtype="float32")
    assert report.verdict == "conformant in its scope", report.operations[0].reason
    assert words in report.scopes[0].line


def test_a_number_without_a_rule_that_is_taken_at_its_default_alone_is_stated() -> None:
    trial: Any = SimpleNamespace(op="sinusoidal", answered=[])
    for taken, axis in ((1.0, ("scale", frozenset({DEFAULT}))), (2.0, None)):
        cause = Cause(REFUSED, {}, {}, ("option scale",), {"option scale": [0.25, 8.0]}, {"option scale": [taken]}, rough=True)
        assert learned_scope._axis(trial, cause) == axis


def test_one_number_that_is_refused_is_told() -> None:
    """Offsets of 2 and of 5 answered, of 1 refused: calls with other offsets say that it is 1 alone."""
    report = check(refusing(lambda c: c.offset == 1, op="learned"), op="learned", dtype="float32")
    assert "no offset of 1 [" in report.scopes[0].line


@pytest.mark.thorough
def test_empty_arrays_are_a_property() -> None:
    report = check(refusing(lambda c: not c.x.size and c.layout == "half"), op="rope", dtype="float32")
    assert report.verdict == "conformant in its scope", report.operations[0].reason
    assert "no empty batch, heads, tokens [6 cases]" in report.scopes[0].line


def test_an_option_and_a_list_with_a_1_are_two_properties() -> None:
    def torch_repeats(call: SimpleNamespace) -> bool:
        return call.antialias and 1 in call.size

    report = check(refusing(torch_repeats, op="resample"), op="resample", dtype="float32")
    assert report.verdict == "conformant in its scope", report.operations[0].reason
    assert "not smallest of size of 1, with antialias [" in report.scopes[0].line
    for pair in ({"antialias": True, "one_size": True}, {"antialias": True, "size": {"max": 1}}):
        stated = {"resample": {"not": [pair]}}
        again = check(refusing(torch_repeats, op="resample", supports=stated), op="resample", dtype="float32")
        assert again.conformant, again.operations[0].reason
        assert again.scopes[0].answered == report.scopes[0].answered
        read = scope_statement.read("resample", {"resample": again.scopes[0].supports})
        assert read["resample"]["not"] == scope_statement.read("resample", stated)["resample"]["not"]


# ---- too little -----------------------------------------------------------------------------------------------------------
@few(
    1,
    ("refuses", "reason"),
    [(lambda c: c.x.size, "no case that has values passed"), (lambda c: True, r"all \d+ cases are refused: not offered")],
    ids=["empty arrays alone", "everything"],
)
def test_what_answers_no_value_is_not_conformant(refuses: Condition, reason: str) -> None:
    report = check(refusing(refuses), op="rope")
    assert report.verdict == "not conformant"
    assert re.fullmatch(reason, report.operations[0].reason)


def test_a_function_that_cannot_answer_a_passed_case_has_failed_it() -> None:
    """Of these cases one has the shape of its input, and there the input is right: the others need another shape."""

    def outside(call: SimpleNamespace) -> bool:
        return (
            call.method != "cubic" or call.align_corners or call.antialias or len(call.size) != 2 or call.boundary != "border"
        )

    report = check(refusing(outside, op="resample"), op="resample", dtype="float32")
    assert report.verdict == "conformant in its scope", report.operations[0].reason


def test_a_gradient_that_passes_counts_too() -> None:
    """The gradient of a function that returns its input is the cotangent; that of zeros is 0."""
    cases = [case for group in load_groups(INSTALLED, ops=("rope",)) for case in group.cases if case.kind == "vjp"]
    for case in cases:
        given = scope_result._given("rope", case.calls[0])
        assert np.array_equal(given["x"], case.calls[0].cotangents["out"])
        for function in (scope_result._given, scope_result._zeros):
            assert scope_result._differs(case, "float32", "angle32", function)


@pytest.mark.thorough
def test_zeros_and_the_input_must_fail_in_the_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    still = check(refusing(lambda c: c.source != c.target, op="permute_qk_weights"), op="permute_qk_weights")
    assert "a function that returns its input passes" in still.operations[0].reason
    monkeypatch.setattr(
        scope_result, "_zeros", lambda op, call: {"out": posref.rope(call.inputs["x"], call.inputs["positions"], **call.params)}
    )
    assert (
        "a function that returns zeros passes" in check(refusing(lambda c: c.layout != "half"), op="rope").operations[0].reason
    )


def moved(call: SimpleNamespace) -> bool:
    """Return whether a call is one that no stored case makes: chunks of sections that could be interleaved."""
    return call.layout == "half" and call.scaling is None and call.arrangement == "chunked" and list(call.sections) == [2, 2, 2]


@few(
    1,
    ("refuses", "wrong", "words"),
    [(lambda c: False, lambda c: False, ""), (lambda c: moved(c) or len(c.sections) != 3, None, "")],
    ids=["right", "one call refused"],
)
def test_what_stored_cases_do_not_tell_is_asked_live(
    refuses: Condition, wrong: Condition | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the one stored case that tells the arrangements apart were not recorded to do so."""
    recorded, one = scope_result.caught, {"mrope/alone/sections"}
    monkeypatch.setattr(scope_result, "caught", lambda op: {name: ids - one for name, ids in recorded(op).items()})

    def outside(call: SimpleNamespace) -> bool:
        return call.arrangement != "chunked" or call.layout != "half" or call.scaling is not None or refuses(call)

    report = check(refusing(outside, op="mrope", wrong=wrong), op="mrope")
    assert words in report.operations[0].reason
    assert report.conformant is (not words)
    assert report.scopes[0].drawn > 0


ASKED = {  # positions beyond 2047 that stored cases of rope end at
    largest(SimpleNamespace(**call.inputs)) for group in load_groups(INSTALLED, ops=("rope",)) for case in group.cases
    for call in case.calls if call.inputs["positions"].size
} - set(range(2048))  # fmt: skip


# ---- limits, on both sides ------------------------------------------------------------------------------------------------
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("refuses", "wrong", "words"),
    [
        (lambda c: largest(c) > 2047, None, ""),
        (
            lambda c: largest(c) > 2047,
            lambda c: largest(c) == 2046,
            "(inside its limit, at position 2046, it is wrong|wrong inside its scope, at .* to 2046: )",  # whichever is first
        ),
        (lambda c: tokens(c) > 7, None, ""),
    ],
)
def test_a_limit_is_tried_on_both_sides(refuses: Condition, wrong: Condition | None, words: str) -> None:
    scope = check(refusing(refuses, wrong=wrong), op="rope").scopes[0]
    assert re.search(words, scope.narrow)
    assert bool(scope.narrow) is bool(words)
    assert scope.drawn > 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("refuses", "wrong", "standing"),
    [
        (lambda c: largest(c) in ASKED, lambda c: largest(c) > 2047, "selective"),
        (lambda c: largest(c) > 2047 or largest(c) == 2046, None, "selective"),
    ],
)
def test_what_drawn_calls_decide_is_not_called_too_narrow(refuses: Condition, wrong: Condition | None, standing: str) -> None:
    assert check(refusing(refuses, wrong=wrong), op="rope", dtype="float32").operations[0].standing == standing


def test_each_verdict_names_what_decided_it() -> None:
    def operation(*verdicts: str, kind: str = "value", scope: Scope | None = None) -> Operation:
        cases = [CaseResult(f"rope/a/{k}", "rope", kind, "core", "float32", verdict) for k, verdict in enumerate(verdicts)]
        passing = CaseResult("rope/a/right", "rope", "value", "core", "float32", "pass")
        return Operation("rope", "float32", "angle32", [passing, *cases], scope=scope or Scope("rope", 1, 1, passed=True))

    assert operation().standing == "pass"
    assert operation("unsupported").standing == "in scope"
    invalid = operation("protocol", kind="reject")
    assert (invalid.standing, invalid.reason) == ("protocol", "1 invalid call ends in protocol")
    assert operation("crash", "protocol", kind="reject").reason == "2 invalid calls end in crash, protocol"
    assert operation("fail", "fail").standing == "fail"
    assert operation("timeout").standing == "timeout"
    assert operation("timeout", "fail").standing == "fail"
    assert operation("selective", scope=Scope("rope", 2, 1, True, refused=[("rope/a/0", "float32")])).standing == "selective"
    assert operation(scope=Scope("rope", 1, 1, passed=False)).standing == "no values"
    assert operation(scope=Scope("rope", 1, 1, True, narrow="zeros pass", decided="too narrow")).standing == "too narrow"
    assert {operation(verdict).standing for verdict in BAD} <= {*STANDINGS}


# ---- stated scopes --------------------------------------------------------------------------------------------------------
def half(call: SimpleNamespace) -> bool:
    return call.layout != "half" or call.scaling is not None


SUPPORTS = {"rope": {"layout": ["half"], "scaling": [None]}}


def test_a_stated_scope_in_which_no_case_lies_is_none() -> None:
    report = check(refusing(lambda _: False, supports={"rope": {"layout": []}}), op="rope", tier="core")
    assert not report.conformant
    assert "no case that it answers lies in the scope that it states" in report.operations[0].reason


@pytest.mark.thorough
def test_a_number_that_has_a_default_is_stated_by_word_or_by_value() -> None:
    for offset, refuses in (
        ([2], lambda c: c.offset != 2),
        ({"max": 2}, lambda c: c.offset > 2),
        (["given"], lambda c: not c.offset),
    ):
        stated = {"learned": {"offset": offset}}
        report = check(refusing(refuses, op="learned", supports=stated), op="learned", dtype="float32")
        assert report.conformant, report.operations[0].reason
        assert "offset" in report.scopes[0].line
    report = check(
        refusing(lambda c: c.offset != 5, op="learned", supports={"learned": {"offset": [2]}}), op="learned", dtype="float32"
    )
    assert not report.conformant


def test_a_refusal_inside_a_stated_scope_is_selective() -> None:
    assert check(refusing(half, supports=SUPPORTS), op="rope").conformant
    report = check(refusing(lambda c: half(c) or c.inverse, supports=SUPPORTS), op="rope")
    assert not report.conformant
    assert "inside the scope that it states" in report.operations[0].reason
    assert {"rope/half/inverse"} <= {case for case, _ in report.scopes[0].refused} or report.counts["selective"] > 0


@pytest.mark.thorough(dear=True)
def test_a_wrong_answer_outside_the_stated_scope_is_said_to_be_outside() -> None:
    """Whoever states a scope and answers beyond it needs to know that he must refuse there."""
    states = {"alibi": {"form": ["distance"]}}
    only = check(
        refusing(lambda _: False, op="alibi", wrong=lambda c: c.form != "distance", supports=states), op="alibi", experiments=0
    )
    text = only.operations[0].diagnosis["text"]
    assert text.startswith("all failing cases lie outside the scope that `supports` states, and must be refused"), text
    both = check(refusing(lambda _: False, op="alibi", wrong=lambda c: c.heads > 2, supports=states), op="alibi", experiments=0)
    told = re.search(r"(\d+) of (\d+) failing cases lie outside", both.operations[0].diagnosis["text"])
    assert told
    assert 0 < int(told[1]) < int(told[2])
    inside = check(
        refusing(lambda c: c.form != "distance", op="alibi", wrong=lambda c: c.heads > 2, supports=states),
        op="alibi",
        experiments=0,
    )
    assert "outside" not in inside.operations[0].diagnosis["text"]


@pytest.mark.parametrize(
    ("refuses", "words"),
    [(lambda c: c.window is not None, [None]), (lambda c: c.window is None, ["given"])],
    ids=["none", "given"],
)
def test_none_in_place_of_a_number_is_a_scope(refuses: Condition, words: list[Any]) -> None:
    """An option without a default that is a number or None is told as such, found and stated."""
    op = "log_spaced_coordinates"
    found = check(refusing(refuses, op=op), op=op, dtype="float32")
    assert found.conformant, found.operations[0].reason
    assert found.scopes[0].supports["window"] == words
    stated = {op: {"window": words}}
    assert check(refusing(refuses, op=op, supports=stated), op=op, dtype="float32").conformant
    other = {op: {"window": ["given"] if words == [None] else [None]}}
    assert not check(refusing(refuses, op=op, supports=other), op=op, dtype="float32").conformant


def test_a_stated_scope_has_pairs_and_multiples() -> None:
    def outside(call: SimpleNamespace) -> bool:
        return (call.layout == "interleaved" and call.inverse) or call.x.shape[-1] % 4 != 0

    stated = {"rope": {"head_size": {"multiple_of": 4}, "not": [{"layout": "interleaved", "inverse": True}]}}
    report = check(refusing(outside, supports=stated), op="rope")
    assert report.conformant, report.operations[0].reason
    assert "head size a multiple of 4" in report.scopes[0].line
    assert "not inverse with layout interleaved" in report.scopes[0].line


@few(
    1,
    ("op", "bound", "outside"),
    [
        ("resample", {"size": {"min": 2}}, lambda c: 1 in c.size),
        ("resample", {"old_size": {"max": 5}}, lambda c: max(c.old_size) > 5),
        ("axial_rope", {"dims": {"multiple_of": 4}}, lambda c: any(n % 4 for n in c.dims)),
        ("sinusoidal_nd", {"dims": [2, 4, 6]}, lambda c: not {2, 4, 6}.issuperset(c.dims)),
        ("mrope", {"sections": {"min": 1, "max": 3}}, lambda c: min(c.sections) < 1 or max(c.sections) > 3),
    ],
)
def test_a_bound_holds_for_every_number_of_a_list(op: str, bound: dict[str, Any], outside: Condition) -> None:
    report = check(refusing(outside, op=op, supports={op: bound}), op=op, dtype="float32")
    assert report.conformant, report.operations[0].reason
    assert next(iter(bound)) in report.scopes[0].line
    silent = check(refusing(lambda _: False, op=op, supports={op: bound}), op=op, dtype="float32")
    assert silent.scopes[0].answered > report.scopes[0].answered
    narrower = check(refusing(lambda c: True, op=op, supports={op: bound}), op=op, dtype="float32")
    assert not narrower.conformant


@pytest.mark.thorough
def test_what_is_not_offered_together_is_printed_as_it_is_read() -> None:
    def outside(call: SimpleNamespace) -> bool:
        return call.layout == "interleaved" and call.rotary_dim not in (None, call.x.shape[-1])

    stated = {"rope": {"not": [{"layout": "interleaved", "partial": True}]}}
    printed = check(refusing(outside, supports=stated), op="rope").scopes[0].supports
    assert printed["not"] == [{"layout": ["interleaved"], "partial": True}]
    assert check(refusing(outside, supports={"rope": printed}), op="rope").conformant


@pytest.mark.thorough
def test_pairs_with_a_word_that_is_refused_altogether_are_not_told() -> None:
    def outside(call: SimpleNamespace) -> bool:
        name = type(call.scaling).__name__
        return name not in ("NoneType", "YaRN", "Llama3") or (call.layout == "interleaved" and name == "YaRN")

    [scope] = check(refusing(outside), op="rope").scopes
    assert "not layout interleaved, with scaling YaRN [" in scope.line


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"rope": {"layout": "half"}}, "supports: at rope/layout: 'half' is not valid"),
        ({"rope": {"layuot": ["half"]}}, "supports of rope must name one of its axes; got 'layuot'. Did you mean layout?"),
        ({"rope": {"layout": ["halves"]}}, "layout must be one of half, interleaved, interleaved_to_half; got 'halves'"),
        ({"*": {"layout": ["halves"]}}, "one of sin_cos, .*half, interleaved.*; got 'halves'. Did you mean half"),
        ({"rope": {"scaling": ["Yarn"]}}, "got 'Yarn'. Did you mean YaRN"),
        ({"ropes": {}}, r"must name operations, or \* for all"),
        ({"rope": {"positions": "random"}}, "at rope/positions"),
        ({"rope": {"inverse": True}}, "inverse must be a list of False, True; got 'True'"),
        ({"rope": {"head_size": {"maximum": 4}}}, "at rope/head_size"),
        ({"rope": {"odd_taps": False}}, "supports of rope must name .*; got 'odd_taps'"),
        ({"alibi": {"partial": False}}, "got 'partial'"),
        ({"alibi": {"one": ["token"]}}, "one must be one of query, key; got 'token'"),
        ({"resample": {"size": {"min": 1}}}, "size must be a bound that leaves something out: it is never below 1; got '1'"),
        ({"rope": {"head_size": {"multiple_of": 1}}}, "a bound that leaves something out"),
        ({"rope": {"head_size": {"min": 64, "max": 32}}}, "a bound that something is within; got '32'"),
        ({"rope": {"not": [{"layout": "half", "partial": False}]}}, "partial must be a word or a size that a call can have"),
        ({"rope": {"not": [{"layout": "half", "odd_taps": True}]}}, "got 'odd_taps'"),
        ({"rope": {"not": [{"layout": "half", "head_size": {"min": 0}}]}}, "a bound that leaves something out"),
        ({"rope": {1j}}, "as JSON has them"),
        (["rope"], "at the top level"),
    ],
)
def test_a_scope_that_does_not_exist_is_an_error_before_any_call(stated: Any, words: str) -> None:
    def never(call: SimpleNamespace) -> bool:
        raise AssertionError(call)

    with pytest.raises(TargetError, match=words):
        check(refusing(never, supports=stated), op="rope")


def test_what_holds_for_all_operations_is_said_once() -> None:
    target = refusing(lambda c: c.layout != "half", supports={"*": {"layout": ["half"]}})
    target.sinusoidal = posref.sinusoidal  # whose layouts are other words
    report = check(target)
    assert report.conformant, [op.reason for op in report.operations]
    assert [one.op for one in report.scopes if one.answered < one.asked] == ["rope"]


# ---- the command and the reports ------------------------------------------------------------------------------------------
NARROW = '''
import posref
from posref.conformance import Unsupported


def alibi(q_positions, k_positions, /, *, heads, form, dtype=None):
    """Refuse all but one form."""
    if form != "distance":
        raise Unsupported("distance alone")
    return posref.alibi(q_positions, k_positions, heads=heads, form=form, dtype=dtype)
'''
COUNTED = re.compile(r"CONFORMANT in its scope: \d+ passed, \d+ outside")


def run(folder: Path, *options: str, more: str = "") -> Result:
    (folder / "mine.py").write_text(NARROW + more, encoding="utf-8")
    return run_posref("check", folder / "mine.py", *options)


@pytest.mark.thorough
def test_the_scope_that_is_printed_can_be_pasted(tmp_path: Path) -> None:
    printed = run(tmp_path, "--print-scope")
    assert printed.exit_code == 0, printed.output
    [counted] = COUNTED.findall(printed.output)
    stated = printed.output.partition("supports = ")[2]
    assert ast.literal_eval(stated)["alibi"]["form"] == ["distance"]
    again = run(tmp_path, more=f"\n\nsupports = {stated}")
    assert again.exit_code == 0, again.output
    assert counted in again.output


@few(
    1,
    ("op", "refuses"),
    [
        pytest.param("levit_bias", lambda c: c.height != c.width or c.stride != 1, id="two numbers alike"),
        pytest.param("rope_cos_sin", lambda c: c.positions.ndim != 2 or c.scaling is not None, id="leading axes"),
        pytest.param("apply_rope", lambda c: 2 * c.cos.shape[-1] != c.x.shape[-1] or c.layout != "half", id="whole heads"),
        pytest.param("logn_scale", lambda c: c.positions.ndim != 1 or not c.at_least_one, id="an axis of tokens"),
        pytest.param("positions_from_tokens", lambda c: c.tokens.ndim != 2 or c.padding_idx > 1, id="rows of tokens"),
        pytest.param("attention", lambda c: c.q.ndim != 2 or c.mask is not None, id="matrices"),
        pytest.param("random_fourier", lambda c: c.x.shape[-1] != 2 or c.layout != "sin_cos", id="coordinates"),
    ],
)
def test_what_is_printed_holds_as_it_is_stated(op: str, refuses: Condition) -> None:
    """A sentence that no key of `supports` says is told by keys that leave out as many cases: the same verdicts come out."""
    found = check(refusing(refuses, op=op), op=op, dtype="float32", seed=3)
    assert found.conformant, found.operations[0].reason
    again = check(refusing(refuses, op=op, supports={op: found.scopes[0].supports}), op=op, dtype="float32", seed=4)
    assert again.conformant, (again.operations[0].reason, found.scopes[0].supports)
    assert [c.verdict for c in again.operations[0].cases] == [c.verdict for c in found.operations[0].cases]


def test_a_malformed_scope_is_exit_code_2(tmp_path: Path) -> None:
    result = run(tmp_path, more="\n\nsupports = {'alibi': {'form': ['near']}}")
    assert result.exit_code == 2
    assert "got 'near'" in result.output


@few(
    1,
    ("required", "code", "words"),
    [
        ("alibi form=distance position<=131071 negative=true", 0, "CONFORMANT in its scope"),
        ("form=distance,key", 1, "required: alibi lacks form key"),
        ("alibi form=causal", 1, "required: alibi lacks form causal"),
        ("rope", 1, "required: rope is not offered"),
        ("alibi from=key", 2, "got 'from'"),
        ("everything", 2, "got 'everything'"),
        ("position<=many", 2, "must be followed by a number"),
    ],
)
def test_a_scope_can_be_required(required: str, code: int, words: str, tmp_path: Path) -> None:
    result = run(tmp_path, "--require", required)
    assert result.exit_code == code, result.output
    assert words in result.output


@pytest.mark.thorough
def test_a_scope_can_be_required_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "wanted.json").write_text(json.dumps({"alibi": {"form": ["key"]}}), encoding="utf-8")
    assert "required: alibi lacks form key" in run(tmp_path, "--require", str(tmp_path / "wanted.json")).output
    with pytest.raises(TargetError, match="drop --case and --tier smoke"):
        check("posref", case="rope/half/small", require="layout=half")


@few(1, "options", [("--case", "alibi/distance/small"), ("--tier", "smoke")])
def test_a_part_of_the_suite_never_makes_conformant(options: tuple[str, str], tmp_path: Path) -> None:
    result = run(tmp_path, *options)
    assert result.exit_code == 0
    assert "PASSED: 1 passed" in result.output
    assert "CONFORMANT" not in result.output
    assert options[1].replace("smoke", "one case of each operation") in result.output


@pytest.mark.thorough
def test_all_reports_tell_the_scope(tmp_path: Path) -> None:
    files = {form: tmp_path / f"report.{form}" for form in ("json", "html", "markdown", "junit", "badge")}
    result = run(tmp_path, *(word for form, file in files.items() for word in (f"--{form}", str(file))))
    assert result.exit_code == 0, result.output
    texts = {form: file.read_text(encoding="utf-8") for form, file in files.items()}
    document = json.loads(texts["json"])
    assert (document["schema"], document["verdict"], document["conformant"]) == (2, "conformant in its scope", True)
    [scope] = document["scopes"]
    answered, asked = scope["answered"], scope["asked"]
    assert 0 < answered < asked
    assert f"in scope {answered}/{asked}" in texts["badge"]
    for form in ("html", "markdown"):
        assert "CONFORMANT in its scope" in texts[form]
        assert f"{answered} of {asked} cases: " in texts[form]
    assert 'failures="0"' in texts["junit"].splitlines()[1]


def test_a_report_of_version_1_is_still_read(tmp_path: Path) -> None:
    document = check("posref", op="t5_buckets").to_json()
    for name in ("verdict", "part", "scopes", "unmet"):
        del document[name]
    (tmp_path / "old.json").write_text(json.dumps(document | {"schema": 1}), encoding="utf-8")
    result = run_posref("report", tmp_path / "old.json")
    assert result.exit_code == 0, result.output
    assert "**CONFORMANT**" in result.output


@pytest.mark.thorough
def test_what_the_library_lacks_is_said_once() -> None:
    one, other = (check("posref", op=op, dtype="float32") for op in ("t5_bias", "learned"))
    for report in (one, other):
        (line,) = summaries.scope_lines(report.to_json())
        assert re.fullmatch(r"scope of \w+: \d+ of \d+ cases: no gradients \[\d+ cases?\]", line)
    both = Report(one.target, one.suite, "core", one.operations + other.operations, (), True)
    outside = both.counts["unsupported"]
    assert summaries.scope_lines(both.to_json()) == [f"numpy has no gradients: {outside} cases of 2 operations are outside"]


def test_an_operation_that_answers_every_case_has_no_line() -> None:
    scope = {"op": "t5_bias", "answered": 3, "asked": 3, "library": 0, "limits": [], "wrong": ["a limit that is none"]}
    told = {"operations": [{"op": "t5_bias", "counts": {"pass": 3}}]}
    assert summaries.scope_lines(told | {"scopes": [scope]}) == []
    assert summaries.scope_lines(told | {"scopes": [scope | {"answered": 2}]}) == ["scope of t5_bias: 2 of 3 cases"]


def test_one_case_is_no_scope_unless_it_is_stated() -> None:
    target = refusing(lambda c: (c.heads, c.max_bias, c.first, c.count) != (1, 8, 0, None), op="alibi_slopes")
    inferred = check(target, op="alibi_slopes").operations[0]
    assert inferred.standing == "too narrow"
    assert "one case with values passed, and 2 cases must" in inferred.reason
    one = {"alibi_slopes": {"heads": {"min": 1, "max": 1}}}
    stated = refusing(lambda c: c.heads != 1, op="alibi_slopes", supports=one)
    assert check(stated, op="alibi_slopes").operations[0].standing == "in scope"


def test_a_function_of_two_answers_is_too_narrow_however_true_its_scope_is() -> None:
    """Eight heads and two slopes, of which the suite asks one: `--print-scope` gives what to state."""

    def refuses(call: SimpleNamespace) -> bool:
        return call.heads != 8 or call.max_bias not in (8, 16) or call.first or call.count is not None

    report = check(refusing(refuses, op="alibi_slopes"), op="alibi_slopes", seed=1)
    assert report.operations[0].standing == "too narrow"
    assert "heads 8 (refused: 7 and less, 12 and more)" in report.scopes[0].line
    assert "max_bias a multiple of 8" in report.scopes[0].line
    eight = {"alibi_slopes": {"heads": {"min": 8, "max": 8}, "max_bias": [8, 16]}}
    [stated] = check(refusing(refuses, op="alibi_slopes", supports=eight), op="alibi_slopes", seed=1).operations
    assert stated.standing == "in scope"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("op", "refuses", "words"),
    [
        ("window_bias", lambda c: (c.height, c.width, c.class_token) != (7, 7, False), "height 7"),
        ("logn_scale", lambda c: c.original_length != 2048 or c.offset, "original_length 2048"),
        ("positions_from_mask", lambda c: c.padding != 1, "padding 1"),
        ("learned", lambda c: c.offset or c.positions.tolist() != [*range(c.positions.size)], "only positions 0, 1, 2, ..."),
    ],
)
def test_right_code_conforms_where_no_stored_case_lies(op: str, refuses: Condition, words: str) -> None:
    """A call that is answered is looked for; fresh calls inside the scope around it must be right, and are counted."""
    report = check(refusing(refuses, op=op), op=op, dtype="float32", seed=1)
    assert report.conformant, report.operations[0].reason
    assert "0 of" in report.scopes[0].line, report.scopes[0].line
    assert "fresh calls inside" in report.scopes[0].line, report.scopes[0].line
    assert words in report.scopes[0].line
    wrong = check(refusing(refuses, op, lambda c: True), op=op, dtype="float32", seed=1).operations[0]
    assert wrong.standing == "fail", wrong.reason
    assert "it is wrong inside its scope" in wrong.reason
    never = check(refusing(lambda c: True, op=op), op=op, dtype="float32", seed=1).operations[0]
    assert never.standing == "no values", never.reason


@pytest.mark.thorough(dear=True)
def test_code_of_few_cases_is_asked_at_the_sizes_of_kernels() -> None:
    def rope(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        if x.ndim != 3 or positions.shape != (x.shape[0], 1) or not x.size:
            raise Unsupported("x is (T, H, D)")
        out = posref.rope(x, positions, layout=layout, base=base)
        out[:, 16:] = x[:, 16:]
        return out

    reason = check(SimpleNamespace(rope=rope), op="rope", tier="kernel", seed=7).operations[0].reason
    assert "wrong with 33 batch rows or more [" in reason


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("tiles", [False, True])
def test_a_narrow_scope_is_learned_at_the_sizes_of_kernels(tiles: bool) -> None:
    def rope(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        whole = x.ndim == 4 and positions.shape == (x.shape[-2],) and layout == "half" and positions.dtype.kind in "iu"
        if not whole or ((x.shape[-2] % 16 or x.shape[-1] % 32) if tiles else np.any(np.diff(positions) != 1)):
            raise Unsupported("not implemented")
        return posref.rope(x, positions, layout=layout, base=base)

    report = check(SimpleNamespace(rope=rope), op="rope", tier="kernel", seed=7)
    assert report.operations[0].standing == "in scope", report.operations[0].reason
    assert ("tokens a multiple of 16" if tiles else "consecutive positions") in report.scopes[0].line


@few(1, "op", ["alibi_slopes", "t5_bias", "rms_norm", "decomposed_rows"])
@few(1, "count", [10_000, 1, 3])
def test_a_table_of_stored_answers_that_refuses_all_else_is_not_conformant(op: str, count: int) -> None:
    """Of one case, of a few in one scope, and of all: no call that the suite does not hold is answered."""
    stored = [case for group in load_groups(INSTALLED, ops=[op]) for case in group.cases if case.kind == "value"]
    cases = [case for case in stored if "float32" in case.dtypes and all(x.size for x in case.calls[0].expected.values())][
        :count
    ]
    table = {call_key(op, call): call.expected for case in cases for call in case.calls}
    parameters = inspect.signature(REGISTRY[op].function).parameters

    def function(*args: Any, **options: Any) -> Any:
        given = {**dict(zip(parameters, args, strict=False)), **{n: v for n, v in options.items() if n != "dtype"}}
        inputs = {name: np.asarray(value) for name, value in given.items() if name in REGISTRY[op].arrays}
        params = {name: value for name, value in given.items() if name not in inputs}
        found = table.get(call_key(op, Call(params, inputs)))
        if found is None:
            raise Unsupported("not in the table")
        return np.asarray(next(iter(found.values())), dtype=np.float32 if returns_reals(op) else np.int64)

    report = check(SimpleNamespace(**{op: function}, __name__="table"), op=op, dtype="float32", seed=1)
    assert sum(operation.counts["pass"] for operation in report.operations) >= min(count, 3), report.operations[0].counts
    assert not report.conformant, report.scopes[0].line


def test_tables_of_another_dtype_may_all_be_refused() -> None:
    """As `infer` says of a target that raises for each of them: what a report states is read again."""
    assert scope_statement.read("kernel", {"norm_rope": {"tables": False}}) == {"norm_rope": {"tables": frozenset()}}


# ---- right code in odd ways ------------------------------------------------------------------------------------------------
def same(a: Any, b: Any) -> bool:
    return np.array_equal(a, b)


def counts(positions: Any) -> bool:
    """Return whether positions are 0, 1, 2, ... in a row of their own."""
    return np.array_equal(positions, np.arange(positions.shape[-1]))


def is_grid(cells: Any) -> bool:
    """Return whether cells are those of a square grid, row by row."""
    side = math.isqrt(cells.shape[-1])
    return np.array_equal(cells, np.indices((side, side)).reshape(2, -1))


def of_whole_grids(q: Any, k: Any, /, *, q_size: int, k_size: int) -> Any:
    """Rows as MViT and SAM compute them, from two sizes."""
    if not np.array_equal(q, np.arange(q_size)) or not np.array_equal(k, np.arange(k_size)):
        raise Unsupported("all cells of both grids")
    return posref.decomposed_rows(np.arange(q_size), np.arange(k_size), q_size=q_size, k_size=k_size)


@pytest.mark.parametrize("supports", [None, {"decomposed_rows": {"positions": "from zero"}}])
@pytest.mark.parametrize("seed", [1, 2])
def test_code_that_takes_sizes_alone_conforms(supports: dict[str, Any] | None, seed: int) -> None:
    target = SimpleNamespace(decomposed_rows=of_whole_grids, supports=supports, __name__="sizes")
    report = check(target, op="decomposed_rows", seed=seed)
    assert report.conformant, report.operations[0].reason
    [line] = [scope.line for scope in report.scopes]
    assert "positions 0, 1, 2, ... to the last that the sizes allow" in line
    assert ";" not in line.replace("; positions without axes for rows", "")


@pytest.mark.thorough(dear=True)
@few(
    3,
    ("op", "refuses", "options", "words"),
    [
        ("alibi", lambda c: not (same(c.q_positions, c.k_positions) and counts(c.k_positions) and c.k_positions.size),
         "heads form", "queries the last of the keys"),
        ("rope", lambda c: c.x.ndim != 3 or c.positions.shape != (c.x.shape[0], 1) or not c.x.size,
         "layout base", "only tokens before heads"),
        ("t5_bias", lambda c: c.bidirectional or not counts(c.k_positions) or not same(c.q_positions, c.k_positions[-1:])
         or not c.k_positions.size, "bidirectional max_distance", "queries 1"),
        ("t5_bias", lambda c: c.table.shape[0] != 32 or c.q_positions.ndim != 1 or c.k_positions.ndim != 1,
         "bidirectional", "32"),
        ("apply_rope", lambda c: c.x.ndim != 4 or c.cos.shape[:-1] != (c.x.shape[1], 1),
         "layout", "only tokens before heads"),
        ("deberta_scores", lambda c: c.num_buckets is not None or c.p2c != "code" or c.rel_k is None
         or not same(c.q_positions, c.k_positions), "num_buckets max_distance p2c rel_k", "no rel_q"),
        ("write_cache", lambda c: np.any(c.slots < 0), "", "no -1"),
        ("irpe_buckets", lambda c: c.method != "product" or not is_grid(c.q_positions)
         or not same(c.q_positions, c.k_positions), "method alpha beta gamma", "only the cells of a grid, row by row"),
        ("visible_windows", lambda c: not counts(c.q_positions), "rate", "only positions 0, 1, 2, ..."),
        ("attention", lambda c: c.q.ndim != 4 or c.q.shape[-2] != 1 or c.q.shape[-1] % 16,
         "mask scale", "queries 1"),
        ("norm_rope", lambda c: c.layout != "half" or c.eps not in (1e-6, 1e-5), "layout eps weight_offset precedence",
         "eps 1e-06, 1e-05 (of the values tried)"),
        ("kerple", lambda c: not same(c.q_positions, c.k_positions) or not counts(c.k_positions),
         "form", "as many queries as keys"),
        ("attention", lambda c: c.mask is not None and not c.mask.any(-1).all(), "mask scale", "a key for every query"),
    ],
)  # fmt: skip
def test_right_code_of_one_form_conforms(op: str, refuses: Condition, options: str, words: str) -> None:
    """It takes only some of the options."""

    def code(**stated: Any) -> SimpleNamespace:
        target = refusing(refuses, op=op, **stated)
        function = getattr(target, op)
        whole = inspect.signature(REGISTRY[op].function)
        names = [n for n, p in whole.parameters.items() if p.kind is p.POSITIONAL_ONLY or n in options.split()]
        function.__signature__ = whole.replace(parameters=[whole.parameters[n] for n in names])
        return target

    report = check(code(), op=op, seed=1)
    assert report.conformant, report.operations[0].reason
    assert words in report.scopes[0].line
    pasted = {} if report.scopes[0].unsaid else {"supports": {op: report.scopes[0].supports}}
    again = check(code(**pasted), op=op, seed=2)
    assert again.conformant, (pasted, again.operations[0].reason)
