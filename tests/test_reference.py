"""The reference is itself an implementation: every core case, on quick libraries; the thorough tests ask the others."""

import pytest

from posref.conformance import check


@pytest.mark.parametrize(
    ("backend", "dtype"),
    [("numpy", "float32"), *(pytest.param(b, None, marks=pytest.mark.thorough) for b in ("numpy", "torch"))],
)
def test_the_reference_conforms(backend: str, dtype: str | None) -> None:
    """Class float64 in float64, and angle64 in everything narrower (what `posref` claims)."""
    report = check("posref", backend=backend, dtype=dtype)
    assert report.conformant, [(c.id, c.dtype, c.message) for c in report.failures][:5]
    assert report.validation[0] == report.validation[1]
    assert report.counts["pass"] > 350
    assert not report.missing
    assert {operation.achieved for operation in report.operations} <= {"float64", "angle64"}


def test_the_reference_conforms_without_float64() -> None:
    import array_api_strict

    device = array_api_strict.Device("no_float64")
    report = check("posref", backend="array_api_strict", device=device, dtype="float32", claim="angle64", tier="smoke")
    assert report.conformant, [(c.id, c.message) for c in report.failures][:5]
