"""The built wheel: every sub-package and every vector, and nothing beside them."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, source / "posref", ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(source / "posref")]
    subprocess.run(command, check=True)
    return zipfile.ZipFile(next(out.glob("posref-*.whl")))


def test_wheel_has_one_top_level_package(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"posref"}


def test_wheel_has_every_module_and_vector(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    where = {"posref": "posref", "backends": "posref/backends", "conformance": "posref/conformance"}
    for folder, target in where.items():
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert f"{target}/{path.relative_to(ROOT / folder).as_posix()}" in names, path


@pytest.mark.thorough(dear=True)
def test_wheel_passes_strict_type_checks(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """The installed layout: checkers do not see a checkout's mapping of folders to packages."""
    wheel.extractall(tmp_path)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "-p", "posref"]
    command += ["--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wheel_is_small(wheel: zipfile.ZipFile) -> None:
    assert sum(info.compress_size for info in wheel.infolist()) < 18e6
