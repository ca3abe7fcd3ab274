"""Class mixed: right code is inside, code that is off where sums are long is not, and the table says what is measured."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from half_classes import Stepwise, asked, measured, operations, stepwise
from half_classes import cases as cases_in
from sampling import share
from test_better_fit import PLAIN, SQUARED, written

from posref.backends.live import live
from posref.backends.numbers import storage
from posref.conformance import check, judge
from posref.conformance.accuracy import DEFAULT_CLAIM, HALF_PRECISION, of_mixed
from posref.conformance.calls import class_of_claim, ladder
from posref.conformance.targets.python import load_python

TABLE = json.loads(HALF_PRECISION.read_text(encoding="utf-8"))
HALF = ("bfloat16", "float16")
LONG = ("rms_norm", "attention_logits", "sinusoidal")


def test_the_table_has_every_operation() -> None:
    assert list(TABLE) == operations(), "run: python tests/half_classes.py --write NAME"
    assert of_mixed() == {op for op in TABLE if class_of_claim(op, DEFAULT_CLAIM["bfloat16"]) == "mixed"}


@pytest.mark.thorough
@pytest.mark.parametrize("op", share(sorted(of_mixed())))
def test_the_table_says_what_is_measured(op: str) -> None:
    """Fresh calls, which the table also has, show more roundings than stored cases."""
    found, row = measured(op), dict(TABLE[op])
    assert set(found.pop("roundings")) <= set(row.pop("roundings"))
    assert found == row


def test_rotations_and_what_does_not_add_are_held_to_low() -> None:
    assert not of_mixed() & {"apply_rope", "rope", "axial_rope", "mrope", "learned", "t5_bias"}
    assert ladder("rope", "bfloat16", "low")[-2:] == ("fused", "low")
    assert ladder("rms_norm", "bfloat16", "low")[-3:] == ("fused", "mixed", "low")


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("op", LONG)
def test_code_that_rounds_after_each_operation_is_inside(op: str, dtype: str) -> None:
    target = load_python(str(PLAIN / f"{op}.py"), dtype=dtype)
    answered = 0
    for case in cases_in(op, dtype)[:12]:
        for given in (stepwise(Stepwise(dtype), case), asked(target, dtype, case)):
            for call, outputs in zip(case.calls, given or (), strict=False):
                if judge.compare(op, call, outputs, "low", dtype) is None:  # squares overflow in float16
                    assert judge.compare(op, call, outputs, "mixed", dtype) is None, case.id
                    answered += 1
    assert answered > 12


def test_a_product_whose_factor_is_scaled_first_is_inside() -> None:
    """Many libraries scale the queries in half precision, and then multiply."""
    rng = np.random.default_rng(1)
    q, k = (torch.from_numpy(rng.normal(size=(9, 64))).to(torch.bfloat16) for _ in range(2))
    system = live("mixed-bfloat16")
    a, b = (system.asarray(x.double().numpy(), dtype=storage) for x in (q, k.T))
    value, error, _ = (system.matmul(a, b) * 0.3).parts
    got = ((q * 0.3) @ k.T).double().numpy()
    assert np.all(np.abs(got - value) <= error)
    assert np.median(np.abs(got - value) / error) > 0.01


def test_a_sum_rounds_once() -> None:
    """Class low lets a sum of n terms be off by n roundings."""
    ones = np.full((4, 128), 1 + 2.0**-7)
    widths = {}
    for name in ("mixed-bfloat16", "low-bfloat16"):
        system = live(name)
        widths[name] = float(system.sum(system.asarray(ones, dtype=storage), axis=1).parts[1][0])
    assert widths["mixed-bfloat16"] <= 1.01 * 129 * 2.0**-8
    assert widths["low-bfloat16"] >= 64 * widths["mixed-bfloat16"]


@pytest.mark.parametrize("name", ["fused-bfloat16", "mixed-bfloat16", "low-bfloat16"])
def test_a_product_of_matrices_may_have_an_infinite_number(name: str) -> None:
    system = live(name)
    a, b = (system.asarray(np.asarray(x)) for x in ([[np.inf, 1.0], [2.0, 3.0]], [[1.0, 2.0], [0.0, 3.0]]))
    value, error, _ = system.matmul(a, b).parts
    assert value.tolist() == [[np.inf, np.inf], [2.0, 13.0]]
    assert 0 < error[1, 1] < 1


@pytest.mark.thorough
@pytest.mark.parametrize("op", ["rms_norm", "norm_mrope"])
def test_a_mistake_that_class_low_allows_fails_by_default(op: str) -> None:
    wrong: Any = written(op, *((f"{x}.pow(2).mean(", f"x.shape[-1] / (x.shape[-1] - 1) * {x}.pow(2).mean(") for x in SQUARED))
    report = check(wrong, op=op, dtype="bfloat16", experiments=0)
    [operation] = report.operations
    assert operation.claim == "mixed"
    assert operation.counts["fail"]
    assert operation.diagnosis["names"] == ["norm-unbiased"]


def test_a_claim_of_class_low_is_kept() -> None:
    right = load_python(str(PLAIN / "rms_norm.py")).implementation
    target = SimpleNamespace(rms_norm=right.rms_norm, backend="torch", claims={"bfloat16": "low"}, dtypes=("bfloat16",))
    [operation] = check(target, op="rms_norm", experiments=0).operations
    assert (operation.claim, operation.achieved) == ("low", "mixed")
