"""The examples in other languages: they build without a warning, speak the protocol, are conformant, and can be found wrong."""

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from posref.conformance import Report, check
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.targets.lint import lint

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
C, JS, VECTORS = EXAMPLES / "harness/c/harness.c", EXAMPLES / "harness/js/harness.js", EXAMPLES / "vectors/read_vectors.c"
STRICT = ["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"]
STRICT += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]  # a warning or undefined behaviour is an error
OPERATIONS = {"rope", "sinusoidal", "alibi", "t5_buckets"}
ISO_C = {"ctype.h", "math.h", "setjmp.h", "stdarg.h", "stdbool.h", "stdint.h", "stdio.h", "stdlib.h", "string.h"}
DEFECTS = {  # the harness, what is written there, a defect in its place, a case that must fail for it
    "c-rope": (C, "b * c + a * s", "b * c - a * s", "rope/half/small"),
    "c-sinusoidal": (C, "sines - 1.0 :", "sines :", "sinusoidal/interleaved/endpoint"),
    "c-alibi": (C, "head < below ?", "true ?", "alibi/distance/both-sides"),
    "c-t5": (C, "log(far / e)", "log(far / e + 1)", "t5_buckets/causal/t5"),
    "js-sinusoidal": (JS, "sines - 1 :", "sines :", "sinusoidal/interleaved/endpoint"),
    "js-alibi": (JS, "Math.abs(apart)", "apart", "alibi/distance/both-sides"),
    "js-t5": (JS, "return buckets - 1", "return buckets", "t5_buckets/causal/t5"),
}


def tool(name: str, package: str) -> str:
    """Return the path of a program; a test that cannot run has failed."""
    path = shutil.which(name)
    assert path, f"{name} is missing: apt-get install {package}"
    return path


def build(source: Path, program: Path, *flags: str) -> Path:
    command = [tool("gcc", "gcc"), *flags, "-o", program, source, "-lm"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both C programs, as strict as the compiler can be: a warning or undefined behaviour ends them."""
    folder = tmp_path_factory.mktemp("built")
    build(C, folder / "harness", *STRICT)
    build(VECTORS, folder / "read_vectors", *STRICT)
    return folder


@pytest.fixture(params=["c", "js"])
def command(request: pytest.FixtureRequest, built: Path) -> list[str]:
    return [str(built / "harness")] if request.param == "c" else [tool("node", "nodejs"), str(JS)]


def run(*command: str | Path, text: str = "", folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=folder, timeout=120)


def asked(command: list[str], **options: str) -> Report:
    return check(command=command, memory=0, **options)  # the address sanitizer reserves more than there is


def test_a_harness_speaks_the_protocol(command: list[str]) -> None:
    said: list[str] = []
    assert lint(command, timeout=30, memory=0, say=said.append) == 0, "\n".join(said)
    assert not [line for line in said if "note" in line]


def test_a_harness_is_conformant(command: list[str]) -> None:
    report = asked(command)
    assert report.conformant, [(operation.op, operation.reason) for operation in report.operations]
    assert {operation.op for operation in report.operations} == OPERATIONS
    others = [case for operation in report.operations for case in operation.cases if case.verdict not in ("pass", "rejected")]
    assert {(case.op, case.verdict) for case in others} <= {("rope", "unsupported")}
    assert all(case.message.startswith(("its scalings do not list ", "states no vjp of rope")) for case in others)
    tight = {"float64": "float64", "float32": "angle64"}
    assert {(o.dtype, o.claim, o.achieved) for o in report.operations} == {(d, c, c) for d, c in tight.items()}
    refused, invalid = report.validation
    assert refused == invalid > 20


@pytest.mark.parametrize(("source", "right", "wrong", "case"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_in_a_harness_is_found(source: Path, right: str, wrong: str, case: str, tmp_path: Path) -> None:
    text = source.read_text(encoding="utf-8")
    assert text.count(right) == 1
    changed = tmp_path / source.name
    changed.write_text(text.replace(right, wrong), encoding="utf-8")
    command = [str(build(changed, tmp_path / "harness"))] if source == C else [tool("node", "nodejs"), str(changed)]
    report = asked(command, case=case)
    assert report.exit_code == 1
    assert {operation.counts["fail"] for operation in report.operations} == {1}


def request(**changes: Any) -> dict[str, Any]:
    """Return a request to rotate two lanes, with changes."""
    params = {"layout": "half", "base": 10.0, "rotary_dim": None, "scaling": None, "length": None, "inverse": False}
    x = {"dtype": "F32", "shape": [1, 2], "data": "AACAPwAAAAA="}
    positions = {"dtype": "I64", "shape": [1], "data": "AQAAAAAAAAA="}
    parts = {"params": params, "inputs": {"x": x, "positions": positions}}
    for name, value in changes.items():
        (parts["params"] if name in params else parts["inputs"] if name in parts["inputs"] else parts)[name] = value
    return {"cmd": "run", "seq": 7, "case": "a/b/c", "step": 0, "op": "rope", "dtype": "float32", "outputs": ["out"], **parts}


def replies(command: list[str], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    done = run(*command, text="".join(json.dumps(message) + "\n" for message in messages))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


HALF = {"dtype": "BF16", "shape": [1], "data": "gD8="}
ASKED = {
    "valid": ({}, "ok"),
    "scaled": ({"scaling": {"type": "Linear", "factor": 2}}, "ok"),
    "half-precision positions": ({"positions": HALF}, "rejected"),
    "no positions": ({"positions": None}, "rejected"),
    "odd rotary_dim": ({"rotary_dim": 1}, "rejected"),
    "fractional rotary_dim": ({"rotary_dim": 1.5}, "rejected"),
    "negative base": ({"base": -1.0}, "rejected"),
    "no layout": ({"layout": None}, "rejected"),
    "negative factor": ({"scaling": {"type": "Linear", "factor": -2}}, "rejected"),
    "a scaling of tomorrow": ({"scaling": {"type": "Tomorrow", "factor": 2}}, "unsupported"),
    "another dtype": ({"dtype": "bfloat16"}, "unsupported"),
    "another operation": ({"op": "learned"}, "unsupported"),
    "too little data": ({"x": {"dtype": "F32", "shape": [1, 2], "data": "AACAPwAA"}}, "error"),
}


def test_a_harness_says_why_it_does_not_answer(command: list[str]) -> None:
    found = replies(command, *[request(**changes) for changes, _ in ASKED.values()])
    assert {n: f["status"] for n, f in zip(ASKED, found, strict=True)} == {n: status for n, (_, status) in ASKED.items()}
    assert all(reply["seq"] == 7 and (reply["status"] == "ok" or reply["message"]) for reply in found)


def test_a_line_may_have_megabytes(command: list[str]) -> None:
    x = {"dtype": "F32", "shape": [50_000, 8], "data": base64.b64encode(bytes([0, 0, 128, 63]) * 400_000).decode()}
    (reply,) = replies(command, request(x=x, positions={"dtype": "I64", "shape": [], "data": "AAAAAAAAAAA="}))
    assert reply["outputs"] == {"out": x}  # at position 0 nothing turns


def test_the_c_harness_outlives_broken_lines(built: Path) -> None:
    """Every beginning of a message, and every message without one of its characters."""
    message = json.dumps(request(scaling={"type": "Linear", "factor": 2}), separators=(",", ":"))
    broken = [message[:i] for i in range(len(message))] + [message[:i] + message[i + 1 :] for i in range(len(message))]
    done = run(built / "harness", text="\n".join([*broken, message, '{"cmd":"stop"}', message]))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith('{"seq":7,"status":"ok","outputs":{"out":{"dtype":"F32","shape":[1,2],')


def test_the_vectors_are_read_and_judged(built: Path) -> None:
    done = run(built / "read_vectors", INSTALLED)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.fullmatch(r"sinusoidal in float32, .* (\d+) cases, (\d+) values, .* 0\.\d+ of .*; 0 outside\n", done.stdout)
    assert said
    cases = [case for group in load_groups(INSTALLED, ops=("sinusoidal",)) for case in group.cases]
    assert int(said[1]) == sum(case.kind != "reject" for case in cases)
    assert int(said[2]) > 8000


def test_a_miss_in_the_vectors_is_found(tmp_path: Path) -> None:
    changed = tmp_path / "wrong.c"
    changed.write_text(VECTORS.read_text(encoding="utf-8").replace("(float)i / steps", "(float)i / (steps + 1)"))
    done = run(build(changed, tmp_path / "wrong"), INSTALLED)
    assert done.returncode == 1
    assert "sinusoidal/interleaved/small: element " in done.stdout


@pytest.mark.parametrize("name", ["SUITE.json", "sinusoidal/sin-cos/group.json", "sinusoidal/sin-cos/data.safetensors"])
def test_vectors_that_are_cut_off_are_not_judged(name: str, built: Path, tmp_path: Path) -> None:
    shutil.copy(INSTALLED / "SUITE.json", tmp_path)
    shutil.copytree(INSTALLED / "sinusoidal", tmp_path / "sinusoidal")
    whole = (tmp_path / name).read_bytes()
    for size in (0, 7, 100, len(whole) // 2):
        (tmp_path / name).write_bytes(whole[:size])
        done = run(built / "read_vectors", tmp_path)
        assert done.returncode in (1, 2), (size, done.stdout)
        assert "Sanitizer" not in done.stderr
    (tmp_path / name).unlink()
    assert run(built / "read_vectors", tmp_path).returncode == 2


@pytest.mark.parametrize("source", [C, JS, VECTORS], ids=lambda path: path.name)
def test_an_example_is_short_and_stands_alone(source: Path) -> None:
    lines = source.read_text(encoding="ascii").splitlines()
    assert len(lines) < 360
    assert max(map(len, lines)) <= 128
    included = {line.split()[1] for line in lines if line.startswith("#include")}
    assert included <= {f"<{name}>" for name in ISO_C}
    assert not [line for line in lines if re.search(r"\brequire\(|^import\b|\bimport\(", line)]


@pytest.mark.thorough(dear=True)
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    for name in ("examples", "conformance"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = f"PATH={Path(sys.executable).parent}:$PATH"
    assert lines.pop(0) == "posref check examples/broken_rope.py"  # which test_cli.py looks at
    lines = [line for line in lines if "examples/larger" not in line]  # which test_larger.py runs
    for line in lines:
        done = run("sh", "-c", f"{path} {line}", folder=tmp_path)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    for source in (C, VECTORS):
        comment = source.read_text(encoding="utf-8").split("*/")[0]
        assert set(re.findall(r"cc -std.* -lm", comment)) <= set(lines)
    assert len(lines) == 8
