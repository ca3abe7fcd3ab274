"""Live judging: the same verdicts as stored vectors, from rows whose bits are those of the whole, and never a silent pass."""

from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
from sample import LARGEST, size
from sizes import is_called_with_few

from posref.backends.live import live
from posref.conformance.accuracy import tolerance_of
from posref.conformance.calls import class_and_dtype
from posref.conformance.judge import Verdict, compare
from posref.conformance.judge import judge as judge_call
from posref.conformance.model import Arrays, Call, LoadedCase
from posref.conformance.proof import live_truth
from posref.conformance.proof.evaluation import (
    as_reals,
    moved_by_trigonometry,
    plain,
    pullback_of,
    result_placeholders,
    results_of,
)
from posref.conformance.vocabulary.axes import rows_of
from posref.spec import REGISTRY, Axes

from .encoding import Encoding, part

CLAIMS = {"float64": "float64", "float32": "angle32", "bfloat16": "low", "float16": "low"}


def judge(
    op: str, inputs: Arrays, params: dict[str, Any], outputs: Arrays, accuracy: str, dtype: str, cotangents: Any = None
) -> tuple[Verdict, ...]:
    """Return the live verdict on every output of a call."""
    call = Call(params, inputs, cotangents=cotangents or {})
    return judge_call(op, call, outputs, accuracy, dtype, truth="live").verdicts


def has_rows(op: str) -> bool:
    return bool(REGISTRY[op].rows)


@part(dear=True)
def live_verdicts_are_those_of_stored_vectors(encoding: Encoding) -> None:
    for case in (*encoding.largest("value", 1), *encoding.largest("vjp", 1)):
        with encoding.at(case.id):
            check_values(case)
            check_verdicts(case, shift=-0.01, dtypes=("float32",))
            check_verdicts(case, shift=0.01, dtypes=("float32", "bfloat16"))


@part(of=has_rows, dear=True)
def rows_have_the_bits_of_the_whole(encoding: Encoding) -> None:
    cut = []
    for case in encoding.largest("value", 8):
        with encoding.at(case.id):
            cut.append(check_rows(case))
    assert any(cut) or is_called_with_few(encoding.op)


@part(dear=True)
def farthest_rows_come_from_parts(encoding: Encoding) -> None:
    """Shapes and the farthest rows of a call in parts are those of the whole."""
    with patch.object(live_truth, "PART", 8):
        for case in encoding.largest("value", 6):
            with encoding.at(case.id):
                check_parts(case)


@part()
def bfloat16_that_passes_through_float16_fails(encoding: Encoding) -> None:
    """Numbers beyond 65504 are infinite in float16, and those below 6e-8 are 0."""
    for case in encoding.stored:
        if case.id.endswith(("/again/large-values", "/again/small-values")):
            with encoding.at(case.id):
                check_range(case)


ORDINARY = 6  # calls of an operation: more than 400 of all


@part()
def ordinary_float64_calls_are_judged(encoding: Encoding) -> None:
    """The options of stored cases, with reals of 53 and of 24 bits: every value of the reference is judged, and passes."""
    op, rng = encoding.op, np.random.default_rng(crc32(encoding.op.encode()))
    cases = [case for case in encoding.of_kind("value") if 0 < size(case.calls[0]) <= LARGEST]
    for index in range(ORDINARY):
        case = cases[len(cases) * index // ORDINARY]
        with encoding.at(case.id):
            call = case.calls[0]
            inputs = {n: ordinary(REGISTRY[op].arrays[n], x, rng, index) for n, x in call.inputs.items()}
            found = judge(op, inputs, call.params, whole_numbers(plain(op, inputs, call.params)), "float64", "float64")
            assert [(one.verdict, one.judged) for one in found] == [("pass", one.of) for one in found], list(map(str, found))


def check_range(case: LoadedCase) -> None:
    assert "bfloat16" in case.dtypes
    assert "float16" not in case.dtypes
    [call] = case.calls
    with np.errstate(all="ignore"):
        narrow = {n: x.astype(np.float16).astype(np.float64) if x.dtype.kind == "f" else x for n, x in call.inputs.items()}
        assert any(not np.array_equal(narrow[n], x) for n, x in call.inputs.items())
        found = plain(case.op, narrow, call.params)
    different = compare(case.op, call, whole_numbers(found), "low", "bfloat16") is not None
    assert different, (
        f"{case.id}: numbers that pass through float16 give the same result. If they do not matter beside a constant, "
        f"state SATURATES in conformance/evidence/{case.op}.py"
    )


def ordinary(axes: Axes, x: np.ndarray, rng: np.random.Generator, index: int) -> np.ndarray:
    """Return normally distributed reals of 53 or 24 bits in the place of reals of no domain, and anything else as it is."""
    if axes.kind != "real" or axes.positive or not axes.low is axes.high is None:
        return x
    drawn = rng.standard_normal(x.shape)
    return drawn if index % 2 else drawn.astype(np.float32).astype(np.float64)


def whole_numbers(outputs: Arrays) -> Arrays:
    """Return outputs with masks as integers."""
    return {n: y.astype(np.int64) if y.dtype.kind == "b" else y for n, y in outputs.items()}


def check_parts(case: LoadedCase) -> None:
    op, call = case.op, Call(case.calls[0].params, case.calls[0].inputs)
    near = plain(op, call.inputs, call.params)
    shapes = {n: x.shape for n, x in near.items()}
    for told in (None, shapes, {n: (*shape, 3) for n, shape in shapes.items()}):
        assert {n: x.shape for n, x in result_placeholders(op, call.inputs, call.params, told).items()} == shapes
    rows, rng = rows_of(op, call.inputs, call.params, shapes), np.random.default_rng(5)
    wrong = {n: x.astype(float) + 0.125 * rng.standard_normal(x.shape) for n, x in near.items()}
    whole, parts = live_truth.farthest(rows, live_truth.far_off(rows, wrong, near)), live_truth.screened(op, call, rows, wrong)
    assert {k: list(i) for k, i in whole.items()} == {k: list(i) for k, i in parts.items()}, case.id


def check_values(case: LoadedCase) -> None:
    """The truth lies within the bounds of class float64 around live values, for outputs and gradients."""
    for call in case.calls:
        found = results_of(live("float64"), case.op, call.inputs, call.params, pullback_of(call))
        for name, expected in call.expected.items():
            if expected.dtype.kind != "f":
                assert np.array_equal(np.broadcast_to(found[name].parts[0], expected.shape), expected)
                continue
            value, bound = as_reals(found[name], live("float64")).parts[:2]
            assert np.all(np.abs(value - expected) <= bound + 2.0**-53 * np.abs(expected) * (bound > 0)), (case.id, name)
        moved, stored = moved_by_trigonometry(case.op, call).get("trig", {}), call.widths.get("trig", {})
        assert moved.keys() == stored.keys(), case.id
        assert all(np.allclose(x, stored[n], rtol=2.0**-9, atol=0) for n, x in moved.items()), case.id  # of 11 bits


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
    call, rng = case.calls[0], np.random.default_rng(crc32(case.id.encode()))
    for dtype in [d for d in case.dtypes if d in dtypes]:
        accuracy, kept = class_and_dtype(case.op, CLAIMS[dtype], dtype, gradients=bool(call.cotangents))
        outputs = {name: moved(call, name, accuracy, kept, shift, rng) for name in call.expected}
        wrong = compare(case.op, call, outputs, CLAIMS[dtype], dtype) is not None
        found = judge(case.op, call.inputs, call.params, outputs, CLAIMS[dtype], dtype, cotangents=call.cotangents or None)
        verdicts = {verdict.verdict for verdict in found}
        assert ("fail" in verdicts) == wrong or "not-judged" in verdicts, (case.id, dtype, list(map(str, found)))


def moved(call: Call, name: str, accuracy: str, dtype: str, shift: float, rng: np.random.Generator) -> np.ndarray:
    """Return the expected values, each moved by its tolerance and `shift` of it more."""
    expected = call.expected[name]
    if expected.dtype.kind != "f":
        return expected
    stored = {c: widths[name] for c, widths in call.widths.items() if name in widths}
    return expected + rng.choice([-1.0, 1.0], expected.shape) * tolerance_of(stored, expected, accuracy, dtype) * (1 + shift)
