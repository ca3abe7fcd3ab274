"""What a call leaves behind is found: caches whose keys lack an option, buffers that results share, and a narrow dtype."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sample import stored
from sampling import few, share

import posref
from posref.conformance import check, judge
from posref.conformance.checks import choice
from posref.conformance.checks.case_run import ask, asked_dtypes, cases_in
from posref.conformance.diagnosis import hypotheses
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.evidence.every import state_cases
from posref.conformance.model import LoadedCase
from posref.conformance.targets.invocation import UNSTEADY
from posref.conformance.targets.python import load_python
from posref.spec import REGISTRY
from posref.testing import watch

Array = np.ndarray[Any, Any]


# options that change no valid call
OF_INVALID_CALLS = ("learned", "clip"), ("layout_2d", "clip-sizes"), ("write_cache", "padded")


def alone(op: str) -> list[LoadedCase]:
    return [case for case in stored(op) if case.state == "one-option"]


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(REGISTRY))
def test_a_result_that_is_kept_from_the_first_call_fails_for_every_option(op: str) -> None:
    """A key that lacks an option, or a field, gives the first call's result to all calls of the case."""
    cases = {case.id.partition("/")[2]: case for case in alone(op)}
    options = {f"alone/{option.replace('_', '-')}" for option in REGISTRY[op].domains}
    without = {f"alone/{option}" for name, option in OF_INVALID_CALLS if name == op}
    assert options == {name for name in cases if not name.startswith("alone/scaling-")} | without
    for case in cases.values():
        first, *others, last = case.calls
        assert first.expected.keys() == last.expected.keys()
        assert all(np.array_equal(first.expected[name], last.expected[name]) for name in first.expected)
        for call in others:
            fits = all(first.expected[name].shape == value.shape for name, value in call.expected.items())
            dtype = "float32" if REGISTRY[op].returns == "real" else "float64"
            failure = fits and judge.compare(op, call, first.expected, "angle32", dtype)
            assert not fits or failure is not None, (case.id, call.params)


def cached(op: str, key: Callable[[Array, dict[str, Any]], Any]) -> Callable[..., Any]:
    """Return the reference with a cache of its results."""
    known: dict[Any, Any] = {}

    def function(*arrays: Any, **options: Any) -> Any:
        found = key(arrays[0], options), tuple((x.tobytes(), x.shape, x.dtype.str) for x in arrays if hasattr(x, "tobytes"))
        if found not in known:
            known[found] = REGISTRY[op].function(*arrays, **options)
        return known[found]

    return function


@pytest.mark.thorough(dear=True)
def test_a_key_with_the_kind_of_a_scaling_alone_is_found() -> None:
    def by_kind(x: Array, options: dict[str, Any]) -> Any:
        return {n: type(v).__name__ if n == "scaling" else v for n, v in options.items()}.__repr__()

    def whole(x: Array, options: dict[str, Any]) -> Any:
        return repr(options)

    names = tuple(kind.__name__ for kind in posref.scaling.RECORDS)
    wrong, right = (check(SimpleNamespace(rope=cached("rope", key), scalings=names), op="rope") for key in (by_kind, whole))
    assert right.conformant
    failing = {case.id for case in wrong.failures}
    assert {f"rope/alone/scaling-{name}" for name, *_ in state_cases.RECORDS} <= failing


@pytest.mark.parametrize(("op", "dtypes"), [("rope", ("bfloat16", "float32")), ("rope_frequencies", ("bfloat16",))])
def test_cases_of_state_are_asked_in_the_most_precise_dtype_alone(op: str, dtypes: tuple[str, ...]) -> None:
    """Constants of half precision in float32: it is no dtype of the target, but the one in which its constants are asked."""
    target = load_python(SimpleNamespace(**{op: REGISTRY[op].function}, backend="torch", dtypes=dtypes))
    asked = {dtype: {case.id for case in cases_in(target, stored(op), dtype)} for dtype in asked_dtypes(target, op)}
    own = {case.id for case in alone(op)}
    assert own
    assert own <= asked.pop("float32")
    assert all(not own & others for others in asked.values())


def test_a_first_call_in_a_dtype_that_the_operation_lacks_is_made_in_its_own() -> None:
    """The target states float16, for another operation."""

    def alibi(q_positions: Array, k_positions: Array, /, *, heads: int, form: str) -> Any:
        return posref.alibi(q_positions, k_positions, heads=heads, form=form)

    target = load_python(SimpleNamespace(alibi=alibi, rope=posref.rope, dtypes=("float32", "float16")))
    (case,) = (case for case in stored("alibi") if case.id == "alibi/again/kept-dtype")
    assert [ask(target, case, dtype).verdict for dtype in ("float32", "float16")] == ["pass", "unsupported"]


# ---- results that share memory --------------------------------------------------------------------------------------------
def sharing(op: str, large: int = 0) -> Callable[..., Any]:
    """Return the reference, whose results of one shape share a buffer, those of at least `large` values."""
    buffers: dict[Any, Array] = {}

    def function(*arrays: Any, **options: Any) -> Any:
        found = np.asarray(REGISTRY[op].function(*arrays, **options))
        if found.size < large:
            return found
        buffer = buffers.setdefault((found.shape, found.dtype), np.empty(found.shape, found.dtype))
        buffer[...] = found
        return buffer

    return function


@few(2, "op", ["attention", "rope", "alibi", "sinusoidal", "resample", "t5_buckets", "peg"])
def test_results_that_share_a_buffer_are_found(op: str) -> None:
    report = check(SimpleNamespace(**{op: sharing(op)}), op=op, experiments=0)
    assert not report.conformant
    assert {case.message for case in report.failures} == {
        "overwrote the result of an earlier call (out): results must not share memory"
    }
    assert all("/alone/" in case.id or case.kind == "sequence" or case.tier == "smoke" for case in report.failures)


@pytest.mark.thorough
def test_a_buffer_of_large_results_alone_is_found_in_the_kernel_tier() -> None:
    (case,) = choice.load(["attention"], "attention/kernel/keys-257")
    for function, verdict in ((sharing("attention", 1 << 14), "fail"), (posref.attention, "pass")):
        result = ask(load_python(SimpleNamespace(attention=function)), case, "float32")
        assert result.verdict == verdict, result.message
    assert all(x.size < 1 << 14 for case in stored("attention") for call in case.calls for x in call.expected.values())


def test_a_target_by_name_is_found_to_share_a_buffer(tmp_path: Any) -> None:
    (tmp_path / "shared.py").write_text(
        "import numpy as np, posref\nBUFFERS = {}\n\n\ndef alibi(q, k, /, **options):\n"
        "    out = posref.alibi(q, k, **options)\n"
        "    buffer = BUFFERS.setdefault((out.shape, out.dtype), np.empty_like(out))\n"
        "    buffer[...] = out\n    return buffer\n",
        encoding="utf-8",
    )
    report = check(str(tmp_path / "shared.py"), op="alibi")
    assert {case.message[:38] for case in report.failures} == {"overwrote the result of an earlier cal"}


def test_watch_finds_a_call_that_overwrites_the_last_result() -> None:
    rng = np.random.default_rng(0)
    module = SimpleNamespace(attention=sharing("attention"), right=posref.attention, __name__="module")
    calls = [tuple(rng.standard_normal((2, 5, 4)).astype(np.float32) for _ in "qkv") for _ in range(3)]
    for name, words in (("attention", "overwrote the result of an earlier call (out)"), ("right", "")):
        with watch(module, name, like=lambda q, k, v: ("attention", (q, k, v), {})) as seen:
            for arrays in calls:
                getattr(module, name)(*arrays)
        assert [words in (one.fault or "") for one in seen.calls] == [not words, True, True]
        assert bool(seen.failed) is bool(words)


def test_watch_lets_a_model_change_what_it_was_given() -> None:
    """A result that is changed between calls, or that the next call works on in place, was not overwritten by mistake."""
    rng = np.random.default_rng(1)

    def in_place(x: Array, cos: Array, sin: Array) -> Array:
        x[...] = posref.apply_rope(x, cos, sin, layout="half")
        return x

    module = SimpleNamespace(rotate=in_place, __name__="module")
    x = rng.standard_normal((5, 4)).astype(np.float32)
    angles = rng.standard_normal((5, 2))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    with watch(module, "rotate", like=lambda x, c, s: ("apply_rope", (x, c, s), {"layout": "half"})) as seen:
        module.rotate(x, cos, sin)
        x += 1
        module.rotate(x, cos, sin)
    assert not seen.failed


# ---- every dtype has its own strength --------------------------------------------------------------------------------------
def test_rope_has_cases_of_bfloat16_alone() -> None:
    """In float32 the same mistake is found by others; in bfloat16 by these alone, since other numbers have few bits."""
    caught = []
    for case in stored("apply_rope"):
        if case.kind == "value" and "bfloat16" in case.dtypes:
            outputs = hypotheses.predict(DEVIATIONS["x-through-float16"], "apply_rope", case.calls)
            as_bfloat16 = [{n: torch.tensor(x).bfloat16().double().numpy() for n, x in o.items()} for o in outputs]
            failures = (
                judge.compare("apply_rope", c, o, "low", "bfloat16") for c, o in zip(case.calls, as_bfloat16, strict=True)
            )
            caught += [case.id] if any(failures) else []
    assert caught == ["apply_rope/again/large-values", "apply_rope/again/small-values", "apply_rope/value/usual-x-huge"]


# ---- partners -------------------------------------------------------------------------------------------------------------
def by_xor(x: Array, positions: Array, /, *, layout: str, base: float, rotary_dim: int | None = None) -> Array:
    """Rotate with the partner that is found by XOR of the channel with half of the rotated width."""
    if layout != "half":
        raise NotImplementedError
    part = rotary_dim or x.shape[-1]
    channel = np.arange(part)
    pair = channel % (part // 2)
    angle = positions[..., None].astype(np.float64) * base ** (-2.0 * pair / part)
    partner = x[..., (channel ^ (part // 2)) % part]
    sign = np.where(channel < part // 2, -1.0, 1.0)
    rotated = x[..., :part] * np.cos(angle) + sign * partner * np.sin(angle)
    return np.concatenate([rotated.astype(x.dtype), x[..., part:]], -1)


def test_a_partner_by_xor_is_found_in_core_and_in_the_kernel_tier() -> None:
    parts = [case for case in stored("rope") if case.id.startswith("rope/again/part-half-")]
    assert [case.calls[0].params["rotary_dim"] for case in parts] == [4, 6, 8, 12]
    target = load_python(SimpleNamespace(rope=by_xor))
    assert [ask(target, case, "float32").verdict for case in parts] == ["pass", "fail", "pass", "fail"]


@pytest.mark.thorough
def test_answers_that_change_between_identical_calls_are_told_before_any_cause() -> None:
    """Wrong by one now and then, wherever the layout is interleaved: no layout, position or size is the cause."""
    rng = np.random.default_rng(0)

    def rope(x: Array, positions: Array, /, *, layout: str, **options: Any) -> Any:
        return posref.rope(x, positions, layout=layout, **options) + (layout == "interleaved" and rng.random() < 0.5)

    (operation,) = check(SimpleNamespace(rope=rope, __name__="random"), op="rope", dtype="float32").operations
    assert operation.diagnosis["text"].startswith(UNSTEADY)
    assert "layout" not in operation.diagnosis["text"]
    assert not operation.diagnosis["names"]
