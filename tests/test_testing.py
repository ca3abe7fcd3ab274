"""`assert_conforms`: what is right passes in every library, what is wrong is told with place and name, misuse is refused."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from sampling import few

import posref
from posref import backends
from posref.conformance import PosrefError
from posref.conformance.fuzzing.strategies import can_be_judged
from posref.conformance.model import Call
from posref.scaling import Linear, YaRN
from posref.testing import assert_conforms, calls

RNG = np.random.default_rng(11)
X, POSITIONS = RNG.integers(-64, 64, (2, 5, 8)) / 32, np.asarray([0, 3, 40, 41, 9000])
ROTARY: dict[str, Any] = {"layout": "half", "base": 10_000.0}
REALS = ("float64", "float32", "bfloat16", "float16")
LIBRARIES = {"numpy": ("float64", "float32", "float16"), "torch": REALS}
OTHERS = {"jax": REALS[1:], "dask": LIBRARIES["numpy"], "array_api_strict": REALS[:2]}
QUERIES, KEYS = np.arange(3) + 4, np.arange(7)


def arrays(name: str, dtype: str = "float32") -> tuple[Any, Any]:
    library = backends.load(name)
    return library.from_numpy(X, dtype), library.from_numpy(POSITIONS)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, dtype) for name, dtypes in LIBRARIES.items() for dtype in dtypes),
        *(pytest.param(name, dtype, marks=pytest.mark.thorough) for name, dtypes in OTHERS.items() for dtype in dtypes),
    ],
)
def test_what_is_right_conforms(name: str, dtype: str) -> None:
    x, positions = arrays(name, dtype)
    assert_conforms("rope", posref.rope(x, positions, **ROTARY), x, positions, **ROTARY)


@pytest.mark.thorough
@few(
    2,
    ("op", "given", "options"),
    [
        ("alibi", (QUERIES, KEYS), {"heads": 6, "form": "distance"}),
        ("t5_buckets", (KEYS[None, :] - QUERIES[:, None],), {"bidirectional": True}),
        ("sinusoidal", (POSITIONS, 8), {"layout": "interleaved"}),
        ("rope_frequencies", (8,), {"base": 500.0, "scaling": YaRN(4.0, 64)}),
        ("rope_table", (POSITIONS, np.asarray([1.0, 0.125])), {}),
        ("attention", tuple(RNG.integers(-8, 8, (2, n, 6)) / 8 for n in (3, 7, 7)), {}),
        ("chunked_window", (QUERIES, KEYS), {"chunk_size": 2, "sides": "causal"}),
    ],
)
def test_every_kind_of_operation_may_be_asked(op: str, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    found = getattr(posref, op)(*given, **options)
    assert_conforms(op, found, *given, **options)
    wrong = found[0] if isinstance(found, tuple) else found
    moved = np.logical_not(wrong) if wrong.dtype.kind == "b" else wrong + wrong.dtype.type(1)
    with pytest.raises(AssertionError, match=f"{op} (in float|is not right)"):
        assert_conforms(op, (moved, *found[1:]) if isinstance(found, tuple) else moved, *given, **options)


@few(
    1,
    ("changed", "name"),
    [
        ({"layout": "interleaved"}, "layout-interleaved"),
        ({"inverse": True}, "inverse"),
        ({"scaling": Linear(4.0)}, "positions"),
    ],
)
def test_what_is_wrong_is_told_with_its_name(changed: dict[str, Any], name: str) -> None:
    x, positions = arrays("torch")
    with pytest.raises(AssertionError, match=r"rope in float32 is not within angle32:\n  out\[") as told:
        assert_conforms("rope", posref.rope(x, positions, **ROTARY | changed), x, positions, **ROTARY)
    assert re.search(rf"diagnosis: .*{name}", str(told.value)), told.value


def test_shape_and_dtype_are_judged() -> None:
    x, positions = arrays("numpy")
    right = posref.rope(x, positions, **ROTARY)
    with pytest.raises(AssertionError, match=r"rope: out must have shape \(2, 5, 8\); got \(2, 4, 8\)\."):
        assert_conforms("rope", right[:, :4], x, positions, **ROTARY)
    with pytest.raises(AssertionError, match="out must be real"):
        assert_conforms("rope", right.astype(np.int64), x, positions, **ROTARY)


@pytest.mark.thorough
def test_one_wrong_token_among_many_is_found() -> None:
    x = RNG.integers(-64, 64, (2, 5, 1700, 64)).astype(np.float32) / 32
    positions = np.arange(1700)
    right = posref.rope(x, positions, **ROTARY)
    assert_conforms("rope", right, x, positions, **ROTARY)
    right[1, 3, 1377, 60] += np.float32(0.01)
    with pytest.raises(AssertionError, match=r"out\[1, 3, 1377, 60\]: .* of 1088000 values judged"):
        assert_conforms("rope", right, x, positions, **ROTARY)


def test_the_shape_of_a_large_result_is_judged() -> None:
    x, positions = RNG.integers(-64, 64, (2, 9, 1031, 64)) / 32, np.arange(1031) + 7
    right = posref.rope(x, positions, **ROTARY)
    for wrong in (right[:, :, 1:], right[..., :62], right[0], right[:, :1]):
        with pytest.raises(AssertionError, match=r"rope: out must have shape \(2, 9, 1031, 64\); got \("):
            assert_conforms("rope", wrong, x, positions, **ROTARY)


@pytest.mark.parametrize(("wrong", "message"), [
    (None, "rope: out must be an array of numpy; got None."),
    ((X, X), "rope: must return one result, out; got a tuple of 2."),
])  # fmt: skip
def test_what_is_no_array_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=f"^{message}"):
        assert_conforms("rope", wrong, X, POSITIONS, **ROTARY)


def test_a_mask_is_right_or_not() -> None:
    options = {"window": 2, "counting": "with_query", "sides": "causal"}
    wrong = ~posref.sliding_window(POSITIONS, POSITIONS, **options)
    with pytest.raises(AssertionError, match=r"^sliding_window is not right:\n  out\[0, 0\]: got 0, expected 1"):
        assert_conforms("sliding_window", wrong, POSITIONS, POSITIONS, **options)


def test_a_tighter_claim_is_held_to() -> None:
    x, positions = arrays("numpy")
    angles = (POSITIONS[:, None].astype(np.float32) * np.float32(500.0) ** np.float32([0, -0.25, -0.5, -0.75])).astype(float)
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    found = np.concatenate([x[..., :4] * cos - x[..., 4:] * sin, x[..., 4:] * cos + x[..., :4] * sin], axis=-1)
    options = ROTARY | {"base": 500.0}
    assert_conforms("rope", found, x, positions, **options)
    with pytest.raises(AssertionError, match="is not within angle64"):
        assert_conforms("rope", found, x, positions, claim="angle64", **options)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("ropes", X, X, POSITIONS), {}, "op must be the name of an operation; got 'ropes'. Did you mean rope"),
        ((posref.rope, X, X, POSITIONS), ROTARY, "op must be the name of an operation; got .*Did you mean rope"),
        ((X, X, POSITIONS), ROTARY, "op must be the name of an operation; got an array of shape"),
        (("rope", X, X, POSITIONS), {**ROTARY, "bse": 1.0}, "rope takes x, positions, layout, base, .*; got 'bse'."),
        (("rope", X, X), ROTARY, "rope needs positions; give the arguments and options of the call that was made."),
        (("rope", X, X, POSITIONS, 3), ROTARY, "rope takes 2 arguments by position, x, positions; got 3."),
        (("rope", X, X, POSITIONS), {**ROTARY, "claim": "low"}, "claim must be one of .* for float64; got 'low'."),
    ],
)
def test_misuse_is_refused(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(PosrefError, match=f"assert_conforms: {message}"):
        assert_conforms(*arguments, **options)
    with pytest.raises(ValueError, match="rows must be"):
        assert_conforms(*arguments, rows=3, **{k: v for k, v in options.items() if k != "claim"})  # type: ignore[arg-type]


def test_what_nothing_can_be_said_of_is_no_pass() -> None:
    zeros = np.zeros((1, 2, 8), dtype=np.float16)
    with pytest.raises(PosrefError, match="attention_logits in float16 cannot be judged by mixed"):
        assert_conforms(
            "attention_logits", np.zeros((1, 2, 2), dtype=np.float16), zeros + np.float16(2**-13), zeros + np.float16(2**-13)
        )


@few(1, ("op", "dtype"), [("rope", "float32"), ("t5_bias", "float64"), ("alibi_slopes", "float32"), ("attention", "bfloat16")])
def test_drawn_calls_are_calls_of_the_operation(op: str, dtype: str) -> None:
    @settings(max_examples=10, database=None, deadline=None)
    @given(calls(op, dtype=dtype))
    def holds(call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        given_arrays, options = call
        result = getattr(posref, op)(*given_arrays, **options)
        assert_conforms(op, result, *given_arrays, **options)
        reals = [x.dtype.name for x in given_arrays if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
        assert {*reals} <= {dtype.replace("bfloat16", "float32")}

    holds()


def test_calls_that_nothing_can_be_said_of_are_not_drawn() -> None:
    zero, one, sink = np.zeros((1, 1)), np.ones((1, 1)), np.asarray([87.0])  # a weight of 1e-38, below what angle32 allows
    asked = Call({}, {"q": zero, "k": zero, "v": one, "sinks": sink})
    assert not can_be_judged("attention", asked, "float32")
    assert can_be_judged("attention", replace(asked, inputs={**asked.inputs, "sinks": sink - 87.0}), "float32")


def test_drawn_calls_find_a_wrong_layout() -> None:
    @settings(max_examples=50, database=None, deadline=None, phases=[Phase.generate])  # to shrink takes a minute
    @given(calls("apply_rope"))
    def fails(call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        given_arrays, options = call
        assert_conforms(
            "apply_rope", posref.apply_rope(*given_arrays, **options | {"layout": "half"}), *given_arrays, **options
        )

    with pytest.raises(AssertionError, match="layout"):
        fails()


@pytest.mark.parametrize(
    ("op", "dtype", "message"), [("ropes", "float32", "'ropes'"), ("rope", "int8", "dtype must be one of")]
)
def test_no_calls_of_what_there_is_not(op: str, dtype: str, message: str) -> None:
    with pytest.raises(PosrefError, match=message):
        calls(op, dtype=dtype)
