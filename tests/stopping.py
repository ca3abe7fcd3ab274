"""
Stop commands at drawn times, as people and systems do, and look at what is left: by INT, TERM, HUP and KILL.

    python tests/stopping.py [COUNT [SEED [COMMAND ...]]]

Each command runs once to its end first, so that it is known to reach its work, and how long that takes. What it writes must
then be the old file or the new one, no process may go on, and nothing may lie beside it, but after KILL: then the next run
removes it. Prints what ended badly, and counts of how runs ended.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from conftest import interruptible
from interrupting import tree

ROOT = Path(__file__).parents[1]
POSREF = [sys.executable, "-P", "-m", "posref"]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
BEGUN, BEFORE = "posref: interrupted", "before the first line"
PATIENCE = 10.0  # seconds until the processes of a run that was killed are gone
WRONG = (
    "from posref import alibi_slopes as right\ndef alibi_slopes(heads, **options):\n    return 2 * right(heads, **options)\n"
)


def is_npz(path: Path) -> bool:
    with np.load(path) as file:
        return all(file[name] is not None for name in file)


def ends_with(end: bytes) -> Callable[[Path], bool]:
    return lambda path: path.read_bytes().rstrip().endswith(end)


def is_before(code: int, said: str) -> bool:
    """Return whether a signal ended Python before posref can handle any: no file of it but the first two had begun."""
    files = re.findall(r'File "(.+?)"', said)
    started = any(
        "posref" in f and "__editable__" not in f and not f.endswith(("posref/__init__.py", "posref/startup.py")) for f in files
    )
    return BEGUN not in said and not started and (bool(files) or (not said and code < 0))


@dataclass(frozen=True)
class Command:
    """Arguments of posref, the names that it may write and how each is whole, and the exit code of a run to the end."""

    arguments: tuple[str, ...]
    results: Mapping[str, Callable[[Path], bool]]
    code: int = 0
    needs: tuple[str, ...] = field(default=())  # what must lie in the folder


COMMANDS = {
    "build": Command(
        ("vectors", "build", "suite", "--op", "alibi_slopes", "--op", "t5_buckets"), {"suite": lambda p: tree(p) is not None}
    ),
    "golden": Command(
        (
            "golden",
            "sinusoidal",
            "--option",
            "layout=interleaved",
            "--option",
            "dim=64",
            "--positions",
            "0:64",
            "-o",
            "out.npz",
        ),
        {"out.npz": is_npz},
    ),
    "check": Command(
        ("check", "wrong.py", "--seed", "1", "--json", "out.json", "--html", "out.html"),
        {"out.json": lambda p: bool(json.loads(p.read_text("utf-8"))), "out.html": ends_with(b"</html>")},
        1,
        ("wrong.py",),
    ),
    "plot": Command(
        ("plot", "alibi", "--heads", "8", "-o", "out.png"),
        {"out.png": lambda p: p.read_bytes().startswith(b"\x89PNG") and b"IEND" in p.read_bytes()[-16:]},
    ),
    "report": Command(
        ("report", "report.json", "--html", "out.html", "--junit", "out.xml"),
        {"out.html": ends_with(b"</html>"), "out.xml": ends_with(b"</testsuites>")},
        0,
        ("report.json",),
    ),
    "fuzz": Command(
        ("fuzz", "wrong.py", "--op", "alibi_slopes", "--examples", "20", "--output", "found"),
        {"found": lambda p: tree(p) is not None},
        1,
        ("wrong.py",),
    ),
}


class Bench:
    """A folder in which one command runs again and again."""

    def __init__(self, name: str, folder: Path) -> None:
        self.command, self.folder = COMMANDS[name], folder
        (folder / "tmp").mkdir(parents=True)
        (folder / "wrong.py").write_text(WRONG)
        self.environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
        if "report.json" in self.command.needs:
            subprocess.run(
                [*POSREF, "check", "wrong.py", "--json", "report.json"], cwd=folder, env=self.environment, check=False,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self.kept = {"tmp", "wrong.py", *self.command.needs}
        began = time.monotonic()
        done = self.start()
        _, said = done.communicate()
        self.seconds = time.monotonic() - began
        assert done.returncode == self.command.code, said
        assert {p.name for p in folder.iterdir()} - self.kept == set(self.command.results), said

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*POSREF, *self.command.arguments], cwd=self.folder, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=interruptible,
        )  # fmt: skip

    def clear(self) -> None:
        """Leave no results, so that the next run makes new ones."""
        for path in self.folder.iterdir():
            if path.name in self.command.results:
                subprocess.run(["rm", "-r", str(path)], check=True)

    def stop(self, rng: random.Random) -> tuple[str, list[str]]:
        """Run the command, stop it at a drawn time, and return how it ended, and what is wrong with what is left."""
        if rng.random() < 0.5:
            self.clear()
        before = {name: tree(self.folder / name) for name in self.command.results}
        number, delay = rng.choice(SIGNALS), rng.uniform(0, 1.05 * self.seconds)
        process = self.start()
        with suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        stopped = process.poll() is None
        if not stopped:  # other programs run too: the time is another each time
            self.seconds = (self.seconds + delay) / 2
        if stopped:
            with suppress(ProcessLookupError):
                # the terminal's ctrl-c reaches the whole group
                (os.killpg if number == signal.SIGINT and rng.random() < 0.5 else os.kill)(process.pid, number)
        _, said = process.communicate(timeout=60)
        if stopped and number != signal.SIGKILL and is_before(process.returncode, said):
            return BEFORE, self._left(number, before)
        told = f"{number.name} after {delay:.2f} of {self.seconds:.2f} s, exit code {process.returncode}"
        wrong = [*self._said(process.returncode, said, number, stopped=stopped), *self._left(number, before)]
        return (number.name if stopped and process.returncode in (2, -9) else "done"), [f"{told}: {text}" for text in wrong]

    def _said(self, code: int, said: str, number: int, *, stopped: bool) -> list[str]:
        """Return what is wrong with the exit code of a run, and with what it printed."""
        allowed = {self.command.code} | ({-number if number == signal.SIGKILL else 2} if stopped else set())
        bad = [] if code in allowed else [f"exit code, and it says {said!r}"]
        if "Traceback" in said or (said.strip() and BEGUN not in said):
            bad.append(f"it says {said[-500:]!r}")
        return bad

    def _left(self, number: int, before: Mapping[str, str | None]) -> list[str]:
        """Return what is wrong with what a run left."""
        killed = number == signal.SIGKILL
        bad = []
        for name, is_whole in self.command.results.items():
            path = self.folder / name
            if tree(path) not in (None, before[name]) and not is_whole(path):
                bad.append(f"{name} is half written")
            if before[name] is not None and tree(path) is None and not killed:
                bad.append(f"{name} is gone")
        bad += [f"process {pid} goes on" for pid in self._processes()]
        scratch = self._scratch()
        if scratch and killed:
            bad += self._after_a_kill(scratch)
        elif scratch:
            bad.append(f"{sorted(scratch)} lie there")
        return bad

    def _scratch(self) -> set[str]:
        """Return what lies in the folder and is neither an input nor a result."""
        found = {p.name for p in self.folder.iterdir()} - self.kept - set(self.command.results)
        return found | {f"tmp/{p.name}" for p in (self.folder / "tmp").iterdir()}

    def _after_a_kill(self, scratch: set[str]) -> list[str]:
        """Return what is wrong with what a killed run left: its scratch must have posref's name, and go with the next run."""
        strange = [n for n in scratch if not re.search(r"posref", n)]
        again = self.start()
        again.communicate()
        left = self._scratch()
        doctor = subprocess.run(
            [*POSREF, "doctor"], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        ).stdout
        told = {name for name in left if Path(name).name in doctor}
        bad = [f"{sorted(left - told)} lie there after the next run, and doctor does not name them"] if left - told else []
        for name in left:
            subprocess.run(["rm", "-r", str(self.folder / name)], check=True)
        return bad + ([f"{strange} have no name of posref's"] if strange else [])

    def _processes(self) -> list[int]:
        """Return the processes that still run in the folder after a while."""
        deadline = time.monotonic() + PATIENCE
        while (found := list(self._running())) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def _running(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and Path(os.readlink(entry / "cwd")).is_relative_to(self.folder):
                    found.append(int(entry.name))
        return found


def stop_all(count: int, seed: int, names: list[str], folder: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """Stop so many runs of some commands, and return how they ended, and what is wrong."""
    ends: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for k, name in enumerate(names):
        bench, rng = Bench(name, folder / name), random.Random(f"{seed} {name}")
        ends[name] = Counter()
        for _ in range(count // len(names) + (k < count % len(names))):
            end, bad = bench.stop(rng)
            ends[name][end] += 1
            wrong += [f"{name}: {text}" for text in bad]
    return ends, wrong


if __name__ == "__main__":
    number, start, *chosen = (*sys.argv[1:], *("200", "0")[len(sys.argv) - 1 :])
    with tempfile.TemporaryDirectory() as place:
        ends, wrong = stop_all(int(number), int(start), chosen or list(COMMANDS), Path(place).resolve())
    print(json.dumps({"ends": ends, "wrong": wrong}, indent=1))
    sys.exit(bool(wrong))
