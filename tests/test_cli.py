"""The command line: exit codes, texts, and what a pipe sees."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from commands import run
from rich.console import Console
from sampling import few

import posref
from posref.conformance.commands.console import _Bar
from posref.conformance.suite.schemas import validator
from posref.spec import REGISTRY

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "broken_rope.py")


def test_list_names_every_operation_and_families_filter() -> None:
    result = run("list")
    assert result.exit_code == 0
    assert all(name in result.output for name in REGISTRY)
    assert "rope_table" not in run("list", "--family", "bias").output
    assert "alibi/" in run("list", "--cases", "alibi").output


@pytest.mark.parametrize("name", posref.presets)
def test_show_prints_a_preset_and_a_call_that_runs(name: str) -> None:
    result = run("show", name)
    assert result.exit_code == 0
    preset = posref.presets[name]
    given = preset.rope or preset.mrope or {}
    text = result.output.replace("\n", " ")
    assert all(f"Option {option}: {value}" in text for option, value in given.items())
    assert f"Read in: {preset.source}" in text
    positions = np.arange(3 * len(given.get("sections", (0,)))).reshape(-1, 3)
    names = {"posref": posref, "x": np.ones((3, 512)), "positions": positions if preset.mrope else positions[0], "tokens": 3}
    assert eval(result.output.splitlines()[0], names).shape == (3, 512)


def test_presets_are_listed_with_the_function_that_takes_them() -> None:
    rows = [line.split() for line in run("list", "--presets").output.splitlines()]
    functions = {row[0]: row[1] for row in rows if row and row[0] in posref.presets}
    assert functions == {name: "rope" if preset.mrope is None else "mrope" for name, preset in posref.presets.items()}


def test_doctor_says_what_is_here() -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert "numpy" in result.output
    assert "pip install 'posref[cupy]'" in result.output or "cupy             ready" in result.output
    assert "int32 turns" in result.output  # JAX without x64


@pytest.mark.thorough(dear=True)
def test_the_first_example_fails_and_is_explained(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    result = run("check", EXAMPLE, "--json", report)
    assert result.exit_code == 1
    assert "positions are held in float16 (positions-float16)" in result.output
    assert "first failure at position 2049" in result.output
    assert "NOT CONFORMANT" in result.output
    document = json.loads(report.read_text())
    assert list(validator("report").iter_errors(document)) == []
    assert document["complete"]
    assert not document["conformant"]


def test_a_conformant_target_is_exit_code_0() -> None:
    result = run("check", "posref", "--op", "alibi", "--tier", "smoke")
    assert result.exit_code == 0, result.output
    assert "PASSED: " in result.output
    assert "CONFORMANT" not in result.output


def test_one_case_can_be_repeated() -> None:
    result = run("check", EXAMPLE, "--case", "rope_table/plain/far", "--dtype", "float32")
    assert result.exit_code == 1
    assert "rope_table/plain/far" in result.output


@few(
    1,
    ("arguments", "text"),
    [
        (("check", "no_such_module"), "cannot import 'no_such_module'"),
        (("check", "nowhere.py"), "nowhere.py: no such file"),
        (("check",), "one of TARGET (the name of an adapter, module, module:object or file.py), --command and --outputs; got"),
        (("check", "json"), "must have at least one function named as an operation; got none"),
        (("check", "torch.nn"), "named as an operation; it has Upsample (is it resample?)"),
        (("check", "posref:rope"), "posref:rope: is itself a function"),
        (("check", "nowhere.py:rope"), "A file is given alone: nowhere.py."),
        (("check", "posref", "--backend", "nothing"), "check: backend must be one of numpy, torch"),
        (("check", "posref", "--backend", "pytorch"), "got 'pytorch'. Did you mean 'torch'?"),
        (("check", "posref", "--json", "/nowhere/a.json"), "posref: /nowhere/a.json: cannot be opened: No such file"),
        (("show", "NOSUCH"), "posref: NAME must be the name of an operation; got 'NOSUCH'. posref list prints them all."),
        (("show", "ropee"), "Did you mean rope or"),
        (("show", "yarnn"), "There is also YaRN"),
        (("show", "llama-31-8b"), "llama-3.1-8b"),
        (("show", "no.json"), "no.json"),
        (("check", "posref", "--dtype", "float8"), "dtypes must be among float64, float32, bfloat16, float16; got 'float8'"),
        (("check", "posref", "--dtype", "bfloat16"), "backend 'numpy' has no bfloat16 here"),
        (("check", "posref", "--claim", "low"), "a claim for float64 must be one of float64, angle64, frequency32,"),
        (("check", "posref", "--op", "alibis"), "op must be the name of an operation; got 'alibis'. Did you mean alibi"),
        (("check", "posref", "--case", "rope/half/nope"), "no case 'rope/half/nope'"),
        (("vectors", "copy", "/dev/null/x"), "Not a directory"),
        (("vectors", "verify", "/nonexistent"), "holds no suite (SUITE.json is missing)"),
    ],
)
def test_what_cannot_run_is_exit_code_2_and_one_line(arguments: tuple[str, ...], text: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert text in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("form", ["--json", "--html", "--markdown", "--junit", "--badge"])
def test_a_report_does_not_take_the_place_of_what_is_checked(form: str, tmp_path: Path) -> None:
    target, scope = tmp_path / "mine.py", tmp_path / "scope.json"
    target.write_text("from posref import alibi_slopes\n")
    scope.write_text('{"alibi_slopes": {}}')
    for file in (target, scope):
        before = file.read_bytes()
        result = run("check", target, "--require", scope, form, file)
        assert result.exit_code == 2
        assert f"{file}: would replace a file that is read." in result.output
        assert file.read_bytes() == before


def test_verify_names_what_is_wrong(tmp_path: Path) -> None:
    assert run("vectors", "copy", tmp_path / "s", "--op", "alibi_slopes").exit_code == 0
    assert run("vectors", "verify", tmp_path / "s").exit_code == 0
    (tmp_path / "s" / "smoke.json").write_text("{}\n")
    result = run("vectors", "verify", tmp_path / "s")
    assert result.exit_code == 1
    assert "smoke.json: differs from its hash" in result.output


def test_a_narrow_terminal_lists_presets_without_their_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    for width, columns in ((110, 6), (109, 3)):
        monkeypatch.setattr("posref.cli._console", lambda width=width: Console(width=width))
        lines = run("list", "--presets").output.splitlines()
        assert len(lines[0].split()) == columns
        assert any(line.startswith("Verified: ") for line in lines) == (columns == 6)


def test_a_bar_forgets_a_total_that_was_too_small() -> None:
    with ExitStack() as until_the_end:
        bar = _Bar("checking", until_the_end)
        bar.expect(2)
        totals = [(bar(f"call {k}"), bar.bar and bar.bar.tasks[0].total)[1] for k in range(4)]
    assert totals == [2, 2, None, None]


@pytest.mark.thorough(dear=True)
def test_a_pipe_sees_no_colours_and_no_progress() -> None:
    command = [sys.executable, "-P", "-m", "posref", "check", EXAMPLE]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert result.returncode == 1
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


def in_a_shell(command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    call = ["bash", "-c", f"set -o pipefail; {sys.executable} -P -m posref {command}"]
    return subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, **variables})


def test_a_reader_that_has_gone_hears_no_more() -> None:
    done = in_a_shell("show rope | true")
    assert done.returncode == 2
    assert done.stderr == ""


@pytest.mark.thorough
def test_a_shell_completes_commands() -> None:
    assert "complete" in in_a_shell("", _POSREF_COMPLETE="bash_source").stdout
    done = in_a_shell("", _POSREF_COMPLETE="bash_complete", COMP_WORDS="posref che", COMP_CWORD="1")
    assert done.stdout == "plain,check\n"
    for wrong in ("nothing", "bash_", "_source", "bash_source_", "tcsh_source", "bash", "zsh_complete"):
        done = in_a_shell("", _POSREF_COMPLETE=wrong)
        assert done.returncode == 2
        assert "must be bash_source, zsh_source or fish_source" in done.stderr


TORCH = """import torch


def apply_rope(x, cos, sin, /, *, layout):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)
"""


@pytest.mark.thorough
def test_a_file_that_does_not_name_its_library_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TORCH)
    lines = run("check", tmp_path / "mine.py", "--op", "apply_rope").output.splitlines()
    assert lines[1].startswith("apply_rope float32: ")
    assert 'write backend = "torch" in it, or pass --backend torch (and ' in lines[2]
    assert sum("ndarray" in line or "torch" in line for line in lines) == 1


@pytest.mark.thorough
def test_a_crash_comes_first_and_what_was_not_asked_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os\n\nimport posref\n\n\ndef alibi(q, k, /, *, heads, form):\n    if heads == 12:\n        os._exit(3)\n"
        "    return 2 * posref.alibi(q, k, heads=heads, form=form)\n"
    )
    lines = run("check", tmp_path / "mine.py", "--op", "alibi", "--experiments", "0").output.splitlines()
    assert lines[1].startswith("alibi float32: crash at ")
    verdicts = [line.split()[0] for line in lines if line.startswith("  ")]
    assert verdicts.index("crash") < verdicts.index("fail")
    assert "not-run" not in verdicts
    (crash,) = [line.split()[1].rstrip(":") for line in lines if line.startswith("  crash ")]
    (repeat,) = [line for line in lines if line.startswith("  repeat: ")]
    assert f"--case {crash} " in repeat
    assert not any("exact" in line for line in lines)


def test_control_characters_of_third_parties_do_not_reach_the_terminal(tmp_path: Path) -> None:
    target = tmp_path / "evil.py"
    target.write_text('def rope(*a, **o):\n    raise RuntimeError("\\x1b[2J[bold]boo[/bold]")\n')
    result = run("check", target, "--tier", "smoke")
    assert result.exit_code == 1
    assert "\x1b[2J" not in result.output
    assert "[bold]boo[/bold]" in result.output


def test_a_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "slopes_of_ours.py").write_text("from posref import alibi_slopes\n")
    (tmp_path / "target.py").write_text(
        "def alibi_slopes(*a, **o):\n    import slopes_of_ours as s\n    return s.alibi_slopes(*a, **o)\n"
    )
    assert run("check", tmp_path / "target.py").exit_code == 0


@pytest.mark.parametrize("name", ["YaRN", "yarn", "longrope", "Llama3"])
def test_a_scaling_is_shown_by_its_name(name: str) -> None:
    result = run("show", name)
    assert result.exit_code == 0
    assert result.output.lower().startswith(f"posref.scaling.{name.lower()}(")
    assert "Presets: " in result.output


def test_show_prints_all_that_a_configuration_says(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 5}
    path.write_text(json.dumps({"model_type": "smollm3", **sizes}), encoding="utf-8")
    shown = run("show", path)
    assert shown.exit_code == 0
    rows = [line.split() for line in shown.output.splitlines()]
    assert ["text", "3", "none"] in rows
    assert any(row[:3] == ["text", "0-2,4", "rope"] for row in rows)
    told = json.loads(run("show", "--json", path).output)
    assert [entry and entry["operation"] for entry in told["text"]] == ["rope", "rope", "rope", None, "rope"]
    assert told["text"][0]["options"] == {"layout": "half", "base": 2e6, "rotary_dim": 16, "scaling": None}
    muse = tmp_path / "muse.json"
    muse.write_text(json.dumps({"model_type": "muse_spark_vision"}), encoding="utf-8")
    assert "(width, height)" in " ".join(run("show", muse).output.split())
    assert run("show", "--json", "rope").exit_code == 2
