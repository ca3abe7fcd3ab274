"""The judge: which value is named as the worst, and what is said of how many were judged."""

from dataclasses import replace

import numpy as np
import pytest
from sample import stored

import posref
from posref.conformance.judge import compare, judge
from posref.conformance.model import Call

ARRAYS = {"positions": np.asarray([0.0, 3.0, 9.0]), "inv_freq": np.asarray([1.0, 0.125])}


def right() -> Call:
    """Return a call with what the definition gives, of which any value must be exact but the first output's."""
    cos, sin = posref.rope_table(ARRAYS["positions"], ARRAYS["inv_freq"])
    widths = {"float64": {"cos": np.full(cos.shape, 1e-3), "sin": np.full(sin.shape, 1e-6)}}
    return Call({"attention_factor": 1.0}, ARRAYS, {"cos": cos, "sin": sin}, widths=widths)


def test_of_several_outputs_the_value_farthest_outside_its_tolerance_is_the_worst() -> None:
    call = right()
    outputs = {"cos": call.expected["cos"] + 2e-3, "sin": call.expected["sin"].copy()}
    outputs["sin"][2, 1] += 1e-4  # a smaller error, and a hundred times its tolerance
    worst = compare("rope_table", call, outputs, "float64", "float64")
    assert (worst.output, worst.index) == ("sin", (2, 1))
    assert 99 < worst.ratio < 101
    assert judge("rope_table", call, outputs, "float64", "float64").worst == replace(worst, position=9.0)


def test_a_value_that_is_not_a_number_is_worse_than_any_error() -> None:
    call = right()
    outputs = {"cos": call.expected["cos"].copy(), "sin": call.expected["sin"] + 1.0}
    outputs["cos"][1, 0] = np.nan
    worst = compare("rope_table", call, outputs, "float64", "float64")
    assert (worst.output, worst.index) == ("cos", (1, 0))


@pytest.mark.parametrize("true", [np.inf, -np.inf])
@pytest.mark.parametrize("got", [0.0, -1e308, np.nan, np.inf, -np.inf])
def test_an_infinite_value_must_be_equal(true: float, got: float) -> None:
    call = right()
    call.expected["cos"][0, 0] = true
    outputs = {"cos": call.expected["cos"].copy(), "sin": call.expected["sin"]}
    outputs["cos"][0, 0] = got
    assert judge("rope_table", call, outputs, "float64", "float64").verdict == ("pass" if got == true else "fail")


@pytest.mark.thorough
def test_how_many_values_were_judged_is_said_where_it_is_not_all() -> None:
    call = right()
    whole = judge("rope_table", call, dict(call.expected), "float64", "float64")
    assert (whole.verdict, whole.counted) == ("pass", "")
    positions = np.arange(4_000_000.0)
    wide = {"positions": positions, "inv_freq": ARRAYS["inv_freq"]}
    cos, sin = posref.rope_table(positions, wide["inv_freq"])
    part = judge(
        "rope_table", Call({"attention_factor": 1.0}, wide), {"cos": cos, "sin": sin}, "angle64", "float32", truth="live"
    )
    assert part.verdict == "pass"
    assert part.counted.endswith(f" of {2 * cos.size} values judged")


@pytest.mark.parametrize("claim", ["low", "angle32", "fused"])
def test_gradients_in_half_precision_are_judged_live_by_class_low(claim: str) -> None:
    """Whatever is claimed. This class allows zero where the parts of a sum cancel, and then says nothing."""
    inputs = {"q": np.asarray([[1.0]]), "k": np.asarray([[1.0], [2.0]])}
    call = Call({"scale": 1.0}, inputs, cotangents={"out": np.asarray([[1.0, -0.4921875]])})
    outputs = {"q": np.asarray([[1.0 - 2 * 0.4921875]]), "k": call.cotangents["out"].T}
    found = judge("attention_logits", call, outputs, claim, "bfloat16", truth="live")
    assert found.verdict == "not-judged"
    assert found.reason == "low-bfloat16 allows every value of q to be zero here"


def test_of_rows_of_which_few_can_be_judged_the_farthest_off_is_one() -> None:
    """A row has so many values that fewer rows are judged than look far off."""
    arrays = {"positions": np.arange(64.0), "inv_freq": np.linspace(0.5, 1.0, 1 << 15)}
    outputs = {n: x.astype(np.float32) for n, x in zip(("cos", "sin"), posref.rope_table(*arrays.values()), strict=True)}
    outputs["cos"][37, 100] += 1e-3
    found = judge("rope_table", Call({"attention_factor": 1.0}, arrays), outputs, "angle32", "float32", truth="live")
    assert sum(one.judged for one in found.verdicts) < outputs["cos"].size
    assert found.worst.index == (37, 100)


def test_a_result_that_may_be_zero_does_not_hide_another() -> None:
    """What 32 keys leave of a stick is below its tolerance: the weights are judged."""
    logits = np.random.default_rng(0).standard_normal((2, 1, 32)).astype(np.float32)
    inputs = {"logits": logits.astype(np.float64), "mask": np.ones((1, 32), dtype=bool)}
    weights, remainder = posref.stick_breaking(logits, inputs["mask"])
    outputs = {"weights": weights.astype(np.float64), "remainder": remainder.astype(np.float64)}
    judged = judge("stick_breaking", Call({}, inputs), outputs, "angle32", "float32", truth="live")
    assert judged.verdict == "pass"
    wrong = judge(
        "stick_breaking", Call({}, inputs), {**outputs, "weights": 0 * outputs["weights"]}, "angle32", "float32", truth="live"
    )
    assert wrong.verdict == "fail"


def test_the_product_of_the_paper_is_right_where_gates_are_nearly_closed() -> None:
    """1 less a sigmoid near 1 has few digits in float32."""
    logits = (np.abs(np.random.default_rng(1).standard_normal((2, 3, 12))) * 12).astype(np.float32)
    shares = np.float32(1) / (np.float32(1) + np.exp(-logits))
    left = np.cumprod((np.float32(1) - shares)[..., ::-1], axis=-1)[..., ::-1]
    weights = shares * np.concatenate([left[..., 1:], np.ones_like(left[..., :1])], axis=-1)
    inputs = {"logits": logits.astype(np.float64), "mask": np.ones((3, 12), dtype=bool)}
    outputs = {"weights": weights.astype(np.float64), "remainder": (np.float32(1) - weights.sum(-1)).astype(np.float64)}
    judged = judge("stick_breaking", Call({}, inputs), outputs, "angle32", "float32", truth="live")
    assert judged.verdict == "pass"


def test_positions_that_count_by_differences_may_be_counted_from_1() -> None:
    """At position 0 a rotation is exact. Code that counts from 1 gives the same values up to its roundings."""
    [case] = [case for case in stored("rotated_values") if case.id == "rotated_values/size/usual-k-1"]
    [call] = case.calls
    arrays = {n: (x.astype(np.float32) if x.dtype.kind == "f" else x + 1) for n, x in call.inputs.items()}
    names = ("weights", "v", "q_positions", "k_positions")
    value = posref.rotated_values(*(arrays[name] for name in names), **call.params)
    error = np.max(np.abs(value - call.expected["out"]))
    assert 0 < error < 1e-7
    assert compare("rotated_values", call, {"out": value}, "angle32", "float32") is None
    assert compare("rotated_values", call, {"out": value + 1e-6}, "angle32", "float32") is not None
