"""What hosted workflows run: actions by the hash of a commit, few rights, and packages by their hashes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONSTRAINTS = sorted((ROOT / ".github" / "constraints").glob("*.txt"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=[p.stem for p in WORKFLOWS])
def test_an_action_is_named_by_its_commit_and_rights_are_few(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert not [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)]
    assert "\npermissions:\n  contents: read\njobs:\n" in text


def test_there_are_workflows_and_constraints() -> None:
    assert {p.stem for p in WORKFLOWS} >= {"ci", "nightly", "release"}
    assert [p.stem for p in CONSTRAINTS] == ["py3.11", "py3.12", "py3.13", "py3.14"]


@pytest.mark.parametrize("path", CONSTRAINTS, ids=[p.stem for p in CONSTRAINTS])
def test_every_package_of_ci_has_a_version_and_hashes(path: Path) -> None:
    packages = re.split(r"\n(?=[a-zA-Z0-9])", path.read_text(encoding="utf-8").rstrip("\n"))
    assert len(packages) > 80
    assert not [one[:60] for one in packages if not re.match(r"[\w.\[\],-]+==\S+[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", one)]


def test_the_adapters_transformers_is_the_one_of_the_tests() -> None:
    pinned = re.search(r"transformers==([\d.]+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pinned is not None
    assert all(f"\ntransformers=={pinned[1]} " in path.read_text(encoding="utf-8") for path in CONSTRAINTS)
