"""Fuzzing on a Dask cluster finds what one process finds."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import LocalCluster
from test_fuzz import TARGET, bytes_of

import posref
from posref.conformance.errors import TargetError
from posref.conformance.fuzzing import hunt
from posref.conformance.fuzzing.fuzz import Findings, fuzz


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.mark.thorough(dear=True)
def test_a_cluster_finds_what_one_process_finds(scheduler: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TARGET)
    here, there = (fuzz(str(file), examples=30, seed=5, scheduler=s, output=tmp_path / str(s)[:3]) for s in (None, scheduler))
    assert len(there.finds) == 1
    assert told(here) == told(there)
    assert bytes_of(tmp_path / "Non") == bytes_of(tmp_path / "tcp")


def test_a_cluster_without_workers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posref.conformance.fuzzing.dask_cluster.PATIENCE", 0.5)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        pytest.raises(TargetError, match="has no workers; start one with: dask worker"),
    ):
        fuzz(examples=1, scheduler=cluster.scheduler_address)


def test_a_cluster_whose_workers_leave_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave with the first calls that are judged."""
    (tmp_path / "mine.py").write_text("from posref import alibi, rope, sinusoidal", encoding="utf-8")
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:

        def leave(_: str) -> None:
            monkeypatch.setattr("posref.conformance.fuzzing.dask_cluster.PATIENCE", 0.5)
            cluster.scale(0)

        with pytest.raises(TargetError, match=r"all workers of the scheduler are gone, with \d+ tasks left"):
            fuzz(str(tmp_path / "mine.py"), examples=300, seed=5, scheduler=cluster.scheduler_address, progress=leave)


def test_workers_without_posref_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "posref").mkdir()
    (tmp_path / "posref" / "__init__.py").write_text("raise ImportError('an old one')")
    monkeypatch.syspath_prepend(tmp_path)  # which a worker's process inherits
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        pytest.raises(TargetError, match=r"cannot import posref \(ImportError: an old one\); install posref\[fuzz\]"),
    ):
        fuzz("posref", examples=1, scheduler=cluster.scheduler_address)


def told(findings: Findings) -> Any:
    finds = [(f.op, f.dtype, f.draw, f.result.message, f.diagnosis, hunt.written(f.op, f.call)) for f in findings.finds]
    return finds, findings.tallies, findings.plan.pairs


def test_workers_load_the_target_by_name(scheduler: str) -> None:
    with pytest.raises(TargetError, match="must be a name that its workers can import; got SimpleNamespace"):
        fuzz(SimpleNamespace(alibi=posref.alibi), examples=1, scheduler=scheduler)
    with pytest.raises(TargetError, match="cannot import 'nowhere'"):
        fuzz("nowhere", examples=1, scheduler=scheduler)
