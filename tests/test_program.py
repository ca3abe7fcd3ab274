"""The program `posref`: its exit codes, its streams, the signals that stop it, and whose modules it imports."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import interruptible
from sampling import few

ROOT = Path(__file__).parents[1]
POSREF = [sys.executable, "-m", "posref"]
CHECK = (*POSREF, "check", "posref", "--op", "alibi_slopes", "--tier", "smoke")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which $POSREF is the program."""
    words = ENVIRONMENT | {"POSREF": " ".join(POSREF), "CHECK": " ".join(CHECK)} | environment
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=words, cwd="/")


@few(
    1,
    ("line", "code"),
    [
        ("$CHECK", 0),
        ("$CHECK | true; exit ${PIPESTATUS[0]}", 2),  # a conformant target, but nobody saw the report
        ("$POSREF list | true; exit ${PIPESTATUS[0]}", 2),
        ("$POSREF --help | true; exit ${PIPESTATUS[0]}", 2),
        ("$CHECK > /dev/full", 2),
        ("$POSREF list > /dev/full", 2),
        ("$CHECK > /dev/full 2>&1", 2),
        ("$CHECK >&-", 0),  # as to /dev/null
        ("$CHECK <&- >&- 2>&-", 0),
        ("$POSREF show nothing 2>&-", 2),
        ("$POSREF show nothing 2> /dev/full", 2),
        ("$POSREF check --nonsense 2> /dev/full", 2),
        ("$POSREF check nothing_of_this_name", 2),
        ("$POSREF check --nonsense", 2),
        ("$POSREF nonsense", 2),
        ("$POSREF --version", 0),
    ],
)
def test_exit_codes(line: str, code: int) -> None:
    done = shell(line)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@few(1, "command", ["show rope", "list", "check posref --op alibi_slopes --tier smoke"])
def test_an_ascii_terminal(command: str) -> None:
    done = shell(f"$POSREF {command}", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


UNFORESEEN = """
import sys
import posref.cli
sys.argv = ["posref", "list"]
def fail(**_):
    raise {}
posref.cli.list_command.callback = fail
posref.cli.main()
"""


@few(
    1,
    ("raised", "said"),
    [
        ("ZeroDivisionError('of mine\\nin two lines')", "this is a fault of posref: ZeroDivisionError: of mine in two lines"),
        ("MemoryError()", "this is a fault of posref: MemoryError"),
        ("SystemExit('a text')", ""),
        ("SystemExit(7)", ""),
        ("KeyboardInterrupt()", "interrupted"),
        ("GeneratorExit()", "this is a fault of posref: GeneratorExit"),
    ],
)
def test_what_nobody_foresaw_is_one_line_and_exit_code_2(raised: str, said: str) -> None:
    command = [sys.executable, "-c", UNFORESEEN.format(raised)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 2
    assert done.stderr.count("\n") == bool(said)
    assert done.stderr.startswith(f"posref: {said}" if said else "")
    traced = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT | {"POSREF_TRACEBACK": "1"})
    assert traced.returncode == 2
    assert ("in fail" in traced.stderr) == said.startswith("this is")


# ---- signals -------------------------------------------------------------------------------------------------------------
LOADING = """
import os, sys
sys.argv = ["/usr/bin/posref", "list"]
class Hook:
    def find_spec(name, *_):
        if name == sys.orig_argv[-2]:
            os.kill(os.getpid(), int(sys.orig_argv[-1]))
sys.meta_path.insert(0, Hook)
from posref.cli import main
main()
"""


@few(1, "module", ["posref.spec", "posref.cli", "click", "posref.presets", "rich"])
@few(1, "signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_modules_load_prints_no_traceback(signum: int, module: str) -> None:
    command = [sys.executable, "-c", LOADING, module, str(int(signum))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT, preexec_fn=interruptible)
    assert (done.returncode, done.stderr, done.stdout) == (2, "posref: interrupted\n", "")


SLOW = """
import time
def alibi_slopes(heads, **_):
    time.sleep(60)
"""


@pytest.mark.thorough
@few(2, "signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@few(1, "times", [1, 2])
def test_a_check_that_is_told_to_stop_ends_with_exit_code_2(times: int, signum: int, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW + f"open({str(tmp_path / 'begun')!r}, 'w')")
    program = subprocess.Popen(
        [*POSREF, "check", "slow.py", "--json", "report.json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=ENVIRONMENT, cwd=tmp_path, preexec_fn=interruptible,
    )  # fmt: skip
    while not (tmp_path / "begun").exists():
        assert program.poll() is None
    time.sleep(0.3)
    for _ in range(times):
        program.send_signal(signum)
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 2, errors
    assert "Traceback" not in errors
    assert {p.name for p in tmp_path.iterdir()} - {"__pycache__"} <= {"slow.py", "begun", "report.json"}


def test_nohup_is_respected() -> None:
    code = "import os, signal, posref.startup as s; s.on_signals(lambda *_: os._exit(9)); os.kill(os.getpid(), signal.SIGHUP)"
    assert shell(f'nohup {sys.executable} -c "{code}"').returncode == 0


# ---- modules of strangers ------------------------------------------------------------------------------------------------
FAKES = ("safetensors", "jsonschema", "jinja2", "flint", "mpmath", "rich", "hypothesis", "matplotlib", "fractions", "xml")
FAKE = "import os, pathlib\npathlib.Path(f'ran-{os.getpid()}-{__name__}').touch()\nraise ImportError('a fake')\n"
RIGHT = "import posref\ndef alibi_slopes(heads, **options):\n    return posref.alibi_slopes(heads, **options)\n"
COMMANDS = {
    "check": ("check", "mine.py", "--html", "report.html", "--json", "report.json"),
    "check a module": ("check", "mine", "--junit", "report.xml"),
    "command": ("check", "--command", f"env -C / {sys.executable} -m posref protocol serve posref", "--op", "alibi_slopes"),
    "golden": ("golden", "alibi_slopes", "--option", "heads=8", "-o", "golden.safetensors"),
    "fuzz": ("fuzz", "mine", "--examples", "1"),
    "plot": ("plot", "alibi"),
    "list": ("list",),
    "doctor": ("doctor",),
}


@few(1, "name", COMMANDS, dear=True)
def test_no_module_of_the_current_folder_runs_in_the_judge(name: str, tmp_path: Path) -> None:
    for fake in FAKES:
        (tmp_path / f"{fake}.py").write_text(FAKE)
    (tmp_path / "mine.py").write_text(RIGHT)
    program = subprocess.Popen([*POSREF, *COMMANDS[name]], env=ENVIRONMENT, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    printed, _ = program.communicate()
    assert program.returncode == 0, printed
    assert not list(tmp_path.glob(f"ran-{program.pid}-*"))


def test_the_fakes_run_where_a_target_imports_them(tmp_path: Path) -> None:
    (tmp_path / "xml.py").write_text(FAKE)
    (tmp_path / "mine.py").write_text(RIGHT + "try:\n    import xml\nexcept ImportError:\n    pass\n")
    assert (
        subprocess.run(
            [*POSREF, "check", "mine"], env=ENVIRONMENT, cwd=tmp_path, check=False, stdout=subprocess.DEVNULL
        ).returncode
        == 0
    )
    assert len(list(tmp_path.glob("ran-*-xml"))) == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("json", "raise RuntimeError('mine')", "posref: cannot start: RuntimeError in {}, line 1: mine\n"),
        ("click", "raise SystemExit(0)", "posref: cannot start: a module that it imports ended this process\n"),
        ("click", "raise KeyboardInterrupt", "posref: cannot start: KeyboardInterrupt in {}, line 1: \n"),
    ],
)
def test_a_module_of_pythonpath_in_the_place_of_another_gives_no_verdict(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / f"{name}.py").write_text(text)
    environment = ENVIRONMENT | {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run([*POSREF, "list"], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (2, said.format(tmp_path / f"{name}.py"))


STOPPED = """
import atexit, os, signal, sys
from posref import cli

def stop(): os.kill(os.getpid(), signal.SIGTERM)

class Destroyed:
    def __del__(self): stop()

ways = {
    "in a text": lambda: exec("stop()", {"stop": stop}),
    "in a destructor": lambda: Destroyed() and None,
    "in a module that catches it": lambda: exec("import catching", {"__name__": "posref.cli"}),
    "at the end": lambda: atexit.register(stop),
}
cli._list_presets = ways[sys.argv.pop()]
sys.argv[1:] = ["list", "--presets"]
cli.main()
"""


CATCHING = "import os, signal\ntry: os.kill(os.getpid(), signal.SIGTERM)\nexcept: pass\n"  # as mpmath imports gmpy2


@few(1, ("way", "code"), [("in a text", 2), ("in a destructor", 2), ("in a module that catches it", 2), ("at the end", 0)])
def test_wherever_a_signal_finds_python_the_exit_code_is_ours(way: str, code: int, tmp_path: Path) -> None:
    """Python ends itself by SIGINT after one within `exec`, and goes on after one in a destructor."""
    (tmp_path / "catching.py").write_text(CATCHING)
    command = [sys.executable, "-P", "-c", STOPPED, way]
    environment = ENVIRONMENT | {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, preexec_fn=interruptible)
    assert (done.returncode, done.stderr) == (code, "posref: interrupted\n" if code else "")
