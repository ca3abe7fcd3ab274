"""The reference is itself an implementation: every core case, on NumPy in float32 and on a library without float64."""

from reporting import of_reference

import posref
from posref.conformance import Report, check


def test_the_reference_conforms() -> None:
    assert_conformant(of_reference(dtype="float32"))


def assert_conformant(report: Report) -> None:
    """Class float64 in float64, and angle64 in everything narrower (what `posref` claims)."""
    assert report.conformant, [(c.id, c.dtype, c.message) for c in report.failures][:5]
    assert report.validation[0] == report.validation[1]
    assert report.counts["pass"] > 350
    assert not report.missing
    assert {operation.achieved for operation in report.operations} <= {"float64", "angle64"}


def test_the_reference_conforms_without_float64() -> None:
    import array_api_strict

    device = array_api_strict.Device("no_float64")
    report = check(posref, backend="array_api_strict", device=device, dtype="float32", claim="angle64", tier="smoke")
    assert report.conformant, [(c.id, c.message) for c in report.failures][:5]
