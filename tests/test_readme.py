"""What the documentation says is so: commands print what it shows, examples run, generated pages are current."""

import doctest
import hashlib
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sampling import few

from posref.conformance.calls import makes_constants
from posref.spec import REGISTRY

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
LESSONS = sorted((ROOT / "docs" / "site" / "course").glob("[1-9]*.md"))  # their links are those of the site
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PAGES}
RUN = [*LESSONS, ROOT / "conformance" / "comparison" / "variants.md"]
CODE = TEXTS | {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in RUN}
GENERATE = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "generate.py")))
READER = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "read_vectors.py")))
LICENCES = {  # the texts as published by their authors
    "LICENSE": "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
    "conformance/vectors/LICENSE": "a2010f343487d3f7618affe54f789f5487602331c0a8d03f49e9a7c547cf0499",
}


def skeleton(text: str) -> str:
    """Return a text without what differs between machines: versions, other numbers with a point, and runs of spaces."""
    return re.sub(r" +", " ", re.sub(r"\d+(\.\d[\w.+]*|e[+-]\d+)(-\d+)?", "#", text))


BLOCKS = [(page, block[2], block[3]) for page, text in TEXTS.items() for block in GENERATE.OUTPUT.finditer(text)]


def test_the_readme_is_short_and_shows_output() -> None:
    assert "check examples/broken_rope.py" in {command for _, command, _ in BLOCKS}
    assert sum(text.count("<!-- output of:") for text in TEXTS.values()) == len(BLOCKS)
    assert len(TEXTS["README.md"].splitlines()) <= 150


@pytest.mark.thorough
@few(1, ("page", "command", "shown"), BLOCKS, ids=[f"{page}: {command}" for page, command, _ in BLOCKS])
def test_a_command_prints_what_the_pages_show(page: str, command: str, shown: str) -> None:
    assert skeleton(GENERATE.run(command, TEXTS[page])) == skeleton(shown), "if the change is meant: python docs/generate.py"


SLOW = ("docs/guides/port.md", "docs/guides/compile.md", "docs/guides/loaded.md")  # they load transformers and JAX, and compile


@few(
    1,
    "page",
    [
        pytest.param(page, marks=pytest.mark.thorough if page in SLOW else ())
        for page, text in CODE.items()
        if "```pycon" in text
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch.compile warns of what it skips
def test_the_examples_of_a_page_run(page: str) -> None:
    """All in one go, since later ones use what earlier ones made."""
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    source = "\n".join(re.findall(r"```pycon\n(.*?)```", CODE[page], re.DOTALL))
    test = parser.get_doctest(source, {}, page, page, 0)
    assert test.examples
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_the_guides_have_examples() -> None:
    assert sum(text.count(">>> ") for text in TEXTS.values()) > 100


def test_the_first_example_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXTS["README.md"], re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert len(printed) == 2
    assert tuple(names["out"].shape) == (1, 32, 10, 128)


@pytest.mark.parametrize("page", [*TEXTS, "CONTRIBUTING.md", "conformance/vectors/README.md"])
def test_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_the_page_of_deviations_is_current() -> None:
    assert GENERATE.PAGE.read_text(encoding="utf-8") == GENERATE.deviations(), "python docs/generate.py"


@pytest.mark.parametrize(("name", "sha256"), LICENCES.items())
def test_licences_are_the_published_texts(name: str, sha256: str) -> None:
    assert hashlib.sha256((ROOT / name).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("page", ["conformance/README.md", "conformance/vectors/README.md"])
def test_pages_name_what_is_float32_in_half_precision(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    wide = {name for r in REGISTRY.values() for name, axes in r.arrays.items() if axes.kind in ("position", "wide")}
    constants = {op for op, r in REGISTRY.items() if makes_constants(op) and r.returns == "real"}
    for name in {*wide, *constants}:
        assert f"`{name}`" in prose or name.endswith(("position", "positions")), name


def test_vectors_are_readable_without_posref() -> None:
    command = [sys.executable, "-I", str(ROOT / "examples" / "read_vectors.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 values outside" in done.stdout


@few(2, "defect", ["position", "base", "layout", "nan"])
def test_the_reader_without_posref_finds_defects(defect: str) -> None:
    def broken(x: Any, positions: Any, /, **options: Any) -> list[float]:
        if defect == "position":
            positions = positions[0], [p + 1 for p in positions[1]]
        if defect == "base":
            options["base"] *= 1.0001
        if defect == "layout":
            options["layout"] = "interleaved"
        return [float("nan") if defect == "nan" else y for y in READER.rope(x, positions, **options)]

    _, judged = READER.judge(READER.SUITE, broken)
    for dtype in READER.CLASS:
        assert any(not error <= allowed for _, d, error, allowed in judged if d == dtype), dtype
