"""The remark on roundings: it names what code holds in half precision, and right code gets none."""

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from half_classes import cases, fits, operations
from sampling import few
from test_better_fit import PLAIN, written

from posref.backends.narrowed import Narrowed
from posref.backends.rounding import round_to
from posref.conformance import check
from posref.conformance.accuracy import usual_roundings
from posref.conformance.checks.rounding_fit import RoundingFit
from posref.conformance.errors import TargetError
from posref.conformance.proof.evaluation import call_of
from posref.conformance.targets.python import load_python
from posref.spec import REGISTRY

OFFSET = ("(1.0 + weight.float())", "(1.0 + weight).float()")


def remarks(target: Any, op: str, dtype: str = "bfloat16") -> list[str]:
    """Return what the notes of a passing report say of a better fit."""
    report = check(target, op=op, dtype=dtype, experiments=0, seed=1)
    assert report.conformant, report.failures[:1]
    return [note for note in report.target["notes"] if " passes, but fits " in note]


@few(3, "op", ["rms_norm", "rope", "kerple", *operations()])
def test_without_roundings_it_is_the_definition(op: str) -> None:
    system = Narrowed("bfloat16")
    for case in cases(op, "bfloat16")[:8]:
        for call in case.calls:
            given = call_of(system, op, call.inputs, call.params)
            for name, expected in call.expected.items():
                np.testing.assert_allclose(
                    given[name].parts[0], expected, rtol=1e-5, atol=1e-6 * np.max(np.abs(expected), initial=0.0)
                )


def test_one_expression_is_rounded() -> None:
    system = Narrowed("bfloat16")
    x, weight = np.asarray([[1.0, -7.0]]), np.asarray([0.005, 0.25])
    options = {"eps": 1e-6, "weight_offset": 1}
    before = call_of(system, "rms_norm", {"x": x, "weight": weight}, options)["out"].parts[0]
    [step] = [step for step in system.steps if step.source == "gain + 1"]
    assert str(step) == "rms_norm.py: gain + 1"
    system.rounded = frozenset({step})
    after = call_of(system, "rms_norm", {"x": x, "weight": weight}, options)["out"].parts[0]
    np.testing.assert_allclose(after / before, [[1.0078125 / 1.005, 1.0]])


def test_a_sum_is_rounded_after_every_addition() -> None:
    system = Narrowed("bfloat16")
    inputs = {"x": np.ones((1, 1024)), "weight": np.ones(1024)}
    options = {"eps": 2.0**-20, "weight_offset": 0}
    call_of(system, "rms_norm", inputs, options)
    system.rounded = frozenset(step for step in system.steps if step.adds)
    assert len(system.rounded) == 1
    values = call_of(system, "rms_norm", inputs, options)["out"].parts[0]
    np.testing.assert_allclose(values, 2.0, rtol=1e-5)  # the sum stays at 256


@pytest.mark.parametrize("op", ["rms_norm", "norm_rope", "norm_mrope"])
def test_one_plus_weight_in_half_precision_is_named(op: str) -> None:
    """Two of them also round the norm and the rotation, as transformers does."""
    changes = [OFFSET]
    [remark] = remarks(written(op, *changes), op)
    assert "fits the definition better with rounding to bfloat16 of `gain + 1` (rms_norm.py)" in remark
    assert not remarks(load_python(str(PLAIN / f"{op}.py")).implementation, op)


def test_slopes_in_half_precision_are_named() -> None:
    """Few numbers of heads have slopes that bfloat16 lacks: they suffice if all values agree."""
    target = written("alibi", ("return slopes.view", "return slopes.bfloat16().float().view"))
    [remark] = remarks(target, "alibi")
    assert "slopes" in remark


def test_a_sum_in_half_precision_is_named() -> None:
    def forgetting_bias(log_gates: Any, /, *, queries: int) -> Any:
        sums = torch.stack([log_gates[..., : n + 1].sum(-1) for n in range(log_gates.shape[-1])], -1)
        for n in range(1, sums.shape[-1]):
            sums[..., n] = sums[..., n - 1] + log_gates[..., n]
        return sums[..., sums.shape[-1] - queries :, None] - sums[..., None, :]

    target = SimpleNamespace(forgetting_bias=forgetting_bias, backend="torch", supports={"*": {"gradient": False}})
    [remark] = remarks(target, "forgetting_bias")
    assert "each addition of `namespace(log_gates).cumulative_sum(log_gates, axis=-1)`" in remark


@pytest.mark.parametrize(("sign", "which"), [(0, ""), (-1, " of negative results"), (1, " of positive results")])
def test_results_that_are_truncated_are_named(sign: int, which: str) -> None:
    def truncated(x: Any) -> Any:
        cut = (x.view(torch.int32) & -65536).view(torch.float32)
        return torch.where(x * sign >= 0 if sign else x == x, cut, x).bfloat16()

    def rms_norm(x: Any, weight: Any, /, *, eps: float, weight_offset: int) -> Any:
        y = x.float()
        return truncated(y * torch.rsqrt((y * y).mean(-1, keepdim=True) + eps) * (weight.float() + weight_offset))

    target = SimpleNamespace(rms_norm=rms_norm, backend="torch", supports={"*": {"gradient": False}}, __name__="truncated")
    [remark] = remarks(target, "rms_norm")
    assert f"fits rounding towards zero{which} better" in remark


@pytest.mark.parametrize("products", [False, True])
def test_code_that_claims_to_round_results_alone_hears_of_other_roundings(products: bool) -> None:
    def rope(x: Any, positions: Any, /, *, layout: str, base: float) -> Any:
        if layout != "half":
            raise NotImplementedError
        angles = positions[..., None].double() * base ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1]).double()
        cos, sin, (u, v) = angles.cos(), angles.sin(), x.double().chunk(2, -1)
        four = [u * cos, v * sin, v * cos, u * sin]
        four = [y.bfloat16().double() if products else y for y in four]
        return torch.cat((four[0] - four[1], four[2] + four[3]), -1).bfloat16()

    target = SimpleNamespace(rope=rope, backend="torch", supports={"*": {"gradient": False}}, claims={"bfloat16": "fused"})
    found = remarks(target, "rope")
    assert len(found) == products
    assert all("rounding to bfloat16 of" in remark for remark in found)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@few(4, "op", ["norm_rope", "mrope", "deberta_scores", "attention_logits", *sorted(p.stem for p in PLAIN.glob("*.py"))])
def test_the_table_has_the_roundings_of_plain_code(op: str, dtype: str) -> None:
    with suppress(TargetError):  # its library has no such dtype
        target = load_python(str(PLAIN / f"{op}.py"), dtype=dtype)
        if dtype in target.dtypes and REGISTRY[op].returns == "real":
            assert {fit.name for fit in fits(op, dtype, target)} <= usual_roundings(op)


def fit_of(errors: np.ndarray, factors: np.ndarray) -> RoundingFit:
    """Return the fit of a rounding that multiplies numbers by `factors` where they have relative `errors`."""
    expected = np.random.default_rng(1).uniform(1, 2, errors.shape)
    observed = np.asarray(round_to(expected * (1 + errors), "bfloat16"), float)
    fit = RoundingFit("a", "b")
    observation: Any = SimpleNamespace(expected=expected, observed=observed, width=np.full(errors.shape, 0.5))
    fit.add("bfloat16", observation, expected * factors, expected)
    return fit


@pytest.mark.parametrize("size", [0.0, 2.0**-9, 2.0**-8, 2.0**-6])
def test_errors_of_no_side_never_fit(size: float) -> None:
    rng = np.random.default_rng(0)
    errors, factors = (u * rng.uniform(-1, 1, (400, 64)) for u in (size, 2.0**-8))
    assert not fit_of(errors, 1 + factors).clear
    assert fit_of(factors, 1 + factors).clear


def test_errors_of_one_direction_never_fit() -> None:
    """Code that truncates is below all numbers: roundings that make them smaller are no evidence."""
    rng = np.random.default_rng(0)
    errors = -(2.0**-7) * rng.uniform(0, 1, (400, 64))
    assert not fit_of(errors, 1 + 2.0**-8 * rng.uniform(-1, 1, (400, 64))).clear
    assert not fit_of(errors, 1 - 2.0**-8 * rng.uniform(0, 1, (400, 64))).clear


def test_one_factor_counts_once() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (20, 1)) * 2.0**-8
    shared, noise = np.broadcast_to(rows, (20, 400)), np.random.default_rng(1).uniform(-1, 1, (20, 400)) * 2.0**-9
    fit = fit_of(shared + noise, 1 + shared)
    assert fit.counts[0].sum() <= 20
    assert not fit.clear
