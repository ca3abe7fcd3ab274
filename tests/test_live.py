"""Live judging: the same verdicts as stored vectors, from rows whose bits are those of the whole, and never a silent pass."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sizes import is_called_with_few

from posref.backends.live import live
from posref.conformance.accuracy import tolerance_of
from posref.conformance.calls import judged_as
from posref.conformance.judge import Verdict, compare
from posref.conformance.judge import judge as judge_call
from posref.conformance.model import Arrays, Call, LoadedCase
from posref.conformance.proof import live as judging
from posref.conformance.proof import rows as of_rows
from posref.conformance.proof.rows import rows_of
from posref.conformance.proof.running import Pullback, as_reals, plain, results_of
from posref.conformance.suite.reading import INSTALLED, load_groups
from posref.spec import REGISTRY

RNG = np.random.default_rng(5)
POSITIONS = np.arange(4097) * 7
CLAIMS = {"float64": "float64", "float32": "angle32", "bfloat16": "low", "float16": "low"}


def judge(
    op: str, inputs: Arrays, params: dict[str, Any], outputs: Arrays, accuracy: str, dtype: str, cotangents: Any = None
) -> tuple[Verdict, ...]:  # fmt: skip
    """Return the live verdict on every output of a call."""
    call = Call(params, inputs, cotangents=cotangents or {})
    return judge_call(op, call, outputs, accuracy, dtype, truth="live").verdicts


@cache
def cases_of(op: str) -> list[LoadedCase]:
    return [c for group in load_groups(INSTALLED, ops=[op]) for c in group.cases if c.kind in ("value", "vjp")]


def some_cases(op: str, *, most: int) -> list[LoadedCase]:
    """Return the largest cases of an operation, at most so many of a kind."""
    cases = cases_of(op)
    cases.sort(key=lambda c: -sum(x.size for x in c.calls[0].expected.values()))
    return [*[c for c in cases if c.kind == "value"][:most], *[c for c in cases if c.kind == "vjp"][:most]]


def check_values(case: LoadedCase) -> None:
    """The truth lies within the bounds of class float64 around live values, for outputs and gradients."""
    for call in case.calls:
        pullback = Pullback(call.cotangents, tuple(call.expected)) if call.cotangents else None
        found = results_of(live("float64"), case.op, call.inputs, call.params, pullback)
        for name, expected in call.expected.items():
            if expected.dtype.kind != "f":
                assert np.array_equal(np.broadcast_to(found[name].parts[0], expected.shape), expected)
                continue
            value, bound = as_reals(found[name], live("float64")).parts
            assert np.all(np.abs(value - expected) <= bound + 2.0**-53 * np.abs(expected) * (bound > 0)), (case.id, name)


def check_rows(case: LoadedCase) -> set[str]:
    """All rows but the first have the bits that they have among all; return the letters that were cut."""
    call = case.calls[0]
    rows = rows_of(case.op, call.inputs, call.params, {n: x.shape for n, x in call.expected.items()})
    some = {key: np.arange(1, size) for key, size in rows.sizes.items() if size > 2}
    for accuracy in ("float64", "angle32"):
        whole = results_of(live(accuracy), case.op, call.inputs, call.params, None)
        part = results_of(live(accuracy), case.op, rows.cut(call.inputs, some), call.params, None)
        for name, x in whole.items():
            for mine, other in zip(x.parts, part[name].parts, strict=True):
                cut = rows.cut_results({name: mine}, some)[name]
                assert cut.shape == other.shape, case.id
                assert cut.tobytes() == other.tobytes(), case.id
    return {letter for letter, _ in some}


def check_verdicts(case: LoadedCase, *, shift: float, dtypes: tuple[str, ...] = tuple(CLAIMS)) -> None:
    """Outputs a little within or beyond their stored tolerance are judged live as they are by it."""
    call = case.calls[0]
    for dtype in [d for d in case.dtypes if d in dtypes]:
        accuracy, kept = judged_as(case.op, CLAIMS[dtype], dtype, gradients=bool(call.cotangents))
        outputs = {name: moved(call, name, accuracy, kept, shift) for name in call.expected}
        wrong = compare(case.op, call, outputs, CLAIMS[dtype], dtype) is not None
        found = judge(
            case.op, call.inputs, call.params, outputs, CLAIMS[dtype], dtype, cotangents=call.cotangents or None
        )  # fmt: skip
        verdicts = {verdict.verdict for verdict in found}
        assert ("fail" in verdicts) == wrong or "not-judged" in verdicts, (case.id, dtype, list(map(str, found)))


def moved(call: Call, name: str, accuracy: str, dtype: str, shift: float) -> np.ndarray[Any, Any]:
    expected = call.expected[name]
    if expected.dtype.kind != "f":
        return expected
    stored = {c: widths[name] for c, widths in call.widths.items() if name in widths}
    return expected + RNG.choice([-1.0, 1.0], expected.shape) * tolerance_of(stored, expected, accuracy, dtype) * (1 + shift)


@pytest.mark.parametrize("op", REGISTRY)
def test_live_judging_is_that_of_stored_vectors(op: str) -> None:
    for case in some_cases(op, most=1):
        check_values(case)
        check_verdicts(case, shift=-0.01, dtypes=("float32",))
        check_verdicts(case, shift=0.01, dtypes=("float32", "bfloat16"))


@pytest.mark.thorough
@pytest.mark.parametrize("op", REGISTRY)
def test_live_judging_is_that_of_all_stored_vectors(op: str) -> None:
    for case in some_cases(op, most=10_000):
        check_values(case)
        for shift in (-1e-2, -1e-9, 1e-9, 1e-2):
            check_verdicts(case, shift=shift)


@pytest.mark.parametrize("op", [op for op, record in REGISTRY.items() if record.rows])
def test_rows_have_the_bits_that_they_have_in_the_whole(op: str) -> None:
    cut = [check_rows(case) for case in some_cases(op, most=8) if case.kind == "value"]
    assert any(cut) or is_called_with_few(op)


@pytest.mark.parametrize("op", REGISTRY)
def test_shapes_and_farthest_rows_come_from_parts_as_from_the_whole(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_rows, "PART", 8)
    for case in [c for c in some_cases(op, most=6) if c.kind == "value"]:
        call = Call(case.calls[0].params, case.calls[0].inputs)
        near = plain(op, call.inputs, call.params)
        shapes = {n: x.shape for n, x in near.items()}
        assert {n: x.shape for n, x in of_rows.shapes_of(op, call, shapes).items()} == shapes
        assert {n: x.shape for n, x in of_rows.shapes_of(op, call, {n: (*x, 3) for n, x in shapes.items()}).items()} == shapes
        rows = rows_of(op, call.inputs, call.params, shapes)
        wrong = {n: x.astype(float) + 0.125 * RNG.standard_normal(x.shape) for n, x in near.items()}
        whole, parts = of_rows.farthest(rows, of_rows.far_off(rows, wrong, near)), of_rows.screened(op, call, rows, wrong)
        assert {k: list(i) for k, i in whole.items()} == {k: list(i) for k, i in parts.items()}, case.id


def rope_call(shape: tuple[int, ...], positions: np.ndarray[Any, Any]) -> tuple[Arrays, dict[str, Any]]:
    x = RNG.integers(-64, 64, shape) / 32
    return {"x": x, "positions": positions}, {"layout": "half", "base": 10_000.0}


def test_one_wrong_token_of_thousands_is_found_and_named() -> None:
    inputs, params = rope_call((2, 4, 4097, 128), POSITIONS)
    outputs = {n: y.astype(np.float32).astype(np.float64) for n, y in plain("rope", inputs, params).items()}
    (right,) = judge("rope", inputs, params, outputs, "angle32", "float32")
    assert right.verdict == "pass"
    assert 100_000 < right.judged < right.of == 2 * 4 * 4097 * 128
    outputs["out"][1, 2, 3001, 77] += 0.25
    (wrong,) = judge("rope", inputs, params, outputs, "angle32", "float32")
    assert (wrong.verdict, wrong.index) == ("fail", (1, 2, 3001, 77))
    outputs["out"][1, 2, 3001, 77] = np.nan
    (wrong,) = judge("rope", inputs, params, outputs, "angle32", "float32")
    assert (wrong.verdict, wrong.index) == ("fail", (1, 2, 3001, 77))


TOKENS = np.arange(1031)
LARGE: dict[str, tuple[Arrays, dict[str, Any]]] = {
    "rope": ({"x": RNG.integers(-64, 64, (2, 9, 1031, 64)) / 32, "positions": TOKENS + 7}, {"layout": "half", "base": 1e4}),
    "apply_rope": (  # tokens before heads
        {"x": RNG.integers(-64, 64, (1, 1031, 17, 64)) / 32, "cos": np.cos(TOKENS[:, None, None] / np.arange(1, 33)),
         "sin": np.sin(TOKENS[:, None, None] / np.arange(1, 33))},
        {"layout": "interleaved"},
    ),
    "alibi": ({"q_positions": np.arange(300) + 9, "k_positions": np.arange(515)}, {"heads": 9, "form": "distance"}),
    "attention": ({n: RNG.integers(-8, 8, (17, t, 64)) / 8 for n, t in (("q", 1031), ("k", 12), ("v", 12))}, {}),
    "sinusoidal": ({"positions": np.arange(8200) + 90_000}, {"dim": 130, "layout": "sin_cos"}),
    "sliding_window": (
        {"q_positions": TOKENS, "k_positions": np.arange(1033)}, {"window": 70, "counting": "with_query", "sides": "causal"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("op", LARGE)
def test_one_wrong_value_of_a_large_call_is_found_wherever_it_is(op: str) -> None:
    """In the first and last row, at borders of tiles, in a tail, in one head alone, anywhere between."""
    inputs, params = LARGE[op]
    right = next(iter(plain(op, inputs, params).values()))
    right = right.astype(np.float32 if right.dtype.kind == "f" else np.int64)
    assert right.size > 1 << 20
    (found,) = judge(op, inputs, params, {"out": right}, "angle32", "float32")
    assert found.verdict == "pass"
    assert found.judged < found.of
    last = np.asarray(right.shape) - 1
    drawn = [RNG.integers(0, last + 1) for _ in range(3)]
    for place in (0 * last, last, *(np.minimum(last, n) for n in (31, 32, 63, 64, 127, 128, 129)), *drawn):
        at, wrong = tuple(map(int, place)), right.copy()
        wrong[at] = 1 - wrong[at] if wrong.dtype.kind == "i" else wrong[at] + np.float32(0.125)
        (found,) = judge(op, inputs, params, {"out": wrong}, "angle32", "float32")
        assert (found.verdict, found.index) == ("fail", at)


def test_a_class_that_says_nothing_is_not_a_pass() -> None:
    q, k, v = (RNG.integers(-64, 64, (1, 2, n, 64)) / 32 for n in (12, 257, 257))
    inputs: Arrays = {"q": q, "k": k, "v": v}
    outputs = plain("attention", inputs, {})
    for dtype in ("bfloat16", "float16"):
        (found,) = judge("attention", inputs, {}, outputs, "low", dtype)
        assert (found.verdict, found.judged) == ("not-judged", 0)
    (found,) = judge("attention", inputs, {}, outputs, "angle32", "float32")
    assert (found.verdict, found.judged) == ("pass", found.of)


def test_rows_in_which_a_class_leaves_a_decision_open_are_left_out() -> None:
    """In class low-bfloat16 a weight of one key may be zero, where its logit is far below another's."""
    q = RNG.integers(1, 4, (1, 64, 2)).astype(float)
    q[0, :8] *= 64
    inputs: Arrays = {"q": q, "k": RNG.integers(-4, 4, (1, 16, 2)).astype(float), "v": RNG.integers(1, 9, (1, 16, 4)) / 8}
    outputs = plain("attention", inputs, {})
    (found,) = judge("attention", inputs, {}, outputs, "low", "bfloat16")
    assert found.verdict == "pass"
    assert 0 < found.judged < found.of
    outputs["out"][0, -1] += 3.0
    (found,) = judge("attention", inputs, {}, outputs, "low", "bfloat16")
    assert found.verdict == "fail"


def test_what_float64_cannot_decide_needs_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, params = rope_call((5, 8), POSITIONS[:5])
    outputs = plain("rope", inputs, params)
    assert judge("rope", inputs, params, outputs, "float64", "float64")[0].verdict == "pass"
    monkeypatch.setattr(judging, "find_spec", lambda name: None)
    (found,) = judge("rope", inputs, params, outputs, "float64", "float64")
    assert found.verdict == "not-run"
    assert "pip install 'posref[vectors]'" in found.reason
    assert judge("rope", inputs, params, outputs, "angle32", "float32")[0].verdict == "pass"


def test_infinities_integers_and_masks_must_be_equal() -> None:
    inputs: Arrays = {"q": np.ones((2, 4)), "k": np.ones((3, 4)), "bias": np.asarray([[0.0, -np.inf, 0.0]] * 2)}
    outputs = plain("attention_logits", inputs, {})
    assert judge("attention_logits", inputs, {}, outputs, "angle32", "float32")[0].verdict == "pass"
    outputs["out"][0, 1] = -3e38
    (found,) = judge("attention_logits", inputs, {}, outputs, "angle32", "float32")
    assert (found.verdict, found.index) == ("fail", (0, 1))
    places: Arrays = {"q_positions": np.arange(40), "k_positions": np.arange(40)}
    params = {"window": 8, "counting": "with_query", "sides": "causal"}
    mask = {n: y.astype(np.int64) for n, y in plain("sliding_window", places, params).items()}
    assert judge("sliding_window", places, params, mask, "float64", "float64")[0].verdict == "pass"
    mask["out"][39, 30] ^= 1
    (found,) = judge("sliding_window", places, params, mask, "float64", "float64")
    assert (found.verdict, found.index) == ("fail", (39, 30))
