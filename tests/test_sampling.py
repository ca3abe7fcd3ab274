"""A run has as many parameters as it says, evenly, the same ones for the same seed."""

import random
from pathlib import Path

import pytest
import sampling

pytest_plugins = "pytester"

RUN = """
import pytest
from sampling import everything, few, share

@pytest.mark.thorough
@pytest.mark.parametrize("k", share(range(100)))
def test_sampled(k):
    pass

@few(3, ("n", "m"), [*((k, k) for k in range(9)), pytest.param(9, 9, id="last")])
def test_few(n, m):
    pass

@pytest.mark.parametrize("k", [0, *(pytest.param(k, marks=pytest.mark.thorough(dear=True)) for k in range(10))])
def test_dear(k):
    pass

@everything
@pytest.mark.thorough
def test_whole():
    pass
"""


def test_a_share_is_as_large_as_it_says_and_even(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "SHARE", 0.2)
    for seed in range(10):
        monkeypatch.setattr(sampling, "STARTS", random.Random(seed))
        values = sampling.share(range(500))
        assert len(values) == 100
        assert [value // 5 for value in values] == list(range(100))
        assert len(sampling.share(range(500), part=0.5)) == 50
        assert len(sampling.share([7], part=0.1)) == 1
        monkeypatch.setattr(sampling, "STARTS", random.Random(seed))
        assert sampling.share(range(500)) == values


@pytest.mark.parametrize(
    ("options", "passed", "seed"),
    [
        ((), 3 + 1, False),
        (("-m", "thorough"), 2 + 6 + 2, True),
        pytest.param(("-m", "thorough", "--everything"), 7 + 100 + 10 + 1, False, marks=pytest.mark.thorough),
        pytest.param(("-m", "thorough", "-k", "sampled"), 100, False, marks=pytest.mark.thorough),  # chosen by name: all
    ],
    ids=["plain", "thorough", "everything", "by name"],
)
@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.thorough)])
def test_a_run_has_so_many(pytester: pytest.Pytester, options: tuple[str, ...], passed: int, seed: bool, workers: str) -> None:
    here = Path(__file__).parent
    pytester.makeini(
        "[pytest]\ntestpaths = tests\nmarkers =\n thorough\n"
        f'pythonpath = {here}\naddopts = -p no:cacheprovider -m "not thorough"\n'
    )
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text((here / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "test_it.py").write_text(RUN, encoding="utf-8")
    done = pytester.runpytest_subprocess("-n", workers, "--seed", "12", *options)
    done.assert_outcomes(passed=passed, skipped=int(seed))
    assert ("--seed 12" in done.stdout.str()) == seed
