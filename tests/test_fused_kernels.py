"""Fused kernels: right ones pass, and planted defects are found, and named where the registry has them."""

import pytest
from planting import defects
from quality import report_on, row, totals

KERNELS = {defect.__name__: defect for defect in defects("defects.kernels")}
WRONG = [defect for name, defect in KERNELS.items() if name != "right"]


def test_the_kernel_without_a_defect_conforms() -> None:
    report = report_on(KERNELS["right"])
    assert not report.failures, [(case.id, case.message) for case in report.failures][:5]


@pytest.mark.parametrize("defect", WRONG, ids=lambda defect: defect.__name__)
def test_a_defect_is_found_and_never_called_another(defect) -> None:
    found = row(defect)
    assert found.found
    assert found.verdict != "wrong", f"{found.defect} is not {found.called}"


def test_nine_tenths_of_the_defects_that_the_registry_knows_are_named() -> None:
    known = totals(row(defect) for defect in WRONG if defect.NAMES)
    assert known["named"] >= 0.9 * known["defects"], known
