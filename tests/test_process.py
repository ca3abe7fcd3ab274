"""Python targets by name: whatever they do is a verdict, nothing expected is in their memory, and nothing is left behind."""

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import interruptible
from sampling import few

from posref.conformance import check
from posref.conformance.errors import PosrefError, TargetError
from posref.conformance.suite.reader import INSTALLED
from posref.conformance.targets import program
from posref.conformance.targets.program_process import can_be_copied
from posref.conformance.targets.python_process import PythonSession

ROOT = Path(__file__).parents[1]
UNRULY, FORGING = (str(ROOT / "tests" / "targets" / name) for name in ("unruly.py", "forging.py"))
ERROR, CRASH, TIMEOUT = "error", "crash", "timeout"
IN_CALLS = {
    "exit": (ERROR, "SystemExit"),
    "exit_now": (CRASH, "its process ended with exit code 0"),
    "hang": (TIMEOUT, "no reply within 1 s"),
    "hang_with_lock": (TIMEOUT, "no reply within 1 s"),
    "segfault": (CRASH, "its process was ended by SIGSEGV"),
    "kill_group": (CRASH, "its process was ended by SIGKILL"),
    "kill_parent": (CRASH, "its process was ended by SIGKILL"),
    "stop": (TIMEOUT, "no reply within 1 s"),
    "close_all": (CRASH, "its process"),
    "interrupt": (ERROR, "KeyboardInterrupt"),
    "generator_exit": (ERROR, "GeneratorExit"),
    "mute": (ERROR, "Mute: (its text cannot be had: Mute)"),
    "unnamed": (ERROR, "Unnamed:"),
    "allocate": (ERROR, "Unable to allocate 2.00 GiB"),
    "list": ("fail", "out must be an array of numpy; got list"),
    "complex": ("fail", "out must be real and at least float32; got complex64"),
    "default": ("fail", "off by"),
}
RESTS = {ERROR: {ERROR, "rejected"}, "fail": {"fail", "pass", "rejected"}}
QUICK = ("exit", "hang", "kill_parent", "interrupt", "list", "default")
AT_IMPORT = ("exit", "exit_now", "kill_group", "interrupt", "mute")
HARMLESS = ("print", "at_exit", "hang_at_exit", "fork", "daemon")


def marked(names: tuple[str, ...] | dict[str, tuple[str, str]], quick: tuple[str, ...]) -> list[object]:
    return [name if name in quick else pytest.param(name, marks=pytest.mark.thorough) for name in names]


@few(1, "how", marked(IN_CALLS, QUICK))
def test_what_a_target_does_in_a_call_is_a_verdict(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"call:{how}")
    begun = time.monotonic()
    report = check(UNRULY, op="alibi_slopes", timeout=1.0, memory=1.5)
    verdict, message = IN_CALLS[how]
    first = report.operations[0].cases[0]
    assert (first.verdict, message in first.message) == (verdict, True), first.message
    assert report.exit_code == 1
    assert report.complete
    assert time.monotonic() - begun < 30
    assert {case.verdict for case in report.operations[0].cases[1:]} <= RESTS.get(verdict, {"not-run"})


@few(1, "how", marked(AT_IMPORT, ("exit", "exit_now")))
def test_what_a_target_does_when_it_is_imported_is_exit_code_2(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"import:{how}")
    with pytest.raises(PosrefError, match=r"unruly\.py: (running it raised|could not be loaded)"):
        check(UNRULY, op="alibi_slopes")


@pytest.mark.thorough
def test_a_thread_that_lets_no_other_run_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next call, which then is not answered."""
    monkeypatch.setenv("UNRULY", "call:lock_later")
    begun = time.monotonic()
    report = check(UNRULY, op="alibi_slopes", timeout=0.3)
    assert report.counts["timeout"] == 1
    assert report.exit_code == 1
    assert report.counts["pass"] < 8
    assert time.monotonic() - begun < 20


def test_a_target_may_take_ten_times_as_long_to_load_as_to_answer(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import time\ntime.sleep(0.8)\nfrom posref import alibi_slopes\n", encoding="utf-8")
    assert check(str(file), op="alibi_slopes", timeout=0.4).exit_code == 0


def test_an_invalid_call_may_be_answered(tmp_path: Path) -> None:
    """What comes back is not compared: the call counts as not refused, and decides nothing."""
    file = tmp_path / "lenient.py"
    file.write_text(
        "import posref\n\n\ndef alibi_slopes(heads, /, **options):\n    return posref.alibi_slopes(max(heads, 1), **options)\n",
        encoding="utf-8",
    )
    report = check(str(file), op="alibi_slopes", case="alibi_slopes/refused/no-heads")
    assert [case.verdict for operation in report.operations for case in operation.cases] == ["fail"]


def test_an_input_that_the_second_call_restores_was_changed(tmp_path: Path) -> None:
    """One message asks for both calls of a case: each has inputs of its own, and the first verdict stays."""
    file = tmp_path / "negating.py"
    file.write_text(
        "import posref\n\n\ndef rope(x, positions, /, **options):\n    rotated = posref.rope(x, positions, **options)\n"
        "    x *= -1\n    return rotated\n",
        encoding="utf-8",
    )
    found = {case.message for case in check(str(file), op="rope", tier="smoke").operations[0].cases if case.kind == "value"}
    assert found == {"changed its input x"}


def test_a_crash_after_a_wrong_answer_leaves_its_verdict(tmp_path: Path) -> None:
    file = tmp_path / "crashing.py"
    file.write_text(
        "import os\ncalls = []\n\n\ndef alibi_slopes(heads, /, **options):\n    calls.append(heads)\n"
        "    return [1.0] if len(calls) % 2 else os._exit(3)\n",
        encoding="utf-8",
    )
    first, second = check(str(file), op="alibi_slopes").operations[0].cases[:2]
    assert (first.verdict, second.verdict) == ("fail", "fail")


@few(1, "dtype", [">f8", "longdouble"])
def test_numbers_of_another_form_are_judged_by_value(dtype: str, tmp_path: Path) -> None:
    file = tmp_path / "wide.py"
    file.write_text(
        f"import posref\ndef alibi_slopes(heads, /):\n    return posref.alibi_slopes(heads).astype({dtype!r})\n",
        encoding="utf-8",
    )
    assert check(str(file), op="alibi_slopes").exit_code == 0


@few(1, "how", marked(HARMLESS, ("print", "at_exit")))
def test_what_does_no_harm_does_not_change_the_verdict(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"import:{how}")
    assert check(UNRULY, op="alibi_slopes").exit_code == 0


@pytest.mark.thorough
def test_what_a_target_prints_is_shown_though_its_process_is_killed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    lines = ("import os", "def alibi_slopes(heads, /):", "    print('heads are', heads)", "    os.kill(os.getpid(), 9)")
    file.write_text("\n".join(lines), encoding="utf-8")
    assert check(str(file), op="alibi_slopes", tier="smoke").exit_code == 1
    assert "heads are " in capfd.readouterr().err


@pytest.mark.parametrize("command", ["check", pytest.param("fuzz", marks=pytest.mark.thorough)])
def test_ctrl_c_gives_the_report_so_far_and_leaves_nothing(command: str, tmp_path: Path) -> None:
    environment = os.environ | {"UNRULY": "call:hang"}
    words = [sys.executable, "-P", "-m", "posref", command, UNRULY, "--op", "alibi_slopes", "--timeout", "600"]
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible, cwd=tmp_path
    )
    time.sleep(3.0)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert time.monotonic() - begun < 5
    assert process.returncode == 2
    assert b"Traceback" not in errors
    assert (b"INCOMPLETE" in output) is (command == "check")


# ---- replies that nobody would write ----------------------------------------------------------------------------------------
FORGED = runpy.run_path(FORGING)["FORGED"]


@few(1, "how", marked(tuple(FORGED), ("deep", "status", "dtype with escapes", "two replies", "huge shape")))
def test_a_forged_reply_is_a_verdict(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGED", how)
    report = check(FORGING, op="alibi_slopes", timeout=10.0)
    verdicts = [case.verdict for case in report.operations[0].cases]
    assert verdicts[0] == "protocol"
    assert set(verdicts[1:]) == {"not-run"}
    assert all(case.message.isprintable() for case in report.operations[0].cases)
    assert report.exit_code == 1


@pytest.mark.thorough
def test_what_a_forger_states_of_itself_is_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "stating.py"
    for stated in ('{"operations": "alibi_slopes"}', "[]", '{"dtypes": ["float8"]}', '{"claims": 7}', '{"operations": [7]}'):
        text = f"""
import posref
from posref.conformance.targets.python import PythonTarget
right, forged = PythonTarget.stated, {stated}
PythonTarget.stated = lambda self: {{**right(self), **forged}} if forged else forged
alibi_slopes = posref.alibi_slopes
"""
        file.write_text(text, encoding="utf-8")
        with pytest.raises(TargetError, match=r"stating\.py"):
            check(str(file), op="alibi_slopes")


@pytest.mark.thorough
def test_a_claim_that_is_demanded_is_not_for_the_process_to_change(tmp_path: Path) -> None:
    file = tmp_path / "lower.py"
    text = """
import numpy as np, posref
from posref.conformance.targets.python import PythonTarget
right = PythonTarget.stated
PythonTarget.stated = lambda self: {**right(self), "claims": {"float32": "low"}}
def alibi_slopes(heads, /): return posref.alibi_slopes(heads).astype(np.float32) * np.float32(1.0001)
"""
    file.write_text(text, encoding="utf-8")
    assert check(str(file), op="alibi_slopes", claim="angle32").exit_code == 1


# ---- nothing that is expected -----------------------------------------------------------------------------------------------
SEARCH = """
import json, os, re, sys
from pathlib import Path
if sys.argv[2] == "new":
    import numpy
from posref.conformance.targets.program_process import can_be_copied
copied = can_be_copied()
assert copied == (sys.argv[2] == "copy")
from posref.conformance.suite.reader import load_groups, INSTALLED
from posref.conformance.targets.python_process import PythonSession
session = PythonSession([sys.argv[1]], INSTALLED, 30.0, 0, copied=copied)
from posref.conformance.targets.loader import load
from posref.conformance.targets.supervisor import descendants
from posref.conformance.checks.case_run import ask

[crashing] = [c for g in load_groups(INSTALLED, ops=["alibi_slopes"]) for c in g.cases if c.id.endswith("/power-of-two/8")]
everything = [c for g in load_groups(INSTALLED, ops=["sinusoidal"]) for c in g.cases]
target = load(session)

def searched():
    for c in everything:
        if c.kind == "value":
            ask(target, c, "float32")
    value = max((c.calls[0].expected["out"] for c in everything if c.kind == "value"), key=lambda v: v.size)
    found = dict(expected=0, given=0, processes=0)
    for pid in descendants():
        try:
            maps = Path(f"/proc/{pid}/maps").read_text()
            with open(f"/proc/{pid}/mem", "rb", 0) as memory:
                found["processes"] += 1
                for line in maps.splitlines():
                    span, rights = line.split()[:2]
                    if "r" not in rights or "[v" in line:
                        continue
                    low, high = (int(part, 16) for part in span.split("-"))
                    memory.seek(low)
                    try:
                        data = memory.read(high - low)
                    except OSError:
                        continue
                    found["expected"] += value.ravel()[value.size // 2 :][:8].tobytes() in data
                    found["given"] += b"kept by the target" in data
        except FileNotFoundError:
            pass
    return found

first = searched()
ended = ask(target, crashing, "float32").verdict
again = searched()
print(json.dumps([first, ended, session.restarts, again]))
target.close()
"""
ZEROS = """
import os
import numpy as np
KEPT = b" ".join([b"kept", b"by the target"])
def sinusoidal(positions, dim, /, *, layout, **options): return np.zeros((*positions.shape, dim), np.float32)
def alibi_slopes(heads, /, **options): os._exit(3)
"""


@pytest.mark.thorough
@few(1, "how", ["copy", "new"])
def test_no_expected_value_is_in_the_memory_of_the_process(how: str, tmp_path: Path) -> None:
    """Neither at first, a copy of this process or a new one, nor when it was started again after the suite was read."""
    if how == "copy" and (sys.platform != "linux" or sys.version_info >= (3, 12)):
        pytest.skip("no copies are made here")
    file = tmp_path / "zeros.py"
    file.write_text(ZEROS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", SEARCH, str(file), how], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, ended, restarts, again = json.loads(done.stdout)
    assert (ended, restarts) == ("crash", 1)
    for found in (first, again):
        assert found["processes"]
        assert found["given"]  # the search finds what is there
        assert not found["expected"]


# ---- the process ------------------------------------------------------------------------------------------------------------
@pytest.mark.thorough(dear=True)
def test_a_crash_ends_the_operation_and_the_others_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "crashing.py"
    file.write_text(
        "import os, posref\nfrom posref import t5_buckets\ndef alibi_slopes(heads, /, **options): os._exit(3)\n"
        "def logn_scale(*args, **options): os._exit(3)\ndef sinusoidal(*args, **options): os._exit(3)\n",
        encoding="utf-8",
    )
    report = check(str(file), op=["alibi_slopes", "t5_buckets"])
    found = {operation.op: operation for operation in report.operations}
    rest = found["alibi_slopes"].counts["not-run"]
    assert found["alibi_slopes"].counts == {"crash": 1, "not-run": rest}
    assert found["t5_buckets"].counts["pass"] == len([c for c in found["t5_buckets"].cases if c.kind != "reject"])
    assert "its process had to be started again once" in report.target["notes"]
    assert found["alibi_slopes"].cases[1].message == f"not asked: crash at {found['alibi_slopes'].cases[0].id}"
    monkeypatch.setattr(program, "RESTARTS", 1)
    report = check(str(file), op=["alibi_slopes", "logn_scale", "sinusoidal"])
    assert report.counts["crash"] == 2
    assert any("had to be started again 1 times" in case.message for case in report.operations[-1].cases)
    assert report.exit_code == 1


@pytest.mark.thorough
def test_where_there_can_be_no_copy_the_report_is_the_same(tmp_path: Path) -> None:
    def report(first: str) -> dict[str, object]:
        main = f"{first}; import sys; from posref.cli import main; sys.exit(main())"
        words = ["check", "posref", "--op", "alibi_slopes", "--op", "sinusoidal", "--seed", "1", "--json", "-"]
        done = subprocess.run([sys.executable, "-P", "-c", main, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    assert report("import os") == report("import numpy")


def test_this_process_with_its_arrays_is_never_copied() -> None:
    assert "numpy" in sys.modules
    assert not can_be_copied()


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files in memory")
def test_tensors_need_no_place_in_a_folder() -> None:
    """However small /dev/shm is."""
    session = PythonSession(["posref"], INSTALLED, 30.0, 0)
    session.begin()
    assert os.readlink(f"/proc/self/fd/{session.shared.place}").startswith("/memfd:")
    session.close()


@pytest.mark.thorough
def test_a_result_of_more_than_64_mebibytes(tmp_path: Path) -> None:
    """It is only looked at as far as a right one would be large."""
    file = tmp_path / "large.py"
    file.write_text(
        "import numpy as np\ndef alibi_slopes(heads, /, **options): return np.zeros(1 << 24, np.float32)\n", encoding="utf-8"
    )
    report = check(str(file), case="alibi_slopes/power-of-two/8")
    assert report.counts == {"fail": 1}
    assert "must have shape (8,); got (16777216,)" in report.operations[0].cases[0].message


def test_without_files_in_memory_they_are_in_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert check("posref", op="alibi_slopes", dtype="float32").conformant


def test_what_cannot_be_loaded_or_sent_is_an_error() -> None:
    with pytest.raises(TargetError, match="cannot import 'nothing_of_that_name'"):
        check("nothing_of_that_name")
    with pytest.raises(TargetError, match="must be a word or a number"):
        check("posref", op="alibi_slopes", device=lambda: None)


@pytest.mark.thorough
def test_a_case_is_repeated_on_the_same_device(tmp_path: Path) -> None:
    path = tmp_path / "none.py"
    path.write_text("backend = 'torch'\n\n\ndef alibi_slopes(heads, /):\n    return None\n", encoding="utf-8")
    failing = check(str(path), op="alibi_slopes", device="cpu", experiments=0).failures[0]
    assert failing.reproduce.startswith(f"posref check {path} --device cpu --case alibi_slopes/")


def test_a_module_is_found_where_this_process_finds_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("from posref import alibi_slopes\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert check("only_here", op="alibi_slopes").conformant


def test_an_object_stays_in_this_process() -> None:
    class Mine:
        @staticmethod
        def alibi_slopes(heads: int, /, **options: object) -> object:
            import posref

            seen.append(os.getpid())
            return posref.alibi_slopes(heads).astype("float32")

    seen: list[int] = []
    check(Mine, op="alibi_slopes")
    assert set(seen) == {os.getpid()}


LOOKING = """
import os, sys
import numpy as np
for name in ("MY_TOKEN", "HF_TOKEN", "UNKNOWN", "NAMED", "OMP_NUM_THREADS"):
    print(f"{name}={os.environ.get(name)}", file=sys.stderr)
print("files", len([n for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]), file=sys.stderr)
print("secret", any(os.readlink(f"/proc/self/fd/{n}").endswith("secret.txt") for n in os.listdir("/proc/self/fd")
                    if os.path.lexists(f"/proc/self/fd/{n}")), file=sys.stderr)
def learned(positions, table, **options):
    return np.asarray(table)[np.asarray(positions) + options.get("offset", 0)]
"""


def test_a_target_gets_no_secrets_and_no_open_files(tmp_path: Path) -> None:
    (tmp_path / "looking.py").write_text(LOOKING)
    (tmp_path / "secret.txt").write_text("secret")
    given = {"MY_TOKEN": "1", "HF_TOKEN": "1", "UNKNOWN": "1", "NAMED": "1", "OMP_NUM_THREADS": "1", "POSREF_PASS": "NAMED"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **given}
    command = [sys.executable, "-m", "posref", "check", "looking.py", "--tier", "smoke"]
    with (tmp_path / "secret.txt").open() as file:
        os.set_inheritable(file.fileno(), True)
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, close_fds=False
        )
    assert done.returncode == 0, done.stderr
    for line in ("MY_TOKEN=None", "HF_TOKEN=None", "UNKNOWN=None", "NAMED=1", "OMP_NUM_THREADS=1", "secret False"):
        assert line in done.stderr


COPIES = """
import os, time
import numpy as np
def learned(positions, table, **options):
    for _ in range(6):
        if not os.fork():
            held = bytearray(200 << 20)
            held[::4096] = b"x" * len(held[::4096])
            time.sleep(60)
    time.sleep(20)
"""


SHARING = {
    "mapped": "held = mmap.mmap(-1, 1 << 30)\n    held[::4096] = b'x' * (1 << 18)",
    "in a file": "held = [os.memfd_create('held') for _ in range(4)]\n    [os.write(f, bytes(1 << 20)) for f in 256 * held]",
    "in a copy's": (
        "held = mmap.mmap(-1, 1 << 30)\n    if os.fork():\n        time.sleep(20)\n    held[::4096] = b'x' * (1 << 18)"
    ),
}


@pytest.mark.thorough(dear=True)
@few(1, "way", SHARING)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what processes hold together")
def test_memory_that_can_be_shared_is_limited(way: str, tmp_path: Path) -> None:
    """No limit of a process counts it."""
    text = f"import mmap, os, time\ndef learned(positions, table, **options):\n    {SHARING[way]}\n    time.sleep(20)\n"
    (tmp_path / "sharing.py").write_text(text)
    report = check(str(tmp_path / "sharing.py"), tier="smoke", memory=0.8, timeout=15.0)
    [case] = [c for c in report.operations[0].cases if c.kind != "reject"]
    assert case.verdict in ("crash", "protocol"), case.message  # by how long the system takes; a timeout if nobody looks


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what processes hold together")
def test_the_memory_of_all_processes_is_limited(tmp_path: Path) -> None:
    """None of them holds more than a quarter of the limit."""
    (tmp_path / "copies.py").write_text(COPIES)
    report = check(str(tmp_path / "copies.py"), tier="smoke", memory=0.8, timeout=15.0)
    [case] = [c for c in report.operations[0].cases if c.kind != "reject"]
    assert case.verdict == "crash", case.message  # a timeout if nobody looks
