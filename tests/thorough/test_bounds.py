"""Correct implementations and the reference in every dtype, and that the bounds are no wider than these need."""

from collections import defaultdict
from functools import cache

import pytest
from reporting import of_reference
from sampling import QUARTER, everything, share
from test_correct import FILES, assert_no_failure
from test_reference import assert_conformant

from posref.conformance import Report, check

REFERENCE = ("numpy", "torch")
Ratios = dict[tuple[str, str, str], dict[str, float]]  # (op, dtype, class) -> who -> worst error/bound


@cache
def report(who: str) -> Report:
    """Return the report of the file of this name, or of the reference on a library."""
    files = {file.stem: file for file in FILES}
    return check(str(files[who])) if who in files else of_reference(backend=who)


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("name", share([file.stem for file in FILES], QUARTER))
def test_no_case_fails(name: str) -> None:
    assert_no_failure(report(name))


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("backend", REFERENCE)
def test_the_reference_conforms(backend: str) -> None:
    assert_conformant(report(backend))


def ratios() -> Ratios:
    """Return the worst error of every operation, in tolerances of its claim; nobody where all results are exact."""
    found: Ratios = defaultdict(dict)
    for who in (*(file.stem for file in FILES), *REFERENCE):
        for operation in report(who).operations:
            if operation.counts["pass"] and operation.dtype and operation.claim:
                known = {who: operation.worst_ratio} if operation.worst_ratio else {}
                found[operation.op, operation.dtype, operation.claim] |= known
    return found


@everything
def test_the_bounds_are_not_idle(capsys: pytest.CaptureFixture[str]) -> None:
    """The worst of the correct implementations comes within a hundredth of every bound, and none is beyond one."""
    found = ratios()
    with capsys.disabled():
        print("\nworst error/bound of correct implementations")
        for key, known in sorted(found.items()):
            who = max(known, key=lambda name: known[name], default=None)
            print(f"  {key[0]:17} {key[1]:9} {key[2]:8} {'exact' if who is None else f'{known[who]:<9.2g} {who}'}")
    worst = {key: max(known.values()) for key, known in found.items() if known}
    assert len(worst) > 50
    wide = {key: ratio for key, ratio in worst.items() if not 0.01 <= ratio <= 1}
    assert not wide
