"""The benchmarks run, at tiny sizes. No figure is asserted: figures belong to a quiet machine."""

import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sampling import QUARTER, share

ROOT = Path(__file__).resolve().parents[1]
QUICK = ("tables", "attention")


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The command line of the benchmarks, which are not installed."""
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.__main__ as found

    return found


def ran(benchmarks: ModuleType, file: Path, *themes: str) -> list[dict[str, object]]:
    """Run themes at tiny sizes, and return their lines."""
    assert benchmarks.main(["--small", *themes, "-o", str(file)]) == 0
    lines: list[dict[str, object]] = json.loads(file.read_text(encoding="utf-8"))["lines"]
    return lines


def check_figures(lines: list[dict[str, object]]) -> None:
    """Every line has figures that are above 0, or names the package that is not installed, or cannot do without a GPU."""
    for line in lines:
        if "missing" in line:
            assert str(line["missing"]).endswith(("is not installed", "needs a GPU")), line
            continue
        figures = [line[name][1] for name in ("ratio", "cpu_ratio") if name in line]  # type: ignore[index]
        figures += [line[name] for name in ("ours", "cpu", "a_second") if name in line]
        figures += [line["memory"]["ratio"] or 0.0] if line.get("memory") else []  # type: ignore[index]
        assert figures or "memory" in line, line
        assert all(isinstance(f, float) and math.isfinite(f) and f >= 0 for f in figures), line


@pytest.mark.thorough(dear=True)
def test_some_themes_run_and_are_compared(benchmarks: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ran(benchmarks, tmp_path / "first.json", *QUICK)
    assert {line["theme"] for line in lines} == set(QUICK)
    check_figures(lines)
    capsys.readouterr()
    assert benchmarks.main(["--small", "attention", "--line", "float32", "--against", str(tmp_path / "first.json")]) == 0
    shown = capsys.readouterr().out
    assert shown.count("before ") == 3  # the fourth has memory alone, or a ratio beside it
    assert "bfloat16" not in shown.replace("attention 4 x 1024 x 64 float32", "")


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("theme", share(["rotation", "biases", "gradients", "starting", "checking", "golden", "gpu"], QUARTER))
def test_every_other_theme_runs(benchmarks: ModuleType, tmp_path: Path, theme: str) -> None:
    lines = ran(benchmarks, tmp_path / "table.json", theme)
    assert lines
    check_figures(lines)


def test_an_unknown_theme_is_refused(benchmarks: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benchmarks.main(["rotations"])
    assert "no theme rotations: choose from rotation, " in capsys.readouterr().err


def test_the_page_has_every_line_of_the_last_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    import speed

    page = speed.page()
    for line in json.loads((speed.FOLDER / speed.TABLES[0]).read_text(encoding="utf-8"))["lines"]:
        assert f"| {line['name']} | {line['peer']} |" in page


def test_the_last_table_has_the_lines_that_there_are(benchmarks: ModuleType) -> None:
    from importlib import import_module

    found = {
        (theme, line.name, line.peer) for theme in benchmarks.THEMES for line in import_module(f"benchmarks.{theme}").LINES
    }
    stored = json.loads((ROOT / "benchmarks" / "last.json").read_text(encoding="utf-8"))["lines"]
    assert {(line["theme"], line["name"], line["peer"]) for line in stored} == found
    assert sys.modules["benchmarks"].__file__ == str(ROOT / "benchmarks" / "__init__.py")
