"""Workers: answers in order, errors that name their case, and nothing left behind whatever ends the process that asks."""

import operator
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_vectors import files, reseal

from posref import scaling
from posref.conformance.errors import BuildError, PosrefError, Stopped
from posref.conformance.evidence.catalogue import all_cases, groups
from posref.conformance.model import Case
from posref.conformance.proof import workers
from posref.conformance.proof.build import build, product_of, verify
from posref.conformance.suite import INSTALLED, load_groups
from posref.conformance.suite.writer import copy

SOME = ("alibi_slopes", "t5_buckets")
# a shell starts what it runs in the background with ctrl-c ignored; the test must not depend on how it was started
POSREF = (
    "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); runpy.run_module('posref', alter_sys=True)"
)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[workers.Worker]:
    """Start workers for two cases already, and list those that are started."""
    crew: list[workers.Worker] = []

    class Counted(workers.Worker):
        def __init__(self) -> None:
            super().__init__()
            crew.append(self)

    monkeypatch.setattr(workers, "CASES", 1)
    monkeypatch.setattr(workers, "Worker", Counted)
    return crew


def called(function: Callable[..., Any], *tasks: tuple[Any, ...], count: int = 1) -> list[Any]:
    with workers.each(function, {f"task {k}": task for k, task in enumerate(tasks)}, count) as results:
        return list(results)


@pytest.mark.thorough
def test_two_processes_give_the_bytes_of_one_and_count_in_order(started: list[workers.Worker], tmp_path: Path) -> None:
    one: list[tuple[str, int]] = []
    two: list[tuple[str, int]] = []
    build(tmp_path / "one", ops=SOME, jobs=1, progress=lambda *now: one.append(now))
    assert not started
    build(tmp_path / "two", ops=SOME, jobs=2, progress=lambda *now: two.append(now))
    assert len(started) == 2
    assert files(tmp_path / "one") == files(tmp_path / "two")
    copy(INSTALLED, tmp_path / "installed", SOME)
    assert files(tmp_path / "two") == files(tmp_path / "installed")
    ids = [*groups(list(all_cases(SOME)))]  # in the order of the cases
    assert one == two == [(name, len(ids)) for name in ids]
    assert sorted(ids) == sorted(group.id for group in load_groups(tmp_path / "two"))


@pytest.mark.thorough
def test_few_cases_stay_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "Worker", None)
    assert build(tmp_path / "s", ops=SOME[:1]).proved > 1
    assert verify(tmp_path / "s") == []


@pytest.mark.parametrize(
    ("jobs", "cases", "here", "count"),
    [
        (2, 1898, True, 2), (1, 1898, True, 0), (2, 199, True, 0), (8, 450, True, 4),
        (1, 1898, False, 1), (2, 3, False, 1), (2, 0, False, 1), (4, 40, False, 2),
    ],
)  # fmt: skip
def test_the_number_of_workers(jobs: int, cases: int, here: bool, count: int) -> None:
    assert workers.fitting(jobs, cases, here=here) == count


@pytest.mark.thorough
def test_a_planted_ulp_is_found_by_workers(started: list[workers.Worker], tmp_path: Path) -> None:
    copy(INSTALLED, tmp_path / "s", SOME)
    group = next(load_groups(tmp_path / "s", ops=["alibi_slopes"]))
    smoke = {case.id.split("/")[-1] for case in group.cases if case.tier == "smoke"}  # smoke.json repeats their tolerances
    tolerance = dict(group.tolerance)
    name = min(n for n in tolerance if n.startswith("angle32/") and n.split("/")[1] not in smoke)
    tolerance[name] = np.nextafter(tolerance[name], np.float32(np.inf))
    reseal(tmp_path / "s", group.id, tolerance=tolerance)
    seen: list[tuple[str, int]] = []
    problems = verify(tmp_path / "s", jobs=2, progress=lambda *now: seen.append(now))
    assert len(started) == 2
    ids = [found.id for found in load_groups(tmp_path / "s")]
    assert seen == [(name, len(ids)) for name in ids]
    assert len(problems) == 1
    assert name in problems[0]


@pytest.mark.thorough
def test_answers_come_in_order_and_so_do_errors() -> None:
    assert called(operator.sub, (5, 1), (5, 2), (5, 3), count=2) == [4, 3, 2]
    assert called(time.sleep, (0.5,), (0,), count=2) == [None, None]
    seen: list[float] = []
    with (
        pytest.raises(ZeroDivisionError) as raised,
        workers.each(operator.truediv, {"a": (6, 2), "b": (1, 0), "c": ("x", 1)}, 2) as answers,
    ):
        seen.extend(answers)
    assert seen in ([], [3])
    assert "in a worker" in raised.value.__notes__[0]


@pytest.mark.thorough
def test_an_error_in_a_worker_names_its_case() -> None:
    step = scaling.Llama3(2, 44, 44 / 6.283185307179586, 44 / 6.283185307179586)
    near = Case("rope_frequencies/x/near", {"dim": 4, "base": 100.0, "scaling": step})
    with pytest.raises(BuildError, match=r"^rope_frequencies/x/near: .*a decision lies within the error"):
        called(product_of, ([near],))
    with pytest.raises(BuildError, match=r"^rope_frequencies/x/near: form and state must be of .*; got upside-down"):
        called(product_of, ([replace(near, form="upside-down")],))


@pytest.mark.thorough
def test_a_worker_that_dies_is_an_error_that_names_the_task() -> None:
    with pytest.raises(PosrefError, match=r"a worker ended at task 0 \(exit code 3\)"):
        called(os._exit, (3,), (3,))
    with pytest.raises(PosrefError, match=r"a worker ended at task 0 \(signal 9\)"):
        called(signal.raise_signal, (signal.SIGKILL,))


def test_an_error_of_a_pipe_or_file_is_no_loss_of_the_worker() -> None:
    with pytest.raises(FileNotFoundError):
        called(os.stat, ("/no/such/file",))


@pytest.mark.thorough
def test_what_cannot_be_sent_is_an_error() -> None:
    with pytest.raises(Exception, match="pickle"):
        called(lambda: None, ())
    with pytest.raises(TypeError, match="pickle"):
        called(sys._getframe, ())
    done, error = pickle.loads(workers._raised(Stopped(verdict="error", message="why")))  # it takes more than a message
    assert not done
    assert type(error) in (RuntimeError, Stopped)  # itself where a library has taught pickle more about exceptions
    assert "why" in str(error)


def test_a_worker_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PosrefError, match=r"a worker ended at its start \(exit code 1\)"):
        called(operator.neg, (1,))


def test_a_worker_of_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.proof_cache, "_files", list)
    with pytest.raises(PosrefError, match="a worker runs other code than this process"):
        called(operator.neg, (1,))


def test_workers_take_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("posref/__init__.py", "pickle.py", "numpy.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    assert called(operator.neg, (1,)) == [-1]


def test_what_a_worker_prints_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert called(print, ("said",)) == [None]
    assert capfd.readouterr() == ("", "said\n")


def test_a_block_that_ends_early_ends_its_workers(started: list[workers.Worker]) -> None:
    begun = time.monotonic()
    with workers.each(time.sleep, {"a": (0,), "b": (600,)}, 2) as results:
        next(results)
    assert time.monotonic() - begun < 60
    assert [worker.process.poll() for worker in started] == [-signal.SIGKILL] * 2


def processes_of(pid: int) -> set[int]:
    """Return the children of a process."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout
    return {int(word) for word in found.split()}


def lives(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_a_build_ends_its_workers(signum: int, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", POSREF, "vectors", "build", str(tmp_path / "s"), "--jobs", "2", "--no-reuse"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(crew := processes_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)  # they prove
    assert len(crew) == 2
    begun = time.monotonic()
    process.send_signal(signum)
    assert process.wait(timeout=30) == (-signum if signum == signal.SIGKILL else 2)
    assert time.monotonic() - begun < 10
    assert process.stderr.read() == ("" if signum == signal.SIGKILL else "posref: interrupted\n")
    while any(lives(pid) for pid in crew) and time.monotonic() - begun < 20:
        time.sleep(0.05)
    assert not any(lives(pid) for pid in crew)
    assert not (tmp_path / "s").exists()
