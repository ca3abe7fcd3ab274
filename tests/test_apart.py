"""`posref check` and `posref fuzz` with targets that misbehave: a verdict, never exit code 0, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import interruptible

from posref.conformance import check
from posref.conformance.errors import PosrefError, TargetError

UNRULY = str(Path(__file__).parent / "targets" / "unruly.py")
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
}
QUICK = ("exit", "exit_now", "hang", "kill_parent", "interrupt", "mute", "unnamed")
AT_IMPORT = ("exit", "exit_now", "kill_group", "interrupt", "mute")
HARMLESS = ("print", "at_exit", "hang_at_exit", "fork", "daemon")


def marked(names: tuple[str, ...] | dict[str, tuple[str, str]], quick: tuple[str, ...]) -> list[object]:
    return [name if name in quick else pytest.param(name, marks=pytest.mark.thorough) for name in names]


@pytest.mark.parametrize("how", marked(IN_CALLS, QUICK))
def test_what_a_target_does_in_a_call_is_a_verdict(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"call:{how}")
    begun = time.monotonic()
    report = check(UNRULY, op="alibi_slopes", child=True, timeout=1.0)
    verdict, message = IN_CALLS[how]
    first = report.operations[0].cases[0]
    assert (first.verdict, message in first.message) == (verdict, True), first.message
    assert report.exit_code == 1
    assert report.complete
    assert time.monotonic() - begun < 30
    rest = {case.verdict for case in report.operations[0].cases[1:]}
    assert rest <= ({"error", "rejected"} if verdict == ERROR else {"not-run"})


@pytest.mark.parametrize("how", marked(AT_IMPORT, ("exit", "exit_now")))
def test_what_a_target_does_when_it_is_imported_is_exit_code_2(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"import:{how}")
    with pytest.raises(PosrefError, match=r"unruly\.py: (running it raised|could not be loaded)"):
        check(UNRULY, op="alibi_slopes", child=True)


def test_a_thread_that_lets_no_other_run_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while nothing is asked of the target: twice a second its process must say that it lives."""
    monkeypatch.setenv("UNRULY", "call:lock_later")
    monkeypatch.setattr("posref.conformance.target.remote.apart.SILENCE", 1.0)
    begun = time.monotonic()
    report = check(UNRULY, op="alibi_slopes", child=True, timeout=0.3)
    assert report.counts["timeout"] == 1
    assert report.exit_code == 1
    assert time.monotonic() - begun < 20


def test_a_target_may_take_ten_times_as_long_to_load_as_to_answer(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import time\ntime.sleep(0.8)\nfrom posref import alibi_slopes\n", encoding="utf-8")
    assert check(str(file), op="alibi_slopes", child=True, timeout=0.4).exit_code == 0


def test_memory_is_judged_and_not_what_a_class_says_of_it(tmp_path: Path) -> None:
    file = tmp_path / "subclass.py"
    file.write_text(
        "import numpy as np, posref\n"
        "class Lying(np.ndarray):\n"
        "    def astype(self, *a, **k):\n        return np.asarray(self).astype(*a, **k) / 2\n"
        "def alibi_slopes(heads, /):\n    return (2 * posref.alibi_slopes(heads)).view(Lying)\n",
        encoding="utf-8",
    )
    report = check(str(file), op="alibi_slopes", child=True)
    assert report.exit_code == 1
    assert not report.counts["pass"]


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("dtype", [">f8", "longdouble"])
def test_numbers_of_another_form_are_judged_by_value(dtype: str, isolate: bool, tmp_path: Path) -> None:
    file = tmp_path / "wide.py"
    file.write_text(
        f"import posref\ndef alibi_slopes(heads, /):\n    return posref.alibi_slopes(heads).astype({dtype!r})\n",
        encoding="utf-8",
    )
    assert check(str(file), op="alibi_slopes", child=not isolate, isolate=isolate).exit_code == 0


@pytest.mark.parametrize("how", marked(HARMLESS, ("print", "at_exit")))
def test_what_does_no_harm_does_not_change_the_verdict(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"import:{how}")
    assert check(UNRULY, op="alibi_slopes", child=True).exit_code == 0


@pytest.mark.parametrize("how", marked(("patch", "patch_code", "patch_zip", "widen", "peek"), ("patch", "patch_zip", "peek")))
def test_a_wrong_target_does_not_pass_by_what_it_does_to_the_check(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNRULY", f"wrong:{how}")
    report = check(UNRULY, op="alibi_slopes", child=True)
    assert report.exit_code == 1
    assert not report.counts["pass"]
    assert all("changed what judges it" in case.message for case in report.failures) is (how != "peek")


def test_a_child_needs_a_name() -> None:
    with pytest.raises(TargetError, match=r"TARGET must be the name of an adapter, .*; got object"):
        check(object(), child=True)


@pytest.mark.parametrize("command", ["check", pytest.param("fuzz", marks=pytest.mark.thorough)])
def test_ctrl_c_gives_the_report_so_far_and_leaves_nothing(command: str, tmp_path: Path) -> None:
    environment = os.environ | {"UNRULY": "call:hang"}
    words = [sys.executable, "-P", "-m", "posref", command, UNRULY, "--op", "alibi_slopes"]
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible, cwd=tmp_path
    )
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"Traceback" not in errors
    assert (b"INCOMPLETE" in output) is (command == "check")
