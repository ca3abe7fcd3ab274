"""The bounds are no wider than correct implementations need."""

from collections import defaultdict
from functools import cache

import pytest
from test_correct import FILES

from posref.conformance import check

REFERENCE = ("numpy", "torch")
Ratios = dict[tuple[str, str, str], dict[str, float]]  # (op, dtype, class) -> who -> worst error/bound


@cache
def ratios() -> Ratios:
    """Return the worst error of every operation, in tolerances of its claim; nobody where all results are exact."""
    reports = {file.stem: check(str(file)) for file in FILES}
    reports |= {f"posref on {b}": check("posref", backend=b) for b in REFERENCE}
    found: Ratios = defaultdict(dict)
    for who, report in reports.items():
        for operation in report.operations:
            if operation.counts["pass"] and operation.dtype and operation.claim:
                known = {who: operation.worst_ratio} if operation.worst_ratio else {}
                found[operation.op, operation.dtype, operation.claim] |= known
    return found


def test_the_bounds_are_not_idle(capsys: pytest.CaptureFixture[str]) -> None:
    """The worst of the correct implementations comes within a hundredth of every bound, and none is beyond one."""
    with capsys.disabled():
        print("\nworst error/bound of correct implementations")
        for key, known in sorted(ratios().items()):
            who = max(known, key=lambda name: known[name], default=None)
            print(f"  {key[0]:17} {key[1]:9} {key[2]:8} {'exact' if who is None else f'{known[who]:<9.2g} {who}'}")
    worst = {key: max(known.values()) for key, known in ratios().items() if known}
    assert len(worst) > 50
    wide = {key: ratio for key, ratio in worst.items() if not 0.01 <= ratio <= 1}
    assert not wide
