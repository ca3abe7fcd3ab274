"""Programs in other languages: whatever they do is a verdict, every message is of the schema, and nothing is left behind."""

import inspect
import json
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from conftest import interruptible
from sampling import QUARTER, few, share

import posref
from posref.conformance import check
from posref.conformance.calls import array_names
from posref.conformance.errors import Stopped, TargetError
from posref.conformance.model import LoadedCase
from posref.conformance.reports.report import Report
from posref.conformance.suite.reader import INSTALLED, load_groups
from posref.conformance.suite.schemas import validator
from posref.conformance.targets import protocol
from posref.conformance.targets.limits import RESTARTS
from posref.conformance.targets.lint import lint
from posref.conformance.targets.program import Session
from posref.conformance.targets.program_process import Child
from posref.conformance.targets.python import load_python
from posref.spec import REGISTRY

SERVE = [sys.executable, "-P", "-m", "posref", "protocol", "serve"]
HARNESSES = Path(__file__).parent / "harnesses"
CASE = "sinusoidal/interleaved/small"  # one value case
LIMITS: dict[str, Any] = {"timeout": 1.0, "memory": 0.25}

ONE_VERDICT = {
    "by_file": ("pass", ""),
    "changes_input": ("fail", "changed its input positions"),
    "claims_too_much": ("pass", ""),  # of this case; see below
    "crash": ("crash", "was ended by SIGSEGV instead of replying"),
    "deaf": ("timeout", "no reply within 1 s"),
    "endless_line": ("protocol", "a line of more than [0-9]+ bytes on standard output"),
    "endless_noise": ("protocol", "floods standard output with other lines; it printed still loading"),
    "error": ("error", r"out of \\x1b\[31mregisters\\n"),
    "closes_output": ("protocol", "closed its standard output, but keeps running"),
    "exit_3": ("crash", "ended with exit code 3 instead of replying"),
    "exit_with_daemon": ("crash", "ended with exit code 0 instead of replying"),
    "extra_key": ("protocol", r"Additional properties are not allowed \('change' was unexpected\)"),
    "flood_on_stderr": ("pass", ""),
    "forgets": ("fail", "the same call gave other bits the second time"),
    "half_line": ("crash", "ended with exit code 0 in the middle of its reply"),
    "hang": ("timeout", "no reply within 1 s"),
    "hang_with_child": ("timeout", "no reply within 1 s"),
    "hang_with_daemon": ("timeout", "no reply within 1 s"),
    "huge_allocation": ("crash", "MemoryError"),
    "ignores_sigterm": ("timeout", "no reply within 1 s"),
    "kills_supervisor": ("timeout", "no reply within 1 s"),
    "nan_in_json": ("protocol", "NaN is not JSON"),
    "no_output": ("fail", "it is in my other coat"),
    "noise_on_stdout": ("pass", ""),
    "not_base64": ("protocol", "outputs/out: data is not base64"),
    "not_finite": ("fail", "must be finite"),
    "not_json": ("protocol", "not valid JSON"),
    "one_element": ("fail", r"out\[2, 7\] at position 5: .* off by 1e-05"),
    "other_output": ("protocol", "outputs: must be among out; got cos"),
    "rejects_all": ("error", "rejected a valid call: no"),
    "right": ("pass", ""),
    "seq_as_float": ("protocol", "seq: must be the integer of the request; got 1.0"),
    "seq_as_string": ("protocol", "seq: '1' is not of type 'integer'"),
    "shape_as_float": ("pass", ""),
    "slow": ("pass", ""),
    "two_replies": ("protocol", "seq: must be 2, as in the request; got 1|an unrequested message"),
    "unknown_operation": ("pass", ""),
    "unknown_status": ("protocol", "'okay' is not one of"),
    "unsupported": ("unsupported", "not yet"),
    "wrong_dtype": ("fail", "out must be float32; got float64"),
    "wrong_folder": ("protocol", "must be a regular file"),
    "wrong_file": ("protocol", "must be a regular file|must not be a symbolic link"),
    "wrong_length": ("protocol", r"must have the 96 bytes of F32 \[3, 8\]; got 92"),
    "wrong_seq": ("protocol", "seq: must be 1, as in the request; got 2"),
    "wrong_shape": ("fail", r"out must have shape \(3, 8\); got \(8, 3\)"),
}
OTHERS = {"cannot_run", "changes_its_mind", "ignores_stop", "only_unknown", "other_protocol"}


def command(name: str, *arguments: str) -> list[str]:
    """Return the command of a fake harness; without site packages Python starts in 10 ms."""
    return [sys.executable, "-S", "-E", str(HARNESSES / "wrong.py"), name, *arguments]


def alive(mark: str) -> list[int]:
    """Return the processes that were started with our mark in their environment, directly or not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """No test leaves a process."""
    mark = f"mark-{uuid.uuid4().hex}"
    monkeypatch.setenv("POSREF_TEST_MARK", mark)
    yield mark
    assert alive(mark) == []


def asked(name: str, *arguments: str, **options: Any) -> Report:
    return check(command=command(name, *arguments), **{"case": CASE, **LIMITS, **options})


@few(3, "name", ONE_VERDICT)
def test_every_program_gets_one_verdict_and_leaves_no_process(name: str) -> None:
    verdict, message = ONE_VERDICT[name]
    report = asked(name, **({"timeout": 100.0} if name == "endless_noise" else {}))
    assert report.counts == {verdict: 1}
    (case,) = report.operations[0].cases
    assert re.search(message, case.message), case.message
    assert case.message.isprintable()
    assert report.exit_code == (verdict != "pass")


def test_every_harness_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HARNESSES))
    import wrong

    assert {*wrong.REPLIES, *wrong.STATED} <= set(ONE_VERDICT) | OTHERS


@pytest.mark.thorough
def test_a_claim_that_is_too_high_fails_and_a_lower_one_does_not() -> None:
    far = "sinusoidal/sin-cos/far"
    assert asked("claims_too_much", case=far).counts == {"fail": 1}
    assert asked("claims_too_much", case=far, claim="angle32").counts == {"pass": 1}
    assert asked("right", case=far).counts == {"pass": 1}


@pytest.mark.thorough
def test_memory_is_what_stops_a_large_allocation() -> None:
    assert asked("huge_allocation", memory=1.0, timeout=60.0).counts == {"pass": 1}
    assert asked("huge_allocation", memory=0.0, timeout=60.0).counts == {"pass": 1}


@pytest.mark.thorough
def test_a_right_program_is_conformant_in_its_operation_and_refuses() -> None:
    report = asked("right", case=None, op="sinusoidal", timeout=30.0)
    assert report.conformant
    assert report.validation == (6, 6)
    assert report.target["kind"] == "program"
    assert report.target["versions"] == {"right": "1.0"}
    failing = asked("one_element").failures[0]
    words = shlex.split(failing.reproduce)
    assert words[:3] == ["posref", "check", "--command"]
    assert shlex.split(words[3]) == command("one_element")


def test_computing_what_must_be_refused_fails_validation_alone() -> None:
    report = asked("not_finite", case="sinusoidal/refused/odd")  # its Python raises, and the program ends
    assert [case.verdict for case in report.operations[0].cases] == ["crash"]
    report = asked("no_output", case="sinusoidal/refused/odd")
    assert [case.verdict for case in report.operations[0].cases] == ["fail"]
    assert report.operations[0].cases[0].message.startswith("was not refused: ")
    assert not report.failures


def test_restarts_are_counted_and_bounded() -> None:
    report = asked("crash", case=None, op="sinusoidal")
    verdicts = [case.verdict for case in report.operations[0].cases]
    assert verdicts == ["crash"] * (RESTARTS + 1) + ["not-run"] * (len(verdicts) - RESTARTS - 1)
    assert len(verdicts) > RESTARTS + 1
    assert f"the program had to be started again {RESTARTS} times" in report.target["notes"]


@pytest.mark.thorough
def test_a_program_that_states_other_things_when_started_again(tmp_path: Path) -> None:
    report = asked("changes_its_mind", str(tmp_path / "been"), case=None, op="sinusoidal")
    verdicts = [case.verdict for case in report.operations[0].cases]
    assert verdicts[:2] == ["crash", "protocol"]
    assert "states other things" in report.operations[0].cases[1].message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (command("cannot_run"), r"says that it cannot run: no \\x1b\[31mGPU"),
        (command("only_unknown"), "must state at least one operation of .* got rotary_magic"),
        (command("other_protocol"), "speaks protocol 2; posref .* speaks 1. Update posref"),
        ([sys.executable, "-c", "import time; time.sleep(100)"], "timeout at start: no reply within 0.5 s"),
        ([sys.executable, "-c", "raise SystemExit('no such model')"], "crash at start: .*no such model"),
        ([sys.executable, "-c", "print('{\"protocol\": 1}')"], "protocol at start: .*'implementation' is a required"),
        (["/no/such/program"], "crash at start: .*cannot run '/no/such/program'.*No such file"),
        ([], "--command must name a program"),
    ],
)
def test_what_cannot_be_asked_cannot_run(words: list[str], message: str) -> None:
    with pytest.raises(TargetError, match=message):
        check(command=words, case=CASE, timeout=0.05 if "time.sleep(100)" in str(words) else 1.0)


def test_dtypes_are_those_that_it_states() -> None:
    with pytest.raises(TargetError, match="--dtype must be one that it states, of float32; got 'float64'"):
        asked("right", dtype="float64")


@few(1, "number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_survives_the_end_of_posref(number: int, nothing_left: str) -> None:
    words = ["check", "--command", shlex.join(command("hang_with_daemon")), "--case", CASE, "--timeout", "600"]
    posref = subprocess.Popen(
        [sys.executable, "-P", "-m", "posref", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=interruptible,
    )
    deadline = time.monotonic() + 60
    while len(alive(nothing_left)) < 4 and time.monotonic() < deadline:  # posref, supervisor, program, daemon
        time.sleep(0.1)
    posref.send_signal(number)
    posref.wait(30)
    assert time.monotonic() < deadline
    while alive(nothing_left) and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.thorough
def test_a_stopped_supervisor_is_killed_too() -> None:
    child = Child([sys.executable, "-c", "import os, time; os.kill(os.getppid(), 19); time.sleep(100)"], memory=0)
    with pytest.raises(Stopped, match="no reply"):
        child.ask(b"{}\n", seconds=0.5, limit=100)
    child.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no yes")
def test_lines_without_an_end_that_are_no_messages_are_a_verdict() -> None:
    child = Child(["yes"], memory=1)
    with pytest.raises(Stopped, match="floods standard output with other lines; it printed y"):
        child.ask(b"{}\n", seconds=100, limit=100)
    child.kill()


def cases(ops: Sequence[str] = tuple(REGISTRY)) -> Iterator[LoadedCase]:
    for group in load_groups(INSTALLED, ops=ops):
        yield from group.cases


@pytest.mark.thorough(dear=True)
def test_requests_are_of_the_schema_and_have_nothing_that_is_expected() -> None:
    keys = {"cmd", "seq", "case", "step", "op", "dtype", "params", "defaults", "inputs", "outputs", "cotangents", "forms"}
    for case in cases():
        for step, call in enumerate(case.calls):
            for dtype in {case.dtypes[0], case.dtypes[-1]}:
                message = protocol.run(1, case, step, dtype)
                protocol.check(message, "run")
                assert set(message) <= keys
                assert set(message["inputs"]) == set(call.inputs)
                assert protocol.object_in(protocol.write(message)) == message


@pytest.mark.thorough
def test_options_are_complete() -> None:
    """Every argument is an array, an option that a request has, or what only Python has."""
    for op, record in REGISTRY.items():
        arguments = set(inspect.signature(record.function).parameters)
        assert arguments == {*array_names(op), *record.domains} | (arguments & {"xp", "device", "dtype"}), op
    for case in cases():
        for step, call in enumerate(case.calls):
            message = protocol.run(1, case, step, "float32")
            assert set(message["params"]) == set(REGISTRY[case.op].domains), case.id
            assert set(message["defaults"]) == set(message["params"]) - set(call.params), case.id
    yarn = next(case for case in cases() if "rotary_dim" in REGISTRY[case.op].domains and "yarn" in case.id)
    sent = protocol.run(1, yarn, 0, "float32")["params"]
    assert sent["scaling"]["type"] == "YaRN"
    assert sent["scaling"]["mscale"] is None
    assert sent["rotary_dim"] is None


@pytest.mark.thorough
def test_messages_of_a_session_are_of_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, received = [], []
    write, ask = protocol.write, Child.ask

    def listening(self: Child, message: bytes, **options: Any) -> bytes:
        received.append(ask(self, message, **options))
        return received[-1]

    monkeypatch.setattr(protocol, "write", lambda message: sent.append(message) or write(message))
    monkeypatch.setattr(Child, "ask", listening)
    assert check(command=[*SERVE, "posref"], tier="smoke", dtype="float32").conformant
    assert len(sent) == len(received) + 1 > 2 * len(REGISTRY)  # stop has no reply
    for message in [*sent, *(json.loads(line) for line in received)]:
        validator("protocol").validate(message)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (3, 5), (2, 0, 4)])
def test_tensors_come_back_bit_for_bit(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) - 7
    array = values % 2 == 0 if dtype == "bool" else values if dtype == "int64" else values / 4 + 0.25
    tensor = protocol.encode(array, dtype)
    back, found = protocol.decode(tensor)
    assert found == dtype
    assert back.shape == shape
    assert np.array_equal(back, array)


def test_tensors_are_little_endian_in_c_order() -> None:
    tensor = protocol.encode(np.asarray([[1.0, 2.0], [3.0, 4.0]]).T, "float16")
    assert tensor == {"dtype": "F16", "shape": [2, 2], "data": "ADwAQgBAAEQ="}
    assert protocol.encode(np.asarray([-2]), "int64")["data"] == "/v////////8="


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]", "must be a JSON object"),
        (b"{", "not valid JSON"),
        (b'{"seq":1,"seq":1,"status":"error"}', "repeats a key"),
        (b'{"seq":1e999,"status":"error"}', "beyond binary64"),
        (b'{"seq":1,"status":"error","message":"\xff"}', "not valid JSON"),
        (b'{"seq":1,"status":"error","message":"\\ud800"}', "not valid JSON"),
        (b'{"seq":true,"status":"error"}', "seq: True is not of type"),
        (b'{"seq":1,"status":"ok"}', "'outputs' is a required"),
        (b'{"seq":1,"status":"error","outputs":{}}', "False schema does not allow"),
        (b'{"seq":1,"status":"ok","outputs":{"out":{"dtype":"F32","shape":[1.5],"data":""}}}', "outputs/out/shape/0"),
    ],
)
def test_malformed_replies_are_named(line: bytes, message: str) -> None:
    with pytest.raises(protocol.ProtocolError, match=message):
        protocol.read(line, "reply")


@pytest.mark.parametrize(
    ("shape", "text"), [([2**62, 0], "shape must have"), ([2**40], "data must"), ([0, 2**31], "shape must")]
)
def test_a_shape_cannot_be_larger_than_its_data(shape: list[int], text: str) -> None:
    with pytest.raises(protocol.ProtocolError, match=text):
        protocol.decode({"dtype": "F32", "shape": shape, "data": ""})


def verdicts(report: Report) -> list[tuple[str, str, str, str | None, str]]:
    """Return what was said of every case."""
    cases = [case for operation in report.operations for case in operation.cases]
    return [(c.id, c.dtype, c.verdict, c.achieved, c.message) for c in cases]


ROOT = Path(__file__).parents[1]
CORRECT = sorted((ROOT / "tests" / "correct").glob("*.py"))
HEAVY = ("jax", "torch")  # these are asked one operation: their libraries take seconds to start and to compile
WHOLE = ("broken_rope", "numpy_angle64")  # the others are asked the smoke tier: each shows another way to write Python


QUICK = ("numpy_alibi_mpt", "numpy_rotate_half")


@few(
    1,
    "file",
    [
        pytest.param(file, marks=[] if file.stem in QUICK else pytest.mark.thorough)
        for file in (ROOT / "examples" / "broken_rope.py", *share(CORRECT, QUARTER))
    ],
    ids=lambda file: file.stem,
    dear=True,
)
def test_a_name_an_object_and_a_program_get_the_same_verdicts(file: Path) -> None:
    op = next(op for op in REGISTRY if f"def {op}(" in file.read_text()) if file.stem.startswith(HEAVY) else None
    tier = "core" if op or file.stem in WHOLE else "smoke"
    alone, together = check(str(file), op=op, tier=tier), check(load_python(str(file)).implementation, op=op, tier=tier)
    served = check(command=[*SERVE, str(file)], op=op, tier=tier)
    assert verdicts(alone) == verdicts(together) == verdicts(served)
    for key in ("backend", "dtypes", "claims", "versions", "notes"):
        assert alone.target[key] == together.target[key], key
    assert alone.missing == together.missing
    assert alone.exit_code == together.exit_code


@pytest.mark.thorough(dear=True)
@pytest.mark.parametrize("op", ["learned", "apply_rope"])
def test_gradients_and_forms_get_the_same_verdicts(op: str) -> None:
    alone, together = (check(given, backend="torch", op=op, dtype="float32", claim="angle64") for given in ("posref", posref))
    served = check(command=[*SERVE, "posref", "--backend", "torch"], op=op, dtype="float32", claim="angle64")
    assert verdicts(alone) == verdicts(together) == verdicts(served)
    assert alone.conformant


def linted(name: str, **options: Any) -> tuple[int, str]:
    lines: list[str] = []
    problems = lint(command(name), say=lines.append, **LIMITS | options)
    return problems, "\n".join(lines)


@pytest.mark.thorough
def test_lint_of_a_right_program() -> None:
    problems, text = linted("right")
    assert problems == 0, text
    assert text.splitlines()[-1] == "speaks protocol 1"
    for part in ("smoke case: sinusoidal", "sequence: sinusoidal", "invalid call: sinusoidal", "operation it does not state"):
        assert f"ok       {part}" in text
    assert "dtype it does not state: sinusoidal/interleaved/small in float64" in text
    assert linted("by_file")[0] == 0


LINTED = {
    "seq_as_string": ['message  {"seq": "1",', "wrong    protocol: seq: '1' is not", 'expected {"seq":1,"status":"ok"'],
    "other_protocol": ['message  {"protocol": 2', "speaks protocol 2", 'expected {"protocol":1'],
    "only_unknown": ["must state at least one operation"],
    "unknown_operation": ["states operations that do not exist: rotary_magic"],
    "two_replies": ["protocol: "],
    "wrong_shape": ["out must have shape (3, 8); got (8, 3)"],
    "forgets": ["gave other bits the second time"],
    "hang": ["timeout: no reply within 1 s"],
    "crash": ["crash: was ended by SIGSEGV"],
    "rejects_all": ["status: must be ok; got rejected: no"],
    "ignores_stop": ["problem  stop", "did not end within 2 s"],
    "not_json": ["message  {\n", "not valid JSON"],
    "changes_input": ["changed its input positions"],
}
QUICK_TO_LINT = ("only_unknown", "crash")  # in a plain run too


@few(1, "name", [n if n in QUICK_TO_LINT else pytest.param(n, marks=pytest.mark.thorough) for n in LINTED])
def test_lint_prints_the_message_and_what_is_wrong(name: str) -> None:
    problems, text = linted(name)
    assert problems > 0
    for part in LINTED[name]:
        assert part in text + "\n", text
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.thorough
def test_lint_says_what_is_not_of_the_protocol() -> None:
    assert "note     standard output has lines" in linted("noise_on_stdout")[1]
    text = linted("one_element")[1]
    assert "note: the values are not right within angle64" in text
    assert "smoke case" in text


@pytest.mark.parametrize(
    ("name", "code"), [pytest.param("right", 0, marks=pytest.mark.thorough), ("wrong_seq", 1), ("cannot_run", 2)]
)
def test_lint_command(name: str, code: int) -> None:
    words = ["protocol", "lint", "--timeout", "1", "--memory", "1", "--", *command(name)]
    done = run(*words)
    assert done.exit_code == code, done.output
    assert ("speaks protocol 1" in done.output) == (code == 0)


def test_check_command() -> None:
    words = ["check", "--command", shlex.join(command("hang")), "--timeout", "0.2", "--case", CASE]
    done = run(*words)
    assert done.exit_code == 1
    assert "timeout" in done.output


def test_the_transcript_on_the_page_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    ask = Child.ask

    def listening(self: Child, message: bytes, **options: Any) -> bytes:
        lines.append("> " + re.sub(r"[0-9a-f]{64}|(?<=0\.1\.0\+)[0-9]+\.[0-9a-f]{12}", "...", message.decode().rstrip()))
        lines.append("< " + ask(self, message, **options).decode())
        return lines[-1][2:].encode()

    monkeypatch.setattr(Child, "ask", listening)
    asked = (CASE, "sinusoidal/refused/odd", "learned/plain/small")
    by_id = {case.id: case for case in cases([name.partition("/")[0] for name in asked])}
    session = Session(command("right"), INSTALLED, 30.0, 1.0)
    session.begin()
    for name in asked:
        session.ask(by_id[name], 0, "float32")
    session.close()
    lines.append("> " + protocol.write({"cmd": "stop"}).decode().rstrip())
    page = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    assert "\n".join(["```text", *lines, "```"]) in page


def test_messages_on_the_page_are_of_the_schema() -> None:
    page = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.strip().splitlines()]
    examples = [json.loads(line) for line in lines if line.startswith(('{"cmd', '{"seq', '{"proto'))]
    assert len(examples) == 8
    for example in examples:
        if "sha256" in example:
            example["sha256"] = "0" * 64
        validator("protocol").validate(example)
    about = next(json.loads(block) for block in blocks if block.startswith('{"schema'))
    validator("implementation").validate(about | {"sha256": "0" * 64})
