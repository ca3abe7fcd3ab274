"""docs/scoreboard.md says what docs/scoreboard has, every failure there is confirmed, and a summary is that of its report."""

import copy
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from posref.conformance import check
from posref.conformance.targets import python

ROOT = Path(__file__).resolve().parents[1]


def from_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


scoreboard = from_file(ROOT / "docs" / "scoreboard.py")
findings = from_file(ROOT / "docs" / "findings.py")
SUMMARIES, FINDINGS = scoreboard.load()


def test_the_page_is_a_function_of_the_reports() -> None:
    """If this fails, run `python docs/scoreboard.py`."""
    assert scoreboard.PAGE.read_text(encoding="utf-8") == scoreboard.page(SUMMARIES, FINDINGS)


def test_every_defect_has_a_page() -> None:
    """If this fails, run `python docs/findings.py`."""
    found = {path.name: path.read_text(encoding="utf-8") for path in findings.FOLDER.glob("*.md")}
    assert found == findings.pages()
    assert len(found) == len(findings.defects())


@pytest.mark.parametrize("finding", findings.defects(), ids=lambda f: f"{f['adapter']}: {f['title']}")
def test_a_defect_says_what_should_happen_and_how_to_mend_it(finding: dict[str, Any]) -> None:
    assert finding["should"]
    assert finding["after"] != finding["prints"]
    for change in finding["fix"]:
        assert change["old"] != change["new"]
        assert change["file"].split("/")[0] == finding["source"].split("/")[0]


def test_a_fix_changes_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here of a package of three files, of which one changes."""
    package = tmp_path / "site" / "made_up"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "other.py").write_text("C = 3\n")
    (package / "inner" / "code.py").write_text("A = 1\nB = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    folder = tmp_path / "copy"
    folder.mkdir()
    fix = [{"file": "made_up/inner/code.py", "old": [f"{n} = {v}"], "new": [f"{n} = {v + 4}"]} for n, v in (("A", 1), ("B", 2))]
    findings._overlay(folder, fix)
    code = "from made_up.inner import code, other; print(code.A, code.B, other.C)"
    assert findings._run([sys.executable, "-c", code], str(folder)) == "5 6 3\n"
    assert (package / "inner" / "code.py").read_text() == "A = 1\nB = 2\n"
    with pytest.raises(SystemExit, match="must have these lines once, and has them 0 times"):
        findings._overlay(folder, fix[:1])


@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda s: s["adapter"])
def test_every_failure_is_confirmed(summary: dict[str, Any]) -> None:
    assert scoreboard.unconfirmed(summary, FINDINGS) == []


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda f: f"{f['adapter']}: {f['title']}")
def test_a_finding_is_about_a_failure_and_says_where(finding: dict[str, Any]) -> None:
    assert [s for s in SUMMARIES if scoreboard.matching(finding, s)], "stale: no failure of that version matches"
    assert finding["kind"] in ("convention", "defect")
    assert re.search(r"\.(py|cpp):\d+ \(`", finding["source"])
    assert finding["prints"]
    assert all(len(line) <= 128 for line in finding["snippet"])


def test_a_failure_that_no_finding_names_is_unconfirmed() -> None:
    """Also when only the version is another one."""
    summaries = copy.deepcopy(SUMMARIES)
    failing = next(s for s in summaries if s["failures"])
    failing["versions"][failing["package"]] += ".post1"
    text = scoreboard.page(summaries, FINDINGS)
    assert f"**{len(failing['failures'])} unconfirmed**" in text
    assert f"- `{failing['failures'][0]['id']}` in" in text
    assert "nconfirmed" not in scoreboard.page(SUMMARIES, FINDINGS)


def test_a_row_of_another_suite_is_marked() -> None:
    """By the version, or by the hash where a report has the release; not where the groups of its operations are the same."""
    today = {"version": "0.1.0+7.0123456789ab", "sha256": "ab" * 32}
    suites = (
        today, today | {"sha256": "cd" * 32}, today | {"version": "0.1.0"},
        SUMMARIES[0]["suite"] | {"version": "0.1.0+7.ba9876543210", "sha256": "cd" * 32},  # of which its groups are the same
        {"version": "0.1.0", "sha256": "cd" * 32}, {"version": "0.1.0+7.ba9876543210", "sha256": "cd" * 32},
    )  # fmt: skip
    made = [copy.deepcopy(SUMMARIES[0]) | {"suite": suite} for suite in suites]
    text = scoreboard.page(made, FINDINGS, today)
    assert "4 of 6 rows are of today's suite, 0.1.0+7.0123456789ab." in text
    assert [line.split(" | ")[2] for line in text.splitlines() if line.startswith("| [")] == ["today's"] * 4 + [
        "**older suite**"
    ] * 2
    assert "All rows are of today's suite" in scoreboard.page(made[:4], FINDINGS, today)


def test_there_is_a_report_of_every_adapter_and_a_session_that_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nox = ModuleType("nox")  # the session is not run here
    nox.options, nox.Session = ModuleType("options"), object  # type: ignore[attr-defined]
    nox.session = lambda function=None, **o: function or (lambda function: function)  # type: ignore[attr-defined]
    nox.parametrize = lambda *a, **o: lambda function: function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nox", nox)
    released = from_file(ROOT / "noxfile.py").RELEASED
    assert sorted(released) == sorted(python.ADAPTERS) == sorted(s["adapter"] for s in SUMMARIES)
    for summary in SUMMARIES:
        pinned = [
            p for packages in released[summary["adapter"]] for p in ([packages] if isinstance(packages, str) else packages)
        ]
        name = f"{python.package_of(summary['adapter'])}=={scoreboard.version(summary)}"
        assert name in pinned, "the report is of another version than the session installs"


@pytest.mark.thorough
def test_a_summary_counts_what_the_report_does(tmp_path: Path) -> None:
    report = json.loads(json.dumps(check("onnx").to_json()))
    report["cases"][0] |= {"verdict": "fail", "kind": "value", "message": "made up"}
    summary = scoreboard.summary(report)
    assert summary["operations"][0]["counts"] == report["operations"][0]["counts"]
    assert [f["message"] for f in summary["failures"]] == ["made up"]
    assert summary["operations"][0]["passed"] in ("angle64", "angle32")
    with pytest.raises(ValueError, match="complete"):
        scoreboard.summary(report | {"complete": False})
