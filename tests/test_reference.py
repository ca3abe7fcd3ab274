"""The reference is itself an implementation, on every array library."""

import array_api_strict
import pytest

from posref.conformance import check

RUNS = {
    "numpy": {},
    "torch": {},
    "array_api_strict": {},
    "strict-without-float64": {
        "backend": "array_api_strict", "device": array_api_strict.Device("no_float64"), "dtype": "float32", "claim": "angle64",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_reference_is_conformant(name: str) -> None:
    """Class float64 in float64, and angle64 in everything narrower (what `posref` claims)."""
    report = check("posref", **{"backend": name, **RUNS[name]})
    assert report.conformant, [(c.id, c.message) for c in report.failures][:5]
    assert report.validation[0] == report.validation[1]
    assert report.counts["pass"] > 350
    for operation in report.operations:
        assert operation.achieved in ("float64", "angle64")


@pytest.mark.parametrize("op", ["rope_table", "sinusoidal", "rope_frequencies", "liere"])
def test_reference_is_conformant_on_jax_without_x64(op: str) -> None:
    """Angle64 without float64: the angles are int32 turns. (JAX compiles every shape by itself; these operations cover it.)"""
    report = check("posref", backend="jax", op=op, dtype="float32", claim="angle64")
    assert report.conformant, [(c.id, c.message) for c in report.failures][:5]


@pytest.mark.parametrize("op", ["rope_table", "apply_rope", "t5_bias", "attention", "rerope", "mixed_table", "cayley_string"])
def test_reference_is_conformant_on_dask(op: str) -> None:
    """Its graphs are slow, so that these are asked; other operations and dtypes: test_backends."""
    report = check("posref", backend="dask", op=op, dtype="float32", claim="angle64")
    assert report.conformant, [(c.id, c.message) for c in report.failures][:5]


def test_reference_is_conformant_on_jax_in_every_operation() -> None:
    report = check("posref", backend="jax", tier="smoke")
    assert report.conformant, [(c.id, c.message) for c in report.failures][:5]
    assert {c.dtype for op in report.operations for c in op.cases} == {"float32", "float16", "bfloat16"}
