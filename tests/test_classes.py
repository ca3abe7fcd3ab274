"""The accuracy classes of frequencies: how far frequencies, products and positions may be off is told apart."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from posref.conformance import check
from posref.conformance.accuracy import OF_FREQUENCIES
from posref.conformance.calls import class_of_claim, ladder
from posref.conformance.reports.document import meanings
from posref.core.composition import has_frequencies


def table(positions: Any, inv_freq: Any, /, *, attention_factor: float = 1.0, dtype: Any = None, work: str = "float64") -> Any:
    """Return cosines and sines with the product in `work`."""
    angles = positions[..., None].astype(work) * inv_freq.astype(work)
    return tuple((np.float64(attention_factor) * wave(angles)).astype(np.float32) for wave in (np.cos, np.sin))


def sinusoidal(positions: Any, dim: int, /, *, layout: str, base: float = 10000.0, dtype: Any = None, work: str) -> Any:
    """Return sinusoids with frequencies in `work` and the product in float64."""
    exponents = np.arange(0, dim, 2, dtype=work) / np.asarray(dim, work)
    angles = positions[..., None].astype(np.float64) * (1 / np.power(np.asarray(base, work), exponents)).astype(np.float64)
    sin, cos = np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)
    return np.concatenate([sin, cos] if layout == "sin_cos" else [cos, sin], axis=-1)


def achieved(op: str, function: Any, claim: str | None = None) -> tuple[str | None, bool]:
    """Return the class that a function achieves, and whether that is the one claimed or tighter."""

    def of(*args: Any, dtype: Any = None, **options: Any) -> Any:
        if options.get("layout") == "interleaved" or options.pop("endpoint", False):
            raise NotImplementedError
        return function(*args, **options)

    (operation,) = check(SimpleNamespace(**{op: of}, __name__="made"), op=op, claim=claim).operations
    return operation.achieved, not operation.counts["fail"]


@pytest.mark.thorough
def test_the_product_is_told_from_the_frequencies() -> None:
    assert achieved("rope_table", lambda *a, **k: table(*a, **k, work="float64")) == ("angle64", True)
    assert achieved("rope_table", lambda *a, **k: table(*a, **k, work="float32")) == ("product32", True)
    assert achieved("rope_table", lambda *a, **k: table(*a, **k, work="float32"), "frequency32") == ("product32", False)


@pytest.mark.thorough
def test_frequencies_are_told_from_those_in_float64() -> None:
    assert achieved("sinusoidal", lambda *a, **k: sinusoidal(*a, **k, work="float64")) == ("angle64", True)
    assert achieved("sinusoidal", lambda *a, **k: sinusoidal(*a, **k, work="float32")) == ("frequency32", True)
    assert achieved("sinusoidal", lambda *a, **k: sinusoidal(*a, **k, work="float32"), "angle64") == ("frequency32", False)


def test_classes_of_frequencies_are_where_frequencies_are() -> None:
    assert all(has_frequencies(op) for op in ("rope", "rope_frequencies", "rope_table", "pope", "sinusoidal", "dual_chunk"))
    assert not any(has_frequencies(op) for op in ("alibi", "attention", "apply_rope", "liere", "xpos_scales", "t5_buckets"))
    assert class_of_claim("alibi", "product32") == "angle32"
    assert class_of_claim("rope", "product32") == "product32"
    assert class_of_claim("alibi", "product32+trig(0.5)") == "angle32+trig(0.5)"
    assert not {*ladder("alibi", "float32", "angle32")} & {*OF_FREQUENCIES}


def test_a_report_says_what_its_class_means() -> None:
    """In one sentence: the longest position, and the error there."""
    half = SimpleNamespace(rope_table=lambda *a, **k: table(*a, **{**k, "dtype": None}, work="float32"), __name__="made")
    report = check(half, op="rope_table")
    (operation,) = report.operations
    assert operation.meaning["position"] == 1_048_575
    assert 1e-3 < operation.meaning["error"] < 0.03
    (line,) = meanings(report.to_json())
    assert line.startswith("rope_table float32: at position 1,048,575 your cosines are within 0.0")
    assert operation.missed["class"] == "frequency32"
    assert operation.missed["ratio"] > 10


def test_what_is_accurate_needs_no_advice() -> None:
    fine = SimpleNamespace(rope_table=lambda *a, **k: table(*a, **{**k, "dtype": None}, work="float64"), __name__="made")
    assert meanings(check(fine, op="rope_table").to_json()) == []
