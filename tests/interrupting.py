"""
Kill what writes, at any moment, and look at what is left: nothing, the whole old thing, or the whole new one.

    python tests/interrupting.py {build,check,folder,file} FOLDER [COUNT [SEED]]

kills COUNT runs of a build or a check after a random time, or one run of a small writer at every single operation on files.
Children are forked from this process, which has everything loaded and no threads.
"""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from posref import startup
from posref.cli import cli
from posref.conformance.errors import VectorError
from posref.conformance.proof import build as building
from posref.conformance.proof.build import build
from posref.conformance.suite.reader import INSTALLED, load_manifest
from posref.conformance.suite.safe_files import clear, put_aside, whole_directory, whole_file
from posref.conformance.suite.writer import copy
from posref.spec import REGISTRY

Action = Callable[[], Any]
EVENTS = ("open", "os.", "shutil.", "tempfile.", "fcntl.")


def tree(place: Path) -> str | None:
    """Return a hash of a file or folder, names and contents; None if there is none."""
    if not place.exists():
        return None
    files = sorted(p for p in place.rglob("*") if p.is_file()) if place.is_dir() else [place]
    return hashlib.sha256(b"".join(f"{p.relative_to(place)}\n".encode() + p.read_bytes() for p in files)).hexdigest()


def run(action: Action, *, after: float | None = None, at: int | None = None, signum: int = signal.SIGKILL) -> int:
    """Run `action` in a child that ends after a time, or before the operation on files of that number; return how it ended."""
    child = os.fork()
    if child == 0:
        _child(action, at, signum)
    if after is not None:
        time.sleep(after)
        os.kill(child, signum)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _child(action: Action, at: int | None, signum: int) -> None:
    """Run `action` and end this process: 0 done, 1 failed, 3 interrupted."""
    seen = 0

    def hook(event: str, _: Any) -> None:
        nonlocal seen
        if event.startswith(EVENTS):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signum)

    code = 1
    try:
        if signum != signal.SIGKILL:
            startup.interrupt_on_signals(clear)
        sys.addaudithook(hook)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        action()
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    except KeyboardInterrupt:
        code = 3
    finally:
        os._exit(code)


def scratch_of(place: Path) -> list[str]:
    """Return what lies beside `place`, which can only be scratch folders of its own."""
    beside = [p.name for p in place.parent.iterdir() if p != place]
    assert all(re.fullmatch(re.escape(f".{place.name}.posref-") + "[a-z0-9_]{8}", name) for name in beside), beside
    return beside


def look(place: Path, old: str | None, new: str) -> str:
    """Return what is at `place` after a kill, "absent", "old" or "new"; anything else is an error."""
    found = tree(place)
    scratch_of(place)
    if found is not None:
        assert found in (old, new), f"{place} is neither the old nor the new one"
        return "new" if found == new else "old"
    aside = put_aside(place)
    if old is not None:  # killed between two renames
        assert aside is not None
        assert tree(aside) == old
        assert str(aside) in refusal(place)  # whoever looks for it is told where it is
    return "absent"


def refusal(place: Path) -> str:
    """Return why there is no suite at `place`."""
    try:
        load_manifest(place)
    except VectorError as error:
        return str(error)
    raise AssertionError(f"{place}: there is one")


def builds(folder: Path, count: int, seed: int) -> Counter[str]:
    """Kill builds that replace a suite."""
    place, kept, rng, seen = folder / "b" / "suite", folder / "kept", random.Random(seed), Counter[str]()
    place.parent.mkdir()
    copy(INSTALLED, kept, ["alibi_slopes"])
    building.STATIC = kept  # nobody edits the schemas meanwhile
    some = [next(case for case in building.cases_of(op) if case.tier == "smoke") for op in sorted(REGISTRY)[::4]]
    building.all_cases = lambda ops=(): iter(some)
    old = tree(kept)
    shutil.copytree(kept, place)
    begun = time.monotonic()
    assert run(lambda: build(place, tier="smoke")) == 0
    took, new = time.monotonic() - begun, tree(place)
    assert new not in (None, old)
    for _ in range(count):
        if tree(place) != old and tree(place) is not None:
            shutil.rmtree(place)
            shutil.copytree(kept, place)
        run(lambda: build(place, tier="smoke"), after=rng.uniform(0, 1.2 * took))
        seen[look(place, old, new or "")] += 1
    assert run(lambda: build(place, tier="smoke")) == 0
    assert tree(place) == new
    assert scratch_of(place) == []
    return seen


def checks(folder: Path, count: int, seed: int) -> Counter[str]:
    """Kill checks that write three reports."""
    rng, seen = random.Random(seed), Counter[str]()
    places = {form: folder / form / f"report.{form}" for form in ("json", "html", "junit")}
    for place in places.values():
        place.parent.mkdir()
    files = [part for form, place in places.items() for part in (f"--{form}", str(place))]

    def check(*arguments: str) -> None:
        cli(["check", "posref", "--op", "alibi_slopes", "--seed", "1", *arguments, *files], standalone_mode=False)

    states = []
    for extra in (("--tier", "smoke"), ()):
        begun = time.monotonic()
        assert run(lambda extra=extra: check(*extra)) == 0
        took = time.monotonic() - begun
        states.append({form: tree(place) for form, place in places.items()})
    old, new = states
    for _ in range(count):
        run(lambda: check(*rng.choice([("--tier", "smoke"), ()])), after=rng.uniform(0, 1.2 * took))
        for form, place in places.items():
            seen[look(place, old[form], new[form] or "")] += 1
        if rng.random() < 0.2:
            for place in places.values():
                place.unlink(missing_ok=True)
            old = dict.fromkeys(places)
            run(lambda: check("--tier", "smoke"))
            old = {form: tree(place) for form, place in places.items()}
    assert run(check) == 0
    assert all(scratch_of(place) == [] for place in places.values())
    return seen


def every(folder: Path, write: Callable[[Path, str], None], signum: int = signal.SIGKILL) -> Counter[str]:
    """Kill a writer before each of its operations on files in turn, until one run of it is left alone."""
    place, seen = folder / "w" / "thing", Counter[str]()
    place.parent.mkdir()
    write(place, "new")
    new = tree(place)
    for existing in (False, True):
        at, ended = 0, -1
        while ended != 0:
            if place.is_dir():
                shutil.rmtree(place)
            place.unlink(missing_ok=True)
            if existing:
                write(place, "old")
            old = tree(place)
            at += 1
            ended = run(lambda: write(place, "new"), at=at, signum=signum)
            seen[look(place, old, new or "")] += 1
            assert signum == signal.SIGKILL or scratch_of(place) == []
        assert tree(place) == new
        assert scratch_of(place) == []
    return seen


def a_folder(place: Path, text: str) -> None:
    """Write a folder of three files."""
    with whole_directory(place, lambda _: None) as new:
        (new / "deep" / "er").mkdir(parents=True)
        for name in ("a", "deep/b", "deep/er/c"):
            (new / name).write_text(text)


KINDS: dict[str, Callable[[Path, int, int], Counter[str]]] = {
    "build": builds,
    "check": checks,
    "folder": lambda folder, *_: every(folder, a_folder),
    "file": lambda folder, *_: every(folder, whole_file),
    "folder-ctrl-c": lambda folder, *_: every(folder, a_folder, signal.SIGINT),
    "file-ctrl-c": lambda folder, *_: every(folder, whole_file, signal.SIGINT),
    "folder-sigterm": lambda folder, *_: every(folder, a_folder, signal.SIGTERM),
    "file-sighup": lambda folder, *_: every(folder, whole_file, signal.SIGHUP),
}

if __name__ == "__main__":
    kind, folder, number, seed = (*sys.argv[1:], *("200", "0")[len(sys.argv) - 3 :])
    print(json.dumps(KINDS[kind](Path(folder), int(number), int(seed))))
