"""The judge: which value is named as the worst, and what is said of how many were judged."""

from dataclasses import replace

import numpy as np
import pytest

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
    assert worst is not None
    assert (worst.output, worst.index) == ("sin", (2, 1))
    assert 99 < worst.ratio < 101
    assert judge("rope_table", call, outputs, "float64", "float64").worst == replace(worst, position=9.0)


def test_a_value_that_is_not_a_number_is_worse_than_any_error() -> None:
    call = right()
    outputs = {"cos": call.expected["cos"].copy(), "sin": call.expected["sin"] + 1.0}
    outputs["cos"][1, 0] = np.nan
    worst = compare("rope_table", call, outputs, "float64", "float64")
    assert worst is not None
    assert (worst.output, worst.index) == ("cos", (1, 0))


@pytest.mark.parametrize("true", [np.inf, -np.inf])
@pytest.mark.parametrize("got", [0.0, -1e308, np.nan, np.inf, -np.inf])
def test_an_infinite_value_must_be_equal(true: float, got: float) -> None:
    call = right()
    call.expected["cos"][0, 0] = true
    outputs = {"cos": call.expected["cos"].copy(), "sin": call.expected["sin"]}
    outputs["cos"][0, 0] = got
    assert judge("rope_table", call, outputs, "float64", "float64").verdict == ("pass" if got == true else "fail")


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
