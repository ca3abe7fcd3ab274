"""What surrounds a call: the tolerance of its result, the dtypes of its arguments, and the way home from the library."""

import numpy as np
import pytest

from posref import backends
from posref.conformance.accuracy import tolerance_of
from posref.conformance.calls import given_dtype
from posref.conformance.suite import INSTALLED, load_groups
from posref.conformance.targets import protocol


@pytest.mark.parametrize(("dtype", "unit", "floor"), [("bfloat16", 2.0**-8, 2.0**-134), ("float16", 2.0**-11, 2.0**-25)])
def test_half_precision_adds_one_rounding_and_no_more(dtype: str, unit: float, floor: float) -> None:
    """t + u(|y| + t) + floor; an exact result has nothing where the dtype holds it, and else that one rounding."""
    expected, t = np.asarray([3.0, -0.75, 1 / 3]), np.asarray([2.0**-20, 0.0, 0.0])
    found = tolerance_of({"angle32": t.astype(np.float32)}, expected, "angle32", dtype)
    assert found[0] == 2.0**-20 + unit * (3 + 2.0**-20) + floor
    assert found[1] == 0
    assert found[2] == unit / 3 + floor


def test_wider_results_have_the_stored_tolerance() -> None:
    stored = {"angle32": np.asarray([2.0**-20], dtype=np.float32), "trig": np.asarray([3.0], dtype=np.float32)}
    assert tolerance_of(stored, np.asarray([1.0]), "angle32", "float32") == 2.0**-20
    assert tolerance_of(stored, np.asarray([1.0]), "angle32+trig(0.125)", "float32") == 2.0**-20 + 0.375


@pytest.mark.parametrize(("name", "dtype"), [("positions", "float32"), ("x", "bfloat16")])
def test_positions_are_never_given_in_half_precision(name: str, dtype: str) -> None:
    assert given_dtype("rope", name, "bfloat16") == dtype
    cases = [c for g in load_groups(INSTALLED, ops=("rope",)) for c in g.cases if c.kind == "value" and "bfloat16" in c.dtypes]
    fractional = next(c for c in cases if c.calls[0].inputs["positions"].dtype.kind == "f")
    sent = protocol.run(1, fractional, 0, "bfloat16")["inputs"][name]
    assert sent == protocol.encode(fractional.calls[0].inputs[name], dtype)


def test_results_that_carry_gradients_come_home() -> None:
    """A learned table is a parameter, and what is made of it asks for gradients."""
    torch = backends.load("torch")
    learned = torch.from_numpy(np.asarray([1.5, -2.0]), "float32").requires_grad_()
    np.testing.assert_array_equal(torch.to_numpy(2 * learned), [3.0, -4.0])
