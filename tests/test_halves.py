"""A check of which another process asks half: the same report, nothing left behind, nothing lost on an interruption."""

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

from posref.conformance.checks import halves
from posref.conformance.checks.check import check

TARGET = """
import numpy as np
import posref

backend, dtypes, claims = "numpy", ("float32",), {"float32": "angle32"}


def alibi_slopes(heads):
    return posref.alibi_slopes(heads)[::-1].copy()


def relative_shift(scores):
    return posref.relative_shift(scores)


def logn_scale(positions, **options):
    return posref.logn_scale(positions + 1, **options)
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(halves, "cores", lambda: 2)
    monkeypatch.setattr(halves, "LEAST", 0)
    (tmp_path / "kernel_in_halves.py").write_text(TARGET, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)  # the other process finds it where this one does
    return "kernel_in_halves"


def document(target: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(check(target, **options).json_text())
    return found


def workers() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if "posref.conformance.proof.workers" in one.cmdline()]


@pytest.mark.thorough(dear=True)
def test_two_processes_find_what_one_finds(target: str) -> None:
    """Every operation in order, with its diagnosis, its scope and the number of fresh calls."""
    one, two = (document(target, seed=3, jobs=jobs) for jobs in (1, 2))
    assert [operation["op"] for operation in two["operations"]] == ["alibi_slopes", "logn_scale", "relative_shift"]
    assert [operation["conformant"] for operation in two["operations"]] == [False, False, True]
    assert two == one
    assert not workers()


@pytest.mark.thorough
def test_a_process_that_is_interrupted_reports_what_it_has(target: str) -> None:
    """The report of both says that it is incomplete, and the other process is gone."""

    def interrupt(case: str) -> None:
        raise KeyboardInterrupt

    found = document(target, jobs=2, progress=interrupt)
    assert not found["complete"]
    assert not workers()


def test_what_belongs_together_stays_together() -> None:
    sizes = {"rope_table": 9, "alibi": 3, "rope": 1, "apply_rope": 1, "t5_bias": 5, "alibi_slopes": 2}
    halved = halves.halves(sizes | {"fire": 4000, "cope": 3000}, 2)
    assert halved == (["fire"], ["rope_table", "alibi", "rope", "apply_rope", "t5_bias", "alibi_slopes", "cope"])


@pytest.mark.parametrize(("jobs", "cores", "size"), [(1, 2, 9000), (2, 1, 9000), (None, 1, 9000), (2, 2, 90)])
def test_one_process_asks_what_two_do_not_ask_sooner(
    jobs: int | None, cores: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halves, "cores", lambda: cores)
    assert halves.halves({"fire": 9000, "cope": size}, jobs) == (["fire", "cope"], [])
