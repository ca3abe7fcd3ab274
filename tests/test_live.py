"""Live judging: the same verdicts as stored vectors, from rows whose bits are those of the whole, and never a silent pass."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from correct.numpy_alibi_bloom import alibi_slopes
from every_encoding.judging import check_values, check_verdicts, judge
from sample import stored
from sampling import few, share

import posref
from posref.backends.bounds import bounds
from posref.backends.exact import Unproved
from posref.backends.numbers import Undecided
from posref.conformance.model import Arrays
from posref.conformance.proof import live_truth as judging
from posref.conformance.proof.evaluation import enclosed, golden, plain, results_of
from posref.spec import REGISTRY

RNG = np.random.default_rng(5)
POSITIONS = np.arange(4097) * 7


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", share(REGISTRY, part=0.5))
def test_live_judging_is_that_of_all_stored_vectors(op: str) -> None:
    for case in stored(op):
        if case.kind in ("value", "vjp"):
            check_values(case)
            for shift in (-1e-2, -1e-9, 1e-9, 1e-2):
                check_verdicts(case, shift=shift)


def rope_call(shape: tuple[int, ...], positions: np.ndarray[Any, Any]) -> tuple[Arrays, dict[str, Any]]:
    x = RNG.integers(-64, 64, shape) / 32
    return {"x": x, "positions": positions}, {"layout": "half", "base": 10_000.0}


def test_one_wrong_token_of_thousands_is_found_and_named() -> None:
    inputs, params = rope_call((2, 4, 4097, 128), POSITIONS)
    outputs = {n: y.astype(np.float32).astype(np.float64) for n, y in plain("rope", inputs, params).items()}
    (right,) = judge("rope", inputs, params, outputs, "angle32", "float32")
    assert right.verdict == "pass"
    assert 100_000 < right.judged < right.of == 2 * 4 * 4097 * 128
    for value in (outputs["out"][1, 2, 3001, 77] + 0.25, np.nan):
        outputs["out"][1, 2, 3001, 77] = value
        (wrong,) = judge("rope", inputs, params, outputs, "angle32", "float32")
        assert (wrong.verdict, wrong.index) == ("fail", (1, 2, 3001, 77))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", ["power", "weight"])
def test_a_number_beyond_float64_makes_no_warning(form: str) -> None:
    inputs = {"q_positions": np.zeros(1), "k_positions": np.full(1, 2.0**20), "r1": np.ones(1), "r2": np.full(1, 2048.0)}
    found = results_of(bounds("low-float16"), "kerple", inputs, {"form": form}, None)["out"]
    assert np.isfinite(found.parts[1]).all() == (form == "weight")  # exp of minus infinity is 0


@pytest.mark.parametrize("heads", [8, 100, 180, 256, 300, 512])
def test_slopes_as_powers_of_a_rounded_ratio_are_right(heads: int) -> None:
    slopes = alibi_slopes(heads).astype(np.float64)
    places = {"q_positions": np.asarray([3, 900]), "k_positions": np.arange(5)}
    bias = -slopes[:, None, None] * np.abs(places["q_positions"][:, None] - places["k_positions"])
    for op, inputs, params, out in (
        ("alibi_slopes", {}, {"heads": heads}, slopes),
        ("alibi", places, {"heads": heads, "form": "distance"}, bias.astype(np.float32).astype(np.float64)),
    ):
        assert judge(op, inputs, params, {"out": out}, "angle32", "float32")[0].verdict == "pass"
        assert judge(op, inputs, params, {"out": out * (1 + 2.0**-12)}, "angle32", "float32")[0].verdict == "fail"


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


@few(1, "op", LARGE)
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
    assert judge("attention", inputs, {}, outputs, "low", "bfloat16")[0].verdict == "fail"


def test_what_float64_cannot_decide_needs_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, params = rope_call((5, 8), POSITIONS[:5])
    outputs = plain("rope", inputs, params)
    assert judge("rope", inputs, params, outputs, "float64", "float64")[0].verdict == "pass"
    monkeypatch.setattr(judging, "find_spec", lambda name: None)
    (found,) = judge("rope", inputs, params, outputs, "float64", "float64")
    assert found.verdict == "not-run"
    assert "pip install 'posref[vectors]'" in found.reason
    assert judge("rope", inputs, params, outputs, "angle32", "float32")[0].verdict == "pass"


def halves() -> Iterator[tuple[str, Arrays, dict[str, Any]]]:
    """Yield calls with true values halfway between two float64 numbers: means, scores of short numbers, rows of alpha 1/4."""
    rng, rotated, ids = np.random.default_rng(0), {"layout": "half", "base": 10_000.0}, np.arange(8)
    grid = {"prefix": 0, "method": "linear", "align_corners": False, "antialias": False, "old_size": (4, 4)}
    yield "resample", {"table": rng.standard_normal((16, 4))}, grid | {"size": (3, 3)}
    yield "hierarchical_learned", {"positions": np.arange(30), "table": rng.standard_normal((6, 8))}, {"alpha": 0.25}
    scores = {n: rng.standard_normal((2, 8, 16)).astype(np.float32).astype(np.float64) for n in "qk"}
    scores |= {"q_positions": ids, "k_positions": ids}
    yield "rerope", scores, rotated | {"window": 4}
    yield "self_extend", scores, rotated | {"group": 2, "window": 8, "rounding": "floor"}
    yield "streaming_llm", scores, rotated | {"num_sinks": 1, "window": 4, "counting": "with_query"}


@pytest.mark.parametrize(("op", "inputs", "params"), list(halves()), ids=lambda x: x if isinstance(x, str) else "")
def test_values_halfway_between_two_numbers_are_judged(op: str, inputs: Arrays, params: dict[str, Any]) -> None:
    with pytest.raises(Unproved) as unproved:  # else the call has no such value
        golden(op, inputs, params)
    assert len(str(unproved.value)) < 300
    outputs = plain(op, inputs, params)
    (found,) = judge(op, inputs, params, outputs, "float64", "float64")
    assert (found.verdict, found.judged) == ("pass", found.of)
    at = np.unravel_index(int(np.argmax(np.abs(outputs["out"]))), outputs["out"].shape)
    outputs["out"][at] *= 1 + 1e-11
    (found,) = judge(op, inputs, params, outputs, "float64", "float64")
    assert (found.verdict, found.index) == ("fail", tuple(map(int, at)))


def test_a_ball_that_is_not_finite_leaves_the_other_values_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, params = rope_call((5, 8), POSITIONS[:5])
    outputs = plain("rope", inputs, params)

    def without_one(*given: Any) -> dict[str, tuple[Any, Any]]:
        middle, radius = enclosed(*given)["out"]
        middle[2, 3], radius[2, 3] = np.nan, np.inf
        return {"out": (middle, radius)}

    monkeypatch.setattr(judging, "enclosed", without_one)
    (found,) = judge("rope", inputs, params, outputs, "float64", "float64")
    assert (found.verdict, found.judged, found.of) == ("pass", 39, 40)
    outputs["out"][1, 1] += 1e-9
    (found,) = judge("rope", inputs, params, outputs, "float64", "float64")
    assert (found.verdict, found.index, found.judged) == ("fail", (1, 1), 39)


def test_a_second_formula_that_leaves_a_decision_open_does_not_count() -> None:
    """In class low-bfloat16 the root of the scale on q and on k may leave no weight: then the formula itself is the bound."""
    (case,) = (case for case in stored("attention") if case.id == "attention/sinks/gpt-oss")
    (call,), system = case.calls, bounds("low-bfloat16")
    with pytest.raises(Undecided):
        results_of(system, case.op, call.inputs, call.params, None)
    own = results_of(system.of_first_formulas(), case.op, call.inputs, call.params, None)["out"].parts[1]
    assert np.all(call.widths["low-bfloat16"]["out"] >= own)
    (found,) = judge(case.op, call.inputs, call.params, call.expected, "low", "bfloat16")
    assert (found.verdict, found.judged) == ("pass", found.of)


def test_a_second_formula_that_allows_zeros_does_not_count() -> None:
    (case,) = (case for case in stored("attention") if case.id == "attention/gradient/empty-row")
    (call,) = case.calls
    assert any(np.any(np.abs(y) > call.widths["low-bfloat16"][n]) for n, y in call.expected.items())


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


def test_logits_whose_exponential_overflows_have_a_tolerance() -> None:
    q, table = RNG.integers(-8, 8, (2, 3)) / 4.0, RNG.integers(-8, 8, (4, 3)) / 4.0
    inputs = {"q": q, "logits": np.asarray([[-1e4, -710.0, 0.5, 2.0]] * 2), "table": table, "mask": np.ones((1, 4), dtype=bool)}
    outputs = plain("cope", inputs, {})
    for accuracy, dtype in (("float64", "float64"), ("angle64", "float32"), ("angle32", "float32")):
        right = {n: y.astype(dtype).astype(float) for n, y in outputs.items()}
        wrong = plain("cope", {**inputs, "logits": np.maximum(inputs["logits"], -4.0)}, {})
        for values, verdict in ((right, "pass"), (wrong, "fail")):
            assert judge("cope", inputs, {}, values, accuracy, dtype)[0].verdict == verdict


@few(1, "backend", ["torch", "jax"])
def test_the_gradient_of_cope_is_finite_where_an_exponential_overflows(backend: str) -> None:
    q, table, mask = np.ones((1, 1)), np.asarray([[0.0], [1.0], [3.0]]), np.ones((1, 1), dtype=bool)
    for logit, slope in ((-1e3, 0.0), (-100.0, 0.0), (0.0, 0.25), (1e3, 0.0)):
        assert _slope(backend, logit, q, table, mask) == pytest.approx(slope, abs=1e-30)


def _slope(backend: str, logit: float, q: Any, table: Any, mask: Any) -> float:
    """Return the derivative of one key's bias by its logit, in float32."""
    if backend == "torch":
        import torch

        x = torch.full((1, 1), logit, requires_grad=True)
        arrays = (torch.tensor(a, dtype=torch.float32) for a in (q, table))
        posref.cope(next(arrays), x, next(arrays), torch.tensor(mask)).sum().backward()
        return float(x.grad[0, 0])
    import jax
    import jax.numpy as jnp

    def bias(x: Any) -> Any:
        return posref.cope(jnp.asarray(q, dtype="float32"), x, jnp.asarray(table, dtype="float32"), jnp.asarray(mask)).sum()

    return float(jax.grad(bias)(jnp.full((1, 1), logit, dtype="float32"))[0, 0])


@np.errstate(all="ignore")
def test_a_divisor_that_overflowed_has_no_bound() -> None:
    """Infinity less an infinite error is not a number, and neither is the bound: said by the bound alone."""
    system = bounds("angle32")
    one, over = (system.array(np.asarray([x]), np.asarray([e]), system.float64) for x, e in ((1.0, 0.0), (np.inf, np.inf)))
    (bound,) = system.real_divide(one, over, system.float64).parts[1]
    assert np.isnan(bound)
