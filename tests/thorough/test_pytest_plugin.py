"""The pytest plugin: a test for every case, expected failures that must stay true, and nothing loaded where it is unused."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_fresh_calls import KEYS, TABLE

pytest_plugins = "pytester"

SOURCE = Path(__file__).parents[2] / "examples" / "broken_rope.py"
EXAMPLE = "broken_rope.py"
CASES = [
    "rope_table/plain/far", "rope_table/plain/far-24-bits", "rope_table/plain/head-128", "rope_table/word/usual-distant",
    "rope_table/usual/64-far", "rope_table/usual/128-decode", "rope_table/value/usual-beyond-24-bits",
]  # fmt: skip


@pytest.fixture(autouse=True)
def example(pytester: pytest.Pytester) -> None:
    """Put the example where pytest is run."""
    pytester.path.joinpath(EXAMPLE).write_bytes(SOURCE.read_bytes())


def outcomes(pytester: pytest.Pytester, *options: str) -> tuple[dict[str, int], str]:
    """Return the outcomes of a run, and what it printed."""
    done = pytester.runpytest_subprocess("--posref-target", EXAMPLE, *options)
    return done.parseoutcomes(), done.stdout.str() + done.stderr.str()


def expect(pytester: pytest.Pytester, text: str) -> str:
    return str(pytester.makefile(".txt", expected=text))


def test_one_test_for_every_case(pytester: pytest.Pytester) -> None:
    found, text = outcomes(pytester, "--posref-op", "rope_table")
    assert found == {"failed": 7, "passed": 45, "skipped": 3}  # 53 cases, gradients that NumPy lacks, a refusal, the whole
    for case in CASES:
        assert f"FAILED posref::{case}[float32]" in text
        assert f"repeat: posref check {EXAMPLE} --case {case} --dtype float32" in text
    assert "positions are held in float16 (positions-float16)" in text
    assert "Traceback" not in text


def test_names_and_flags_choose_cases(pytester: pytest.Pytester) -> None:
    found, _ = outcomes(pytester, "-k", "rope_table and head-128")
    assert {k: v for k, v in found.items() if k != "deselected"} == {"failed": 1}


def test_other_tests_run_beside_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_own():\n    assert True\n")
    found, _ = outcomes(pytester, "-k", "test_own or (rope_table and smoke)")
    assert found["passed"] == 2


def test_expected_failures_are_no_failures(pytester: pytest.Pytester) -> None:
    file = expect(pytester, "# known\n" + "".join(f"{case} positions in float16\n" for case in CASES))
    found, _ = outcomes(pytester, "--posref-op", "rope_table", "--posref-expected-failures", file)
    assert found == {"passed": 45, "skipped": 3, "xfailed": 7}


def test_a_pattern_counts_what_it_covers(pytester: pytest.Pytester) -> None:
    lines = (
        "plain/far* =2",
        "plain/head-128[float32]",
        "word/usual-distant",
        "usual/64-far",
        "usual/128-decode",
        "value/usual-beyond-24-bits",
    )
    file = expect(pytester, "".join(f"rope_table/{line}\n" for line in lines))
    found, _ = outcomes(pytester, "--posref-op", "rope_table", "--posref-expected-failures", file)
    assert found == {"passed": 45, "skipped": 3, "xfailed": 7}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rope_table/plain/fur reason", "'rope_table/plain/fur' is not a case of this check"),
        ("rope_table/plain/far* =3 reason", "matches 2, got =3"),
        ("rope_table/plain/far* reason", "matches 2, got no count"),
        ("rope_table/plain/far[float64]", "is not a case of this check"),
    ],
)
def test_an_entry_that_is_not_true_is_an_error(pytester: pytest.Pytester, line: str, words: str) -> None:
    found, text = outcomes(pytester, "--posref-op", "rope_table", "--posref-expected-failures", expect(pytester, line))
    assert not found
    assert words in text
    assert "line 1" in text


def test_an_entry_that_passes_is_a_failure(pytester: pytest.Pytester) -> None:
    file = expect(pytester, "rope_table/plain/* =9\n")
    found, text = outcomes(pytester, "--posref-op", "rope_table", "--posref-expected-failures", file)
    assert found["xfailed"] == 3
    assert found["failed"] == 10
    assert text.count("expects it to fail: remove it from that file") >= 6


@pytest.mark.parametrize("tier", [("--posref-tier", "smoke"), pytest.param((), marks=pytest.mark.thorough(dear=True))])
def test_unsupported_operations_do_not_pass(pytester: pytest.Pytester, tier: tuple[str, ...]) -> None:
    pytester.makepyfile(mine="def rope(x, positions, /, **options):\n    raise NotImplementedError\n")
    done = pytester.runpytest_subprocess("--posref-target", "mine.py", *tier)
    assert done.parseoutcomes()["failed"] == 1
    assert "no case that has values passed" in done.stdout.str()


@pytest.mark.parametrize("tier", ["smoke", "core"])
def test_a_table_of_the_answers_fails(pytester: pytest.Pytester, tier: str) -> None:
    """Fresh calls are asked here too, and the run names their seed."""
    source = TABLE.format(op="axial_frequencies", lacking="refuse", key=KEYS["by hash"])
    pytester.makepyfile(mine=source)
    done = pytester.runpytest_subprocess("--posref-target", "mine.py", "--posref-tier", tier, "--posref-seed", "7")
    assert done.parseoutcomes()["failed"] == 1
    assert "its scope is too narrow" in done.stdout.str()
    assert "(repeat them with --posref-seed 7)" in done.stdout.str()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--posref-target", "no_such_module"], "cannot import 'no_such_module'"),
        (["--posref-target", EXAMPLE, "--posref-seed", "x"], "--posref-seed must be an integer; got 'x'"),
        (["--posref-claim", "angle32"], "give --posref-target"),
        (["--posref-target", EXAMPLE, "--posref-claim", "perfect"], "must be one of angle64, frequency32, product32, angle32"),
        (["--posref-target", EXAMPLE, "--posref-op", "rppe"], "op must be the name of an operation; got"),
        (["--posref-target", EXAMPLE, "--posref-expected-failures", "none.txt"], "cannot be read"),
    ],
)
def test_what_cannot_run_is_said_in_one_line(pytester: pytest.Pytester, options: list[str], words: str) -> None:
    done = pytester.runpytest_subprocess(*options)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert words in done.stderr.str()
    assert "Traceback" not in done.stderr.str()


def test_nothing_is_loaded_where_it_is_not_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import sys\n\ndef test_loaded():\n    heavy = {'numpy', 'rich', 'jsonschema', 'safetensors', 'click', 'torch'}\n"
        "    assert not heavy & set(sys.modules)\n    assert 'posref.conformance.pytest_plugin' in sys.modules\n"
    )
    code = "import pytest, sys; sys.exit(pytest.main(['-p', 'no:cacheprovider', '-q']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_an_operation_that_is_asked_by_name_and_missing_fails(pytester: pytest.Pytester) -> None:
    found, text = outcomes(pytester, "--posref-op", "alibi")
    assert found == {"failed": 1}
    assert "missing: the implementation has no alibi, which --posref-op asks for" in text


@pytest.mark.thorough(dear=True)
def test_settings_of_the_project_are_enough(pytester: pytest.Pytester) -> None:
    plain = pytester.runpytest_subprocess("--posref")
    assert "--posref: [tool.posref] in pyproject.toml must have a target or a command." in plain.stderr.str()
    pytester.makepyprojecttoml(f'[tool.posref]\ntarget = "{EXAMPLE}"\nop = "alibi_slopes"\n')
    done = pytester.runpytest_subprocess("--posref", "--posref-op", "rope_table")
    assert "7 failed" in done.stdout.str()
    assert pytester.runpytest_subprocess().parseoutcomes() == {}
