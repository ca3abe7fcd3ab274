"""The remark on half precision: a mistake within class low is named with its numbers, and right code gets no remark."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sampling import few, share

import posref
from posref.conformance import check
from posref.conformance.checks import better_fit
from posref.conformance.evidence.deviations import DEVIATIONS
from posref.conformance.targets.python import load_python

PLAIN = Path(__file__).parent / "plain"
HALF = ("bfloat16", "float16")
SQUARED = ("hidden_states", "x.float()")  # what the plain norms take the mean square of


def written(op: str, *changes: tuple[str, str]) -> SimpleNamespace:
    """Return the plain implementation of an operation with some words of its source changed."""
    source = (PLAIN / f"{op}.py").read_text(encoding="utf-8")
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    module = ModuleType(op)
    exec(source, vars(module))
    return SimpleNamespace(**{name: value for name, value in vars(module).items() if not name.startswith("__")}, __name__=op)


def remarks(target: Any, op: str, dtype: str, claim: str = "low") -> list[str]:
    """Return what the notes of a passing report say of a better fit."""
    report = check(target, op=op, dtype=dtype, claim=claim, experiments=0)
    assert report.conformant, report.failures[:1]
    return [note for note in report.target["notes"] if " passes, but fits " in note]


@pytest.mark.thorough
def test_a_mistake_that_passes_is_named_with_its_numbers() -> None:
    """The code of a model rounds at several operations, and divides the sum of the squares by D - 1."""
    unbiased = [(f"{x}.pow(2).mean(", f"{x}.shape[-1] / ({x}.shape[-1] - 1) * {x}.pow(2).mean(") for x in SQUARED]
    [remark] = remarks(written("norm_mrope", *unbiased), "norm_mrope", "bfloat16")
    assert remark.startswith("norm_mrope bfloat16 passes, but fits a known mistake better: the sum of the squares is divided")
    assert "(norm-unbiased)" in remark
    assert "rows are nearer" in remark


@pytest.mark.thorough
@pytest.mark.parametrize("factor", [1.0, 1.02])
def test_another_scale_that_passes_is_named_with_its_factor(factor: float) -> None:
    """A scale that is off by 2% is within the roundings of a softmax."""

    def attention(q: Any, k: Any, v: Any, /, *, scale: float | None = None, **options: Any) -> Any:
        return posref.attention(q, k, v, scale=factor * (q.shape[-1] ** -0.5 if scale is None else scale), **options)

    found = remarks(SimpleNamespace(attention=attention, backend="torch", __name__="attention"), "attention", "bfloat16")
    words = "fits another scale better: products of queries and keys are 1.02 times what they should be"
    assert [words in remark for remark in found] == [True] * (factor != 1)


@pytest.mark.thorough
@few(1, "op", ["norm_mrope", "apply_rope", "attention_logits"])
def test_right_code_gets_no_remark(op: str) -> None:
    assert not remarks(load_python(str(PLAIN / f"{op}.py")).implementation, op, "bfloat16")


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("file", share(sorted(PLAIN.glob("*.py")), part=2), ids=lambda file: file.stem)
def test_no_plain_implementation_gets_a_remark(file: Path, dtype: str) -> None:
    target = load_python(str(file))
    if dtype in target.dtypes:
        report = check(target.implementation, op=file.stem, dtype=dtype, claim="low", experiments=0)
        assert not [note for note in report.target["notes"] if " passes, but fits " in note]


def fits(error: np.ndarray, shift: np.ndarray, dtype: str = "bfloat16") -> better_fit._Fit:
    """Return the fit of a mistake that moves ones by `shift` where values have an `error`."""
    expected = np.ones(error.shape)
    width = np.full(error.shape, 0.5)
    observed = SimpleNamespace(call=0, name="out", expected=expected, observed=expected + error, width=width)
    fit = better_fit._Fit(next(iter(DEVIATIONS.values())))
    question: Any = SimpleNamespace(op="rms_norm", dtype=dtype, observations=[observed])
    better_fit._add(fit, question, [{"out": expected + shift}], scalars=False)
    return fit


def test_errors_of_no_side_never_fit_however_many() -> None:
    rng = np.random.default_rng(0)
    for rows in (4, 64, 1024):
        assert not fits(rng.uniform(-0.4, 0.4, (rows, 64)), np.full((rows, 64), 0.05)).clear


def test_what_the_values_of_a_row_share_counts_once() -> None:
    """A rounding that moves all values of 16 rows in one way is no evidence, and 64 rows are."""
    shift = np.full((16, 4096), 0.05)
    assert fits(shift, shift).rows == 16
    assert not fits(shift, shift).clear
    more = np.full((64, 4096), 0.05)
    assert fits(more, more).clear


def test_a_single_rounding_brings_nothing_nearer() -> None:
    """A mistake that moves a value by less than two roundings does not show."""
    small = np.full((64, 64), 2.0**-8)
    assert not fits(small, small).rows
    assert fits(small, small, "float16").rows == 64


def test_a_value_far_from_both_fits_neither() -> None:
    shift = np.full((64, 64), 0.05)
    assert not fits(shift + np.where(np.arange(64) == 3, 0.6, 0.0), shift).clear
