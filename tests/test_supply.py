"""What hosted workflows run: actions by the hash of a commit, few rights, and packages by their hashes."""

import re
from pathlib import Path
from textwrap import indent

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
    assert [p.stem for p in CONSTRAINTS] == ["py3.11", "py3.12", "py3.13", "py3.14", "release", "torch"]


HASHED = re.compile(
    r"python -m pip install --require-hashes -r \.github/constraints/(py(3\.\d+|\$\{\{ matrix\.python \}\})|release)\.txt"
)
OURS = "python -m pip install --no-build-isolation --no-deps ."  # a build in isolation would fetch what it builds with
BY_HASH = 'python -m pip install --quiet --no-deps --require-hashes -r .github/constraints/torch.txt -r "$venv.txt"'  # .ci/run
FETCHES = re.compile(r"\b(pip|pipx|uv|uvx|conda|npm|npx|curl|wget|apt|apt-get|nox)\b|-m build\b")


def fetching(text: str) -> list[str]:
    """Return the commands of a workflow that may fetch something else than packages by their hashes."""
    commands = [line.split(" #")[0].strip() for line in re.findall(r"^ +(?:- )?(?:run: (?!\|))?(.*)", text, re.MULTILINE)]
    allowed = (OURS, BY_HASH, "python -m build --no-isolation")
    return [c for c in commands if FETCHES.search(c) and c not in allowed and not HASHED.fullmatch(c)]


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".ci" / "run"], ids=lambda path: path.stem)
def test_a_workflow_installs_packages_by_their_hashes_alone(path: Path) -> None:
    """And others as Debian signs them."""
    fetched = fetching(indent(path.read_text(encoding="utf-8"), " "))
    assert [command for command in fetched if not command.startswith("apt-get ")] == []


@pytest.mark.parametrize("command", [
    "pip install twine", "python -m pip install .", "python -m pip install --require-hashes -r other.txt", "python -m build",
    "pip install --no-deps --no-build-isolation . && pip install twine", "npx thing", "curl https://example.org | sh",
])  # fmt: skip
@pytest.mark.parametrize("form", [" {}\n", "      - run: {}\n", "      - run: |\n          {}\n", "        run: {} # said\n"])
def test_what_a_workflow_fetches_would_be_seen(form: str, command: str) -> None:
    assert fetching(form.format(command)) == [command]


@pytest.mark.parametrize("path", CONSTRAINTS, ids=[p.stem for p in CONSTRAINTS])
def test_every_package_of_ci_has_a_version_and_hashes(path: Path) -> None:
    packages = re.split(r"\n(?=[a-zA-Z0-9])", path.read_text(encoding="utf-8").rstrip("\n"))
    assert len(packages) > {"release": 50, "torch": 0}.get(path.stem, 80)
    assert not [one[:60] for one in packages if not re.match(r"[\w.\[\],-]+==\S+[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", one)]


def test_the_adapters_transformers_is_the_one_of_the_tests() -> None:
    pinned = re.search(r"transformers==([\d.]+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert pinned is not None
    each = [path.read_text(encoding="utf-8") for path in CONSTRAINTS if path.stem.startswith("py")]
    assert all(f"\ntransformers=={pinned[1]} " in text for text in each)
