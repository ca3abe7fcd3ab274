"""What a project sets once: [tool.posref] in pyproject.toml, annotations of GitHub, and the action."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from commands import run
from reporting import document, operation

from posref.cli import cli
from posref.conformance.checks.project_settings import KEYS, settings
from posref.conformance.commands.project_command import SECTIONS
from posref.conformance.reports.summaries import workflow_commands

ROOT = Path(__file__).parents[1]
EXAMPLE = (ROOT / "examples" / "broken_rope.py").read_text(encoding="utf-8")
WRONG = (
    "::error title=posref rope_table float32::7 of 50 answered cases fail. Matches the reference if positions are held in "
    "float16 (positions-float16); first failure at position 2049.\n"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a target and its settings, as the current one."""
    (tmp_path / "mine.py").write_text(EXAMPLE)
    (tmp_path / "pyproject.toml").write_text('[tool.posref]\ntarget = "mine.py"\nop = "rope_table"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_check_begins_with_the_settings_of_the_project(project: Path) -> None:
    done = run("check", "--tier", "smoke")
    assert done.exit_code == 0
    assert "posref: from pyproject.toml: target=mine.py, op=rope_table\n" in done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if " float32 " in line] == ["rope_table"]


@pytest.mark.thorough
def test_the_command_line_replaces_a_setting(project: Path) -> None:
    (project / "other.py").write_text(EXAMPLE)
    done = run("check", "other.py", "--tier", "smoke", "--op", "rope")
    assert done.stdout.startswith("other.py ")
    assert "from pyproject.toml" not in done.stderr
    (project / "pyproject.toml").write_text("[tool.posref]\ncommand = 'nothing'\n")
    assert run("check", "other.py", "--tier", "smoke", "--op", "rope").stdout.startswith("other.py ")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[tool.posref]\ntargets = 'a.py'", "[tool.posref] has no key 'targets'; its keys are target, command, op"),
        ("[tool.posref", "is no TOML"),
        ("[tool.posref]\ntier = 'all'", "'all' is not one of"),
        ("[tool.posref]\ntimeout = -1", "-1"),
    ],
)
def test_a_wrong_setting_is_refused(project: Path, text: str, error: str) -> None:
    (project / "pyproject.toml").write_text(text)
    done = run("check", "mine.py")
    assert done.exit_code == 2
    assert error in done.stderr


def test_settings_are_flags_and_flags_have_a_group(tmp_path: Path) -> None:
    flags = {param.opts[0].lstrip("-") for param in cli.commands["check"].params}
    assert set(KEYS) - flags == {"expected-failures"}
    assert flags - {"target"} <= {name for names in SECTIONS.values() for name in names}
    assert settings(tmp_path) == {}
    help_text = run("check", "--help").output
    assert [help_text.count(f"\n{title}:\n") for title in SECTIONS] == [1] * len(SECTIONS)
    assert all(f"--{flag} " in help_text for flag in flags - {"target"})


@pytest.mark.thorough
def test_failures_are_annotations(project: Path) -> None:
    done = run("check", "--github")
    assert done.exit_code == 1
    assert done.stdout.endswith(f"\n{WRONG}")
    assert "::error" not in run("check", "--github", "--tier", "smoke").stdout


def test_annotations_are_one_line_whatever_a_report_says() -> None:
    wrong = operation("a,b:c", reason="50%\n::warning::x", conformant=False)
    lines = workflow_commands(document([wrong], [], unmet=["layout=half"], conformant=False)).splitlines()
    assert lines[0] == "::error title=posref a%2Cb%3Ac float32::50%25 ::warning::x"
    assert lines[1].endswith("::required: layout=half")
    assert len(lines) == 2


@pytest.mark.thorough
def test_the_action_checks_annotates_and_summarizes(project: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    install, check = action["runs"]["steps"]
    names = {"install": "INSTALL", "target": "TARGET", "arguments": "ARGUMENTS"}
    given = {**install["env"], **check["env"]}
    assert given == {name: f"${{{{ inputs.{key} }}}}" for key, name in names.items()}
    assert set(action["inputs"]) == set(names)
    tools = project / "bin"
    tools.mkdir()
    for name, call in {"posref": f'{sys.executable} -P -m posref "$@"', "python": 'printf "[%s]" "$@"'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{call}\n")
        (tools / name).chmod(0o755)
    summary = project / "summary.md"
    known = {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary)}
    known |= {"GITHUB_ACTION_PATH": "/posref", "INSTALL": ". './a b[c]'", "TARGET": "", "ARGUMENTS": "--dtype 'float32'"}
    done = [
        subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], capture_output=True, text=True, check=False, env=known)
        for step in (install, check)
    ]
    assert done[0].stdout == "[-m][pip][install][/posref[html]][.][./a b[c]]"
    assert done[1].returncode == 1, done[1].stderr
    assert done[1].stdout.endswith(WRONG)
    assert "positions-float16" in summary.read_text()
